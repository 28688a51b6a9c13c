"""Back-translation and distillation: models that make pairs, models that learn from them, and their scores.

Each step leaves a file or a folder when it is done. The pairs themselves are those of nmt/corpus/synthetic.py.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.config import Config, Overrides, differing_keys, dump_config, load_config, read_config
from nmt.config.outputs import check_output
from nmt.corpus import Pair
from nmt.corpus.data_report import format_markdown
from nmt.corpus.dataset import has_repaired_references, open_data
from nmt.corpus.example import Example
from nmt.corpus.lines import read_file_lines
from nmt.corpus.marker_schema import MARKER as DATA
from nmt.corpus.marker_schema import read_marker
from nmt.corpus.prepare import fit_to_data, write_data
from nmt.corpus.sources import find_files
from nmt.corpus.synthetic import RoundTrip, SyntheticPairs, Translate
from nmt.evaluation.breakdown import Breakdown, accuracy_by_frequency
from nmt.evaluation.input_text import EvaluationSet
from nmt.evaluation.metrics import ScoringRules, sentence_scores
from nmt.evaluation.model_evaluation import Measures, ModelEvaluation, evaluate_model
from nmt.evaluation.training_text import count_training_words
from nmt.models.lookup import find_model, read_value
from nmt.models.storage import WEIGHTS, ModelFolder
from nmt.system.errors import ConfigError, DataError, name_differences
from nmt.system.files import read_json, sha256, write_json, write_text
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
GREEDY: Mapping[str, object] = {"decode.beam_size": 1}


@dataclass(frozen=True)
class Steps:
    """The steps; see `backtranslate`.

    Attributes:
        folder: Folder of their files.
        config: Config of the model that is trained only on the pairs.
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

    @property
    def pairs(self) -> SyntheticPairs:
        """The pairs that models make."""
        return SyntheticPairs(self.folder, self.config.data, self.data, self.text, from_source=bool(self.teacher))

    @property
    def data(self) -> Path:
        """Data of only the pairs."""
        return self.folder / "alone" / "data"

    @property
    def rules(self) -> ScoringRules:
        """How translations are scored."""
        return ScoringRules.for_config(self.config)

    def check(self) -> Config:
        """The config of the final model; impossible choices are reported before anything is written.

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
        synthetic = {"source": list(map(str, self.pairs.files("synthetic"))), "weight": self.weight, "tag": self.tag}
        extra = {**self.config.data.model_dump(mode="json")["extra"], "synthetic": synthetic}
        complete = load_config(self.config, {"data.extra": extra})
        self.pairs.check_text()
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
        stored = read_json(self.folder / MARKER)
        differing = name_differences((name, stored.get(name), chosen) for name, chosen in choices.items())
        differing += differing_keys(load_config(self.folder / CONFIG), self.config)
        if differing:
            raise DataError(
                "{folder}: was made with other settings: {differing}; choose another {output}",
                folder=self.folder,
                differing=", ".join(differing),
                output=Parameter("output"),
            )
        stored_contents = stored.get("sha256", {})  # earlier versions did not record them
        for path in filter(Path.is_file, self.inputs()):
            if str(path) in stored_contents and stored_contents[str(path)] != sha256(path):
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
        """Do the steps that are left; a student of teachers has new weights, and resolves `auto` as for only the pairs.

        Args:
            complete: The config of the final model.

        Returns:
            The tables, and the evaluation of the final model.
        """
        data = self.prepare(self.config, "alone")
        self.pairs.collect()
        alone = self.train(self.config, "alone")

        # The sentences are translated by the teachers, or by a model for the opposite direction.
        if self.teacher:
            models = [find_model(Path(path)) for path in self.teacher]
        else:
            models = [self.train(self.reverse(alone), "reverse")]
        round_trip = None
        if self.round_trip is not None:
            round_trip = RoundTrip(self.translation_by([alone], GREEDY), self.similarity, self.round_trip)
        self.pairs.translate(self.translation_by(models, self.search), round_trip)

        # The final model learns from all pairs: with new weights, or from those of the first model on.
        complete = fit_to_data(complete, data) if self.teacher else self.go_on(alone, complete)
        final = self.train(complete, "complete")
        return self.evaluate({"pairs alone": alone, "with synthetic pairs": final})

    @property
    def search(self) -> Mapping[str, object]:
        """How sentences are translated: by beam search only if the translations are to be learnt."""
        if self.sample:
            return {"decode.sampling.temperature": 1.0, **GREEDY}
        return {} if self.teacher else GREEDY

    def similarity(self, originals: Sequence[str], returned: Sequence[str]) -> list[float]:
        """chrF of each sentence that came back, from 0 to 100."""
        examples = [Example("", (original,)) for original in originals]
        return sentence_scores(examples, returned, self.rules, "chrf")

    def go_on(self, alone: Path, complete: Config) -> Config:
        """The config of the final model, which goes on from the first one for as many updates and validations.

        Real pairs are repeated, so that an epoch has about as many of them as of synthetic ones.
        """
        first = read_config(alone / CONFIG)
        real = read_marker(self.data).pairs["train"]
        synthetic = self.weight * sum(1 for _ in read_file_lines(self.pairs.files("synthetic")[1], None))
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
        data = self.prepare(config, name)
        run = self.folder / name / "run"
        if read_value(run, "state") != "finished":
            log.info(f"{run}: training")
            train(config, data=data, output=run, resume=True)
        return run

    def reverse(self, alone: Path) -> Config:
        """The config of the opposite direction, on the training and validation pairs of the model for the first one.

        Its model goes on from that one for half as many updates.
        """
        (self.folder / "reverse").mkdir(exist_ok=True)
        valid = [Pair(example.src, example.references[0]) for example in self.pairs.examples("valid")]
        source: list[str] = []
        for name, pairs in (("train", self.pairs.training_text()), ("valid", valid)):
            if pairs:
                files = self.pairs.files(f"reverse/{name}")
                source += map(str, files)
                if not all(map(Path.exists, files)):
                    self.pairs.write(files, pairs)
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

    def open(self, models: Sequence[Path], overrides: Overrides = ()) -> tuple[list[ModelFolder], Translator]:
        """Models that translate together; a score of the user's own is trusted, as the config names it."""
        allowed = [self.config.model.attention.score]
        settings = LoadSettings(self.config.train.device, allowed, overrides=overrides)
        return open_translator(models, settings)

    def translation_by(self, models: Sequence[Path], search: Mapping[str, object]) -> Translate:
        """A function that translates a file line by line, as it is, by models that are opened when it is called."""

        def translate(source: Path, target: Path) -> None:
            _, translator = self.open(models, search)
            translate_file(translator, source, target, resume=True)

        return translate

    def evaluate(self, runs: Mapping[str, Path]) -> tuple[list[ReportSection], ModelEvaluation]:
        """Score the models on the same split, each compared with the one before."""
        examples = self.pairs.examples(self.split)
        text = EvaluationSet(self.split, examples, has_repaired_references(self.data))
        rows: list[list[str]] = []
        accuracy = {}
        frequency = count_training_words(self.data, open_data(self.data).load_processor(), self.rules)
        before: dict[str, list[str]] = {}
        for name, run in runs.items():
            stem = run.parent.name
            files = {"json": self.folder / f"{stem}.json", "hypotheses": self.folder / f"{stem}.txt"}
            models, translator = self.open([run])
            evaluation = evaluate_model(models, translator, text, Measures(), name=name, files=files, against=before)
            before = {name: evaluation.hypotheses}
            accuracy[name] = accuracy_by_frequency(examples, evaluation.hypotheses, frequency, self.rules)
            pairs = read_marker(run.parent / "data").pairs["train"]
            outcome = RunOutcome.read(run)
            scores = [f"{evaluation.bleu:.2f}", f"{evaluation.chrf:.2f}"]
            rows.append([name, f"{pairs:,}", f"{outcome.updates:,}", f"{outcome.seconds / 60:.1f}", *scores])
        table = Table(["trained on", "pairs", "updates", "minutes", "BLEU", "chrF"], rows, "lrrrrr")
        steps = ReportSection(f"Scores on {self.split}", [table, evaluation.comparison_table])
        sections = [steps, next(Breakdown(accuracy, {}, {}, []).sections())]
        write_text(self.folder / "table.md", format_markdown("Synthetic pairs", sections, self.folder))
        return sections, evaluation
