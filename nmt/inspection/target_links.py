"""Links between a sentence and its first reference: those of people, and those of a model that reads both."""

from dataclasses import replace
from typing import Literal

from nmt.corpus.splitting import Example
from nmt.evaluation.gold_links import GoldLinks
from nmt.system.errors import DataError
from nmt.translation.alignment import Links, strongest_links
from nmt.translation.translation import Translation
from nmt.translation.translator import Translator
from nmt.translation.words import align_words

Unit = Literal["words", "tokens"]


def check_gold_links(number: int, links: GoldLinks, example: Example, sentence: Translation, unit: Unit) -> None:
    """Check that gold links are between positions of a sentence and its first reference.

    Args:
        number: Line of the file with the links, from 1.
        links: The links.
        example: The sentence with its reference.
        sentence: The reference as the model reads it.
        unit: What the links count.

    Raises:
        DataError: A link points past an end.
    """
    if unit == "words":
        sizes = len(example.src.split()), len(example.references[0].split())
    else:
        sizes = len(sentence.src_tokens), len(sentence.tokens)
    for i, j in sorted(links.possible):
        if i >= sizes[0] or j >= sizes[1]:
            raise DataError(
                f"--gold, line {number}: {i}-{j}, but the sentences have {sizes[0]} and {sizes[1]} {unit}; "
                "use links of the same text, and --links-of words or tokens"
            )


def find_links(translator: Translator, example: Example, sentence: Translation, unit: Unit) -> Links:
    """The source word, or token, attended most by each one of the target; EOS does not count."""
    if unit == "words":  # of the reference as it was given, not as its tokens are joined
        return set(align_words(example.src, replace(sentence, text=example.references[0]), translator.processor))
    assert sentence.alignment is not None
    return strongest_links(sentence.alignment[: len(sentence.tokens), :, : len(sentence.src_tokens)].mean(dim=1))
