"""BLEU and chrF by sacreBLEU, with signatures; the only place where text is scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nmt.config import TextSection

UNSPACED = {"zh": "zh", "yue": "zh"} | dict.fromkeys(("ja", "th", "lo", "km", "my", "bo", "dz"), "char")
"""sacreBLEU's tokenizer for languages that are written without spaces between words."""


@dataclass(frozen=True)
class Score:
    """One metric of one system.

    Attributes:
        name: `BLEU` or `chrF`.
        value: 0 to 100.
        signature: sacreBLEU's signature; only scores with equal signatures can be compared.
    """

    name: str
    value: float
    signature: str


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

    def bleu(self) -> Any:
        """sacreBLEU's corpus BLEU (Papineni et al., 2002; Post, 2018)."""
        from sacrebleu.metrics.bleu import BLEU

        return BLEU(lowercase=self.lowercase, tokenize=self.tokenize, force=True)

    def chrf(self) -> Any:
        """sacreBLEU's chrF (Popović, 2015)."""
        from sacrebleu.metrics.chrf import CHRF

        return CHRF(lowercase=self.lowercase)


def _columns(references: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """Turn references by sentence into sacreBLEU's streams, padded with None."""
    width = max(map(len, references), default=0)
    return [[refs[n] if n < len(refs) else None for refs in references] for n in range(width)]


def score_corpus(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], rules: ScoringRules
) -> dict[str, Score]:
    """Score detokenised translations.

    Args:
        hypotheses: One translation per sentence.
        references: All raw references of each sentence, at least one.
        rules: Case and tokenisation.

    Returns:
        `bleu` and `chrf`.
    """
    streams = _columns(references)
    result = {}
    for key, metric in (("bleu", rules.bleu()), ("chrf", rules.chrf())):
        found = metric.corpus_score(list(hypotheses), streams)
        result[key] = Score(found.name.split("|")[0].rstrip("2"), found.score, str(metric.get_signature()))
    return result


@dataclass(frozen=True)
class Comparison:
    """Paired bootstrap of one system against a baseline (Koehn, 2004).

    Attributes:
        name: The system.
        score: Its BLEU.
        mean: Mean BLEU over the resampled test sets.
        confidence: Half the width of the 95% interval.
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
    samples: int = 1000,
) -> list[Comparison]:
    """Compare each system with the first one by sacreBLEU's paired bootstrap resampling on BLEU.

    Args:
        systems: Name and translations of each; the first is the baseline.
        references: All references of each sentence.
        rules: Case and tokenisation.
        samples: Resampled test sets.
    """
    from sacrebleu.significance import PairedTest

    streams: Any = _columns(references)
    test = PairedTest(
        [(name, list(hypotheses)) for name, hypotheses in systems],
        {"BLEU": rules.bleu()},
        streams,
        test_type="bs",
        n_samples=samples,
    )
    signatures, scores = test()
    results: Any = scores["BLEU"]
    return [
        Comparison(name, r.score, r.mean, r.ci, _p_value(r, results[0]), str(signatures["BLEU"]))
        for (name, _), r in zip(systems, results, strict=True)
    ]


def _p_value(result: Any, baseline: Any) -> float | None:
    """sacreBLEU's p-value, but 1 instead of its 0 if both scores are equal."""
    if result.p_value is None:
        return None
    return 1.0 if result.score == baseline.score else float(result.p_value)


def as_json(scores: dict[str, Score]) -> dict[str, dict[str, Any]]:
    """Scores as plain values."""
    return {key: asdict(score) for key, score in scores.items()}
