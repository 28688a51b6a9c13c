"""Commands that train several models: nmt compare and nmt backtranslate."""

from pathlib import Path
from typing import Annotated

import typer

import nmt
from nmt.interface import options
from nmt.interface.command import choose_config, import_libraries, show
from nmt.interface.options import complete_comparison, complete_config, parse_seeds
from nmt.system.errors import ConfigError, TrainingError


def compare(
    comparison: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE|NAME",
            autocompletion=complete_comparison,
            help="Comparison file, or the name of a shipped one; or several configs, or one to vary, as with "
            "--config. Can be repeated.",
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE|NAME",
            autocompletion=complete_config,
            help="Config to train; repeat it to compare several.",
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", metavar="SECTION.KEY=VALUE,VALUE", help="Compare values. Several: all combinations."),
    ] = None,
    overrides: options.Overrides = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            "--seeds",
            metavar="N|1,2,3",
            help="Train each config with these seeds. A single number at the command line is how many: 3 is 1,2,3.",
        ),
    ] = None,
    budget_minutes: Annotated[
        float | None,
        typer.Option(
            "--budget-minutes",
            metavar="N",
            help="Minutes of training for each; the number of updates is measured. [default: the config's]",
        ),
    ] = None,
    source: options.Source = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", "-d", metavar="DIR", help="Data directory. [default: made once, inside --output]"),
    ] = None,
    split: options.ComparedSplit = "test",
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", metavar="N", min=1, help="Trainings at once. [default: 1; with --launcher all]"),
    ] = None,
    launcher: Annotated[
        str | None,
        typer.Option(
            "--launcher",
            metavar="COMMAND",
            help="Shell command that runs {command}, or hands it to a cluster: 'sbatch --wrap \"{command}\"'.",
        ),
    ] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            "--against",
            metavar="NAME=FILE|CELL",
            help="Further rows of the tables: NAME=FILE, translations of the test set by any program, one per "
            "line; or NAME=CELL, the folder of a cell of an earlier comparison. Can be repeated.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Folder for everything. [default: runs/comparisons/NAME]"),
    ] = None,
    cell: Annotated[
        Path | None, typer.Option("--cell", metavar="DIR", help="Only train and evaluate this cell, as launchers do.")
    ] = None,
) -> None:
    """Train configs, and compare scores, time and attention.

    The same command continues what was stopped, with Ctrl-C or otherwise, and skips what is finished.

    Example: nmt compare --config tatoeba_small --vary model.attention.score=additive,dot,general --budget-minutes 5
    """
    import_libraries("nmt.comparison.trial")
    if cell is not None:
        from nmt.comparison.trial import run_trial

        # An option that is not given is None, an empty list, or the default of --split.
        given_lists = [comparison, config, vary, overrides, source, against]
        given_values = [seeds, budget_minutes, data, jobs, launcher, output]
        has_values = any(value is not None for value in given_values)
        if any(given_lists) or has_values or split != "test":
            raise ConfigError("--cell runs a cell as it was made: leave the other options out")
        run_trial(cell)
        return
    result = nmt.compare(
        comparison=comparison or (),
        vary=vary or (),
        config=config or (),
        overrides=overrides or (),
        seeds=parse_seeds(seeds) if seeds is not None else (),
        budget_minutes=budget_minutes,
        source=source or (),
        data=data,
        split=split,
        jobs=jobs,
        launcher=launcher,
        against=against or (),
        output=output,
    )
    show(result.sections)
    if result.failed:
        raise TrainingError(*(f"{name}: {reason}" for name, reason in result.failed.items()))


def backtranslate(
    config_argument: options.ConfigArgument = None,
    config: options.ConfigOption = "",
    text: Annotated[
        list[Path] | None,
        typer.Option(
            "--text",
            "-t",
            metavar="FILE",
            help="Sentences of the target language, one per line; with --teacher, of the source language. Can "
            "be repeated.",
        ),
    ] = None,
    teacher: Annotated[
        list[Path] | None,
        typer.Option(
            "--teacher",
            metavar="DIR",
            help="Model that translates --text, or without it the training sources, into further targets (Kim "
            "and Rush, 2016), in place of a model for the opposite direction; repeat it for several, "
            "which translate together.",
        ),
    ] = None,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample",
            help="Draw words from the distribution in place of the most probable ones (Edunov et al., 2018).",
        ),
    ] = False,
    round_trip: Annotated[
        float | None,
        typer.Option(
            "--round-trip",
            metavar="N",
            min=0,
            max=100,
            help="Minimum chrF, from 0 to 100, between a sentence and its back-translation translated forth again.",
        ),
    ] = None,
    weight: Annotated[
        float, typer.Option("--weight", metavar="N", help="How often a synthetic pair is in an epoch.")
    ] = 1.0,
    tag: Annotated[
        str | None,
        typer.Option(
            "--tag",
            metavar="<TAG>",
            help="First token of synthetic sources (Caswell et al., 2019), such as <bt>. [default: no tag]",
        ),
    ] = None,
    split: options.ComparedSplit = "test",
    source: options.Source = None,
    overrides: options.Overrides = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder for everything. [default: runs/backtranslation/NAME]"
        ),
    ] = None,
) -> None:
    """Learn from text of the target language, translated back.

    A model for the opposite direction is trained on the same pairs; its translations of the text become further sources
    (Sennrich et al., 2016). The same command continues what was stopped, and skips what is finished.

    Example: nmt backtranslate tatoeba_small --text sentences.de --output runs/more
    """
    import_libraries("nmt.comparison.synthetic_pairs")
    synthesis = nmt.backtranslate(
        choose_config(config_argument, config, overrides),
        text=text or (),
        teacher=teacher or (),
        sample=sample,
        round_trip=round_trip,
        weight=weight,
        tag=tag,
        split=split,
        source=source or (),
        overrides=overrides or (),
        output=output,
    )
    show(synthesis.sections)
