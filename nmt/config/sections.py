"""A whole config: its sections, each with keys that have a default, a description and, for numbers, a unit."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from nmt.config.data_sections import DataSection
from nmt.config.decode_sections import DecodeSection
from nmt.config.fields import Section
from nmt.config.model_sections import ModelSection
from nmt.config.text_sections import TextSection
from nmt.config.train_sections import TrainSection


class ParentSection(Section):
    """A trained model to start from; `parent: RUN` is short for its `run`."""

    run: str | None = None
    """Run or model directory whose sizes, kinds and weights to use; null: new weights."""
    pieces: Literal["same", "own"] = "same"
    """same: also its vocabularies and text settings; own: learnt from the training split, where those that both have
    keep its vectors."""


class Config(Section):
    """A complete experiment."""

    name: Annotated[str, Field(pattern=r"^[\w-][\w.-]*$", max_length=100)] = "experiment"
    """Name of the data and run folders; the config file's name if omitted."""
    parent: ParentSection = ParentSection()
    data: DataSection = DataSection()
    text: TextSection = TextSection()
    model: ModelSection = ModelSection()
    train: TrainSection = TrainSection()
    decode: DecodeSection = DecodeSection()

    def __repr__(self) -> str:
        codes = [self.data.src_language or "?", self.data.tgt_language or "?"]
        model = self.model
        languages = "-".join(codes[::-1] if self.data.reverse else codes)
        return f"<Config {self.name}: {languages}, {model.family}, {model.mechanism.score} attention>"

    @property
    def data_directory(self) -> Path:
        """Default output of `nmt preprocess` and input of `nmt train`."""
        return Path(self.data.directory or f"data/prepared/{self.name}")

    @property
    def run_directory(self) -> Path:
        """Default output of `nmt train`."""
        return Path("runs") / self.name
