"""Visible faults of translations, and of the test set they are scored on."""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nmt.corpus import Pair
from nmt.corpus.example import Example
from nmt.corpus.references import find_unwritable_texts, read_hypotheses
from nmt.corpus.traces import MOST_RUNS, TraceReport, is_blank, search_runs, settled_traces, take_runs
from nmt.evaluation.metrics import ScoringRules, length_ratio, words_of
from nmt.system.errors import shorten
from nmt.system.messages import Message, Parameter
from nmt.text.normalization import Normalizer
from nmt.text.repeats import find_repeats

log = logging.getLogger(__name__)

LONGEST_REPEAT = 4
"""Words of the longest repeated sequence that is looked for."""
# Shares of the lines above which references look lower-cased or tokenised, or translations alike.
MANY = 0.95
MOST = 0.5
FEW_WORDS = 2
"""Words of a reference that is hardly split."""
FEW = 10
"""Fewer lines than this give no warning."""

TOKENIZED_LINES = 100
"""References with a space before their final stop from which sacreBLEU warns."""

_looks_tokenized = re.compile(r"\w [.!?,;:](?= |$)").search


@dataclass(frozen=True)
class Diagnosis:
    """Counts of translations with visible faults, and of those without any.

    Attributes:
        sentences: Number of translations.
        exact: Translations equal to a reference, whatever their case.
        length_ratio: Words of the translations per word of the references, as BLEU counts them.
        unknown_tokens: Share of the tokens that the model predicted as unknown.
        repetitions: Translations that repeat a sequence of 1 to 4 words at once, where no reference does; a single word
            counts from the second repetition on.
        copies: Translations equal to their source, where no reference is.
        empty: Empty translations of sources that are not.
        same: How often the most frequent translation occurs.
    """

    sentences: int
    exact: int
    length_ratio: float
    unknown_tokens: float
    repetitions: int
    copies: int
    empty: int
    same: int

    def __str__(self) -> str:
        return (
            f"equal to a reference {self.exact:,}, length ratio {self.length_ratio:.3f}, "
            f"unknown words {self.unknown_tokens:.2%}, with repetitions {self.repetitions:,}, "
            f"copies of the source {self.copies:,}, empty {self.empty:,}"
        )


def diagnose(
    examples: Sequence[Example], hypotheses: Sequence[str], unknown_tokens: float, rules: ScoringRules
) -> Diagnosis:
    """Count visible faults.

    Args:
        examples: Sources with references.
        hypotheses: Their translations.
        unknown_tokens: Share of the tokens that the model predicted as unknown.
        rules: How text is scored.
    """
    rows = list(zip(examples, hypotheses, strict=True))
    exact = [any(_is(text, reference) for reference in example.references) for example, text in rows]
    return Diagnosis(
        sentences=len(rows),
        exact=sum(exact),
        length_ratio=length_ratio(examples, hypotheses, rules),
        unknown_tokens=unknown_tokens,
        repetitions=sum(repeats(text) and not any(map(repeats, example.references)) for example, text in rows),
        copies=sum(
            bool(text) and _is(text, example.src) and not right
            for (example, text), right in zip(rows, exact, strict=True)
        ),
        empty=sum(not text.strip() and bool(example.src.strip()) for example, text in rows),
        same=max(Counter(hypotheses).values(), default=0),
    )


def repeats(text: str) -> bool:
    """True if a text repeats words at once, ignoring case: one word three times, or 2 to 4 words twice."""
    return any(copies > 2 or group[1:] for copies, group in find_repeats(text.casefold().split(), LONGEST_REPEAT))


def _is(text: str, original: str) -> bool:
    return text.casefold().split() == original.casefold().split()


def find_faults(
    examples: Sequence[Example], hypotheses: Sequence[str], rules: ScoringRules, normalizer: Normalizer = Normalizer()
) -> Iterator[str]:
    """Describe the faults that make scores meaningless, one line each.

    Args:
        examples: Sources with references.
        hypotheses: Their translations.
        rules: How text is scored.
        normalizer: Normalizer of the training text.
    """
    if empty := sum(any(map(is_blank, example.references)) for example in examples):
        advice = "delete these lines from sources and references"
        yield f"{empty:,} of {len(examples):,} references are empty, and no translation is right there: {advice}"
    if len(hypotheses) < FEW:
        return
    yield from map(str, _find_traces(examples, hypotheses, rules, normalizer))
    text, count = Counter(hypotheses).most_common(1)[0]
    sources = len({example.src for example in examples})
    if count > MOST * len(hypotheses) and sources > MOST * len(hypotheses):
        yield (
            f"{count:,} of {len(hypotheses):,} translations are the same ({shorten(text)!r}): the model ignores what "
            "it reads; train it longer, or with a lower learning rate"
        )
    yield from find_faults_of_references(examples, rules)
    references = [reference for example in examples for reference in example.references]
    if rules.tokenize != "none" and _share(references, _looks_tokenized) > MOST > _share(hypotheses, _looks_tokenized):
        yield (
            "the references look tokenised (a space before most final stops), and the translations do not: give "
            "detokenised references"
        )
    if not rules.lowercase and _share(references, _is_lower) > MANY and _share(hypotheses, _is_lower) < MOST:
        yield "the references have no capitals, and the translations do: give cased references"


def find_faults_of_references(examples: Sequence[Example], rules: ScoringRules) -> Iterator[str]:
    """Describe references that BLEU's tokenizer does not split into words, as those of languages without spaces."""
    references = [reference for example in examples for reference in example.references]
    if rules.tokenize != "13a" or len(references) < FEW:
        return
    short = sum(len(words) <= FEW_WORDS for words in words_of(references, rules))
    if short > MOST * len(references):
        yield (
            f"BLEU's tokenizer 13a leaves {short:,} of {len(references):,} references as one or two words: if the "
            "target is written without spaces, set data.tgt_language to its code, such as zh, ja or th"
        )


def read_system(
    path: Path, lines: Sequence[str], examples: Sequence[Example], normalizer: Normalizer, rules: ScoringRules
) -> list[str]:
    """The translations of another program in the form of the references that they are compared with.

    Text that training text has in another form and traces of other tools are logged.

    Args:
        path: The file.
        lines: Its lines.
        examples: Sources and references.
        normalizer: Normalizer of the training text.
        rules: How text is scored; references that were repaired need translations that are.
    """
    translations = read_hypotheses(lines, normalizer, repair=rules.repaired)
    unwritable = find_unwritable_texts(translations, normalizer)
    if unwritable:
        warning = Message(
            "{path}: {found}: repair the file, or give {repair}, which repairs both",
            path=path,
            found=unwritable.of_translations,
            repair=Parameter("repair_references", True),
        )
        log.warning("%s", warning)

    # The traces are searched in pairs of reference and translation. Their lengths correlate, so that a file that is
    # shifted by some lines is found as well.
    pairs = []
    for example, line in zip(examples, lines, strict=True):
        pairs.append(Pair(example.references[0], line))
    for trace in _search(str(path), pairs, rules, normalizer):
        references_have_it_too = 2 * trace.src > trace.tgt > 0
        only_references_have_it = trace.src > 0 and trace.tgt == 0
        if references_have_it_too or only_references_have_it:
            continue  # it is no fault of the file
        log.warning(str(replace(trace, src=0)))
    return translations


def _search(name: str, pairs: Sequence[Pair], rules: ScoringRules, normalizer: Normalizer) -> Iterator[TraceReport]:
    """Traces of other tools in pairs that are scored."""
    runs = take_runs(pairs, most=MOST_RUNS)
    settled = settled_traces(html_entities=normalizer.html_entities, repaired=rules.repaired)
    return search_runs(name, runs, tokenized=rules.tokenize == "none", settled=settled)


def _find_traces(
    examples: Sequence[Example], hypotheses: Sequence[str], rules: ScoringRules, normalizer: Normalizer
) -> Iterator[TraceReport]:
    """Traces of other tools in sources and references."""
    pairs = [Pair(example.src, example.references[0]) for example in examples]
    for trace in _search("test set", pairs, rules, normalizer):
        # sacreBLEU warns from 100 such lines; if the translations look otherwise, there is a warning of its own.
        is_counted = trace.tgt >= TOKENIZED_LINES and _share(hypotheses, _looks_tokenized) >= MOST
        if trace.name != "tokenized" or is_counted:
            yield trace


def _share(lines: Sequence[str], has: Callable[[str], object]) -> float:
    return sum(bool(has(line)) for line in lines) / len(lines)


def _is_lower(line: str) -> bool:
    return line == line.lower()
