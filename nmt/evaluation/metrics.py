"""BLEU, chrF and TER by sacreBLEU, with signatures; the only place where text is scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

from nmt.config import TextSection

UNSPACED = {"zh": "zh", "yue": "zh"} | dict.fromkeys(("ja", "th", "lo", "km", "my", "bo", "dz"), "char")
"""sacreBLEU's tokenizer for languages that are written without spaces between words."""


METRICS = ("bleu", "chrf", "chrf++", "ter")
"""Keys of all metrics."""
QUICK_METRICS = ("bleu", "chrf")
"""Those that training validates with."""
PairedTestName = Literal["bootstrap", "randomization"]
PAIRED_TESTS: dict[PairedTestName, str] = {"bootstrap": "bs", "randomization": "ar"}
RESAMPLES = 1000
"""Test sets of a bootstrap: sacreBLEU's default."""


@dataclass(frozen=True)
class Score:
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


@dataclass(frozen=True)
class ScoringRules:
    """How text is compared with references.

    Attributes:
        lowercase: Ignore case, for a lower-case model.
        tokenize: sacreBLEU's tokenizer; `none` for text that is already tokenised.
    """

    lowercase: bool = False
    tokenize: str = "13a"

    @classmethod
    def for_text(cls, text: TextSection, language: str) -> ScoringRules:
        """The rules for a model's text settings and target language.

        sacreBLEU's default tokenizer splits at spaces and punctuation; for languages without spaces between words, its
        Chinese tokenizer or single characters are used.
        """
        if text.tokenized or text.tokenizer == "whitespace":
            return cls(text.lowercase, "none")
        base = language.replace("_", "-").split("-")[0].lower()
        return cls(text.lowercase, UNSPACED.get(base, "13a"))

    def metric(self, key: str) -> Any:
        """A new metric of sacreBLEU.

        Args:
            key: `bleu` (Papineni et al., 2002; Post, 2018), `chrf` (Popović, 2015), `chrf++` (Popović, 2017) or `ter`
                (Snover et al., 2006), which ignores case, as in sacreBLEU.
        """
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF
        from sacrebleu.metrics.ter import TER

        match key:
            case "bleu":
                return BLEU(lowercase=self.lowercase, tokenize=self.tokenize, force=True)
            case "chrf" | "chrf++":
                return CHRF(lowercase=self.lowercase, word_order=2 if key == "chrf++" else 0)
            case "ter":
                unspaced = self.tokenize in UNSPACED.values()
                return TER(normalized=unspaced, asian_support=unspaced)
        raise ValueError(f"{key}: not one of {', '.join(METRICS)}")


def reference_streams(references: Sequence[Sequence[str]]) -> list[list[str]]:
    """All first references, all second references and so on; where one is missing, the first takes its place.

    No metric counts a repeated reference twice except TER, which divides by the mean length of all.
    """
    width = max(map(len, references), default=0)
    return [[refs[n] if n < len(refs) else refs[0] for refs in references] for n in range(width)]


def _streams(key: str, references: Sequence[Sequence[str]]) -> Any:
    """References as a metric wants them: missing ones are None, or for TER repeated, as a file cannot have None."""
    if key == "ter":
        return reference_streams(references)
    width = max(map(len, references), default=0)
    return [[refs[n] if n < len(refs) else None for refs in references] for n in range(width)]


def score_corpus(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    rules: ScoringRules,
    metrics: Sequence[str] = QUICK_METRICS,
    resamples: int = 1,
) -> dict[str, Score]:
    """Score detokenised translations.

    Args:
        hypotheses: One translation per sentence.
        references: All raw references of each sentence, at least one.
        rules: Case and tokenisation.
        metrics: Keys of metrics.
        resamples: Test sets of a bootstrap that estimates confidence intervals; 1 is none.

    Returns:
        A score for each metric.
    """
    result = {}
    for key in metrics:
        if resamples > 1:
            (found,), name, signature = _test({"": hypotheses}, key, references, rules, "bootstrap", resamples)
            mean, confidence = float(found.mean), float(found.ci)
        else:
            metric = rules.metric(key)
            found = metric.corpus_score(list(hypotheses), _streams(key, references))
            name, signature, mean, confidence = found.name, str(metric.get_signature()), None, None
        name = name.split("|")[0].replace("chrF2", "chrF")
        result[key] = Score(name, float(found.score), signature, mean, confidence)
    return result


def words_of(lines: Sequence[str], rules: ScoringRules) -> list[list[str]]:
    """The words of each line, as BLEU counts them."""
    metric = rules.metric("bleu")
    return [metric.tokenizer(line.lower() if rules.lowercase else line).split() for line in lines]


def sentence_scores(hypotheses: Sequence[str], references: Sequence[Sequence[str]], rules: ScoringRules) -> list[float]:
    """BLEU of each translation alone, over the n-grams that it is long enough for (sacreBLEU's effective order)."""
    metric = rules.metric("bleu")
    metric.effective_order = True
    pairs = zip(hypotheses, references, strict=True)
    return [float(metric.sentence_score(text, list(refs)).score) for text, refs in pairs]


def length_ratio(hypotheses: Sequence[str], references: Sequence[Sequence[str]], rules: ScoringRules) -> float:
    """Words of the translations per word of the references that are closest in length, as BLEU counts them."""
    return float(rules.metric("bleu").corpus_score(list(hypotheses), _streams("bleu", references)).ratio)


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
    references: Sequence[Sequence[str]],
    rules: ScoringRules,
    *,
    metrics: Sequence[str] = ("bleu",),
    test: PairedTestName = "bootstrap",
    samples: int = 0,
) -> dict[str, list[Comparison]]:
    """Compare each system with the first one by sacreBLEU's paired significance tests.

    Args:
        systems: Name and translations of each; the first is the baseline.
        references: All references of each sentence.
        rules: Case and tokenisation.
        metrics: Keys of metrics.
        test: Paired bootstrap resampling (Koehn, 2004) or approximate randomisation (Riezler & Maxwell, 2005).
        samples: Test sets or trials; 0 is sacreBLEU's default: 1,000 and 10,000.

    Returns:
        For each metric, a comparison for each system.
    """
    result = {}
    for key in metrics:
        found, _, signature = _test(dict(systems), key, references, rules, test, samples)
        result[key] = [
            Comparison(name, float(each.score), float(each.mean), float(each.ci), _p_value(each, found[0]), signature)
            for (name, _), each in zip(systems, found, strict=True)
        ]
    return result


def _test(
    systems: Mapping[str, Sequence[str]],
    key: str,
    references: Sequence[Sequence[str]],
    rules: ScoringRules,
    test: PairedTestName,
    samples: int,
) -> tuple[list[Any], str, str]:
    """sacreBLEU's results for each system, its name of the metric, and its signature.

    Intervals come from here as well, as `corpus_score` fails for TER if a sample has no reference words.
    """
    from sacrebleu.significance import PairedTest

    paired = PairedTest(
        [(name, list(hypotheses)) for name, hypotheses in systems.items()],
        {key: rules.metric(key)},
        _streams(key, references),
        test_type=PAIRED_TESTS[test],
        n_samples=samples,
        n_ar_confidence=RESAMPLES if test == "randomization" else -1,
    )
    signatures, scores = paired()
    ((name, signature),) = signatures.items()
    return cast(list[Any], scores[name]), name, str(signature)


def _p_value(result: Any, baseline: Any) -> float | None:
    """sacreBLEU's p-value, but 1 instead of its 0 if both scores are equal."""
    if result.p_value is None:
        return None
    return 1.0 if result.score == baseline.score else float(result.p_value)


def as_json(scores: dict[str, Score]) -> dict[str, dict[str, Any]]:
    """Scores as plain values."""
    return {key: asdict(score) for key, score in scores.items()}
