"""How the parameters of public functions look on the command line: names, metavars, ranges, completion.

`nmt/cli.py` makes an option of each parameter whose annotation has an `Option`, and an argument where it has an
`Argument`. Default and type are those of the signature; the help is what the docstring says of the parameter, unless
the option says it for all commands that share it.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from nmt.system.errors import ConfigError
from nmt.system.files import AnyPath, AnyPaths, shipped
from nmt.system.limits import MAX_BEAM_SIZE, MAX_DECODE_BATCH


@dataclass(frozen=True)
class Option:
    """An option of the command line.

    Attributes:
        names: Its names, with spaces between them. The long one may be left out and is then that of the parameter.
        metavar: What stands for a value in the help; empty is the usual one of the type.
        help: The help; empty is what the docstring says of the parameter.
        minimum: Smallest number; None has no limit.
        maximum: Largest number; None has no limit.
        kind: Type of a value, where the parameter has other types besides.
        parse: What makes the parameter of a value.
        complete: Values that start with a text, for the shell.
    """

    names: str = ""
    metavar: str = ""
    help: str = ""
    minimum: int | None = None
    maximum: int | None = None
    kind: Any = None
    parse: Callable[[str], object] | None = None
    complete: Callable[[str], list[str]] | None = None

    def flags(self, parameter: str) -> list[str]:
        """The names of the option of a parameter, the long one first."""
        names = self.names.split()
        if any(name.startswith("--") for name in names):
            return names
        return ["--" + parameter.strip("_").replace("_", "-"), *names]


class Argument(Option):
    """An argument of the command line, which has no name."""


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


MAX_SEEDS = 100
"""Seeds of a comparison that are given by their number."""


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds from text: 3 is how many, the seeds 1, 2 and 3; 1,2,3 are seeds, and so is 7, with a comma behind it.

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
        what = f"expected how many seeds, from 1 to {MAX_SEEDS}"
        raise ConfigError(f"--seeds {text}: {what}; for the seed {text} only, write --seeds {text},")
    return tuple(range(1, count + 1))


MODEL = "Run or model directory. [default: the newest finished run under runs/]"
TOGETHER = MODEL.replace(".", ". Repeat it for several models with the same vocabularies, which translate together.", 1)

CONFIG = Option("-c", "FILE|NAME", "YAML file, or the name of a shipped config.", kind=str, complete=complete_config)
CORPUS = Option("-s", "PATH|URL", "Corpus instead of the configs', as for preprocess.", kind=list[str])
CONFIGS = Option("-c", "FILE|NAME", kind=list[str], complete=complete_config)
COMPARISON = Argument("", "FILE|NAME", kind=list[str], complete=complete_comparison)
PAGE = Option("-o", "FILE.html", "Write a page to explore instead of measuring.")
JOINED = "; repeat it for more. Those of the same languages translate together."
DIRECTIONS = Option("-m", "DIR", MODEL.replace(".", JOINED, 1))
VARIED = Option("--vary", "SECTION.KEY=VALUE,VALUE", "Compare values. Several: all combinations.", kind=list[str])
SETTINGS = Option("--set", "SECTION.KEY=VALUE", "Override a value: train.epochs=3. Can be repeated.", kind=list[str])
SEARCH_SETTINGS = Option(
    "--set",
    "decode.KEY=VALUE",
    "Override a search setting of the model's config: decode.min_length=3. Can be repeated.",
    kind=list[str],
)
Model = Annotated[AnyPath | None, Option("-m", "DIR", MODEL)]
Models = Annotated[AnyPaths | None, Option("-m", "DIR", TOGETHER)]
ModelData = Annotated[
    AnyPath | None, Option("-d", "DIR", "Data directory. [default: the one the model was trained on]")
]
DataFolder = Annotated[AnyPath | None, Option("-d", "DIR")]
OutputFolder = Annotated[AnyPath | None, Option("-o", "DIR")]
OutputFile = Annotated[AnyPath | None, Option("-o", "FILE")]
Picture = Annotated[AnyPath | None, Option(metavar="FILE.png")]
Sentence = Annotated[str | None, Argument(metavar="SENTENCE")]
Sources = Annotated[AnyPaths, Option("-s", "PATH|URL", kind=list[str])]
File = Annotated[AnyPath, Option(metavar="FILE")]
Files = Annotated[AnyPaths, Option(metavar="FILE")]
Against = Annotated[AnyPaths, Option(metavar="DIR")]
Text = Annotated[str, Option(metavar="TEXT")]
Split = Annotated[str, Option(metavar="test|valid|train")]
Flag = Annotated[bool, Option()]
Overwrite = Annotated[bool, Option(help="Replace an earlier result in --output.")]
OverwriteFiles = Annotated[bool, Option(help="Replace output files that are not empty.")]
Positive = Annotated[int, Option(minimum=1)]
BeamSize = Annotated[
    int | None, Option(help="Beam size; 1 is greedy. [default: the model's config]", minimum=1, maximum=MAX_BEAM_SIZE)
]
BatchSize = Annotated[
    int | None, Option(help="Sentences per batch. [default: the model's config]", minimum=1, maximum=MAX_DECODE_BATCH)
]
Precision = Annotated[str | None, Option("", "float32|bfloat16", "bfloat16 is faster. [default: the model's config]")]
Device = Annotated[str, Option(metavar="DEVICE", help="auto, cpu, cuda, cuda:N or mps.")]
AllowedClasses = Annotated[
    Collection[str],
    Option(
        "--allow-class",
        "PACKAGE.MODULE.CLASS",
        "Allow the model's config to use this class, whose code then runs. Can be repeated.",
    ),
]
