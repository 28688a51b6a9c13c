"""Options that several commands share, with their completion in a shell and their parsers.

An option of a single command stands beside its parameter. Each has its default in the signature of the command; a test
holds it equal to that of the public function, and the limits of the search to those of the config.
"""

from pathlib import Path
from typing import Annotated

import typer

from nmt.system.errors import ConfigError
from nmt.system.files import shipped

MAX_SEEDS = 100
"""Seeds of a comparison that are given by their number."""


def complete_config(incomplete: str) -> list[str]:
    """Shipped configs and YAML files that start with `incomplete`."""
    head, slash, _ = incomplete.rpartition("/")
    names = [] if slash else sorted(path.stem for path in shipped("configs").glob("*.yaml"))
    for path in sorted(Path(head + slash).glob("*")):
        if path.is_dir() or path.suffix in (".yaml", ".yml"):
            names.append(f"{head}{slash}{path.name}{'/' if path.is_dir() else ''}")
    return [name for name in names if name.startswith(incomplete)]


def complete_comparison(incomplete: str) -> list[str]:
    """Shipped comparisons that start with `incomplete`."""
    names = sorted(path.stem for path in shipped("configs/comparisons").glob("*.yaml"))
    return [name for name in names if name.startswith(incomplete)]


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds from text. A single number is how many: `3` is 1, 2, 3. With a comma they are the seeds: `4,2`, or `7,`.

    A negative number is a seed.

    Raises:
        ConfigError: They are not whole numbers, or it is no possible number of seeds.
    """
    try:
        numbers = [int(part) for part in text.removesuffix(",").split(",")]
    except ValueError:
        raise ConfigError(f"--seeds {text}: expected whole numbers with commas between them") from None
    count = numbers[0]
    if "," in text or count < 0:
        return tuple(numbers)
    if not 1 <= count <= MAX_SEEDS:
        expected = f"expected how many seeds, from 1 to {MAX_SEEDS}"
        raise ConfigError(f"--seeds {text}: {expected}; for the seed {text} only, write --seeds {text},")
    return tuple(range(1, count + 1))


Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Override a value: train.epochs=3. Can be repeated."),
]
SearchOverrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="decode.KEY=VALUE",
        help="Override a search setting of the model's config: decode.min_length=3. Can be repeated.",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an earlier result in --output.")]
Keep = Annotated[
    Path | None,
    typer.Option("--keep", metavar="FILE", help="Names that stay as they are, one on each line."),
]
Glossary = Annotated[
    Path | None,
    typer.Option(
        "--glossary",
        metavar="FILE.tsv",
        help="Terms and the translations that they must have: term, tab, translation on each line.",
    ),
]
OverwriteFiles = Annotated[bool, typer.Option("--overwrite", help="Replace output files that are not empty.")]
ConfigArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE|NAME", autocompletion=complete_config, help="YAML file, or the name of a shipped config."
    ),
]
ConfigOption = Annotated[
    str,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE|NAME",
        autocompletion=complete_config,
        show_default=False,
        help="The same, by name.",
    ),
]
ConfigData = Annotated[
    Path | None,
    typer.Option(
        "--data", "-d", metavar="DIR", help="Data directory. [default: the one nmt preprocess writes for this config]"
    ),
]
ModelData = Annotated[
    Path | None,
    typer.Option("--data", "-d", metavar="DIR", help="Data directory. [default: the one the model was trained on]"),
]
Model = Annotated[
    Path | None,
    typer.Option(
        "--model", "-m", metavar="DIR", help="Run or model directory. [default: the newest finished run under runs/]"
    ),
]
Models = Annotated[
    list[Path] | None,
    typer.Option(
        "--model",
        "-m",
        metavar="DIR",
        help="Run or model directory. Repeat it for several models with the same vocabularies, which "
        "translate together. [default: the newest finished run under runs/]",
    ),
]
OutputFile = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write instead of standard output.")
]
BeamSize = Annotated[
    int | None,
    typer.Option(
        "--beam-size",
        metavar="N",
        min=1,
        max=1000,
        help="Beam size; 1 is greedy. [default: the model's config]",
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        "--batch-size",
        metavar="N",
        min=1,
        max=100_000,
        help="Sentences per batch. [default: the model's config]",
    ),
]
Precision = Annotated[
    str | None,
    typer.Option("--precision", metavar="float32|bfloat16", help="bfloat16 is faster. [default: the model's config]"),
]
Device = Annotated[str, typer.Option("--device", metavar="DEVICE", help="auto, cpu, cuda, cuda:N or mps.")]
AllowedClasses = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-class",
        metavar="PACKAGE.MODULE.CLASS",
        help="Allow the model's config to use this class, whose code then runs. Can be repeated.",
    ),
]
ScoredSplit = Annotated[
    str | None,
    typer.Option("--split", metavar="test|valid|train", help="Split to score: test, valid or train. [default: test]"),
]
ComparedSplit = Annotated[
    str, typer.Option("--split", metavar="test|valid", help="Split to evaluate on: test or valid.")
]
Source = Annotated[
    list[str] | None,
    typer.Option("--source", "-s", metavar="PATH|URL", help="Corpus instead of the configs', as for preprocess."),
]
