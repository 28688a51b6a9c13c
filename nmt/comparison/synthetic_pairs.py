"""The steps of back-translation and distillation, each of which leaves a file or a folder when it is done."""

import logging
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.config import Config, Overrides, differing_keys, dump_config, load_config, read_config
from nmt.config.outputs import check_output
from nmt.corpus import Pair
from nmt.corpus.data_report import format_markdown
from nmt.corpus.dataset import has_repaired_references, open_data
from nmt.corpus.example import Example, read_examples
from nmt.corpus.identity import identities
from nmt.corpus.lines import read_file_lines
from nmt.corpus.marker_schema import MARKER as DATA
from nmt.corpus.marker_schema import read_marker
from nmt.corpus.prepare import fit_to_data, write_data
from nmt.corpus.sources import LineReport, find_files, read_sentences
from nmt.evaluation.breakdown import Breakdown, accuracy_by_frequency
from nmt.evaluation.input_text import EvaluationSet
from nmt.evaluation.metrics import ScoringRules, sentence_scores
from nmt.evaluation.model_evaluation import Measures, ModelEvaluation, evaluate_model
from nmt.evaluation.training_text import count_training_words, read_training_pairs
from nmt.models.location import find_model, read_value
from nmt.models.storage import WEIGHTS, SavedModel
from nmt.system.errors import ConfigError, DataError, name_differences
from nmt.system.files import check_file, open_text, read_json, read_text, sha256, write_json, write_text
from nmt.system.limits import MAX_EXAMPLES
from nmt.system.messages import Parameter
from nmt.system.tables import ReportSection, Table
from nmt.text.direction import Direction
from nmt.training.run import train
from nmt.training.run_records import RunOutcome
from nmt.translation.loading import LoadSettings, open_translator
from nmt.translation.translate import translate_file
from nmt.translation.translator import Translator

log = logging.getLogger(__name__)

MARKER = "backtranslation.json"
CONFIG = "config.yaml"
ORIGINAL = "original.txt"
"""What is to be translated, once it is collected."""


@dataclass(frozen=True)
class Steps:
    """The steps; see `backtranslate`.

    Attributes:
        folder: Where they leave what they make.
        config: Config of the model that is trained on the pairs alone.
    """

    folder: Path
    config: Config
    text: list[str]
    teacher: list[str]
    sample: bool
    round_trip: float | None
    weight: float
    tag: str | None
    split: str

    def files(self, name: str) -> list[str]:
        """Two parallel files, in the order of the config's languages."""
        return [str(self.folder / f"{name}.{code}") for code in self.config.data.file_languages]

    @property
    def data(self) -> Path:
        """Data of the pairs alone."""
        return self.folder / "alone" / "data"

    @property
    def rules(self) -> ScoringRules:
        """How translations are scored."""
        return ScoringRules.for_config(self.config)

    def check(self) -> Config:
        """The config of the final model; what cannot work is said before anything is written.

        Raises:
            NmtError: A text cannot be read, a teacher is no model for these languages, or a value is impossible.
        """
        wanted = Direction.of(self.config.data)
        for teacher in self.teacher:
            direction = Direction.of(read_config(find_model(Path(teacher)) / CONFIG).data)
            if not direction.is_same(wanted):
                raise ConfigError(
                    "{teacher}: translates {languages}, not {wanted}",
                    teacher=Parameter("teacher", teacher),
                    languages=direction,
                    wanted=wanted,
                )
        synthetic = {"source": self.files("synthetic"), "weight": self.weight, "tag": self.tag}
        extra = {**self.config.data.model_dump(mode="json")["extra"], "synthetic": synthetic}
        complete = load_config(self.config, {"data.extra": extra})
        for text in () if (self.folder / ORIGINAL).exists() else map(Path, self.text):
            report = LineReport(0)
            sentences = sum(1 for sentence in read_sentences(check_file(text, None), report) if sentence.strip())
            if not sentences and not report.malformed:
                raise DataError(f"{text}: is empty; give a file with sentences, one per line")
            report.check(self.config.data.max_malformed if sentences else None)
        return complete

    def claim(self) -> None:
        """Make the folder that of these steps.

        Raises:
            DataError: It has other steps, or something else, or a file that it is made from has changed.
        """
        names = ("text", "teacher", "sample", "round_trip", "weight", "tag", "split")
        choices = {name: getattr(self, name) for name in names}
        check_output(self.folder, MARKER, overwrite=True)
        if not (self.folder / MARKER).exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            contents = {str(path): sha256(path) for path in self.inputs() if path.is_file()}
            write_json(self.folder / MARKER, {**choices, "sha256": contents})
        if not (self.folder / CONFIG).exists():  # a kill may come between the two
            write_text(self.folder / CONFIG, dump_config(self.config))
        there = read_json(self.folder / MARKER)
        differing = name_differences((name, there.get(name), here) for name, here in choices.items())
        differing += differing_keys(load_config(self.folder / CONFIG), self.config)
        if differing:
            raise DataError(
                "{folder}: was made with other settings: {differing}; choose another {output}",
                folder=self.folder,
                differing=", ".join(differing),
                output=Parameter("output"),
            )
        contents = there.get("sha256", {})  # earlier versions did not record them
        for path in filter(Path.is_file, self.inputs()):
            if contents.get(str(path), content := sha256(path)) != content:
                raise DataError(
                    "{path}: has changed since {folder} was made from it; choose another {output}",
                    path=path,
                    folder=self.folder,
                    output=Parameter("output"),
                )

    def inputs(self) -> list[Path]:
        """Files that the folder is made from; some may no longer be there, or be places on the web."""
        data = self.config.data
        named = [*data.source, *data.test]
        for corpus in data.extra.values():
            named += corpus.source
        # A corpus may be named without the endings of its files.
        corpora = [file for name in named for file in find_files(Path(name), data)]
        teachers = [find_model(Path(teacher)) / WEIGHTS for teacher in self.teacher]
        return [*map(Path, self.text), *corpora, *teachers]

    def run(self, complete: Config) -> tuple[list[ReportSection], ModelEvaluation]:
        """Do what is left to do; a student of teachers has new weights, and what is `auto` as for the pairs alone.

        Args:
            complete: The config of the final model.

        Returns:
            The tables, and the evaluation of the final model.
        """
        original, files = self.folder / ORIGINAL, [*map(Path, self.files("synthetic"))]
        data = self.prepare(self.config, "alone")
        if not original.exists():
            self.collect(original)
        alone = self.train(self.config, "alone")
        models = [find_model(Path(path)) for path in self.teacher] or [self.train(self.reverse(alone), "reverse")]
        translated = self.translate(models, original, "translated.txt", sample=self.sample)
        again = None if self.round_trip is None else self.translate([alone], translated, "round_trip.txt")
        if not all(map(Path.exists, files)):
            self.write_pairs(files, original, translated, again)
        complete = fit_to_data(complete, data) if self.teacher else self.go_on(alone, complete)
        return self.evaluate({"pairs alone": alone, "with synthetic pairs": self.train(complete, "complete")})

    def go_on(self, alone: Path, complete: Config) -> Config:
        """The config of the final model, which goes on from the first one for as many updates and validations.

        Real pairs are repeated, so that an epoch has about as many of them as of synthetic ones.
        """
        first, real = read_config(alone / CONFIG), read_marker(self.data).pairs["train"]
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
        data = self.folder / name / "data"
        if not (data / DATA).exists():
            log.info(f"{data}: preprocessing")
            write_data(config, data)
        return data

    def train(self, config: Config, name: str) -> Path:
        """The run of a config, with its data beside it."""
        data, run = self.prepare(config, name), self.folder / name / "run"
        if read_value(run, "state") != "finished":
            log.info(f"{run}: training")
            train(config, data=data, output=run, resume=True)
        return run

    def reverse(self, alone: Path) -> Config:
        """The config of the opposite direction, on the training and validation pairs of the model for the first one.

        Its model goes on from that one for half as many updates.
        """
        (self.folder / "reverse").mkdir(exist_ok=True)
        valid = [Pair(example.src, example.references[0]) for example in self.examples("valid")]
        source: list[str] = []
        for name, pairs in (("train", self.training_text()), ("valid", valid)):
            if pairs:
                files = [*map(Path, self.files(f"reverse/{name}"))]
                source += map(str, files)
                if not all(map(Path.exists, files)):
                    self.write(files, pairs)
        values = {
            "name": f"{self.config.name}-reverse",
            "parent": {"run": str(alone), "pieces": "own"},
            "train.max_updates": math.ceil(read_value(alone, "updates") / 2),
            "data.source": source,
            "data.reverse": not self.config.data.reverse,
            "data.extra": {},
            "data.weight": 1,
            "data.test": [],
            "data.first_lines": None,
            "data.split.train_size": None,
            "data.split.valid_size": 0,
            "data.split.test_size": 0,
        }
        return load_config(self.config, values)

    def write(self, files: Sequence[Path], pairs: Iterable[Pair]) -> None:
        """Write pairs into two files, in the order of the config's languages; only both of them are a finished step."""
        with open_text(files[0]) as one, open_text(files[1]) as other:
            for pair in pairs:
                for file, text in zip((one, other), pair[:: -1 if self.config.data.reverse else 1], strict=True):
                    file.write(f"{text}\n")

    def examples(self, split: str) -> list[Example]:
        """Examples of the pairs alone; none without such a split."""
        path = self.data / f"{split}.jsonl"
        return read_examples(path) if path.exists() else []

    def training_text(self) -> list[Pair]:
        """Training pairs of the pairs alone, without the tags of further corpora, which are no text."""
        pairs = read_training_pairs(self.data, open_data(self.data).load_processor(), sys.maxsize)
        for tag in {extra.tag for extra in self.config.data.extra.values() if extra.tag}:
            pairs = [Pair(src.removeprefix(f"{tag} "), tgt) for src, tgt in pairs]
        return pairs

    def collect(self, path: Path) -> None:
        """Write what is to be translated: each sentence once, without those of valid and test.

        Raises:
            DataError: None is left.
        """
        lines: Iterable[str] = (pair.src for pair in self.training_text())
        report = LineReport(0)
        if self.text:
            lines = (line for file in self.text for line in read_sentences(Path(file), report))
        tests = self.examples("valid") + self.examples("test")
        texts = [text for example in tests for text in ([example.src] if self.teacher else example.references)]
        unseen, new, leaks = {*identities(texts).tolist()}, set[int](), 0
        with open_text(path) as file:
            for line in filter(None, map(str.strip, lines)):
                (identity,) = identities([line]).tolist()
                leaks += identity in unseen
                if identity not in unseen and identity not in new:
                    new.add(identity)
                    file.write(f"{line}\n")
            if not new:
                where = ", ".join(self.text) or "training sources"
                raise DataError(f"{where}: no sentence that is not in valid or test; give more text")
        for number, places in report.locate():
            log.warning(f"{path}: left out are {number} ({places})")
        log.info(f"{path}: {len(new):,} distinct sentences; {leaks:,} left out because valid or test have them")

    def open(self, models: Sequence[Path], overrides: Overrides = ()) -> tuple[list[SavedModel], Translator]:
        """Models that translate together; a score of the user's own is trusted, as the config names it."""
        allowed = [self.config.model.attention.score]
        settings = LoadSettings(self.config.train.device, allowed, overrides=overrides)
        return open_translator(models, settings)

    def translate(self, models: Sequence[Path], source: Path, name: str, *, sample: bool = False) -> Path:
        """A file that is translated line by line, as it is; by search only if the translations are to be learnt."""
        target = self.folder / name
        if not target.exists():
            log.info(f"{target}: translating")
            drawn = {"decode.sampling.temperature": 1.0} if sample else {}
            greedy = {} if self.teacher and not sample else {"decode.beam_size": 1}
            _, translator = self.open(models, drawn | greedy)
            translate_file(translator, source, target, resume=True)
        return target

    def write_pairs(self, files: Sequence[Path], original: Path, translated: Path, again: Path | None) -> None:
        """Write the synthetic pairs; of those with a round trip, the ones that come back close enough."""
        texts = [_read_lines(path) for path in (original, translated)]
        src, tgt = texts if self.teacher else texts[::-1]
        pairs = [Pair(*both) for both in zip(src, tgt, strict=True)]
        if again is not None:
            examples = [Example(source, (text,)) for source, text in pairs]
            scores = sentence_scores(examples, _read_lines(again), self.rules, "chrf")
            least = self.round_trip or 0
            pairs = [pair for pair, score in zip(pairs, scores, strict=True) if score >= least]
            log.info(f"{again}: {len(pairs):,} of {len(src):,} sentences come back with a chrF of {least:g} or more")
        self.write(files, pairs)

    def evaluate(self, runs: Mapping[str, Path]) -> tuple[list[ReportSection], ModelEvaluation]:
        """Score the models on the same split, each compared with the one before."""
        examples, rows, accuracy = self.examples(self.split), [], {}
        frequency = count_training_words(self.data, open_data(self.data).load_processor(), self.rules)
        before: dict[str, list[str]] = {}
        for name, run in runs.items():
            suffixes = {"json": "json", "hypotheses": "txt"}
            files = {kind: self.folder / f"{run.parent.name}.{suffix}" for kind, suffix in suffixes.items()}
            opened = self.open([run])
            text = EvaluationSet(self.split, examples, has_repaired_references(self.data))
            evaluation = evaluate_model(*opened, text, Measures(), name=name, files=files, against=before)
            before = {name: evaluation.hypotheses}
            accuracy[name] = accuracy_by_frequency(examples, evaluation.hypotheses, frequency, self.rules)
            pairs, outcome = read_marker(run.parent / "data").pairs["train"], RunOutcome.read(run)
            scores = [f"{evaluation.bleu:.2f}", f"{evaluation.chrf:.2f}"]
            rows.append([name, f"{pairs:,}", f"{outcome.updates:,}", f"{outcome.seconds / 60:.1f}", *scores])
        table = Table(["trained on", "pairs", "updates", "minutes", "BLEU", "chrF"], rows, "lrrrrr")
        steps = ReportSection(f"Scores on {self.split}", [table, evaluation.comparison_table])
        sections = [steps, next(Breakdown(accuracy, {}, {}, []).sections())]
        write_text(self.folder / "table.md", format_markdown("Synthetic pairs", sections, self.folder))
        return sections, evaluation


def _read_lines(path: Path) -> list[str]:
    """The lines of a file that an earlier step wrote."""
    return read_text(path, MAX_EXAMPLES, path.parent).split("\n")[:-1]
