"""Commands about data: nmt preprocess and nmt data."""

import logging
from pathlib import Path
from typing import Annotated

import typer

import nmt
from nmt.interface import options
from nmt.interface.command import choose_config, import_libraries, show
from nmt.interface.options import complete_config

log = logging.getLogger(__name__)


def preprocess(
    config_argument: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE|NAME",
            autocompletion=complete_config,
            help="YAML file, or the name of a shipped config. [default: tatoeba]",
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE|NAME",
            autocompletion=complete_config,
            show_default=False,
            help="The same, by name.",
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            "-s",
            metavar="PATH|URL",
            help="Corpus to use instead of the config's: one tab-separated or CSV file (.txt, .csv, .zip, .gz, "
            ".xz, .bz2) or URL, a translation memory (.tmx), or corpus for corpus.en and corpus.de. "
            "Repeat it for 2, 4 or 6 parallel files (source and target of train, valid, test), or for the "
            "3 files of a Tatoeba export (source sentences, target sentences, links).",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Data directory to write. [default: data/prepared/NAME]"),
    ] = None,
    drop_overlap: Annotated[
        bool,
        typer.Option("--drop-overlap", help="With ready-made splits, drop training pairs that overlap valid or test."),
    ] = False,
    overrides: options.Overrides = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Clean, split, tokenise and encode a corpus.

    Without arguments, English-German Tatoeba is downloaded into data/raw.

    Example: nmt preprocess --config tatoeba_small --source deu-eng.zip
    """
    import_libraries("nmt.corpus.dataset")
    given = choose_config(config_argument, config, overrides) if config_argument or config else "tatoeba"
    data = nmt.preprocess(
        given,
        source=source or (),
        output=output,
        drop_overlap=drop_overlap,
        overrides=overrides or (),
        overwrite=overwrite,
    )
    log.info(f"data directory: {data.path}")


def describe_data(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Data directory written by nmt preprocess.")],
) -> None:
    """Describe a data directory: splits, lengths, overlap, words.

    Example: nmt data data/prepared/tatoeba_small
    """
    import_libraries("nmt.corpus.data_report")
    from nmt.corpus.data_report import read_report

    show(read_report(directory))
