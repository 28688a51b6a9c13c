"""Training text that models make: back-translation, and distillation from several models into one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.system.errors import ConfigError, RunInterrupted, as_nmt_errors
from nmt.system.files import AnyPath, AnyPaths, as_names
from nmt.system.messages import Parameter
from nmt.system.surroundings import plain_torch

if TYPE_CHECKING:
    from nmt.config import Config, Overrides
    from nmt.evaluation.model_evaluation import ModelEvaluation
    from nmt.system.tables import ReportSection


@dataclass(frozen=True)
class Synthesis:
    """The result of training with synthetic pairs.

    Attributes:
        path: The folder with everything.
        sections: Tables for people.
        evaluation: The final model, compared with the one that was trained only on the pairs.
    """

    path: Path
    sections: list[ReportSection]
    evaluation: ModelEvaluation

    def __repr__(self) -> str:
        return f"<Synthesis {self.path}: BLEU {self.evaluation.bleu:.2f}>"


@as_nmt_errors()
@plain_torch()
def backtranslate(
    config: str | Path | Config,
    *,
    text: AnyPaths = (),
    teacher: AnyPaths = (),
    sample: bool = False,
    round_trip: float | None = None,
    weight: float = 1.0,
    tag: str | None = None,
    split: str = "test",
    source: AnyPaths = (),
    overrides: Overrides = (),
    output: AnyPath | None = None,
) -> Synthesis:
    """Learn from text of the target language, translated back.

    A model for the opposite direction is trained on the same pairs; its translations of the text become further sources
    (Sennrich et al., 2016). The same command continues what was stopped, and skips what is finished.

    Example: nmt backtranslate tatoeba_small --text sentences.de --output runs/more

    Args:
        config: Name of a shipped config, path of a YAML file, or a config.
        text: Sentences of the target language, one per line; with `teacher`, of the source language.
        teacher: Model that translates `text`, or without it the training sources, into further targets (Kim and Rush,
            2016), in place of a model for the opposite direction; repeat it for several, which translate together.
        sample: Draw words from the distribution in place of the most probable ones (Edunov et al., 2018).
        round_trip: Minimum chrF, from 0 to 100, between a sentence and its back-translation translated forth again.
        weight: How often a synthetic pair is in an epoch.
        tag: First token of synthetic sources (Caswell et al., 2019), such as <bt>; None is no tag.
        split: Split to evaluate on: test or valid.
        source: Corpus instead of the config's own, as for `preprocess`.
        overrides: Values in place of the config's.
        output: Folder for everything; None is runs/backtranslation/NAME.

    Raises:
        RunInterrupted: A signal asked for the end; the same call continues.
        NmtError: The config, a file or the folder cannot be used.
    """
    from nmt.comparison.synthetic_pairs import Steps
    from nmt.config import load_config
    from nmt.corpus.licence import with_sources
    from nmt.system.replacement import locked

    texts = as_names(text)
    teachers = as_names(teacher)
    if not texts and not teachers:
        raise ConfigError(
            "{text}: is empty; give a file with sentences of the target language, one per line", text=Parameter("text")
        )
    if teachers and round_trip is not None:
        raise ConfigError(
            "{round_trip}: is for back-translations; leave it out with {teacher}",
            round_trip=Parameter("round_trip"),
            teacher=Parameter("teacher"),
        )
    if split not in ("test", "valid"):
        raise ConfigError("{split}: must be test or valid", split=Parameter("split", split))
    settings = load_config(config, overrides)
    if given := as_names(source):
        settings = with_sources(settings, given)
    folder = Path("runs", "backtranslation", settings.name) if output is None else Path(output)
    with locked(folder):
        steps = Steps(folder, settings, texts, teachers, sample, round_trip, weight, tag, split)
        complete = steps.check()
        steps.claim()
        try:
            return Synthesis(folder, *steps.run(complete))
        except RunInterrupted as stop:
            raise RunInterrupted(f"{folder}: stopped; run the same command again to continue") from stop
