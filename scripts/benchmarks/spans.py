"""How often spans and terms that a translation must have stand in it exactly once, and how often a sentence is lost.

The lines are test sources of a data directory with spans put between their words; the terms are words of those sources
with their translations in a lexicon from the training pairs. Sentences are joined behind an abbreviation.
"""

from __future__ import annotations

import argparse
import functools
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import nmt
from benchmarks.arguments import Commands, positive
from benchmarks.tables import markdown
from nmt.corpus import Pair
from nmt.corpus.example import read_examples
from nmt.corpus.lexicon import find_lexicon
from nmt.corpus.training_pairs import read_training_pairs
from nmt.text.sentences import SentenceSplitter
from nmt.translation.protection import Protection

KINDS = {
    "placeholders": ("{name}", "{{user.name}}", "${total}", "%s", "%1$s", "%d", "<x/>"),
    "addresses": ("https://example.org/a?b=1&c=2", "www.example.com", "jane.doe@example.org", "@bob", "#tag"),
    "emoji": ("🐶", "❤️", "😀", "👍🏽"),
    "numbers and dates": ("2012-02-11", "10:30", "4,914,729", "3961", "+49-30-1234567", "17.5", "1999", "42"),
}
ABBREVIATION = re.compile(r"(?:\b[A-Za-z]\.[A-Za-z]\.|\b(?:Inc|Ltd|Co|Jr|etc|usw|[A-Z]|[0-9]{1,2})\.)$")
"""How a sentence ends whose full stop may be that of an abbreviation, a letter or an ordinal number."""

GERMAN_NOUN = re.compile(r"(?<=[a-z,] )[A-Z\u00c4\u00d6\u00dc][a-z\u00e4\u00f6\u00fc\u00df]{3,}")


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("spans", help="spans, terms and sentences that translations keep")
    parser.set_defaults(run=benchmark_spans)
    parser.add_argument("--model", type=Path, required=True, metavar="DIR", help="run or model directory")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="its data directory")
    parser.add_argument("--lines", type=positive, default=300, help="lines with spans")
    parser.add_argument("--terms", type=positive, default=200, help="terms")
    parser.add_argument("--pairs", type=positive, default=1000, help="pairs of sentences that are joined")
    parser.add_argument("--seed", type=positive, default=1, help="which lines, spans and terms")


def benchmark_spans(arguments: argparse.Namespace) -> None:
    """Print the share of each kind that is right."""
    chance = random.Random(arguments.seed)
    sources = [example.src for example in read_examples(arguments.data / "test.jsonl")]
    translator = nmt.load(arguments.model, device="cpu")
    rows = [*_measure_spans(translator, sources, arguments.lines, chance)]
    pairs = read_training_pairs(arguments.data, translator.processor)
    rows.append(_measure_terms(translator, sources, dict(find_lexicon(pairs)), arguments.terms, chance))
    references = [text for example in read_examples(arguments.data / "test.jsonl") for text in example.references]
    rows += _measure_inflected_terms(translator, sources, pairs, references, arguments.terms, chance)
    splitter = translator.reader.splitter
    assert splitter is not None
    texts = [pair.src for pair in pairs]
    rows += [_measure_sentences(name, split, texts, arguments.pairs) for name, split in _splitters(splitter)]
    print(markdown(["measure", "right", "of", "%"], rows))


def _measure_spans(
    translator: nmt.Translator, sources: Sequence[str], number: int, chance: random.Random
) -> list[list[str]]:
    """Spans that stand in the translation exactly once, by kind."""
    lines = []
    for source in chance.choices(sources, k=number):
        words = source.split()
        spans: dict[str, str] = {}
        for kind in chance.choices(list(KINDS), k=chance.randint(1, 4)):
            span = chance.choice(KINDS[kind])
            if span not in source and not any(span in other or other in span for other in spans):
                spans[span] = kind
                words.insert(chance.randint(0, len(words) - 1), span)
        lines.append((" ".join(words), spans))
    right = dict.fromkeys(KINDS, 0)
    total = dict.fromkeys(KINDS, 0)
    for (_, spans), found in zip(lines, translator.translate([line for line, _ in lines]), strict=True):
        for span, kind in spans.items():
            total[kind] += 1
            right[kind] += found.text.count(span) == 1
    return [_row(kind, right[kind], total[kind]) for kind in KINDS]


def _measure_terms(
    translator: nmt.Translator, sources: Sequence[str], lexicon: dict[str, str], number: int, chance: random.Random
) -> list[str]:
    """Terms whose translation stands in that of a sentence as often as the term in the source, with any capitals.

    The translations are made-up ones, which no model would write.
    """
    cases = [(source, word) for source in sources for word in re.findall(r"\w+", source) if word in lexicon]
    right = 0
    chosen = chance.sample(cases, min(number, len(cases)))
    reader = translator.reader
    before = reader.protection
    for source, word in chosen:
        term = f"{lexicon[word]}sxq"
        reader.protection = Protection(terms={word: term})
        count = sum(span.kind == "term" for span in reader.protection.find(source))
        right += translator.translate(source).text.lower().count(term.lower()) == count > 0
    reader.protection = before
    return _row("terms", right, len(chosen))


def _measure_inflected_terms(
    translator: nmt.Translator,
    sources: Sequence[str],
    pairs: Sequence[Pair],
    references: Sequence[str],
    number: int,
    chance: random.Random,
) -> Iterator[list[str]]:
    """Nouns with another noun as their translation, some form of which stands in the translation of a sentence.

    The other noun is of the training text, or one that no training sentence has in any form. Nouns are words with a
    capital inside sentences, as in German, the only target
    language of this measure; forms of a word have the same lemma in simplemma.
    """
    if not translator.reader.has_term_marks:
        return
    import simplemma

    lemma = functools.partial(simplemma.lemmatize, lang="de")
    nouns = {word: target for word, target in find_lexicon(pairs) if target[0].isupper() and word[0].islower()}
    trained = {lemma(word) for pair in pairs for word in re.findall(r"\w+", pair.tgt)}
    inside = {word for text in references for word in GERMAN_NOUN.findall(text)}
    unseen = sorted({lemma(word) for word in inside} - trained)
    seen = sorted({lemma(target) for target in nouns.values()})
    cases = [(source, word) for source in sources for word in set(re.findall(r"\w+", source)) & set(nouns)]
    chosen = chance.sample(sorted(cases), min(number, len(cases)))
    reader = translator.reader
    before = reader.protection
    for name, targets in (("inflected terms, of training text", seen), ("inflected terms, unseen", unseen)):
        right = 0
        without = 0
        for source, word in chosen:
            target = chance.choice(targets)
            reader.protection = Protection(terms={word: target}, inflected=[word])
            right += _has_lemma(translator.translate(source).text, target, lemma)
            reader.protection = before
            without += _has_lemma(translator.translate(source).text, target, lemma)
        yield _row(name, right, len(chosen))
        yield _row(f"{name}, without a glossary", without, len(chosen))
    reader.protection = before


def _has_lemma(text: str, target: str, lemma: Callable[[str], str]) -> bool:
    return any(lemma(word) == target or word == target for word in re.findall(r"\w+", text))


def _splitters(splitter: SentenceSplitter) -> list[tuple[str, Callable[[str], list[str]]]]:
    """Ours, and the library sentencex as a yardstick where it is installed."""
    splitters: list[tuple[str, Callable[[str], list[str]]]] = [("sentences", splitter)]
    try:
        from sentencex import segment
    except ImportError:
        return splitters
    return [
        *splitters,
        ("sentences, sentencex", lambda line: [part.strip() for part in segment(splitter.language, line)]),
    ]


def _measure_sentences(name: str, split: Callable[[str], list[str]], texts: Sequence[str], number: int) -> list[str]:
    """Joined pairs of sentences that are found again: none is lost, melted into the other or cut in two."""
    chance = random.Random(1)
    single = sorted({text for text in texts if not re.search(r"[.!?]\s", text) and text[-1:] in (".", "!", "?")})
    first = [text for text in single if ABBREVIATION.search(text)]
    right = 0
    for _ in range(number):
        pair = [chance.choice(first), chance.choice(single)]
        right += split(" ".join(pair)) == pair
    return _row(name, right, number)


def _row(name: str, right: int, total: int) -> list[str]:
    return [name, f"{right:,}", f"{total:,}", f"{100 * right / max(1, total):.1f}"]
