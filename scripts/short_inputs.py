"""Count the short inputs that a server translates without a visible error, and the loops in its translations of others.

Usage: python scripts/short_inputs.py --url http://localhost:5000 [--scored] [--loops TEXT]

The server has LibreTranslate's interface (POST /translate), as that of `nmt serve`. Without --scored, these are the
inputs to tune on, and what fails is shown; with it the others, of which only the counts are shown: once a release.
"""

import argparse
import json
import random
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from nmt.evaluation.short_inputs import has_loop, judge_short_inputs, read_short_inputs
from nmt.system.errors import DataError, NmtError
from nmt.system.files import shipped
from nmt.translation.input import read_text

BATCH, WORDS, ODD_LINES, SEED = 50, 10_000, 1000, 1
"""Texts of a request, single words, odd lines, and the seed of both."""
ALPHABETS = ("abcdefghijklmnopqrstuvwxyz", "абвгдежзиклмнопрстуфхшыя", "αβγδεζηθικλμνοπρστυφχψω", "あいうえおかきくけ")
DIGITS, SIGNS, EMOJI = "0123456789", ".,;:!?-_*#/|~=+", "😀😂😍😭😡👍👎🙏🎉🔥🚗🍕🐶🌧🎄📞"


def make_odd_lines(number: int, seed: int) -> list[str]:
    """Lines that are hardly language: punctuation, several scripts, long words, digits, addresses, emoji."""
    chance, lines = random.Random(seed), []

    def draw(letters: str, shortest: int, longest: int) -> str:
        return "".join(chance.choices(letters, k=chance.randint(shortest, longest)))

    for _ in range(number):
        kinds = [
            draw(chance.choice([*SIGNS, SIGNS]), 2, 30),
            " ".join(draw(letters, 2, 8) for letters in chance.sample(ALPHABETS, 3)),
            f"https://{draw(ALPHABETS[0], 3, 12)}.com/{draw(ALPHABETS[0], 3, 12)}?id={draw(DIGITS, 1, 6)}",
            *(draw(*letters) for letters in ((ALPHABETS[0], 30, 80), (DIGITS, 5, 30), (EMOJI, 1, 12))),
        ]
        lines.append(" ".join(chance.sample(kinds, chance.randint(1, 2))))
    return lines


def translate(arguments: argparse.Namespace, texts: Sequence[str]) -> list[str]:
    """The translations of texts, in order.

    Raises:
        DataError: The server does not answer, or not as LibreTranslate does.
    """
    outputs: list[str] = []
    source, target = arguments.inputs.stem.split("-")
    url, headers = f"{arguments.url.rstrip('/')}/translate", {"Content-Type": "application/json"}
    for batch in (texts[first : first + BATCH] for first in range(0, len(texts), BATCH)):
        body = {"q": batch, "source": source, "target": target, "api_key": arguments.api_key}
        try:
            with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
                outputs += map(str, json.load(answer)["translatedText"])
        except urllib.error.HTTPError as error:
            with error:
                raise DataError(f"{url}: {error}: {error.read(500).decode(errors='replace')}") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{url}: no translations: {error}") from None
    if len(outputs) != len(texts):
        raise DataError(f"{url}: translates {len(texts):,} texts to {len(outputs):,}")
    return outputs


def run(arguments: argparse.Namespace) -> Iterator[str]:
    """The line of `nmt evaluate`, what failed of the inputs to tune on, and how many loops there are."""
    everything = read_short_inputs(arguments.inputs)
    inputs = [made for made in everything if made.scored == arguments.scored]
    result = judge_short_inputs(inputs, partial(translate, arguments))
    yield str(result)
    for failure in () if arguments.scored else result.failures:
        yield f"{failure.input} -> {failure.output} ({', '.join(failure.rules)})"
    if arguments.loops:
        words = {*re.findall(r"[^\W\d_]{2,}", "\n".join(read_text(arguments.loops)))}
        words -= {made.text for made in everything}
        drawn = random.Random(SEED).sample(sorted(words), min(arguments.words, len(words)))
        for name, texts in (("single words", drawn), ("odd lines", make_odd_lines(ODD_LINES, SEED))):
            loops = sum(map(has_loop, texts, translate(arguments, texts)))
            yield f"loops in {loops:,} of {len(texts):,} {name}"


def main() -> None:
    """Translate, judge and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://localhost:5000", help="address of the server")
    parser.add_argument("--api-key", default="", help="key that the server asks for")
    parser.add_argument("--inputs", type=Path, default=shipped("data/short_inputs/en-de.tsv"), help="SOURCE-TARGET.tsv")
    parser.add_argument("--scored", action="store_true", help="the inputs that nothing is tuned on")
    parser.add_argument("--loops", type=Path, metavar="TEXT", help="count loops, too: words of this file, odd lines")
    parser.add_argument("--words", type=int, default=WORDS, help="how many single words")
    try:
        for line in run(parser.parse_args()):
            print(line, flush=True)
    except NmtError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
