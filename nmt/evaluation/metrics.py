"""BLEU, chrF and TER by sacreBLEU, with signatures; the only place where text is scored."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from nmt.config import Config, TextSection, ValidationMetric
from nmt.corpus.example import Example
from nmt.text.casing import Casing, casing_of, lower
from nmt.text.direction import Direction
from nmt.text.languages import CHINESE, base_language

UNSPACED = dict.fromkeys(CHINESE, "zh") | dict.fromkeys(("ja", "th", "lo", "km", "my", "bo", "dz"), "char")
"""sacreBLEU's tokenizer for languages that are written without spaces between words, by `base_language`."""
REPAIRED = "|refs:repaired"
"""The addition to the signature of scores with repaired references."""
PairedTestName = Literal["bootstrap", "randomization"]
PAIRED_TESTS: dict[PairedTestName, str] = {"bootstrap": "bs", "randomization": "ar"}
RESAMPLES = 1000
"""Test sets of a bootstrap: sacreBLEU's default."""


@dataclass(frozen=True)
class ScoringRules:
    """How text is compared with references.

    Attributes:
        lowercase: Ignore case, for a lower-case model.
        tokenize: sacreBLEU's tokenizer; `none` for text that is already tokenised.
        casing: Rules of small letters.
        repaired: True if the references were repaired as training text is; signatures then say so.
    """

    lowercase: bool = False
    tokenize: str = "13a"
    casing: Casing = ""
    repaired: bool = False

    @classmethod
    def for_config(cls, config: Config, *, repaired: bool = False) -> ScoringRules:
        """The rules for a model's config."""
        return cls.for_text(config.text, Direction.of(config.data).target, repaired=repaired)

    @classmethod
    def for_text(cls, text: TextSection, language: str, *, repaired: bool = False) -> ScoringRules:
        """The rules for a model's text settings and target language.

        sacreBLEU's default tokenizer splits at spaces and punctuation; for languages without spaces between words, its
        Chinese tokenizer or single characters are used.
        """
        if text.tokenized or text.tokenizer == "whitespace":
            return cls(text.lowercase, "none", casing_of(language), repaired)
        tokenize = UNSPACED.get(base_language(language), "13a")
        return cls(text.lowercase, tokenize, casing_of(language), repaired)

    def sign(self, signature: object) -> str:
        """sacreBLEU's signature, with the repair of the references before."""
        return f"{signature}{REPAIRED}" if self.repaired else str(signature)

    @staticmethod
    def is_signed_as_repaired(signature: str) -> bool:
        """True if a signature says that the references were repaired."""
        return signature.endswith(REPAIRED)


@dataclass(frozen=True)
class Metric:
    """A metric of translations.

    Attributes:
        name: Its name in tables.
        build: Makes an object of sacreBLEU's interface from the rules and the sources of the test set, which none of
            sacreBLEU's own metrics reads.
        higher_is_better: True if a greater score is a better one.
    """

    name: str
    build: Callable[[ScoringRules, Sequence[str]], Any]
    higher_is_better: bool = True


def _sacrebleu(name: str, **settings: Any) -> Any:
    """A metric of sacreBLEU, which is imported on first use."""
    import sacrebleu.metrics

    return getattr(sacrebleu.metrics, name)(**settings)


def _ter(rules: ScoringRules, sources: Sequence[str]) -> Any:
    unspaced = rules.tokenize in UNSPACED.values()
    return _sacrebleu("TER", normalized=unspaced, asian_support=unspaced)


METRICS = {
    "bleu": Metric(  # Papineni et al., 2002; Post, 2018
        "BLEU", lambda rules, _: _sacrebleu("BLEU", lowercase=rules.lowercase, tokenize=rules.tokenize, force=True)
    ),
    "chrf": Metric("chrF", lambda rules, _: _sacrebleu("CHRF", lowercase=rules.lowercase)),  # Popović, 2015
    "chrf++": Metric(  # Popović, 2017
        "chrF++", lambda rules, _: _sacrebleu("CHRF", lowercase=rules.lowercase, word_order=2)
    ),
    "ter": Metric("TER", _ter, higher_is_better=False),  # Snover et al., 2006; ignores case, as in sacreBLEU
}
"""All metrics by key."""
QUICK_METRICS = tuple(name for name in get_args(ValidationMetric) if name != "loss")
"""Those that training validates with, as the config names them."""


def higher_is_better(key: str) -> bool:
    """True if a greater value is a better one, of a metric or of the loss and the perplexity of a validation."""
    return key in METRICS and METRICS[key].higher_is_better


SIGNIFICANT = 0.05
"""A difference is called better or worse if its p-value is smaller."""


def name_direction(difference: float, key: str = "bleu") -> str:
    """The direction of a difference in a metric: `better` or `worse`."""
    return "better" if (difference > 0) == higher_is_better(key) else "worse"


@dataclass(frozen=True)
class CorpusScore:
    """One metric of one system.

    Attributes:
        name: `BLEU`, `chrF`, `chrF++` or `TER`.
        value: 0 to 100; TER, of which less is better, can be above 100.
        signature: sacreBLEU's signature; only scores with equal signatures can be compared.
        mean: Mean over bootstrap samples of the test set (Koehn, 2004); None without a bootstrap.
        confidence: Half the width of the 95% interval around the mean; None without a bootstrap.
    """

    name: str
    value: float
    signature: str
    mean: float | None = None
    confidence: float | None = None

    def __str__(self) -> str:
        interval = "" if self.confidence is None else f" ± {self.confidence:.2f}"
        return f"{self.name} {self.value:.2f}{interval}"


def reference_streams(examples: Sequence[Example], *, repeat: bool = True) -> list[list[Any]]:
    """All first references, all second references and so on.

    No metric counts a repeated reference twice except TER, which divides by the mean length of all.

    Args:
        examples: Sources with references.
        repeat: Where one is missing, the first takes its place; otherwise None does.
    """
    streams: list[list[Any]] = []
    for number in range(max((len(example.references) for example in examples), default=0)):
        stream: list[Any] = []
        for example in examples:
            if number < len(example.references):
                stream.append(example.references[number])
            else:
                stream.append(example.references[0] if repeat else None)
        streams.append(stream)
    return streams


def _streams(key: str, examples: Sequence[Example]) -> Any:
    """References as a metric wants them: for TER repeated, as a file cannot have None."""
    return reference_streams(examples, repeat=key == "ter")


def score_corpus(
    examples: Sequence[Example],
    hypotheses: Sequence[str],
    rules: ScoringRules,
    metrics: Sequence[str] = QUICK_METRICS,
    resamples: int = 1,
) -> dict[str, CorpusScore]:
    """Score detokenised translations.

    Args:
        examples: Raw sources, each with at least one raw reference.
        hypotheses: Their translations.
        rules: Case and tokenisation.
        metrics: Keys of `METRICS`.
        resamples: Test sets of a bootstrap that estimates confidence intervals; 1 is none.

    Returns:
        A score for each metric.
    """
    scores = {}
    for key in metrics:
        name = METRICS[key].name
        if resamples > 1:
            # By the test of several systems, as `corpus_score` fails for TER if a sample has no reference words.
            (result,) = compare_systems([("", hypotheses)], examples, rules, metrics=[key], samples=resamples)[key]
            scores[key] = CorpusScore(name, result.score, result.signature, result.mean, result.confidence)
        else:
            metric = _build(key, rules, examples)
            value = float(metric.corpus_score(list(hypotheses), _streams(key, examples)).score)
            scores[key] = CorpusScore(name, value, rules.sign(metric.get_signature()))
    return scores


def _build(key: str, rules: ScoringRules, examples: Sequence[Example] = ()) -> Any:
    metric = METRICS[key].build(rules, [example.src for example in examples])
    if rules.lowercase and rules.casing and hasattr(metric, "_preprocess_segment"):
        # sacreBLEU lower-cases by the rules of English; what is in small letters already stays.
        prepare = metric._preprocess_segment
        metric._preprocess_segment = lambda text: prepare(lower(text, rules.casing))
    return metric


def words_of(lines: Iterable[str], rules: ScoringRules) -> Iterator[list[str]]:
    """The words of each line, as BLEU counts them."""
    metric = _build("bleu", rules)
    return (metric.tokenizer(lower(line, rules.casing) if rules.lowercase else line).split() for line in lines)


def sentence_scores(
    examples: Sequence[Example], hypotheses: Sequence[str], rules: ScoringRules, key: str = "bleu"
) -> list[float]:
    """BLEU or chrF of each single translation, over the n-grams that it is long enough for (effective order)."""
    metric = _build(key, rules)
    metric.effective_order = True
    pairs = zip(examples, hypotheses, strict=True)
    return [float(metric.sentence_score(text, list(example.references)).score) for example, text in pairs]


def length_ratio(examples: Sequence[Example], hypotheses: Sequence[str], rules: ScoringRules) -> float:
    """Words of the translations per word of the references that are closest in length, as BLEU counts them."""
    return float(_build("bleu", rules).corpus_score(list(hypotheses), _streams("bleu", examples)).ratio)


@dataclass(frozen=True)
class Comparison:
    """One metric of one system, and whether it differs from that of a baseline by more than chance.

    Attributes:
        name: The system.
        score: Its score on the whole test set.
        mean: Mean over bootstrap samples of the test set.
        confidence: Half the width of the 95% interval around the mean.
        p_value: Probability of a difference this large if both were equally good; None for the baseline.
        signature: sacreBLEU's signature.
    """

    name: str
    score: float
    mean: float
    confidence: float
    p_value: float | None
    signature: str


def compare_systems(
    systems: Sequence[tuple[str, Sequence[str]]],
    examples: Sequence[Example],
    rules: ScoringRules,
    *,
    metrics: Sequence[str] = ("bleu",),
    test: PairedTestName = "bootstrap",
    samples: int = 0,
) -> dict[str, list[Comparison]]:
    """Compare each system with the first one by sacreBLEU's paired significance tests.

    Args:
        systems: Name and translations of each; the first is the baseline.
        examples: Raw sources with references.
        rules: Case and tokenisation.
        metrics: Keys of `METRICS`.
        test: Paired bootstrap resampling (Koehn, 2004) or approximate randomisation (Riezler & Maxwell, 2005).
        samples: Test sets or trials; 0 is sacreBLEU's default: 1,000 and 10,000.

    Returns:
        For each metric, a comparison for each system.
    """
    from sacrebleu.significance import PairedTest

    compared = {}
    for key in metrics:
        paired = PairedTest(
            [(name, list(hypotheses)) for name, hypotheses in systems],
            {key: _build(key, rules, examples)},
            _streams(key, examples),
            test_type=PAIRED_TESTS[test],
            n_samples=samples,
            n_ar_confidence=RESAMPLES if test == "randomization" else -1,
        )
        signatures, scores = paired()
        ((name, signature),) = signatures.items()
        results: list[Any] = list(scores[name])
        compared[key] = [
            Comparison(
                name,
                float(result.score),
                float(result.mean),
                float(result.ci),
                _p_value(result, results[0]),
                rules.sign(signature),
            )
            for (name, _), result in zip(systems, results, strict=True)
        ]
    return compared


def describe_test(signature: str) -> str:
    """In words, the paired test of a comparison with this signature, and how many trials it has."""
    counts = dict(re.findall(r"\b(ar|bs):(\d+)", signature))  # beside ar, the bootstrap is only for intervals
    if "ar" in counts:
        return f"approximate randomization, {int(counts['ar']):,} trials"
    return f"a paired bootstrap of {int(counts['bs']):,} test sets"


def _p_value(result: Any, baseline: Any) -> float | None:
    """sacreBLEU's p-value, but 1 instead of its 0 if both scores are equal."""
    if result.p_value is None:
        return None
    return 1.0 if result.score == baseline.score else float(result.p_value)
