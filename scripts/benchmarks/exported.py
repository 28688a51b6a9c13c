"""Whether other programs translate with an exported model as `nmt` does: words, scores, BLEU, size and speed."""

import argparse
import json
import math
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch
from tqdm import tqdm

import nmt
from benchmarks.arguments import Commands, add_parser, positive
from benchmarks.tables import markdown
from nmt.evaluation.input_text import read_split
from nmt.evaluation.metrics import ScoringRules, score_corpus
from nmt.exporting import ctranslate2
from nmt.models.run_records import find_model
from nmt.models.storage import load_model
from nmt.system.device import use_fast_products

BEAMS = (1, 5)
BATCH = 64
PATIENCE = 2
"""Ended hypotheses, in beams, at which CTranslate2 stops; with its default of 1 it may miss better ones."""


class Found(NamedTuple):
    """A translation and its score, the mean log-probability of a token."""

    text: str
    score: float


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    about = "the translations of an exported model beside those of nmt"
    parser = add_parser(commands, compare_exported, "exported", about, "runs/benchmark/exported", rounds=3, threads=1)
    parser.add_argument("--model", type=Path, required=True, help="a run whose model CTranslate2 can hold")
    parser.add_argument("--data", type=Path, required=True, help="its data directory")
    parser.add_argument("--argos", metavar="PYTHON", help="a Python environment with argostranslate, to time it too")
    parser.add_argument("--sentences", type=positive, default=1000, help="of the test split, from its beginning")


def compare_exported(arguments: argparse.Namespace) -> None:
    """Translate the same sentences by every system in interleaved rounds, and print a table."""
    torch.set_num_threads(arguments.threads)
    use_fast_products()
    source = find_model(arguments.model)
    examples = read_split(arguments.data, "test")[: arguments.sentences]
    lines = [example.src for example in examples]
    size = sum(path.stat().st_size for path in source.glob("*.safetensors"))
    systems: dict[tuple[str, str, int], Callable[[Sequence[str]], list[Found]]] = {}
    sizes = {"nmt": size}
    for quantization in (quantizations := ctranslate2.QUANTIZATIONS[:2]):
        folder = arguments.output / quantization
        nmt.export(arguments.model, to="ctranslate2", output=folder, quantization=quantization, overwrite=True)
        sizes[quantization] = (folder / "model.bin").stat().st_size
    for beam in BEAMS:
        for precision in ("float32", "bfloat16"):
            systems["nmt", precision, beam] = own(arguments.model, precision, beam)
        for quantization in quantizations:
            systems["CTranslate2", quantization, beam] = other(
                arguments.output / quantization, source, beam, arguments.threads
            )
    if arguments.argos:
        package = arguments.output / "model.argosmodel"
        nmt.export(arguments.model, to="argos", output=package, overwrite=True)
        sizes["argos"] = package.stat().st_size
        for beam in BEAMS:
            systems["Argos", "int8", beam] = argos(arguments.argos, package, source, beam, arguments.threads)
    seconds: dict[tuple[str, str, int], list[float]] = {key: [] for key in systems}
    found = {key: translate(lines[:BATCH]) for key, translate in systems.items()}
    for _ in tqdm(range(arguments.rounds), desc="translating", unit=" rounds", disable=None):
        for key, translate in systems.items():
            begin = time.perf_counter()
            found[key] = translate(lines)
            seconds[key].append(time.perf_counter() - begin)
    rows = []
    for (system, precision, beam), translations in found.items():
        expected = found["nmt", "float32", beam]
        unlike = [pair for pair in zip(expected, translations, strict=True) if pair[0].text != pair[1].text]
        gap = max((ours.score - theirs.score for ours, theirs in unlike), default=0.0)
        scores = score_corpus(examples, [each.text for each in translations], ScoringRules())
        size = sizes[precision if system == "CTranslate2" else system.casefold()]
        speed = len(lines) / median(seconds[system, precision, beam])
        same = f"{len(lines) - len(unlike)} of {len(lines)}"
        cells = system, precision, str(beam), same, f"{gap:.5f}", f"{scores['bleu'].value:.2f}"
        rows.append([*cells, f"{size / 1e6:.1f}", f"{speed:,.0f}"])
    header = "system", "weights", "beam", "same as nmt", "largest loss of score", "BLEU", "MB", "sentences/s"
    print(markdown(header, rows))


def own(model: Path, precision: str, beam: int) -> Callable[[Sequence[str]], list[Found]]:
    """Translate whole lines, as `nmt evaluate` does, but with translations of any length."""
    options: dict[str, Any] = {"beam_size": beam, "batch_size": BATCH, "precision": precision}
    translator = nmt.load(model, split_sentences=False, overrides={"decode.max_length_ratio": 100}, **options)
    return lambda lines: [Found(each.text, each.score) for each in translator.translate(lines)]


def other(folder: Path, source: Path, beam: int, threads: int) -> Callable[[Sequence[str]], list[Found]]:
    """Translate by CTranslate2, with text cleaned as the model's processor does, and its search settings."""
    from ctranslate2 import Translator

    saved = load_model(source)
    processor, decode = saved.load_processor(), saved.config.decode
    runtime = Translator(str(folder), intra_threads=threads, inter_threads=1)

    def translate(lines: Sequence[str]) -> list[Found]:
        results = runtime.translate_batch(
            processor.tokenize_source(lines),
            beam_size=beam,
            patience=PATIENCE,
            length_penalty=decode.length_penalty,
            max_batch_size=BATCH,
            max_decoding_length=decode.max_length,
            min_decoding_length=decode.min_length,
            return_scores=True,
        )
        return [Found(processor.tgt_tokenizer.detokenize(each.hypotheses[0]), each.scores[0]) for each in results]

    return translate


def argos(python: str, package: Path, source: Path, beam: int, threads: int) -> Callable[[Sequence[str]], list[Found]]:
    """Translate line after line by Argos Translate, which installs the package beside it; there are no scores."""
    homes = {f"XDG_{name}_HOME": str(package.parent / "argos") for name in ("DATA", "CONFIG", "CACHE")}
    settings = homes | {"ARGOS_BEAM_SIZE": str(beam), "ARGOS_INTRA_THREADS": str(threads), "ARGOS_INTER_THREADS": "1"}
    script, languages = Path(__file__).with_name("argos_lines.py"), load_model(source).config.data.languages
    process = subprocess.Popen(
        [python, script, package, *languages],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | settings,
    )
    requests, answers = process.stdin, process.stdout
    assert requests
    assert answers

    def translate(lines: Sequence[str]) -> list[Found]:
        print(json.dumps(lines), file=requests, flush=True)
        return [Found(text, math.nan) for text in json.loads(answers.readline())]

    return translate
