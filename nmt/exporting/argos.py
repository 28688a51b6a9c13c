"""The package that Argos Translate and LibreTranslate install (https://github.com/argosopentech/argos-translate)."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from nmt.config import Config
from nmt.exporting import ctranslate2
from nmt.exporting.formats import Format, Obstacle, describe_text
from nmt.exporting.onnx_graph import BOOL, FLOAT, INT64, Graph, Port, Value
from nmt.models.card import CARD, read_card
from nmt.models.storage import SavedModel
from nmt.system.files import read_bytes, write_json, write_text
from nmt.system.limits import MAX_TEXT_FILE
from nmt.system.version import __version__
from nmt.text.direction import Direction

REMARKS = (
    "Argos searches with a beam of 4 and a length penalty of 0.2, whatever the config says.",
    "Argos writes a space for each _ in a translation.",
    "Text is split into sentences by simple rules, which know only abbreviations of one or two letters.",
)
CHARACTERS = " .!?\u2026"
"""The characters that the rules look at: a space, a full stop, and other ends of sentences."""


def find_obstacles(config: Config) -> Iterator[Obstacle]:
    """Find settings that Argos Translate 1.11 cannot hold: it has one SentencePiece model for both languages.

    Settings of the search are no obstacles, as it has its own (`argostranslate/translate.py`).
    """
    for obstacle in ctranslate2.find_obstacles(config):
        if obstacle.key.startswith("model."):
            yield obstacle
    if config.text.tokenizer != "subword":
        yield Obstacle(
            "text.tokenizer", f"Argos splits text by SentencePiece, not {config.text.tokenizer}; set subword"
        )
    elif not config.text.subword.joint:
        yield Obstacle("text.subword.joint", "Argos has one SentencePiece model for both languages; set true")


def write(model: SavedModel, path: Path, quantization: str) -> Iterator[str]:
    """Write a zip archive with one folder in it; see `Format`."""
    direction = Direction.of(model.config.data)
    code = f"translate-{direction.source}_{direction.target}"
    remarks = [*describe_text(model, "Argos"), *REMARKS]
    metadata = {
        "package_version": __version__,
        "argos_version": "1.9.0",
        "type": "translate",
        "code": code,
        "links": [],
        "from_code": direction.source,
        "from_name": direction.source_name,
        "to_code": direction.target,
        "to_name": direction.target_name,
    }
    with TemporaryDirectory(dir=path.parent, prefix=f"{path.name}-") as temporary:
        package = Path(temporary, code)
        (package / "model").mkdir(parents=True)
        pieces = read_bytes(model.text / "src.subwords.model", MAX_TEXT_FILE, model.text)
        ctranslate2.save(model, package / "model", quantization)
        (package / "sentencepiece.model").write_bytes(pieces)
        (package / "minisbd").mkdir()
        write_splitter(package / "minisbd" / "rules.onnx")
        write_json(package / "metadata.json", metadata)
        limits = "\n".join(f"- {remark}" for remark in remarks)
        write_text(package / CARD, f"{read_card(model.path)}\n{limits}\n")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(package.rglob("*")):
                archive.write(file, file.relative_to(temporary))
    yield from remarks


def write_splitter(path: Path) -> None:
    """Write rules that end sentences as a model of MiniSBD 0.9, which Argos would else download at first use.

    A sentence ends at a mark before a space and a capital, unless the mark is the full stop of a capital alone or of a
    capital and one more letter: `J. Smith`, `Dr. Smith`. MiniSBD gives an id and a flag for each character; the flag is
    1 for a capital. It reads three values for each character, of which the largest counts: no end, the end of a token,
    the end of a sentence.
    """
    graph = Graph("sentences")
    ids = {character: number for number, character in enumerate(["<PAD>", "<UNK>", *CHARACTERS])}
    units = graph.input("units", ("batch", "length"), INT64)
    capital = graph.input("features", ("batch", "length", 1)).op("Squeeze", [2]).cast(BOOL)

    # All values below are flags of characters, [batch, length].

    def among(characters: str) -> Value:
        """True at these characters."""
        table = torch.zeros(len(ids), dtype=torch.bool)
        table[[ids[character] for character in characters]] = True
        return graph.op("Gather", table, units)[0]

    def beside(flags: Value, distance: int) -> Value:
        """True if the character so far behind, or before if it is negative, has a flag; there is none outside."""
        before = max(0, -distance)
        after = max(0, distance)
        whole = 2**31  # an end of a slice that is beyond any text
        padded = flags.cast(INT64).op("Pad", [0, before, 0, after])
        without_first = padded.op("Slice", [after], [whole], [1])
        end = -before if before else whole
        return without_first.op("Slice", [0], [end], [1]).cast(BOOL)

    def both(first: Value, second: Value) -> Value:
        return first.op("And", second)

    def no(flags: Value) -> Value:
        return flags.op("Not")

    # After a capital alone, or a capital and one more letter.
    letter = no(among(CHARACTERS))
    after_capital = both(beside(capital, -1), no(beside(letter, -2)))
    after_two_letters = both(both(beside(capital, -2), beside(letter, -1)), no(beside(letter, -3)))
    is_after_abbreviation = after_capital.op("Or", after_two_letters)

    # A mark before a space and a capital, but not the full stop of an abbreviation.
    is_followed = both(beside(among(" "), 1), beside(capital, 2))
    may_end = both(among(CHARACTERS[1:]), is_followed)
    ends = both(may_end, no(both(is_after_abbreviation, among("."))))
    # [1, 0, 0] is no end, and [1, 0, 2] the end of a sentence.
    values = ends.cast(FLOAT).unsqueeze(2) * torch.tensor([0.0, 0.0, 2.0]) + torch.tensor([1.0, 0.0, 0.0])
    graph.outputs["values"] = Port(values, ("batch", "length", 3))
    vocabulary = {"lang": "", "idx": 0, "cutoff": 0, "lower": False, "_unit2id": ids, "_id2unit": list(ids)}
    settings = {"feat_funcs": ["capitalized"], "max_seqlen": 1000, "batch_size": 1}
    graph.write(path, {"config": json.dumps(settings), "vocab": json.dumps(vocabulary), "lexicon": "null"})


FORMAT = Format(write, find_obstacles, ("ctranslate2", "onnx"), ("int8", "float16", "none"), suffix=".argosmodel")
