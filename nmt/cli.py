"""The command line: each command parses its arguments, makes one library call and prints.

Nothing heavy is imported before a command runs, so that --help is instant.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO, cast

import typer

import nmt
from nmt.system.errors import ConfigError, TrainingError, printable
from nmt.system.files import shipped
from nmt.system.limits import MAX_BEAM_SIZE, MAX_DECODE_BATCH
from nmt.system.process import open_output, run_program
from nmt.system.signals import raise_on_interrupt
from nmt.system.terminal import write_sections, write_table, write_text

if TYPE_CHECKING:
    from nmt.system.tables import Table
    from nmt.translation.translate import Readable
    from nmt.translation.translator import Translator

log = logging.getLogger(__name__)

app = typer.Typer(
    name="nmt",
    help="Recurrent neural machine translation with attention: from raw text to BLEU, driven by YAML.",
    epilog="In order: nmt preprocess, nmt train, nmt evaluate, nmt translate. Each --help shows an example.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _complete_config(incomplete: str) -> list[str]:
    """Shipped configs and YAML files that start with `incomplete`."""
    head, slash, _ = incomplete.rpartition("/")
    names = [] if slash else sorted(path.stem for path in shipped("configs").glob("*.yaml"))
    for path in sorted(Path(head + slash).glob("*")):
        if path.is_dir() or path.suffix in (".yaml", ".yml"):
            names.append(f"{head}{slash}{path.name}{'/' if path.is_dir() else ''}")
    return [name for name in names if name.startswith(incomplete)]


def _complete_comparison(incomplete: str) -> list[str]:
    """Shipped comparisons that start with `incomplete`."""
    names = sorted(path.stem for path in shipped("configs/comparisons").glob("*.yaml"))
    return [name for name in names if name.startswith(incomplete)]


ConfigOption = Annotated[
    str,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE|NAME",
        help="YAML file, or the name of a shipped config.",
        autocompletion=_complete_config,
    ),
]
ConfigArgument = Annotated[
    str,
    typer.Argument(
        metavar="CONFIG", help="YAML file, or the name of a shipped config.", autocompletion=_complete_config
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a value: section.key=value. Can be repeated."),
]
ModelOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--model",
        "-m",
        help="Run or model directory. Repeat it for several models with the same vocabularies, which translate "
        "together. [default: the newest finished run under runs/]",
    ),
]
SingleModelOption = Annotated[
    Path | None,
    typer.Option("--model", "-m", help="Run or model directory. [default: the newest finished run under runs/]"),
]
ModelDataOption = Annotated[
    Path | None,
    typer.Option("--data", "-d", help="Data directory. [default: the one the model was trained on]"),
]
SearchOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="decode.KEY=VALUE",
        help="Override a search setting of the model's config: decode.min_length=3. Can be repeated.",
    ),
]
PrecisionOption = Annotated[
    str | None, typer.Option(metavar="float32|bfloat16", help="bfloat16 is faster. [default: the model's config]")
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
        help="Allow the model's config to use this class, whose code then runs. Can be repeated.",
    ),
]


class PairedTest(Enum):
    """How the significance of a difference is tested."""

    bootstrap = "bootstrap"
    randomization = "randomization"


class LinksOf(Enum):
    """What the numbers of a word alignment count."""

    words = "words"
    tokens = "tokens"


class LogFormat(Enum):
    """How nmt serve logs requests."""

    json = "json"
    text = "text"
    none = "none"


def _version(value: bool) -> None:
    if value:
        typer.echo(f"nmt {nmt.__version__}")
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
            help="Corpus to use instead of the config's: one tab-separated file (.txt, .zip, .gz, .xz, .bz2) or URL. "
            "Repeat it for 2, 4 or 6 parallel files (source and target of train, valid, test), or for the 3 files of "
            "a Tatoeba export (source sentences, target sentences, links).",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Data directory to write. [default: data/prepared/NAME]"),
    ] = None,
    drop_overlap: Annotated[
        bool,
        typer.Option("--drop-overlap", help="With ready-made splits, drop training pairs that overlap valid or test."),
    ] = False,
    set_: SetOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Clean, split, tokenise and encode a corpus.

    Without arguments, English-German Tatoeba is downloaded into data/raw.

    Example: nmt preprocess --config tatoeba_small --source deu-eng.zip
    """
    import nmt.corpus.prepare

    raise_on_interrupt()
    overrides = [*(set_ or ()), *(["data.drop_overlap=true"] if drop_overlap else ())]
    made = nmt.preprocess(config, source=source or (), output=output, overrides=overrides, overwrite=overwrite)
    log.info(f"data directory: {made.path}")


@app.command("data")
def show_data(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Data directory written by nmt preprocess.")],
) -> None:
    """Describe a data directory: cleaning, splits, lengths, overlap with training, vocabulary.

    Example: nmt data data/prepared/tatoeba_small
    """
    from nmt.corpus.data_report import read_report

    sections = read_report(directory)
    with open_output(None) as file:
        write_sections(sections, file)


@app.command()
def train(
    config: ConfigOption,
    data: Annotated[
        Path | None,
        typer.Option("--data", "-d", help="Data directory. [default: the one nmt preprocess writes for this config]"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Run directory to write. [default: runs/NAME]")
    ] = None,
    set_: SetOption = None,
    overwrite: OverwriteOption = False,
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
    import nmt.training.run

    raise_on_interrupt()
    nmt.train(config, data=data, output=output, overrides=set_ or (), overwrite=overwrite, resume=resume)


@app.command()
def check(
    config: ConfigOption,
    data: Annotated[
        Path | None,
        typer.Option("--data", "-d", help="Data directory. [default: the one nmt preprocess writes for this config]"),
    ] = None,
    set_: SetOption = None,
) -> None:
    """Check data, model, memory and speed before a long run; nothing is written.

    The exit code is 1 if something is wrong.

    Example: nmt check --config tatoeba_small
    """
    import nmt.training.check

    raise_on_interrupt()
    marks = {True: "ok", False: "PROBLEM", None: "-"}
    problems = []
    with open_output(None) as file:
        for finding in nmt.check(config, data=data, overrides=set_ or ()):
            print(f"{marks[finding.ok]:<8}{finding.name}: {printable(finding.text)}", file=file, flush=True)
            if finding.ok is False:
                problems.append(finding.name)
        print(f"{len(problems)} problems: {', '.join(problems)}" if problems else "nothing is wrong", file=file)
    raise typer.Exit(bool(problems))


@app.command()
def translate(
    sentence: Annotated[
        str | None, typer.Argument(help="Sentence to translate. [default: standard input; a session at a terminal]")
    ] = None,
    model: ModelOption = None,
    input_: Annotated[
        Path | None, typer.Option("--input", "-i", help="File to translate, one sentence per line.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write, or replace, instead of standard output.")
    ] = None,
    beam_size: BeamOption = None,
    batch_size: BatchOption = None,
    n_best: Annotated[
        int,
        typer.Option(
            "--n-best",
            "--num-hypotheses",
            min=1,
            max=MAX_BEAM_SIZE,
            help="Translations per sentence, as --format nbest unless given.",
        ),
    ] = 1,
    precision: PrecisionOption = None,
    set_: SearchOption = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="text|nbest|jsonl|pharaoh",
            help="text: the translation. nbest: number ||| translation ||| score. jsonl: a JSON object per line, with "
            "tokens, scores and word alignment. pharaoh: word alignment, i-j. [default: text]",
        ),
    ] = None,
    with_attention: Annotated[
        bool, typer.Option("--with-attention", help="Write the attention weights into --format jsonl too.")
    ] = False,
    attention: Annotated[
        Path | None,
        typer.Option("--attention", metavar="FILE.png", help="Draw the attention weights of the sentence."),
    ] = None,
    dictionary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.tsv",
            help="Translations of words that the model does not know: source word, tab, translation on each line.",
        ),
    ] = None,
    split_sentences: Annotated[
        bool, typer.Option(help="Translate the sentences of a line one by one, and long ones in parts.")
    ] = True,
    prefix: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Words that the translation begins with, for one sentence, which is not split."
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue an unfinished translation of --input into --output, or start one."),
    ] = False,
    device: DeviceOption = "auto",
    allow_class: AllowOption = None,
) -> None:
    """Translate a sentence, a file or standard input: one line in, one line out.

    Example: nmt translate "She kissed him." --attention kiss.png
    """
    if sentence is not None and input_ is not None:
        raise ConfigError("give a sentence or --input, not both")
    if attention is not None and sentence is None:
        raise ConfigError("--attention draws one sentence: give it as the argument")
    if attention is not None and (format_ is not None or n_best > 1 or with_attention):
        raise ConfigError("--attention draws the best translation: leave --format, --n-best and --with-attention out")
    if prefix is not None and (sentence is None or attention is not None):
        raise ConfigError("--prefix is for one sentence, given as the argument, and goes without --attention")
    whole = input_ is not None and output is not None and input_.is_file() and (output.is_file() or not output.exists())
    if resume and not whole:
        raise ConfigError("--resume continues a file: give --input and --output, neither of them a device or pipe")
    from nmt.system.outputs import check_files
    from nmt.translation.bulk import translate_file
    from nmt.translation.formats import choose_format
    from nmt.translation.translate import draw_attention, read_lines, translate_stream, warn_of_cut

    read = [] if sentence is not None else [input_ or Path("/dev/stdin")]
    read += [] if dictionary is None else [dictionary]
    check_files({"--output": output, "--attention": attention}, read)

    raise_on_interrupt()

    name, source = _opened_input(sentence, input_)
    allowed = allow_class or ()
    translator = nmt.load(
        model or _default_model(),
        device=device,
        beam_size=beam_size,
        batch_size=batch_size,
        precision=precision,
        overrides=set_ or (),
        split_sentences=split_sentences,
        dictionary=dictionary,
        allowed_classes=allowed,
    )
    translator.check_n_best(n_best)
    shape = choose_format(format_, translator.processor, n_best=n_best, with_attention=with_attention)
    with source as stream:
        if input_ is not None and output is not None and whole:
            translate_file(translator, input_, output, shape, n_best=n_best, resume=resume)
            return
        with open_output(output) as file:
            terminal = sentence is None and input_ is None and sys.stdin.isatty()
            if terminal and output is None and format_ is None and file.isatty():
                _converse(translator, file, n_best)
                return
            lines = read_lines(stream, name, log.warning)
            if attention is not None:
                file.write(draw_attention(translator, next(lines)[0], attention).target + "\n")
                log.info(f"attention: {attention}")
                return
            if sentence is not None and prefix is not None:
                (text,) = next(lines)
                (found,) = translator.complete([text], [prefix], n_best=n_best, with_alignment=shape.needs_alignment)
                warn_of_cut(1, found[0])
                file.write(shape.render(1, text, found))
                return
            if terminal:
                log.info("reading standard input, one sentence per line; end with Ctrl-D")

            def write(text: str) -> None:
                file.write(text)
                file.flush()

            translate_stream(translator, lines, write, shape, n_best=n_best)


def _converse(translator: Translator, file: TextIO, n_best: int) -> None:
    """Translate what a person types at a terminal, with a history that ends with the session."""
    import shutil

    from nmt.translation.session import Session

    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  # from now on input() has a history
    log.info("type a sentence; :help lists commands, Ctrl-D ends")
    width = shutil.get_terminal_size().columns
    Session(translator, lambda line: print(line, file=file, flush=True), n_best=n_best, width=width).run(
        lambda: input("> ")
    )


def _opened_input(sentence: str | None, path: Path | None) -> tuple[str, contextlib.AbstractContextManager[Readable]]:
    """The name of the input for messages, and the input itself."""
    from nmt.translation.translate import open_input

    if sentence is not None:
        # Bytes of the argument that are not UTF-8 arrive escaped; they are treated like those of a file.
        line = sentence.replace("\n", " ").encode("utf-8", "surrogateescape") + b"\n"
        return "the sentence", io.BytesIO(line)
    if path is not None:
        return str(path), open_input(path)
    if sys.stdin is None:
        raise ConfigError("standard input is closed; give a sentence or --input")
    return "standard input", contextlib.nullcontext(cast("Readable", sys.stdin.buffer))


def _default_model() -> Path:
    """The newest finished run; at a terminal it is named, as nobody chose it."""
    from nmt.models.runs import newest_run

    run, number = newest_run()
    if sys.stderr.isatty():
        log.info(f"model: {run}, newest of {number}")
    return run


def _show(text: str) -> None:
    """Print lines for a person to read."""
    with open_output(None) as file:
        write_text(text, file)


def _show_table(table: Table, comment: str = "") -> None:
    with open_output(None) as file:
        write_table(table, file)
        if comment:
            write_text(f"\n{comment}", file)


@app.command()
def evaluate(
    model: ModelOption = None,
    split: Annotated[str | None, typer.Option(help="Split to score: test or valid. [default: test]")] = None,
    data: ModelDataOption = None,
    src: Annotated[
        Path | None, typer.Option(help="Source sentences to score instead of a split, one per line.")
    ] = None,
    ref: Annotated[list[Path] | None, typer.Option(help="References for --src, one per line. Can be repeated.")] = None,
    json_: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the scores to this file.")
    ] = None,
    hypotheses: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the translations to this file.")
    ] = None,
    references: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the references to this file, with tabs between those of a line."),
    ] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(help="Compare with this run, model, or file of translations. Can be repeated."),
    ] = None,
    test: Annotated[
        PairedTest, typer.Option(help="Paired significance test for --against: bootstrap or randomization.")
    ] = PairedTest.bootstrap,
    breakdown: Annotated[
        bool, typer.Option("--breakdown", help="Also break scores down by word frequency, length and sentence.")
    ] = False,
    attention: Annotated[
        bool, typer.Option("--attention", help="Also measure how sharp attention is, and what it covers.")
    ] = False,
    beam_size: BeamOption = None,
    batch_size: BatchOption = None,
    set_: SearchOption = None,
    device: DeviceOption = "auto",
    short_inputs: Annotated[
        bool, typer.Option(help="Also judge the translations of 100 short inputs made from training text.")
    ] = True,
    allow_class: AllowOption = None,
) -> None:
    """Score a model with sacreBLEU's BLEU, chrF, chrF++ and TER on detokenised text.

    Example: nmt evaluate --split test --json scores.json
    """
    import nmt.evaluation.evaluate
    from nmt.evaluation.attention_statistics import tabulate_lengths

    raise_on_interrupt()
    found = nmt.evaluate(
        model,
        split=split,
        data=data,
        src=src,
        ref=ref or (),
        json_path=json_,
        hypotheses_path=hypotheses,
        references_path=references,
        against=against or (),
        test=test.value,
        breakdown=breakdown,
        attention=attention,
        beam_size=beam_size,
        batch_size=batch_size,
        overrides=set_ or (),
        device=device,
        short_inputs=short_inputs,
        allowed_classes=allow_class or (),
    )
    mark = "    NOT A TEST OF UNSEEN TEXT, see overlap" if found.seen.marked else ""
    lines = [f"{score}    {score.signature}{mark}" for score in found.scores.values()]
    lines.append(str(found.diagnosis))
    lines += [f"reading the references: {found.teacher_forced}"] if found.teacher_forced else []
    lines += [f"reading its own words: {found.free_running}"] if found.free_running else []
    several = len(found.attention) > 1
    lines += [f"attention{f' of head {n}' if several else ''}: {each}" for n, each in enumerate(found.attention, 1)]
    lines += ["attention: none, as model.attention.score is none"] if attention and not found.attention else []
    lines += [str(found.short_inputs)] if found.short_inputs else []
    _show("".join(f"{line}\n" for line in lines))
    if found.attention:
        _show_table(tabulate_lengths(found.attention_by_length))
    if found.comparisons:
        _show_table(found.comparison_table)
    if found.breakdown:
        with open_output(None) as file:
            write_sections(list(found.breakdown.sections()), file)


@app.command()
def attention(
    sentence: Annotated[str | None, typer.Argument(help="Sentence to translate. [default: the test split]")] = None,
    model: SingleModelOption = None,
    target: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the model is made to say, for one sentence.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Split to translate: test or valid. [default: test]")] = None,
    data: ModelDataOption = None,
    src: Annotated[Path | None, typer.Option(help="Source sentences instead of a split, one per line.")] = None,
    ref: Annotated[Path | None, typer.Option(help="A reference of each line of --src.")] = None,
    forced: Annotated[
        bool, typer.Option("--forced", help="Let the model read the first references instead of its own words.")
    ] = False,
    gold: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Word alignment made by people, to measure the alignment error rate with --forced: a line for each "
            "sentence, i-j for each link, i?j if it is only possible.",
        ),
    ] = None,
    links_of: Annotated[
        LinksOf, typer.Option(help="What --gold counts: words, separated by spaces, or tokens of the model.")
    ] = LinksOf.words,
    json_: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the statistics of every step to this file.")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png", help="Draw the heat map of one sentence, or how sharp attention is on many."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.html", help="Write a page to explore instead of measuring."),
    ] = None,
    against: Annotated[list[Path] | None, typer.Option(help="Another model on the page. Can be repeated.")] = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of sentences, evenly spaced. [default: all; 50 on a page]"),
    ] = None,
    training: Annotated[
        bool,
        typer.Option("--training", help="A page with the sentences of train.watch, at each validation of the run."),
    ] = False,
    device: DeviceOption = "auto",
    allow_class: AllowOption = None,
) -> None:
    """Show where a model looks: numbers, pictures, or a page to explore.

    Example: nmt attention "She kissed him." --picture kiss.png; nmt attention --split test --output attention.html
    """
    import nmt.inspection.attention

    if output is None and (against or training):
        raise ConfigError(f"{'--against' if against else '--training'} is for a page: add --output FILE.html")
    if output is not None:
        given = {"--target": target, "--json": json_, "--picture": picture, "--forced": forced or None}
        for name in (name for name, value in given.items() if value is not None):
            raise ConfigError(f"{name} does not go with --output, which writes a page")
        raise_on_interrupt()
        nmt.explore(
            sentence,
            model=model or _default_model(),
            against=against or (),
            split=split,
            data=data,
            src=src,
            ref=ref,
            gold=gold,
            links_of=links_of.value,
            sample=sample,
            training=training,
            output=output,
            device=device,
            allowed_classes=allow_class or (),
        )
        log.info(f"page: {output}")
        return
    from nmt.evaluation.attention_statistics import tabulate_lengths

    raise_on_interrupt()
    found = nmt.measure_attention(
        sentence,
        model=model or _default_model(),
        target=target,
        split=split,
        data=data,
        src=src,
        ref=ref,
        forced=forced,
        gold=gold,
        links_of=links_of.value,
        sample=sample,
        json_path=json_,
        picture=picture,
        device=device,
        allowed_classes=allow_class or (),
    )
    if sentence is not None:
        _show_table(found.step_table)
    several = len(found.heads) > 1
    lines = [f"{f'head {number}: ' if several else ''}{head}" for number, head in enumerate(found.heads, 1)]
    lines += [] if found.error_rate is None else [f"alignment error rate {found.error_rate:.3f}"]
    _show("".join(f"{line}\n" for line in lines))
    if sentence is None:
        _show_table(tabulate_lengths(found.by_length))


@app.command()
def explain(
    sentence: Annotated[str, typer.Argument(help="Sentence to translate.")],
    model: SingleModelOption = None,
    step: Annotated[int, typer.Option(min=1, help="Which word of the translation; its end counts as one.")] = 1,
    target: Annotated[str | None, typer.Option(metavar="TEXT", help="What the model is made to say instead.")] = None,
    device: DeviceOption = "auto",
    allow_class: AllowOption = None,
) -> None:
    """Explain one decoding step with its numbers: query, scores, weights, context, next words.

    Example: nmt explain "She kissed him." --step 3
    """
    import nmt.inspection.explain

    raise_on_interrupt()
    _show(
        nmt.explain(sentence, model=model, step=step, target=target, device=device, allowed_classes=allow_class or ())
    )


@app.command()
def report(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.html", help="File to write.")],
    model: SingleModelOption = None,
    against: Annotated[list[Path] | None, typer.Option(help="Model to compare with. Can be repeated.")] = None,
    split: Annotated[str | None, typer.Option(help="Split to score: test or valid. [default: test]")] = None,
    data: ModelDataOption = None,
    src: Annotated[Path | None, typer.Option(help="Source sentences to score instead of a split.")] = None,
    ref: Annotated[list[Path] | None, typer.Option(help="References for --src. Can be repeated.")] = None,
    title: Annotated[str | None, typer.Option(help="Title. [default: the name of the model]")] = None,
    device: DeviceOption = "auto",
    allow_class: AllowOption = None,
) -> None:
    """Write a report on a model as one HTML file: scores, curves, sentences, attention, config, data.

    Example: nmt report --model runs/luong --against runs/bahdanau --output report.html
    """
    import nmt.inspection.report

    raise_on_interrupt()
    written = nmt.report(
        model or _default_model(),
        against=against or (),
        split=split,
        data=data,
        src=src,
        ref=ref or (),
        output=output,
        title=title,
        device=device,
        allowed_classes=allow_class or (),
    )
    log.info(f"report: {written}")


@app.command()
def compare(
    comparison: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE|NAME]",
            help="Comparison file, or the name of a shipped one.",
            autocompletion=_complete_comparison,
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE|NAME",
            help="Config to train; repeat it to compare several.",
            autocompletion=_complete_config,
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE,VALUE", help="Compare values of section.key. Several: all combinations."),
    ] = None,
    set_: SetOption = None,
    seeds: Annotated[str | None, typer.Option(metavar="1,2,3", help="Train each config with these seeds.")] = None,
    budget_minutes: Annotated[
        float | None,
        typer.Option(help="Minutes of training for each; the number of updates is measured. [default: the config's]"),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", "-s", metavar="PATH|URL", help="Corpus instead of the configs', as for preprocess."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", "-d", help="Data directory. [default: made once, inside --output]")
    ] = None,
    split: Annotated[str, typer.Option(help="Split to evaluate on: test or valid.")] = "test",
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Trainings at once. [default: 1; with --launcher all]")
    ] = None,
    launcher: Annotated[
        str | None,
        typer.Option(
            metavar="TEMPLATE",
            help="Shell command that runs {command}, or hands it to a cluster: 'sbatch --wrap \"{command}\"'.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for everything. [default: runs/comparisons/NAME]")
    ] = None,
    cell: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Only train and evaluate this cell, as launchers do.")
    ] = None,
) -> None:
    """Train several configs and compare scores, significance, time, memory and attention.

    The same command continues what was stopped, with Ctrl-C or otherwise, and skips what is finished.

    Example: nmt compare --config tatoeba_small --vary model.attention.score=additive,dot,general --budget-minutes 5
    """
    import nmt.comparison.trial

    raise_on_interrupt()
    if cell is not None:
        others = comparison, config, vary, set_, seeds, budget_minutes, source, data, jobs, launcher, output
        if any(others) or split != "test":
            raise ConfigError("--cell runs a cell as it was made: leave the other options out")
        nmt.comparison.trial.run_trial(cell)
        return
    found = nmt.compare(
        comparison,
        config=config or (),
        vary=vary or (),
        overrides=set_ or (),
        seeds=_parse_seeds(seeds),
        budget_minutes=budget_minutes,
        source=source or (),
        data=data,
        split=split,
        jobs=jobs,
        launcher=launcher,
        output=output,
    )
    with open_output(None) as file:
        write_sections(found.sections, file)
    if found.failed:
        raise TrainingError(*(f"{name}: {reason}" for name, reason in found.failed.items()))


def _parse_seeds(text: str | None) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",")) if text is not None else ()
    except ValueError:
        raise ConfigError(f"--seeds {text}: expected whole numbers with commas between them") from None


@app.command()
def score(
    src: Annotated[Path, typer.Option(help="Source sentences, one per line.")],
    tgt: Annotated[Path, typer.Option(help="A translation of each, one per line.")],
    model: ModelOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write, or replace, instead of standard output.")
    ] = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="text|jsonl",
            help="text: the natural logarithm of the probability. jsonl: a JSON object per line, with those of tokens.",
        ),
    ] = "text",
    batch_size: BatchOption = None,
    precision: PrecisionOption = None,
    device: DeviceOption = "auto",
    allow_class: AllowOption = None,
) -> None:
    """Score given translations: their probabilities according to a model, and its perplexity.

    Example: nmt score --src test.en --tgt test.de > test.scores
    """
    from nmt.system.outputs import check_files
    from nmt.translation.formats import FORMATS
    from nmt.translation.score import score_files

    if format_ not in ("text", "jsonl"):
        raise ConfigError(f"--format {format_}: must be text or jsonl")
    check_files({"--output": output}, [src, tgt])
    raise_on_interrupt()
    translator = nmt.load(
        model or _default_model(),
        device=device,
        batch_size=batch_size,
        precision=precision,
        allowed_classes=allow_class or (),
    )
    shape = None if format_ == "text" else FORMATS[format_](translator.processor)
    with open_output(output) as file:
        score_files(translator, src, tgt, file.write, shape)


@app.command()
def serve(
    model: Annotated[
        list[Path] | None,
        typer.Option(
            "--model",
            "-m",
            help="Run or model directory; repeat it for several directions. [default: the newest finished run under "
            "runs/]",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 is all of this machine's.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any that is free.")] = 5000,
    api_key: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="Key that clients must give. Can be repeated.")
    ] = None,
    api_keys: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with such keys, one per line, hidden from other users.")
    ] = None,
    max_characters: Annotated[int, typer.Option(min=1, help="Characters of a request.")] = 100_000,
    max_sentences: Annotated[int, typer.Option(min=1, help="Sentences of a request.")] = 2000,
    max_queue: Annotated[int, typer.Option(min=1, help="Sentences that may wait for a model.")] = 5000,
    requests_per_minute: Annotated[
        int | None, typer.Option(min=1, help="Requests of a client or a key. [default: no limit]")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Name that the server is reached by. Can be repeated.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Web pages that may use the server, or * for all. Can be repeated."),
    ] = None,
    trust_proxy: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDRESS", help="Reverse proxy whose X-Forwarded-For is trusted. Can be repeated."),
    ] = None,
    log_: Annotated[
        LogFormat, typer.Option("--log", help="Log of requests, one line each, on standard error.")
    ] = LogFormat.json,
    beam_size: BeamOption = None,
    batch_size: BatchOption = None,
    device: DeviceOption = "auto",
    allow_class: AllowOption = None,
) -> None:
    """Serve models over HTTP to LibreTranslate's clients and to a page for browsers.

    Ctrl-C and SIGTERM stop it when the requests at work are answered. It needs more packages:
    pip install starlette uvicorn python-multipart lxml

    Example: nmt serve --model runs/en-de --model runs/de-en --port 5000
    """
    from nmt.serving.serve import exit_if_busy, read_keys

    raise_on_interrupt()
    nmt.serve(
        model or _default_model(),
        host=host,
        port=port,
        device=device,
        beam_size=beam_size,
        batch_size=batch_size,
        api_keys=[*(api_key or ()), *(read_keys(api_keys) if api_keys else ())],
        allowed_hosts=allow_host or (),
        allowed_origins=allow_origin or (),
        trusted_proxies=trust_proxy or (),
        limits={
            "max_characters": max_characters,
            "max_sentences": max_sentences,
            "max_queue": max_queue,
            "requests_per_minute": requests_per_minute,
        },
        log_format=log_.value,
        allowed_classes=allow_class or (),
    )
    exit_if_busy()


@app.command()
def average(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL...", help="Run or model directories.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model directory to write.")],
    last: Annotated[
        int | None,
        typer.Option(min=2, help="Average so many of the latest models that one run has kept in RUN/models."),
    ] = None,
    overwrite: OverwriteOption = False,
    allow_class: AllowOption = None,
) -> None:
    """Average the weights of models of one kind, such as the last ones of a run.

    Example: nmt average runs/tatoeba --last 5 --output runs/tatoeba-average
    """
    raise_on_interrupt()
    nmt.average(models, output, last=last, overwrite=overwrite, allowed_classes=allow_class or ())


@app.command()
def runs(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of runs.")] = Path("runs"),
) -> None:
    """List runs: state (running, finished, stopped, broken), updates, best score, time.

    A star marks the newest finished run, which commands use without --model.

    Example: nmt runs
    """
    from nmt.models.runs import list_runs

    _show_table(list_runs(directory))


@app.command()
def attentions() -> None:
    """List every attention mechanism: name, class of work, description, paper, limits.

    Example: nmt attentions
    """
    from nmt.layers.attention.catalog import WORK_CLASSES, tabulate_mechanisms

    _show_table(tabulate_mechanisms(), WORK_CLASSES)


config_app = typer.Typer(help="Show, check and explain configs.", no_args_is_help=True)
app.add_typer(config_app, name="config")


@config_app.command("show")
def config_show(config: ConfigArgument, set_: SetOption = None) -> None:
    """Print the complete config as reusable YAML, each value with its origin.

    Example: nmt config show tatoeba_small --set train.epochs=3
    """
    from nmt.models.configs import show_config

    _show(show_config(config, set_ or ()))


@config_app.command("check")
def config_check(config: ConfigArgument, set_: SetOption = None) -> None:
    """Report every problem of a config. It reads no data; nmt check does.

    Example: nmt config check mine.yaml
    """
    from nmt.models.configs import load_config

    load_config(config, set_ or ())
    _show(f"{config}: no problems\n")


@config_app.command("schema")
def config_schema() -> None:
    """Print a JSON Schema (draft 2020-12) for editors to complete and check configs.

    Example: nmt config schema > nmt.schema.json
    """
    import json

    from nmt.config.description import json_schema

    _show(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")


def _run_app() -> int | None:
    try:
        code: int | None = app(standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    return code


def main() -> None:
    """Run a command; a user error results in one clear line and a non-zero exit code, never a traceback."""
    run_program(_run_app)
