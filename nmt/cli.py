"""The command line: each command parses its arguments, makes one library call and prints.

Nothing heavy is imported before a command runs, so that --help is instant.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TextIO, cast

import typer

from nmt import __version__
from nmt.errors import ConfigError, NmtError, RunInterrupted, is_out_of_memory, printable, when_out_of_memory
from nmt.files import naming, open_text
from nmt.limits import MAX_BEAM_SIZE, MAX_DECODE_BATCH

if TYPE_CHECKING:
    from nmt.config import Config, DecodeSection
    from nmt.decoding.translator import Translator
    from nmt.model.storage import SavedModel
    from nmt.workflow.translate import Readable

INTERRUPTED = 75
"""Exit code of a run that was asked to stop and can be resumed: EX_TEMPFAIL of sysexits.h."""

app = typer.Typer(
    name="nmt",
    help="Recurrent neural machine translation with attention: from raw text to BLEU, driven by YAML.",
    epilog="In order: nmt preprocess, nmt train, nmt evaluate, nmt translate. Each --help shows an example.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

ConfigOption = Annotated[
    str,
    typer.Option("--config", "-c", metavar="FILE|NAME", help="YAML file, or the name of a shipped config."),
]
ConfigArgument = Annotated[str, typer.Argument(metavar="CONFIG", help="YAML file, or the name of a shipped config.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a value: section.key=value. Can be repeated."),
]
ModelOption = Annotated[
    Path | None,
    typer.Option("--model", "-m", help="Run or model directory. [default: the newest finished run under runs/]"),
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace an earlier result in --output.")]
DeviceOption = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:N or mps.")]
BeamOption = Annotated[
    int | None,
    typer.Option(min=1, max=MAX_BEAM_SIZE, help="Beam size; 1 is greedy. [default: the model's config]"),
]
BatchOption = Annotated[
    int | None,
    typer.Option(min=1, max=MAX_DECODE_BATCH, help="Sentences per batch. [default: the model's config]"),
]
AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-class",
        metavar="PACKAGE.MODULE.CLASS",
        help="Let the model's config name this class, whose code then runs. Can be repeated.",
    ),
]


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads it: the terminal is closed
        typer.echo(printable(line), err=True)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"nmt {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
def preprocess(
    config: ConfigOption = "tatoeba",
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            "-s",
            metavar="PATH|URL",
            help="Corpus instead of the config's: one tab-separated file (.txt, .zip, .gz, .xz, .bz2) or URL, or "
            "repeated: 2, 4 or 6 parallel files (source and target of train, valid, test), or 3 of a Tatoeba export "
            "(source sentences, target sentences, links).",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Data directory to write. [default: data/prepared/NAME]"),
    ] = None,
    drop_overlap: Annotated[
        bool,
        typer.Option("--drop-overlap", help="Given splits: leave out training pairs that valid or test share."),
    ] = False,
    set_: SetOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Clean, split, tokenise and encode a corpus.

    Without arguments this is English-German Tatoeba, downloaded into data/raw.

    Example: nmt preprocess --config tatoeba_small --source deu-eng.zip
    """
    from nmt.config import load_config
    from nmt.workflow.preprocess import preprocess as run
    from nmt.workflow.preprocess import with_sources

    settings = load_config(config, [*(set_ or ()), *["data.drop_overlap=true"] * drop_overlap])
    if source:
        settings = with_sources(settings, source)
    target = output or settings.data_directory
    run(settings, target, overwrite=overwrite, say=_say)
    _say(f"data directory: {target}")


@app.command("data")
def show_data(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Data directory: what nmt preprocess wrote.")],
) -> None:
    """Show what is in a data directory: cleaning, splits, lengths, overlap with training, vocabulary.

    Example: nmt data data/prepared/tatoeba_small
    """
    from nmt.workflow.report import show_report

    _show(show_report(directory))


@app.command()
def train(
    config: ConfigOption,
    data: Annotated[
        Path | None,
        typer.Option("--data", "-d", help="What nmt preprocess wrote. [default: where it writes for this config]"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Run directory to write. [default: runs/NAME]")
    ] = None,
    set_: SetOption = None,
    overwrite: OverwriteOption = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --output, as if it had never stopped.")
    ] = False,
) -> None:
    """Train a model; the best one lies in RUN/best.

    Ctrl-C, SIGTERM and a closed terminal stop it after a checkpoint, with exit code 75; --resume goes on from there.
    SIGUSR1 makes a checkpoint. Several processes: torchrun --nproc-per-node N -m nmt train ...

    Example: nmt train --config tatoeba_small --set model.attention.score=additive --output runs/additive
    """
    from nmt.config import load_config
    from nmt.workflow.train import train_run

    settings = load_config(config, set_ or ())
    target = output or settings.run_directory
    train_run(settings, data or settings.data_directory, target, overwrite=overwrite, resume=resume, say=_say)


@app.command()
def check(
    config: ConfigOption,
    data: Annotated[
        Path | None,
        typer.Option("--data", "-d", help="What nmt preprocess wrote. [default: where it writes for this config]"),
    ] = None,
    set_: SetOption = None,
) -> None:
    """Look at data, model, memory and speed before a long run; nothing is written.

    The exit code is 1 where something is wrong.

    Example: nmt check --config tatoeba_small
    """
    from nmt.config import load_config
    from nmt.workflow.check import check as run

    settings = load_config(config, set_ or ())
    marks = {True: "ok", False: "PROBLEM", None: "-"}
    problems = []
    with _opened_output(None) as file:
        for finding in run(settings, data or settings.data_directory):
            print(f"{marks[finding.ok]:<8}{finding.name}: {printable(finding.text)}", file=file, flush=True)
            if finding.ok is False:
                problems.append(finding.name)
        print(f"{len(problems)} problems: {', '.join(problems)}" if problems else "nothing is wrong", file=file)
    raise typer.Exit(bool(problems))


def _metric(config: Config) -> str:
    return config.train.validation.metric


def _load(
    model: Path | None, device: str, beam_size: int | None, batch_size: int | None, allow_class: list[str] | None
) -> tuple[SavedModel, Translator]:
    """The model that a user means, ready to translate."""
    from nmt.decoding.translator import Translator
    from nmt.model.storage import load_model
    from nmt.text.processor import load_processor
    from nmt.training.device import resolve_device, use_fast_products
    from nmt.workflow.runs import find_model

    path = find_model(model)
    use_fast_products()
    saved = load_model(path, resolve_device(device), allow_class or ())
    given = {"beam_size": beam_size, "batch_size": batch_size}
    options = saved.config.decode.model_copy(update={key: value for key, value in given.items() if value})
    return saved, Translator(saved.model, load_processor(saved.text), options)


def _search_within_memory(options: DecodeSection, *, single: bool = False) -> contextlib.AbstractContextManager[None]:
    """Say, should a search run out of memory, which options make it smaller; a single sentence has no batch to cut."""
    sizes = {"--batch-size": 1 if single else options.batch_size, "--beam-size": options.beam_size}
    lower = " or ".join(name for name, size in sizes.items() if size > 1)
    return when_out_of_memory(f"lower {lower}" if lower else "")


@app.command()
def translate(
    sentence: Annotated[str | None, typer.Argument(help="What to translate; without it standard input.")] = None,
    model: ModelOption = None,
    input_: Annotated[Path | None, typer.Option("--input", "-i", help="File to translate, a line each.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write instead of showing.")] = None,
    beam_size: BeamOption = None,
    batch_size: BatchOption = None,
    n_best: Annotated[
        int, typer.Option(min=1, max=MAX_BEAM_SIZE, help="Show so many: number ||| translation ||| score.")
    ] = 1,
    attention: Annotated[
        Path | None,
        typer.Option("--attention", metavar="FILE.png", help="Draw the attention of one sentence."),
    ] = None,
    device: DeviceOption = "auto",
    allow_class: AllowOption = None,
) -> None:
    """Translate a sentence, a file or standard input: one line in, one line out.

    Example: nmt translate "She kissed him." --attention kiss.png
    """
    from nmt.workflow.outputs import check_files
    from nmt.workflow.translate import open_input, read_lines, translate_stream, translate_with_alignment

    if sentence is not None and input_ is not None:
        raise ConfigError("give a sentence or --input, not both")
    if attention is not None and sentence is None:
        raise ConfigError("--attention draws one sentence: give it as the argument")
    read = [] if sentence is not None else [input_ or Path("/dev/stdin")]
    check_files({"--output": output, "--attention": attention}, read)
    source: contextlib.AbstractContextManager[Readable]
    if sentence is not None:
        # Bytes of the argument that are not UTF-8 come escaped, and are treated like those of a file.
        name, source = (
            "the sentence",
            io.BytesIO(sentence.replace("\n", " ").encode("utf-8", "surrogateescape") + b"\n"),
        )
    elif input_ is not None:
        name, source = str(input_), open_input(input_)
    else:
        name, source = "standard input", _standard_input()
    _, translator = _load(model, device, beam_size, batch_size, allow_class)
    if n_best > translator.options.beam_size:
        raise ConfigError(f"--n-best {n_best} is more than the beam size {translator.options.beam_size}")
    with source as stream, _opened_output(output) as file:
        lines = read_lines(stream, name, _say)
        if attention is not None:
            from nmt.visualize.heatmap import EOS_LABEL, draw_heatmap

            with _search_within_memory(translator.options, single=True):
                found = translate_with_alignment(translator, *next(lines))
            assert found.alignment is not None
            rows = [*found.tokens, EOS_LABEL][: len(found.alignment)]
            with naming(attention, attention.parent):
                draw_heatmap(found.alignment.double().numpy(), [*found.src_tokens, EOS_LABEL], rows, attention)
            file.write(found.text + "\n")
            _say(f"attention: {attention}")
            return
        if sentence is None and input_ is None and sys.stdin.isatty():
            _say("reading standard input, one sentence a line; end with Ctrl-D")
        with _progress(input_, output) as advance:

            def write(line: str) -> None:
                file.write(line)
                if input_ is None:
                    file.flush()

            with _search_within_memory(translator.options, single=sentence is not None):
                translate_stream(translator, lines, write, n_best=n_best, warn=_say, advance=advance)


@contextlib.contextmanager
def _progress(input_: Path | None, output: Path | None) -> Iterator[Callable[[int], object]]:
    """A progress bar where a file goes into a file; its length is not known before it is read."""
    from tqdm import tqdm

    with tqdm(unit=" lines", desc="translating", disable=None if input_ and output else True) as bar:
        yield bar.update


@contextlib.contextmanager
def _opened_output(path: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears whole or not at all; UTF-8 with line feeds whatever the locale."""
    if path is not None:
        with open_text(path, errors="replace") as file:
            yield file
        return
    if sys.stdout is None:
        raise ConfigError("standard output is closed; there is nowhere to write to")
    sys.stdout.reconfigure(encoding="utf-8", newline="\n", errors="replace")  # type: ignore[union-attr]
    try:
        with naming(Path("standard output")):
            yield sys.stdout
            sys.stdout.flush()
    except BrokenPipeError:
        raise _ReaderGone from None


def _show(text: str) -> None:
    """Print lines for a person to read; whatever is in them, they do not control the terminal."""
    with _opened_output(None) as file:
        file.writelines(f"{printable(line)}\n" for line in text.removesuffix("\n").split("\n"))


def _standard_input() -> contextlib.AbstractContextManager[Readable]:
    if sys.stdin is None:
        raise ConfigError("standard input is closed; give a sentence or --input")
    return contextlib.nullcontext(cast("Readable", sys.stdin.buffer))


@app.command()
def evaluate(
    model: ModelOption = None,
    split: Annotated[str | None, typer.Option(help="test or valid, of the data directory. [default: test]")] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", "-d", help="Data directory. [default: the one the model was trained on]"),
    ] = None,
    src: Annotated[Path | None, typer.Option(help="Source sentences, a line each, instead of a split.")] = None,
    ref: Annotated[list[Path] | None, typer.Option(help="References of --src, line by line. Can be repeated.")] = None,
    json_: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write scores here too.")] = None,
    hypotheses: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the translations here.")] = None,
    beam_size: BeamOption = None,
    batch_size: BatchOption = None,
    device: DeviceOption = "auto",
    allow_class: AllowOption = None,
) -> None:
    """Score a model with sacreBLEU's BLEU and chrF on detokenised text.

    Example: nmt evaluate --split test --json scores.json
    """
    from nmt.workflow.evaluate import (
        describe_other_data,
        evaluate_model,
        read_files,
        read_split,
    )
    from nmt.workflow.outputs import check_files
    from nmt.workflow.runs import find_data

    if bool(src) != bool(ref):
        raise ConfigError("--src and --ref belong together: give both or neither")
    if src is not None and (split or data):
        raise ConfigError("give --src and --ref, or --split and --data, not both")
    if split not in (None, "test", "valid"):
        raise ConfigError(f"--split {split}: there are test and valid")
    check_files({"--json": json_, "--hypotheses": hypotheses}, [src, *(ref or ())] if src else [])
    examples = read_files(src, ref) if src and ref else None
    saved, translator = _load(model, device, beam_size, batch_size, allow_class)
    what = str(src) if src else (split or "test")
    if examples is None:
        data = data or find_data(saved)
        examples = read_split(data, split or "test")
        if doubt := describe_other_data(saved, data):
            _say(doubt)
    with _search_within_memory(translator.options):
        found, seen = evaluate_model(
            saved, translator, examples, what=what, json_path=json_, hypotheses_path=hypotheses
        )
    _say(f"{saved.path} on {what}: {len(examples):,} sentences, beam {translator.options.beam_size}")
    _say(str(seen))
    mark = "    NO TEST OF UNSEEN TEXT, see overlap" * seen.marked
    _show("".join(f"{score.name} {score.value:.2f}    {score.signature}{mark}\n" for score in found.scores.values()))


@app.command()
def runs(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder that holds runs.")] = Path("runs"),
) -> None:
    """List runs: state (running, finished, stopped, broken), updates, best score, time.

    Example: nmt runs
    """
    from nmt.workflow.runs import describe_runs

    _show(describe_runs(directory))


@app.command()
def attentions() -> None:
    """List every attention mechanism: name, class of work, what it is, paper, limits.

    Example: nmt attentions
    """
    from nmt.model.attention.catalog import describe_mechanisms

    _show(describe_mechanisms())


config_app = typer.Typer(help="Show, check and explain configs.", no_args_is_help=True)
app.add_typer(config_app, name="config")


@config_app.command("show")
def config_show(config: ConfigArgument, set_: SetOption = None) -> None:
    """Print the whole config as YAML that can be used again, each value with where it comes from.

    Example: nmt config show tatoeba_small --set train.epochs=3
    """
    from nmt.config import show_config

    _show(show_config(config, set_ or ()))


@config_app.command("check")
def config_check(config: ConfigArgument, set_: SetOption = None) -> None:
    """Report every problem of a config, or that there is none. No data is looked at: for that there is nmt check.

    Example: nmt config check mine.yaml
    """
    from nmt.config import load_config

    load_config(config, set_ or ())
    _show(f"{config}: no problems\n")


@config_app.command("schema")
def config_schema() -> None:
    """Print a JSON Schema (draft 2020-12), with which editors complete and check configs.

    Example: nmt config schema > nmt.schema.json
    """
    import json

    from nmt.config.description import json_schema

    _show(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")


class _Ended(BaseException):
    """Somebody asked the process to end: what it began is tidied up on the way out."""


def _end(number: int, frame: object) -> NoReturn:
    raise _Ended


class _ReaderGone(Exception):
    """Whoever read our output has closed it."""


def main() -> None:
    """Run a command; a user's error is one clear line and a non-zero exit code, never a traceback."""
    _use_utf8()
    before = signal.signal(signal.SIGTERM, _end)
    if hasattr(signal, "SIGUSR1"):
        signal.signal(signal.SIGUSR1, lambda number, frame: None)  # before a run can listen to it, and after
    if sys.stderr is None:  # closed by the caller, and progress bars cannot do without
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    try:
        code = app(standalone_mode=False)
        if code == 128 + signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(code)
    except RunInterrupted as stop:
        if str(stop):
            _say(str(stop))
        sys.exit(INTERRUPTED)
    except NmtError as error:
        _fail(str(error), 1)
    except _Ended:
        _fail("ended by SIGTERM; what was finished before is still there", 128 + signal.SIGTERM)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted; what was finished before is still there", 128 + signal.SIGINT)
    except _ReaderGone:
        # nmt translate ... | head -1: stop in silence, as other filters do.
        _discard_unwritten()
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        _fail_without_memory(error)
        stream = "standard output" if _discard_unwritten() else "input or output"
        again = "; ".join(getattr(error, "__notes__", ())) or "run the command again"
        advice = f"; make room and {again}" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        _fail(f"{error.filename2 or error.filename or stream}: {error.strerror or error}{advice}", 1)
    except UnicodeEncodeError as error:
        _fail(f"{error.object[-200:]!a}: holds bytes that are not UTF-8 and cannot be written; rename it", 1)
    except Exception as error:
        _fail_without_memory(error)
        show = getattr(error, "show", None)  # a usage error knows how to show itself
        if show is None:
            raise
        show()
        sys.exit(getattr(error, "exit_code", 2))
    finally:
        signal.signal(signal.SIGTERM, before)


def _use_utf8() -> None:
    """Begin again in Python's UTF-8 mode where the locale would have file names and text in another encoding."""
    if sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "PYTHONUTF8": "1"})


def _discard_unwritten() -> bool:
    """Give up what standard output does not take, lest Python complain about it at its end; whether there was any."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def _fail_without_memory(error: Exception) -> None:
    """Where memory ran out and nothing is known that would help, say which command it was."""
    if is_out_of_memory(error):
        command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
        _fail(f"nmt {command}: out of memory", 1)


def _fail(message: str, code: int) -> NoReturn:
    for line in message.split("\n"):
        _say(f"nmt: error: {line}")
    sys.exit(code)
