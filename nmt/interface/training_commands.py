"""Commands about runs: nmt train, check, average and runs."""

from pathlib import Path
from typing import Annotated

import typer

import nmt
from nmt.interface import options
from nmt.interface.command import choose_config, import_libraries, show
from nmt.system.errors import printable
from nmt.system.process import open_output


def train(
    config_argument: options.ConfigArgument = None,
    config: options.ConfigOption = "",
    data: options.ConfigData = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Run directory to write. [default: runs/NAME]")
    ] = None,
    overrides: options.Overrides = None,
    overwrite: options.Overwrite = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue the run in --output as if it had never stopped; start one if there is none."
        ),
    ] = False,
) -> None:
    """Train a model; the best one is stored in RUN/best.

    Ctrl-C, SIGTERM and a closed terminal stop it after a checkpoint, with exit code 75; --resume continues from there.
    SIGUSR1 writes a checkpoint. For several processes: torchrun --nproc-per-node N -m nmt train ...

    Example: nmt train --config tatoeba_small --set model.attention.score=additive --output runs/additive
    """
    import_libraries("nmt.training.directory")
    nmt.train(
        choose_config(config_argument, config, overrides),
        data=data,
        output=output,
        overrides=overrides or (),
        overwrite=overwrite,
        resume=resume,
    )


def check(
    config_argument: options.ConfigArgument = None,
    config: options.ConfigOption = "",
    data: options.ConfigData = None,
    overrides: options.Overrides = None,
    export_format: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="FORMAT",
            help="Say first what keeps such a model from being exported: to ctranslate2, onnx, argos, hub or "
            "html. The rest is checked if nothing does and there are data.",
        ),
    ] = None,
) -> None:
    """Check data, model, memory and speed before a long run. Nothing is written.

    The exit code is 1 if something is wrong.

    Example: nmt check --config tatoeba_small; nmt check --config tatoeba_small --for ctranslate2
    """
    import_libraries("nmt.training.readiness")
    findings = nmt.check(
        choose_config(config_argument, config, overrides),
        data=data,
        overrides=overrides or (),
        export_format=export_format,
    )
    marks = {True: "ok", False: "PROBLEM", None: "-"}
    problems = []
    with open_output(None) as file:
        for finding in findings:
            print(f"{marks[finding.ok]:<8}{finding.name}: {printable(finding.text)}", file=file, flush=True)
            if finding.ok is False:
                problems.append(finding.name)
        print(f"problems: {', '.join(problems)}" if problems else "nothing is wrong", file=file)
    raise typer.Exit(bool(problems))


def average(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL", help="Run or model directories.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Model directory to write.")],
    last: Annotated[
        int | None,
        typer.Option(
            "--last",
            metavar="N",
            min=2,
            help="Average so many of the latest models that one run has kept in RUN/models.",
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    allowed_classes: options.AllowedClasses = None,
) -> None:
    """Average the weights of models, such as a run's last ones.

    They should have begun with the same weights: models of one run, or of runs with the same parent.

    Example: nmt average runs/tatoeba --last 5 --output runs/tatoeba-average
    """
    import_libraries("nmt.models.storage")
    nmt.average(models=models, output=output, last=last, overwrite=overwrite, allowed_classes=allowed_classes or ())


def show_runs(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of runs.")] = Path("runs"),
) -> None:
    """List runs: state, updates, best score, time.

    A star marks the newest finished run, which commands use without --model.

    Example: nmt runs
    """
    import_libraries("nmt.training.run_records")
    from nmt.training.run_records import list_runs

    show(list_runs(directory))
