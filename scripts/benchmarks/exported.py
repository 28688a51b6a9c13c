"""Whether other programs translate with an exported model as `nmt` does: words, scores, BLEU, size and speed."""

import argparse
import json
import math
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from html import unescape
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
from nmt.exporting.formats import find_format
from nmt.exporting.html import quantize
from nmt.models.lookup import find_model
from nmt.models.storage import ModelFolder, SavedModel, load_model
from nmt.text.direction import Direction

BATCH = 64
PATIENCE = 2
"""Ended hypotheses, in beams, at which CTranslate2 stops; with its default of 1 it may miss better ones."""
LONGEST = 100
"""Tokens of a translation per token of its source; CTranslate2 has no such limit."""
PAGE = 100
"""Sentences that an exported page translates, one after the other."""
WEIGHTS = (".safetensors", ".bin", ".onnx")
"""Endings of the files that count as the size of a model."""
ARGOS_PENALTY = {"decode.length_norm": "average", "decode.length_penalty": 0.2}
MEASURE = """<pre id="found"></pre><script>{
  const [{ network, processor, decode }] = data.models;
  let first = 0, tokens = 0;
  const found = %s.map((line) => {
    const ids = processor.encode(processor.tokenize(line));
    const work = search(network, ids, { ...decode, beam_size: %d }, { reserved: [], demanded: [] });
    let step = work.next();
    while (!step.done) step = work.next();
    const words = trace(step.value.nodes, step.value.ends[0]).map(({ word }) => word);
    if (first) tokens += words.length; else first = performance.now();
    return words.filter((word) => word !== EOS);
  });
  at("found").textContent = JSON.stringify([found, first / 1000, 1000 * tokens / (performance.now() - first)]);
}</script>"""
"""What is added to a page: it translates lines one after the other. The clock begins when the page is opened."""


class Found(NamedTuple):
    """A translation and its score, where the program has one with the meaning that ours has."""

    text: str
    score: float = math.nan


Translate = Callable[[Sequence[str]], list[Found]]


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    about = "the translations of an exported model beside those of nmt"
    parser = add_parser(commands, compare_exported, "exported", about, "runs/benchmark/exported", rounds=3, threads=1)
    parser.add_argument("--model", type=Path, required=True, help="a run; formats that cannot hold it are left out")
    parser.add_argument("--data", type=Path, required=True, help="its data directory")
    parser.add_argument("--argos", metavar="PYTHON", help="a Python environment with argostranslate, to time it too")
    parser.add_argument("--sentences", type=positive, default=1000, help="of the test split, from its beginning")


def compare_exported(arguments: argparse.Namespace) -> None:
    """Translate the same sentences by every system in interleaved rounds, and print a table."""
    torch.set_num_threads(arguments.threads)
    saved = load_model(find_model(arguments.model))
    examples = read_split(arguments.data, "test")[: arguments.sentences]
    lines = [example.src for example in examples]
    systems = {("nmt", precision, beam): own(saved.path, precision, beam) for precision, beam in OWN}
    sizes = dict.fromkeys((key[:2] for key in systems), size(saved.path))
    alone: dict[tuple[str, str, int], tuple[str, str, int]] = {}
    for name, beams in OTHERS.items():
        form = find_format(name)
        if any(form.find_obstacles(saved.config)):
            continue
        for quantization in form.quantizations[:2]:
            folder = arguments.output / name / quantization
            nmt.export(saved.path, to=name, output=folder, quantization=quantization, overwrite=True)
            sizes[name, quantization] = sizes[f"nmt, {name}", quantization] = size(folder)
            for beam, make in beams.items():
                systems[name, quantization, beam] = make(folder, saved, beam, arguments.threads)
                through = f"nmt, {name}", quantization, beam
                systems[through] = own(folder, "float32", beam)
                alone[through] = name, quantization, beam
    if arguments.argos:
        package = arguments.output / "model.argosmodel"
        nmt.export(saved.path, to="argos", output=package, overwrite=True)
        sizes["argos", "int8"] = package.stat().st_size
        sizes["nmt, penalty of argos", "float32"] = sizes["nmt", "float32"]
        for beam in (1, 5):
            systems["nmt, penalty of argos", "float32", beam] = own(saved.path, "float32", beam, ARGOS_PENALTY)
            systems["argos", "int8", beam] = by_argos(arguments.argos, package, saved, beam, arguments.threads)
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
        bleu = score_corpus(examples, [each.text for each in translations], ScoringRules())["bleu"].value
        key = system, precision, beam
        speed = len(lines) / median(seconds[key])
        share = ""
        if key in alone:
            rounds = zip(seconds[alone[key]], seconds[key], strict=True)
            share = f"{median(theirs / ours for theirs, ours in rounds):.2f}"
        same = f"{len(lines) - len(unlike)} of {len(lines)}"
        cells = system, precision, str(beam), same, f"{gap:.5f}", f"{bleu:.2f}"
        rows.append([*cells, f"{sizes[system, precision] / 1e6:.1f}", f"{speed:,.0f}", share])
    columns = "system", "weights", "beam", "same as nmt", "largest loss of score", "BLEU", "MB"
    header = *columns, "sentences/s", "× the program itself"
    print(markdown(header, rows), flush=True)
    if shutil.which("chromium") and not any(find_format("html").find_obstacles(saved.config)):
        print_page(saved, lines[:PAGE], arguments.output / "page.html")


def print_page(saved: SavedModel, lines: Sequence[str], page: Path) -> None:
    """Export a model as a page, translate lines by it, and print a table."""
    nmt.export(saved.path, to="html", output=page, overwrite=True)
    rows, size = [], page.stat().st_size / sum(weights.numel() for weights in saved.model.parameters())
    for beam in (1, 5):
        same, first, speed = measure_page(page, saved.path, lines, beam)
        rows.append([str(beam), f"{same} of {len(lines)}", f"{size:.2f}", f"{first:.1f}", f"{speed:,.0f}"])
    header = "beam", "same as nmt, rounded", "bytes a weight", "seconds to the first translation", "target tokens/s"
    print("", markdown(header, rows), sep="\n")


def size(folder: Path) -> int:
    """Bytes of the weights in a folder."""
    return sum(path.stat().st_size for path in folder.iterdir() if path.suffix in WEIGHTS)


def own(model: Path, precision: str, beam: int, search: Mapping[str, Any] | None = None) -> Translate:
    """Translate whole lines with a model or an export, as `nmt evaluate` does, but with translations of any length."""
    translator = nmt.load(
        model,
        split_sentences=False,
        overrides={"decode.max_length_ratio": LONGEST, **(search or {})},
        beam_size=beam,
        batch_size=BATCH,
        precision=precision,
    )
    return lambda lines: [Found(each.text, each.score) for each in translator.translate(lines)]


def by_ctranslate2(folder: Path, model: ModelFolder, beam: int, threads: int) -> Translate:
    """Translate with text cleaned as the model's processor does, and its search settings."""
    from ctranslate2 import Translator

    processor, decode = model.load_processor(), model.config.decode
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


def by_onnx(folder: Path, model: ModelFolder, beam: int, threads: int) -> Translate:
    """Translate with the program of the folder, with text cleaned as the model's processor does; of any length too."""
    from nmt.exporting.onnx_runner import Translator

    runtime, clean = Translator(folder, threads), model.load_processor().normalizer
    runtime.settings["max_length_ratio"] = LONGEST
    return lambda lines: list(map(Found, runtime.translate([clean(line) for line in lines])))


def by_argos(python: str, package: Path, model: SavedModel, beam: int, threads: int) -> Translate:
    """Translate line after line by Argos Translate, which installs the package beside it."""
    homes = {f"XDG_{name}_HOME": str(package.parent / f"argos{beam}") for name in ("DATA", "CONFIG", "CACHE")}
    settings = homes | {"ARGOS_BEAM_SIZE": str(beam), "ARGOS_INTRA_THREADS": str(threads), "ARGOS_INTER_THREADS": "1"}
    script = Path(__file__).with_name("argos_lines.py")
    direction = Direction.of(model.config.data)
    process = subprocess.Popen(
        [python, script, package, direction.source, direction.target],
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
        return list(map(Found, json.loads(answers.readline())))

    return translate


def measure_page(page: Path, model: Path, lines: Sequence[str], beam: int) -> tuple[int, float, float]:
    """Translate lines by a page in a headless Chromium.

    Returns:
        How many have the words of `nmt` with the page's rounded weights; seconds from opening the page to the end of
        the first line; target tokens a second of the others.
    """
    script, measured = MEASURE % (json.dumps(lines).replace("<", "\\u003c"), beam), page.with_suffix(".measured.html")
    text = page.read_text(encoding="utf-8").replace("Content-Security-Policy", "")  # it forbids other scripts
    measured.write_text(text + script, encoding="utf-8")
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", measured.absolute().as_uri()]
    shown = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
    found, first, speed = json.loads(unescape(shown.rpartition('<pre id="found">')[2].partition("</pre>")[0]))
    translator = nmt.load(model, split_sentences=False, beam_size=beam)
    for weights in translator.model.parameters():
        if weights.dim() > 1 and len(weights) > 1:
            scales, rounded = quantize(weights.data)
            weights.data = scales.unsqueeze(1) * rounded
    words, translations = translator.processor.tgt_vocabulary, translator.translate(lines)
    same = [words.encode(own.tokens) == ids for own, ids in zip(translations, found, strict=True)]
    return sum(same), first, speed


OWN = [(precision, beam) for beam in (1, 5) for precision in ("float32", "bfloat16")]
OTHERS = {"ctranslate2": dict.fromkeys((1, 5), by_ctranslate2), "onnx": {1: by_onnx}}
"""What translates with a model in another format, by the sizes of its beam."""
