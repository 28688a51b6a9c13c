"""The result of an evaluation, and its files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nmt.evaluation.diagnostics import Diagnosis
from nmt.evaluation.differences import Breakdown
from nmt.evaluation.loss import LossMeasures
from nmt.evaluation.metrics import Comparison, as_json, reference_streams
from nmt.evaluation.short_inputs import ShortInputResult
from nmt.evaluation.translated import Evaluation
from nmt.models.storage import SavedModel
from nmt.system.files import as_json_text, naming, open_text
from nmt.system.tables import Table

SEEN_LIMIT = 0.01
"""Share of test sources in training above which scores are marked."""


@dataclass(frozen=True)
class Seen:
    """How much of a test set a model has seen in training.

    Attributes:
        sentences: Number of sources that are training sources; None if unknown.
        examples: Number of all sources.
    """

    sentences: int | None
    examples: int

    @property
    def marked(self) -> bool:
        """Whether it is so much that the scores do not measure unseen text."""
        return self.sentences is not None and self.sentences > SEEN_LIMIT * self.examples

    def __str__(self) -> str:
        if self.sentences is None:
            return "overlap: unknown, as the model has no fingerprints of its training sources"
        share = self.sentences / self.examples
        return (
            f"overlap: {self.sentences:,} of {self.examples:,} sources ({share:.1%}) are in the model's training data"
        )


@dataclass(frozen=True)
class ModelEvaluation(Evaluation):
    """Translations and scores of a test set.

    Attributes:
        hypotheses: One translation per source, in order.
        scores: `bleu`, `chrf`, `chrf++` and `ter`, each with its signature.
        model: The model directory, the first of several.
        other_models: Those that translated together with it.
        what: Name of the test set.
        sentences: Its sources.
        references: Its references.
        beam_size: Hypotheses kept at each step.
        length_penalty: That of the search.
        seen: How much of the test set the model has seen in training.
        diagnosis: Visible faults of the translations.
        warnings: What makes the scores meaningless.
        teacher_forced: How well the model predicts each word of the references from those before it; None for several
            models.
        free_running: The same from its own words instead; None for several models.
        comparisons: For each metric, this model and what it was compared with.
        breakdown: Where it is good and bad; None if that was not asked for.
        short_inputs: What became of short inputs; None if they were left out.
    """

    model: Path
    other_models: list[Path]
    what: str
    sentences: int
    references: int
    beam_size: int
    length_penalty: float
    seen: Seen
    diagnosis: Diagnosis
    warnings: list[str]
    teacher_forced: LossMeasures | None
    free_running: LossMeasures | None
    comparisons: dict[str, list[Comparison]]
    breakdown: Breakdown | None
    short_inputs: ShortInputResult | None

    @property
    def name(self) -> str:
        """The model directories."""
        return ", ".join(map(str, [self.model, *self.other_models]))

    @property
    def bleu(self) -> float:
        """BLEU, from 0 to 100."""
        return self.scores["bleu"].value

    @property
    def chrf(self) -> float:
        """chrF, from 0 to 100."""
        return self.scores["chrf"].value

    @property
    def comparison_table(self) -> Table:
        """Each system's scores with 95% intervals, and the probability that a difference from the model is chance."""
        header, rows = ["system"], [[each.name] for each in next(iter(self.comparisons.values()), [])]
        for key, compared in self.comparisons.items():
            header += [self.scores[key].name, "p"]
            for row, each in zip(rows, compared, strict=True):
                row += [f"{each.score:.2f} ± {each.confidence:.2f}"]
                row += ["" if each.p_value is None else f"{each.p_value:.4f}"]
        return Table(header, rows, "l" + "r" * (len(header) - 1), "significance of differences")

    def as_json(self) -> dict[str, Any]:
        """As plain values, without the translations."""
        return {
            "model": str(self.model),
            **({"other_models": list(map(str, self.other_models))} if self.other_models else {}),
            "what": self.what,
            "sentences": self.sentences,
            "references": self.references,
            "beam_size": self.beam_size,
            "length_penalty": self.length_penalty,
            "in_training": {"sources": self.seen.sentences, "of": self.seen.examples, "marked": self.seen.marked},
            "scores": as_json(self.scores),
            "diagnosis": self.diagnosis.as_json(),
            "warnings": self.warnings,
            "teacher_forced": self.teacher_forced and self.teacher_forced.as_json(),
            "free_running": self.free_running and self.free_running.as_json(),
            "comparisons": {key: [asdict(each) for each in compared] for key, compared in self.comparisons.items()},
            "attention": [head.as_json() for head in self.attention],
            "attention_by_length": [each.as_json() for each in self.attention_by_length],
            "breakdown": self.breakdown and self.breakdown.as_json(),
            "short_inputs": self.short_inputs and self.short_inputs.as_json(),
        }


def name_of(models: Sequence[SavedModel]) -> str:
    """The directories of models that translate together."""
    return ", ".join(str(each.path) for each in models)


@dataclass(frozen=True)
class OutputFiles:
    """Files of an evaluation; None is not written.

    Attributes:
        json: Everything but the translations.
        hypotheses: The translations, one per line.
        references: The references: those of a sentence in a line, with tabs between them; where a sentence has fewer
            than another one, its first is repeated.
    """

    json: Path | None = None
    hypotheses: Path | None = None
    references: Path | None = None

    @contextlib.contextmanager
    def opened(self) -> Iterator[Callable[[ModelEvaluation, Sequence[Sequence[str]]], None]]:
        """Open the files, and yield the function that writes an evaluation and the references to them.

        All are stored or none, even if the disk is full.
        """
        with contextlib.ExitStack() as stack:
            paths = [path for path in (self.json, self.hypotheses, self.references) if path]
            files = {path: stack.enter_context(open_text(path)) for path in paths}

            def write(found: ModelEvaluation, references: Sequence[Sequence[str]]) -> None:
                if self.json:
                    files[self.json].write(as_json_text(found.as_json()))
                if self.hypotheses:
                    files[self.hypotheses].writelines(f"{line}\n" for line in found.hypotheses)
                if self.references:
                    rows = zip(*reference_streams(references), strict=True)
                    lines = ("\t".join(" ".join(text.split()) for text in row) for row in rows)
                    files[self.references].writelines(f"{line}\n" for line in lines)
                for path, file in files.items():
                    with naming(path):
                        file.flush()

            yield write
