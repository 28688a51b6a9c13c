"""Training text that models make: back-translation, and distillation from several models into one."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from nmt.system import options
from nmt.system.errors import ConfigError, DataError, RunInterrupted, as_nmt_errors
from nmt.system.files import AnyPaths, as_names, as_paths
from nmt.system.options import Option
from nmt.system.tables import ReportSection, Table

if TYPE_CHECKING:
    from nmt.config import Config, Overrides
    from nmt.corpus import Pair
    from nmt.corpus.splitting import Example
    from nmt.evaluation.model_evaluation import ModelEvaluation
    from nmt.models.storage import SavedModel
    from nmt.translation.translator import Translator

log = logging.getLogger(__name__)

MARKER = "backtranslation.json"
CONFIG = "config.yaml"
NAMES = "pairs alone", "with synthetic pairs"


@dataclass(frozen=True)
class Synthesis:
    """What synthetic training pairs have brought.

    Attributes:
        path: The folder with everything.
        sections: Tables for people.
        evaluation: The final model, compared with the one that was trained on the pairs alone.
    """

    path: Path
    sections: list[ReportSection]
    evaluation: ModelEvaluation

    def __repr__(self) -> str:
        return f"<Synthesis {self.path}: BLEU {self.evaluation.bleu:.2f}>"


@as_nmt_errors()
def backtranslate(
    config: Annotated[str | Path | Config, options.CONFIG],
    *,
    text: Annotated[AnyPaths, Option("-t", "FILE")] = (),
    teacher: Annotated[AnyPaths, Option(metavar="DIR")] = (),
    sample: options.Flag = False,
    round_trip: Annotated[float | None, Option(minimum=0, maximum=100)] = None,
    weight: Annotated[float, Option()] = 1.0,
    tag: Annotated[str | None, Option(metavar="<TAG>")] = None,
    split: Annotated[str, Option(metavar="test|valid")] = "test",
    source: Annotated[AnyPaths, options.CORPUS] = (),
    overrides: Annotated[Overrides, options.SETTINGS] = (),
    output: options.OutputFolder = None,
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
    from nmt.config import load_config
    from nmt.corpus.licence import with_sources
    from nmt.system.replacement import locked

    texts, teachers = as_paths(text), as_paths(teacher)
    if not texts and not teachers:
        raise ConfigError("text: is empty; give a file with sentences of the target language, one per line")
    if teachers and round_trip is not None:
        raise ConfigError("--round-trip: is for back-translations; leave it out with --teacher")
    if split not in ("test", "valid"):
        raise ConfigError(f"--split {split}: must be test or valid")
    settings = load_config(config, overrides)
    if given := as_names(source):
        settings = with_sources(settings, given)
    folder = Path("runs", "backtranslation", settings.name) if output is None else Path(output)
    with locked(folder):
        steps = _Steps(folder, settings, texts, teachers, sample, round_trip, weight, tag, split)
        complete = steps.check()
        steps.claim()
        try:
            return steps.run(complete)
        except RunInterrupted as stop:
            raise RunInterrupted(f"{folder}: stopped; run the same command again to continue") from stop


@dataclass(frozen=True)
class _Steps:
    """The steps, each of which leaves a file or a folder when it is done; see `backtranslate`.

    Attributes:
        folder: Where they leave it.
        config: Config of the model that is trained on the pairs alone.
    """

    folder: Path
    config: Config
    texts: Sequence[Path]
    teachers: Sequence[Path]
    sample: bool
    round_trip: float | None
    weight: float
    tag: str | None
    split: str

    def files(self, name: str) -> list[str]:
        """Two parallel files, in the order of the config's languages."""
        data = self.config.data
        return [str(self.folder / f"{name}.{code}") for code in (data.src_language, data.tgt_language)]

    @property
    def original(self) -> Path:
        """What is to be translated, once it is collected."""
        return self.folder / "original.txt"

    def check(self) -> Config:
        """The config of the final model; what cannot work is said before anything is written.

        Raises:
            NmtError: A text cannot be read, a teacher is no model for these languages, or a value is impossible.
        """
        from nmt.config import load_config, read_config
        from nmt.corpus.lines import read_file_lines
        from nmt.models.run_records import find_model

        wanted = "-".join(self.config.data.languages)
        for teacher in self.teachers:
            languages = "-".join(read_config(find_model(teacher) / CONFIG).data.languages)
            if languages != wanted:
                raise ConfigError(f"--teacher {teacher}: translates {languages}, not {wanted}")
        synthetic = {"source": self.files("synthetic"), "weight": self.weight, "tag": self.tag}
        extra = {**self.config.data.model_dump(mode="json")["extra"], "synthetic": synthetic}
        complete = load_config(self.config, {"data.extra": extra})
        for text in () if self.original.exists() else self.texts:
            if not any(map(bytes.strip, read_file_lines(text, None))):
                raise DataError(f"{text}: is empty; give a file with sentences, one per line")
        return complete

    def claim(self) -> None:
        """Make the folder that of these steps.

        Raises:
            DataError: It has other steps, or something else.
        """
        from nmt.config import differing_keys, dump_config, load_config
        from nmt.system.files import read_json, write_json, write_text
        from nmt.system.outputs import check_output

        choices: dict[str, object] = {"text": [*map(str, self.texts)], "teacher": [*map(str, self.teachers)]}
        choices |= {key: getattr(self, key) for key in ("sample", "round_trip", "weight", "tag", "split")}
        check_output(self.folder, MARKER, overwrite=True)
        if not (self.folder / MARKER).exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            write_text(self.folder / CONFIG, dump_config(self.config))
            write_json(self.folder / MARKER, choices)
        there = read_json(self.folder / MARKER)
        values = ((key, there.get(key), here) for key, here in choices.items())
        differing = [f"{key} ({old!r} there, {new!r} here)" for key, old, new in values if old != new]
        differing += differing_keys(load_config(self.folder / CONFIG), self.config)
        if differing:
            other = f"was made with other settings: {', '.join(differing)}"
            raise DataError(f"{self.folder}: {other}; choose another --output")

    def run(self, complete: Config) -> Synthesis:
        """Do what is left to do; a student of teachers has new weights, and what is `auto` as for the pairs alone."""
        from nmt.corpus.prepare import fit_to_data
        from nmt.models.run_records import find_model

        original, files = self.original, [*map(Path, self.files("synthetic"))]
        data = self.prepare(self.config, "alone")
        if not original.exists():
            self.collect(original)
        alone = self.train(self.config, "alone")
        models = [*map(find_model, self.teachers)] or [self.train(self.reverse(alone), "reverse")]
        translated = self.translate(models, original, "translated.txt", sample=self.sample)
        again = None if self.round_trip is None else self.translate([alone], translated, "round_trip.txt")
        if not files[1].exists():
            self.write_pairs(files, original, translated, again)
        complete = fit_to_data(complete, data) if self.teachers else self.go_on(alone, complete)
        return self.evaluate(alone, self.train(complete, "complete"))

    def go_on(self, alone: Path, complete: Config) -> Config:
        """The config of the final model, which goes on from the first one for as many updates and validations.

        Real pairs are repeated, so that an epoch has about as many of them as of synthetic ones.
        """
        from nmt.config import load_config, read_config
        from nmt.corpus.dataset import read_marker
        from nmt.corpus.lines import read_file_lines
        from nmt.models.run_records import read_value

        first, real = read_config(alone / CONFIG), read_marker(alone.parent / "data").pairs["train"]
        synthetic = self.weight * sum(1 for _ in read_file_lines(Path(self.files("synthetic")[1]), None))
        values = {
            "parent": {"run": str(alone), "pieces": "own"},
            "data.weight": complete.data.weight * max(1, round(synthetic / real)),
            "model.output_norm": first.model.output_norm,
            "train.batch.size": first.train.batch.size,
            "train.epochs": first.train.epochs,
            "train.max_updates": read_value(alone, "updates"),
            "train.validation.every": first.train.validation.every or read_value(alone, "updates_per_epoch"),
        }
        return load_config(complete, values)

    def prepare(self, config: Config, name: str) -> Path:
        """Data of a config."""
        from nmt.corpus.dataset import MARKER as DATA
        from nmt.corpus.prepare import write_data

        data = self.folder / name / "data"
        if not (data / DATA).exists():
            log.info(f"{data}: preprocessing")
            write_data(config, data)
        return data

    def train(self, config: Config, name: str) -> Path:
        """The run of a config, with its data beside it."""
        from nmt.models.run_records import read_state
        from nmt.training.run import train

        data, run = self.prepare(config, name), self.folder / name / "run"
        if read_state(run) != "finished":
            log.info(f"{run}: training")
            train(config, data=data, output=run, resume=True)
        return run

    def reverse(self, alone: Path) -> Config:
        """The config of the opposite direction, on the training and validation pairs of the model for the first one.

        Its model goes on from that one for half as many updates.
        """
        from nmt.config import load_config
        from nmt.corpus import Pair
        from nmt.models.run_records import read_value

        (self.folder / "reverse").mkdir(exist_ok=True)
        valid = [Pair(example.src, example.references[0]) for example in self.examples("valid")]
        source: list[str] = []
        for name, pairs in (("train", self.training_text()), ("valid", valid)):
            if pairs:
                source += (files := self.files(f"reverse/{name}"))
                if not Path(files[1]).exists():
                    self.write(files, pairs)
        values = {
            "source": source,
            "reverse": not self.config.data.reverse,
            "extra": {},
            "weight": 1,
            "test": [],
            "first_lines": None,
        }
        split = {"train_size": None, "valid_size": 0, "test_size": 0}
        return load_config(
            self.config,
            {
                "name": f"{self.config.name}-reverse",
                "parent": {"run": str(alone), "pieces": "own"},
                "train.max_updates": math.ceil(read_value(alone, "updates") / 2),
                **{f"data.{key}": value for key, value in values.items()},
                **{f"data.split.{key}": value for key, value in split.items()},
            },
        )

    def write(self, files: Sequence[str | Path], pairs: Iterable[Pair]) -> None:
        """Write pairs into two files, in the order of the config's languages."""
        from nmt.system.files import open_text

        with open_text(Path(files[0])) as one, open_text(Path(files[1])) as other:
            for pair in pairs:
                for file, text in zip((one, other), pair[:: -1 if self.config.data.reverse else 1], strict=True):
                    file.write(f"{text}\n")

    def examples(self, split: str) -> list[Example]:
        """Examples of the pairs alone; none without such a split."""
        from nmt.corpus.dataset import read_examples

        path = self.folder / "alone" / "data" / f"{split}.jsonl"
        return read_examples(path) if path.exists() else []

    def training_text(self) -> list[Pair]:
        """Training pairs of the pairs alone."""
        from nmt.corpus.dataset import open_data
        from nmt.evaluation.training_text import read_training_pairs

        data = self.folder / "alone" / "data"
        return read_training_pairs(data, open_data(data).load_processor(), sys.maxsize)

    def collect(self, path: Path) -> None:
        """Write what is to be translated: each sentence once, without those of valid and test.

        Raises:
            DataError: None is left.
        """
        from nmt.corpus.identity import identities
        from nmt.corpus.lines import read_file_lines
        from nmt.system.files import open_text

        lines: Iterable[str] = (pair.src for pair in self.training_text())
        if self.texts:
            lines = (line.decode("utf-8", "replace") for file in self.texts for line in read_file_lines(file, None))
        tests = self.examples("valid") + self.examples("test")
        texts = [text for example in tests for text in ([example.src] if self.teachers else example.references)]
        unseen, new, leaks = {*identities(texts).tolist()}, set[int](), 0
        with open_text(path) as file:
            for line in filter(None, map(str.strip, lines)):
                (identity,) = identities([line]).tolist()
                leaks += identity in unseen
                if identity not in unseen and identity not in new:
                    new.add(identity)
                    file.write(f"{line}\n")
            if not new:
                where = ", ".join(map(str, self.texts)) or "training sources"
                raise DataError(f"{where}: no sentence that is not in valid or test; give more text")
        log.info(f"{path}: {len(new):,} distinct sentences; {leaks:,} left out because valid or test have them")

    def open(self, models: Sequence[Path], overrides: Overrides = ()) -> tuple[list[SavedModel], Translator]:
        """Models that translate together; a score of the user's own is trusted, as the config names it."""
        from nmt.translation.loading import open_translator

        allowed = [self.config.model.attention.score]
        return open_translator(models, self.config.train.device, {}, allowed, overrides=overrides)

    def translate(self, models: Sequence[Path], source: Path, name: str, *, sample: bool = False) -> Path:
        """A file that is translated line by line, as it is; by search only if the translations are to be learnt."""
        from nmt.translation.translate import translate_file

        target = self.folder / name
        if not target.exists():
            log.info(f"{target}: translating")
            drawn = {"decode.sampling.temperature": 1.0} if sample else {}
            greedy = {} if self.teachers and not sample else {"decode.beam_size": 1}
            _, translator = self.open(models, drawn | greedy)
            translate_file(translator, source, target, resume=True)
        return target

    def write_pairs(self, files: Sequence[Path], original: Path, translated: Path, again: Path | None) -> None:
        """Write the synthetic pairs; of those with a round trip, the ones that come back close enough."""
        from nmt.corpus import Pair
        from nmt.corpus.splitting import Example
        from nmt.evaluation.metrics import ScoringRules, sentence_scores

        texts = [path.read_text(encoding="utf-8").split("\n")[:-1] for path in (original, translated)]
        src, tgt = texts if self.teachers else texts[::-1]
        rows = [*range(len(src))]
        if again is not None:
            rules = ScoringRules.for_text(self.config.text, self.config.data.languages[1])
            examples = [Example(source, (text,)) for source, text in zip(src, tgt, strict=True)]
            scores = sentence_scores(examples, again.read_text(encoding="utf-8").split("\n")[:-1], rules, "chrf")
            rows = [row for row, score in enumerate(scores) if score >= (self.round_trip or 0)]
            log.info(
                f"{again}: {len(rows):,} of {len(src):,} sentences come back with a chrF of {self.round_trip:g} or more"
            )
        self.write(files, (Pair(src[row], tgt[row]) for row in rows))

    def evaluate(self, *runs: Path) -> Synthesis:
        """Score both models on the same split."""
        from nmt.corpus.data_report import format_markdown
        from nmt.corpus.dataset import open_data, read_marker
        from nmt.evaluation.breakdown import Breakdown, accuracy_by_frequency
        from nmt.evaluation.metrics import ScoringRules
        from nmt.evaluation.model_evaluation import evaluate_model
        from nmt.evaluation.training_text import count_training_words
        from nmt.models.run_records import RunOutcome
        from nmt.system.files import write_text

        examples = self.examples(self.split)
        evaluations: list[ModelEvaluation] = []
        for name, run in zip(NAMES, runs, strict=True):
            before = {NAMES[0]: evaluations[0].hypotheses} if evaluations else {}
            suffixes = {"json": "json", "hypotheses": "txt"}
            files = {kind: self.folder / f"{run.parent.name}.{suffix}" for kind, suffix in suffixes.items()}
            models, translator = self.open([run])
            evaluations.append(
                evaluate_model(models, translator, examples, what=self.split, name=name, files=files, against=before)
            )
        data = runs[0].parent / "data"
        rules = ScoringRules.for_text(self.config.text, self.config.data.languages[1])
        frequency = count_training_words(data, open_data(data).load_processor(), rules)
        accuracy = {
            name: accuracy_by_frequency(examples, evaluation.hypotheses, frequency, rules)
            for name, evaluation in zip(NAMES, evaluations, strict=True)
        }
        words = next(Breakdown(accuracy, {}, {}, []).sections())
        rows = []
        for name, run, evaluation in zip(NAMES, runs, evaluations, strict=True):
            pairs, outcome = read_marker(run.parent / "data").pairs["train"], RunOutcome.read(run)
            scores = [f"{evaluation.bleu:.2f}", f"{evaluation.chrf:.2f}"]
            rows.append([name, f"{pairs:,}", f"{outcome.updates:,}", f"{outcome.seconds / 60:.1f}", *scores])
        header = ["trained on", "pairs", "updates", "minutes", "BLEU", "chrF"]
        steps = ReportSection(
            f"Scores on {self.split}", [Table(header, rows, "lrrrrr"), evaluations[1].comparison_table]
        )
        write_text(self.folder / "table.md", format_markdown("Synthetic pairs", [steps, words], self.folder))
        return Synthesis(self.folder, [steps, words], evaluations[1])
