"""Create tests/golden: a data directory and a model written by this version, and this version's results with them.

    python scripts/make_golden.py

Later versions must read them with the same results (tests/test_golden.py). Only run this when a format version
changes, or when translations are meant to change.
"""

import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch

import nmt
from nmt.config import load_config
from nmt.corpus.dataset import open_data
from nmt.corpus.example import read_examples
from nmt.corpus.prepare import write_data
from nmt.evaluation.metrics import ScoringRules, score_corpus
from nmt.models.storage import MARKER
from nmt.system.files import read_json, shipped, write_json
from nmt.system.replacement import atomic_directory
from nmt.text.direction import Direction
from nmt.training.run import train

GOLDEN = Path(__file__).resolve().parent.parent / "tests/golden"
BEAMS = (1, 4)
LEARNT = 10
"""Sentences of the corpus to translate, besides the test split."""
ENCODED = 3
"""Pairs of each split whose ids are recorded."""
WEIGHT_NOISE, NOISES = 1e-5, 3
"""Relative noise on every weight under which nothing may change, so that rounding on other machines does not matter."""
ODD = ["", "   ", "I", "i am old", "He is old. She is old.", "Are you tired?\tYes."]
ODD += ["Caf\u00e9 \U0001f600 \u4f60\u597d", "\u201cI am old,\u201d he said.", "It rains &amp; it snows.", "x" * 50]
"""Lines unlike the training text."""


def main() -> None:
    """Preprocess, train and translate, replacing the existing files."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    config = load_config(str(GOLDEN / "golden.yaml"))
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        try:
            corpus = Path(config.data.source[0])
            corpus.parent.mkdir(parents=True)
            shutil.copy(shipped(str(corpus)), corpus)  # so that no path of this machine is recorded
            data, model = Path("golden/data"), Path("run/best")
            write_data(config, data)
            train(config, data=data, output="run")
            for unneeded in (data / "report.md", data / "lengths.png"):
                unneeded.unlink()
            # The location of the data during training means nothing elsewhere.
            write_json(model / MARKER, {**read_json(model / MARKER), "data": str(data)})
            expected = observe(data, model)
            for source, name in ((data, "data"), (model, "model")):
                with atomic_directory(GOLDEN / name) as target:
                    shutil.copytree(source, target, dirs_exist_ok=True)
        finally:
            os.chdir(here)
    write_json(GOLDEN / "expected.json", expected)
    size = sum(path.stat().st_size for path in GOLDEN.rglob("*") if path.is_file())
    print(f"{GOLDEN}: {size:,} bytes, BLEU {expected['scores']['bleu']:.2f}")


def observe(data_directory: Path, model_directory: Path) -> dict[str, Any]:
    """The results that later versions must reproduce."""
    data = open_data(data_directory)
    test = read_examples(data_directory / "test.jsonl")
    learnt = Path(data.config.data.source[0]).read_text(encoding="utf-8").splitlines()[:LEARNT]
    lines = [*(line.split("\t")[0] for line in learnt), *(example.src for example in test), *ODD]
    translations = {str(beam): translate_robustly(model_directory, lines, beam) for beam in BEAMS}
    translator = nmt.load(model_directory, device="cpu")
    rules = ScoringRules.for_text(data.config.text, Direction.of(data.config.data).target)
    texts = [translation.text for translation in translator.translate([example.src for example in test])]
    return {
        "pairs": {"train": len(data.train), "valid": len(data.valid)},
        "ids": {
            split: [[pairs.src[index].tolist(), pairs.tgt[index].tolist()] for index in range(ENCODED)]
            for split, pairs in (("train", data.train), ("valid", data.valid))
        },
        "vocabularies": [data.src_vocabulary.tokens, data.tgt_vocabulary.tokens],
        "sources": lines,
        "translations": translations,
        "scores": {name: score.value for name, score in score_corpus(test, texts, rules).items()},
    }


def translate_robustly(model_directory: Path, lines: list[str], beam_size: int) -> list[str]:
    """Translate, and check that translations do not depend on the last digits of the weights.

    Raises:
        SystemExit: One does.
    """
    translator = nmt.load(model_directory, device="cpu", beam_size=beam_size)
    texts = [translation.text for translation in translator.translate(lines)]
    weights = {name: weight.clone() for name, weight in translator.model.state_dict().items()}
    for seed in range(NOISES):
        generator = torch.Generator().manual_seed(seed)
        for name, weight in translator.model.state_dict().items():
            noise = torch.randn(weight.shape, generator=generator)
            weight.copy_(weights[name] * (1 + WEIGHT_NOISE * noise))
        for line, text, translation in zip(lines, texts, translator.translate(lines), strict=True):
            if translation.text != text:
                raise SystemExit(f"{line!r} (beam {beam_size}) is a close call: {text!r} or {translation.text!r}")
    return texts


if __name__ == "__main__":
    main()
