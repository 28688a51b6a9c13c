"""ONNX, which many programs run (https://onnx.ai): a graph for the encoder and one for a step of the decoder."""

from collections.abc import Iterator
from pathlib import Path

from nmt.config import Config
from nmt.exporting.formats import Format, Obstacle, find_other_values, write_for_nmt, write_usage
from nmt.exporting.onnx_models import DECODERS, ENCODERS, build_graphs
from nmt.models.storage import SavedModel
from nmt.search.hypothesis import Lengths
from nmt.system.files import write_json
from nmt.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK_ID

GRAPHS = {
    "model.encoder.kind": tuple(ENCODERS),
    "model.decoder.kind": tuple(DECODERS),
    "model.encoder.layer_norm": ("layers", "none"),
    "model.decoder.layer_norm": ("layers", "none"),
    "model.attention.score": ("additive", "concat", "dot", "general", "scaled_dot"),
    "model.attention.window.name": ("global", "local_p"),
    "model.attention.normalizer.name": ("softmax",),
    "model.attention.past.name": ("none",),
}
"""Values that have graphs, of the keys that matter."""
RUNNER = Path(__file__).with_name("onnx_runner.py")
USAGE = """# {config.name} in ONNX

    pip install numpy onnxruntime sentencepiece
    python translate.py < input.txt > output.txt

`translate.py` takes the most probable word at each step. `model.json` has the names of all inputs and outputs,
vocabularies, ids of special tokens and limits. Every input and output has a row for each hypothesis: a beam selects
rows of memory and state.

`nmt` itself takes this folder for a model, and does with the text what is listed here: `nmt serve --model FOLDER`.

{remarks}

"""


def find_obstacles(config: Config) -> Iterator[Obstacle]:
    """Find settings without a graph here. Settings of the search are no obstacles: only the model is exported."""
    return find_other_values(config, "ONNX", GRAPHS)


def write(model: SavedModel, path: Path, quantization: str) -> Iterator[str]:
    """Write the graphs, the settings that a search needs, a program that translates, and a README; see `Format`."""
    graphs = build_graphs(model.model.float(), model.config)
    for graph in graphs:
        graph.write(path / f"{graph.name}.onnx")
    decode = model.config.decode
    source, target = model.load_processor().tokenizers
    limits = [decode.max_length, model.model.decoder.max_length]
    settings = {
        "special_ids": [PAD_ID, UNK_ID, BOS_ID, EOS_ID],
        "max_source_length": model.model.encoder.max_length,
        "max_length": min(filter(None, limits)),
        "max_length_ratio": decode.max_length_ratio,
        "length_margin": Lengths.margin,
        "source_pieces": source.kind == "subword",
        "target_pieces": target.kind == "subword",
        **{graph.name: {"inputs": list(graph.inputs), "outputs": list(graph.outputs)} for graph in graphs},
        "source_tokens": model.src_vocabulary.tokens,
        "target_tokens": model.tgt_vocabulary.tokens,
    }
    write_json(path / "model.json", settings)
    (path / "translate.py").write_bytes(RUNNER.read_bytes())
    write_for_nmt(model, path, quantization)
    yield from write_usage(model, path, USAGE, "translate.py")


FORMAT = Format(write, find_obstacles, packages=("onnx",))
