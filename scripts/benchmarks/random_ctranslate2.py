"""Translate lines with a Transformer of random weights in CTranslate2, in an environment that has it.

PYTHON random_ctranslate2.py REQUEST

REQUEST and the last line of output are as in `random_nmt`.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.specs.model_spec import visit_spec
from ctranslate2.specs.transformer_spec import TransformerSpec

SIZE, FEED_FORWARD, LAYERS, HEADS = 256, 1024, 4, 4
SHAPES = {
    "self_attention/linear_0": (3 * SIZE, SIZE),
    "self_attention/linear_1": (SIZE, SIZE),
    "attention/linear_0": (SIZE, SIZE),
    "attention/linear_1": (2 * SIZE, SIZE),
    "attention/linear_2": (SIZE, SIZE),
    "ffn/linear_0": (FEED_FORWARD, SIZE),
    "ffn/linear_1": (SIZE, FEED_FORWARD),
}
"""Rows and columns of the matrices in a layer; queries, keys and values of self-attention are one."""


def main() -> None:
    """Translate twice, and time the second pass."""
    request = json.loads(sys.argv[1])
    lines = Path(request["lines"]).read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder), request["words"], request["precision"])
        translator = ctranslate2.Translator(
            folder, compute_type=request["precision"], inter_threads=1, intra_threads=request["threads"]
        )
    options = {"beam_size": request["beam"], "max_batch_size": request["batch_size"]}
    options |= {"min_decoding_length": request["length"], "max_decoding_length": request["length"]}
    for _ in range(2):
        begin = time.perf_counter()
        results = translator.translate_batch([[*line.split(), "</s>"] for line in lines], **options)
        translations = [" ".join(result.hypotheses[0]) for result in results]
        seconds = time.perf_counter() - begin
    lengths = [len(translation.split()) for translation in translations]
    print(json.dumps({"seconds": seconds, "shortest": min(lengths), "longest": max(lengths)}))


def write_model(folder: Path, words: int, precision: str) -> None:
    """Write a pre-norm Transformer of random weights, with sinusoidal positions."""
    spec = TransformerSpec.from_config((LAYERS, LAYERS), HEADS, pre_norm=True)
    generator = np.random.default_rng(1)

    def fill(layer: Any, path: str, value: Any) -> None:
        if value is not None:  # set already, or may be left out
            return
        *_, sublayer, part, name = path.split("/")
        if name == "weight":
            shape = SHAPES.get(f"{sublayer}/{part}", (words, SIZE))
            layer.weight = generator.standard_normal(shape, np.float32) * np.float32(0.1)
            if sublayer == "ffn" or part == "projection":  # the linear layers that have a bias in nmt
                layer.bias = np.zeros(shape[0], np.float32)
        else:
            setattr(layer, name, np.full(SIZE, name == "gamma", np.float32))

    visit_spec(spec, fill)
    vocabulary = ["<blank>", "<s>", "</s>", "<unk>", *(f"w{number}" for number in range(words - 4))]
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.validate()
    spec.optimize(quantization=None if precision == "float32" else precision)
    spec.save(str(folder))


if __name__ == "__main__":
    main()
