"""Long inputs made of short test pairs, to measure translations far beyond the lengths of a corpus."""

from collections.abc import Sequence

from nmt.corpus.example import Example
from nmt.evaluation.attention_statistics import LengthAttention, summarize
from nmt.evaluation.breakdown import LengthScore, score_length
from nmt.evaluation.metrics import UNSPACED, ScoringRules
from nmt.translation.stream import translate_texts
from nmt.translation.translator import Translator

LENGTHS = ((5, 10), (10, 20), (20, 30), (30, 50), (50, 100))
"""Fewest and most words of the sources, separated by spaces."""
MOST = 200
"""Inputs of one range of lengths."""


def join_examples(examples: Sequence[Example], low: int, high: int) -> list[Example]:
    """Join test pairs end to end, in order, until each source has a number of words in a range.

    Each pair is used at most once. Lengths are spread over the range.

    Args:
        examples: Sources with references.
        low: Fewest words of a joined source, separated by spaces.
        high: Most.

    Returns:
        At most 200. One has as many references as the part with most; a part with fewer repeats its first one.
    """
    joined: list[Example] = []
    parts: list[Example] = []
    words = 0
    for example in examples:
        length = len(example.src.split())
        if words + length > high:
            parts = []
            words = 0
        if length > high:
            continue
        parts.append(example)
        words += length
        # Each source is to be a word longer than the one before; after the longest the shortest comes again.
        wanted = low + len(joined) % (high - low)
        if words >= wanted:
            joined.append(_concatenate(parts))
            parts = []
            words = 0
            if len(joined) == MOST:
                break
    return joined


def _concatenate(parts: Sequence[Example]) -> Example:
    """One example of several; each reference is made of one of every part, which is its first one if it has too few."""
    source = " ".join(part.src for part in parts)
    references = []
    for number in range(max(len(part.references) for part in parts)):
        chosen = []
        for part in parts:
            has_it = number < len(part.references)
            chosen.append(part.references[number if has_it else 0])
        references.append(" ".join(chosen))
    return Example(source, tuple(references))


def measure_long_inputs(
    translator: Translator, examples: Sequence[Example], rules: ScoringRules
) -> tuple[list[LengthScore], list[LengthAttention]]:
    """BLEU and attention of joined test pairs of 5 to 10 source words, 10 to 20 and so on up to 100.

    Languages without spaces between words have none.

    Args:
        translator: Translator that does not split its input.
        examples: Sources with references.
        rules: How text is scored.
    """
    scores: list[LengthScore] = []
    attention: list[LengthAttention] = []
    if rules.tokenize in UNSPACED.values():
        return scores, attention
    for low, high in LENGTHS:
        joined = join_examples(examples, low, high)
        name = f"{low}-{high}"
        sources = [example.src for example in joined]
        translations = translate_texts(translator, sources, f"translating {name} words", with_alignment=True)
        texts = [translation.text for translation in translations]
        alignments = [translation.alignment for translation in translations]
        scores.append(score_length(name, joined, texts, rules))
        attention.append(LengthAttention(name, len(joined), summarize(alignments)))
    return scores, attention
