"""Translates lines with an exported model: python translate.py < input.txt > output.txt."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import sentencepiece

BATCH = 64


class Translator:
    """An exported folder, with as many threads as there are cores (0) or that many."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.encoder = onnxruntime.InferenceSession(folder / "encoder.onnx", options)
        self.decoder = onnxruntime.InferenceSession(folder / "decoder.onnx", options)
        self.settings = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        self.pieces = None
        if self.settings["source_pieces"]:
            self.pieces = sentencepiece.SentencePieceProcessor(str(folder / "source.spm"))
        # Without special tokens, so that text that looks like one is unknown.
        special = len(self.settings["special_ids"])
        tokens = self.settings["source_tokens"]
        self.ids = {tokens[number]: number for number in range(special, len(tokens))}

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Translate lines, those of similar length together; an empty one stays empty."""
        sources = [self.tokenize(line) for line in lines]
        numbers = [number for number, source in enumerate(sources) if source]
        numbers.sort(key=lambda number: len(sources[number]))
        translations = [""] * len(lines)
        for first in range(0, len(numbers), BATCH):
            batch = numbers[first : first + BATCH]
            results = self.search([sources[number] for number in batch])
            for number, tokens in zip(batch, results, strict=True):
                translations[number] = self.join(tokens)
        return translations

    def tokenize(self, line: str) -> list[str]:
        """The tokens of a line: pieces of words, or words between spaces."""
        if self.pieces is None:
            return line.split()
        pieces: list[str] = self.pieces.encode(line, out_type=str)
        return pieces

    def join(self, tokens: Sequence[str]) -> str:
        """The text of target tokens."""
        if self.settings["target_pieces"]:
            return "".join(tokens).replace("\u2581", " ").strip()
        return " ".join(tokens)

    def search(self, sources: Sequence[Sequence[str]]) -> list[list[str]]:
        """Take the most probable word at each step; an unknown one is replaced by the source token attended most."""
        pad, unknown, begin, end = self.settings["special_ids"]
        lengths = np.array([len(source) + 1 for source in sources])
        src = np.full((len(sources), lengths.max()), pad)
        for row, source in zip(src, sources, strict=True):
            row[: len(source)] = [self.ids.get(token, unknown) for token in source]
            row[len(source)] = end
        state = run(self.encoder, {"src": src, "lengths": lengths})  # with the memory, which no step changes
        limits = (self.settings["max_length_ratio"] * lengths + self.settings["length_margin"]).astype(int)
        limits = limits.clip(max=self.settings["max_length"])
        rows = np.arange(len(sources))
        words = np.full(len(sources), begin)
        translations: list[list[str]] = [[] for _ in sources]
        for length in range(1, limits.max() + 1):
            new = run(self.decoder, {"words": words, **state})
            words = new.pop("log_probs").argmax(1)
            attended = new.pop("alignment").mean(1).argmax(1)
            state |= {name.removeprefix("next_"): value for name, value in new.items()}
            for row, word, position in zip(rows.tolist(), words.tolist(), attended.tolist(), strict=True):
                if word == unknown and position < len(sources[row]):
                    translations[row].append(sources[row][position])
                elif word != end:
                    translations[row].append(self.settings["target_tokens"][word])
            going = (words != end) & (length < limits[rows])
            if not going.any():
                break
            if not going.all():
                rows = rows[going]
                words = words[going]
                state = {name: state[name][going] for name in state}
        return translations


def run(session: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """The outputs of a graph by their names."""
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


if __name__ == "__main__":
    # Only a line feed ends a line, and both sides are UTF-8, whatever the locale.
    with open(0, encoding="utf-8", errors="replace", newline="\n") as text:
        lines = [line.lstrip("\ufeff").removesuffix("\n").removesuffix("\r") for line in text]
    translations = Translator(Path(__file__).parent).translate(lines)
    try:
        with open(1, "w", encoding="utf-8", newline="\n") as output:
            output.writelines(f"{line}\n" for line in translations)
    except OSError as error:  # a full disk, or a reader that has ended
        sys.exit(f"translate.py: the output cannot be written: {error.strerror}")
