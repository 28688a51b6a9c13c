"""Translate lines with a model of random weights.

python random_nmt.py REQUEST

REQUEST is JSON: config and overrides of the model, lines (a file), words (of each vocabulary), precision, beam,
batch_size (sentences), length (of every translation, in words), threads and, if it is not cpu, device. The last line of
output is JSON, too: seconds of a second pass over the lines, and the shortest and the longest translation, in words.
"""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from nmt.config import DecodeSection, load_config
from nmt.models.build import build_model
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import Vocabulary
from nmt.translation.translator import Translator


def main() -> None:
    """Translate as the request says, and print the reply."""
    print(json.dumps(translate(json.loads(sys.argv[1]))))


def translate(request: Mapping[str, Any]) -> dict[str, Any]:
    """Translate twice, and time the second pass.

    Args:
        request: See above.
    """
    lines = Path(request["lines"]).read_text(encoding="utf-8").splitlines()
    torch.manual_seed(1)
    vocabulary, tokenizer = Vocabulary(f"w{number}" for number in range(request["words"] - 4)), WhitespaceTokenizer()
    section = load_config(request["config"], request["overrides"]).model
    model = build_model(section, len(vocabulary), len(vocabulary)).to(request.get("device", "cpu")).eval()
    options = DecodeSection(
        beam_size=request["beam"],
        batch_size=request["batch_size"],
        min_length=request["length"],
        max_length=request["length"],
        precision=request["precision"],
    )
    processor = TextProcessor(tokenizer, tokenizer, vocabulary, vocabulary)
    translator = Translator(model, processor, options, frozen=True)
    for _ in range(2):
        begin = time.perf_counter()
        translations = [translation.text for translation in translator.translate(lines)]
        seconds = time.perf_counter() - begin
    lengths = [len(translation.split()) for translation in translations]
    return {"seconds": seconds, "shortest": min(lengths), "longest": max(lengths)}


if __name__ == "__main__":
    main()
