"""Commands that measure and show a model: nmt evaluate, attention, explain and report."""

import logging
from pathlib import Path
from typing import Annotated, Literal

import typer

import nmt
from nmt.interface import options
from nmt.interface.command import import_libraries, log_default_model, show
from nmt.system.errors import ConfigError
from nmt.system.messages import Parameter

log = logging.getLogger(__name__)


def evaluate(
    model: options.Models = None,
    split: options.ScoredSplit = None,
    data: options.ModelData = None,
    src: Annotated[
        Path | None,
        typer.Option("--src", metavar="FILE", help="Source sentences to score instead of a split, one per line."),
    ] = None,
    ref: Annotated[
        list[Path] | None,
        typer.Option(
            "--ref",
            metavar="FILE",
            help="References for --src, one per line, or several with tabs between them. Can be repeated.",
        ),
    ] = None,
    repair_references: Annotated[
        bool,
        typer.Option(
            "--repair-references", help="Repair references as training text is; signatures of their scores say so."
        ),
    ] = False,
    json_path: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the scores to this file.")
    ] = None,
    hypotheses_path: Annotated[
        Path | None, typer.Option("--hypotheses", metavar="FILE", help="Write the translations to this file.")
    ] = None,
    references_path: Annotated[
        Path | None,
        typer.Option(
            "--references", metavar="FILE", help="Write the references to this file, with tabs between those of a line."
        ),
    ] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            "--against",
            metavar="DIR|FILE",
            help="Compare with this run, model, or file of translations. Can be repeated.",
        ),
    ] = None,
    test: Annotated[
        Literal["bootstrap", "randomization"],
        typer.Option(
            "--test",
            metavar="bootstrap|randomization",
            help="Paired significance test for --against: bootstrap or randomization.",
        ),
    ] = "bootstrap",
    breakdown: Annotated[
        bool, typer.Option("--breakdown", help="Also break scores down by word frequency, length and sentence.")
    ] = False,
    attention: Annotated[
        bool, typer.Option("--attention", help="Also measure how sharp attention is, and what it covers.")
    ] = False,
    beam_size: options.BeamSize = None,
    batch_size: options.BatchSize = None,
    overrides: options.SearchOverrides = None,
    device: options.Device = "auto",
    short_inputs: Annotated[
        bool,
        typer.Option(
            "--short-inputs/--no-short-inputs",
            help="Also judge the translations of 100 short inputs, if the model translates English to German.",
        ),
    ] = True,
    overwrite: options.OverwriteFiles = False,
    allowed_classes: options.AllowedClasses = None,
) -> None:
    """Score a model with BLEU, chrF, chrF++ and TER.

    sacreBLEU computes them, on detokenised text.

    Example: nmt evaluate --split test --json scores.json
    """
    import_libraries("nmt.evaluation.model_evaluation")
    evaluation = nmt.evaluate(
        model=model or (),
        split=split,
        data=data,
        src=src,
        ref=ref or (),
        repair_references=repair_references,
        json_path=json_path,
        hypotheses_path=hypotheses_path,
        references_path=references_path,
        against=against or (),
        test=test,
        breakdown=breakdown,
        attention=attention,
        beam_size=beam_size,
        batch_size=batch_size,
        overrides=overrides or (),
        device=device,
        short_inputs=short_inputs,
        overwrite=overwrite,
        allowed_classes=allowed_classes or (),
    )
    _show_evaluation(evaluation, with_attention=attention)


def _show_evaluation(evaluation: "nmt.ModelEvaluation", *, with_attention: bool) -> None:
    from nmt.evaluation.attention_statistics import SHARP, tabulate_lengths

    mark = "    NOT A TEST OF UNSEEN TEXT, see overlap" if evaluation.seen.marked else ""
    lines = [f"{score}    {score.signature}{mark}" for score in evaluation.scores.values()]
    lines.append(str(evaluation.diagnosis))
    if evaluation.teacher_forced:
        lines.append(f"reading the references: {evaluation.teacher_forced}")
    if evaluation.free_running:
        lines.append(f"reading its own words: {evaluation.free_running}")
    heads = evaluation.attention
    for number, head in enumerate(heads, 1):
        title = f"attention of head {number}" if len(heads) > 1 else "attention"
        lines.append(f"{title}: {head}")
    if with_attention and not heads:
        lines.append("attention: none, as model.attention.score is none")
    if evaluation.short_inputs:
        lines.append(str(evaluation.short_inputs))
    show("\n".join(lines))
    if heads:
        show(tabulate_lengths(evaluation.attention_by_length), SHARP)
    if evaluation.comparison_table.rows:
        show(evaluation.comparison_table.caption, evaluation.comparison_table)
    if evaluation.breakdown:
        show(list(evaluation.breakdown.sections()))


def look_at_attention(
    sentence: Annotated[
        str | None, typer.Argument(metavar="SENTENCE", help="Sentence to translate. [default: the test split]")
    ] = None,
    model: options.Model = None,
    target: Annotated[
        str | None, typer.Option("--target", metavar="TEXT", help="What the model is made to say, for one sentence.")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            "--split", metavar="test|valid|train", help="Split to translate: test, valid or train. [default: test]"
        ),
    ] = None,
    data: options.ModelData = None,
    src: Annotated[
        Path | None, typer.Option("--src", metavar="FILE", help="Source sentences instead of a split, one per line.")
    ] = None,
    ref: Annotated[
        Path | None, typer.Option("--ref", metavar="FILE", help="A reference of each line of --src.")
    ] = None,
    forced: Annotated[
        bool, typer.Option("--forced", help="Let the model read the first references instead of its own words.")
    ] = False,
    gold: Annotated[
        Path | None,
        typer.Option(
            "--gold",
            metavar="FILE",
            help="Word alignment made by people, to measure the alignment error rate with --forced: a line for "
            "each sentence, i-j for each link, i?j if it is only possible.",
        ),
    ] = None,
    links_of: Annotated[
        Literal["words", "tokens"],
        typer.Option(
            "--links-of",
            metavar="words|tokens",
            help="What --gold and --relations count: words, separated by spaces, or tokens of the model.",
        ),
    ] = "words",
    all_heads: Annotated[
        bool,
        typer.Option(
            "--all-heads",
            help="Also measure, or show, every head of every layer, self-attention included, while the model "
            "reads the targets.",
        ),
    ] = False,
    relations: Annotated[
        Path | None,
        typer.Option(
            "--relations",
            metavar="FILE",
            help="Words that belong together, to measure with --all-heads which heads read them: a line for each "
            "source, name:i-j for word i that belongs to word j, such as subject:1-0.",
        ),
    ] = None,
    json_path: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the statistics of every step to this file.")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture",
            metavar="FILE.png",
            help="Draw the heat map of one sentence, or how sharp attention is on many.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.html", help="Write a page to explore instead of measuring."),
    ] = None,
    against: Annotated[
        list[Path] | None, typer.Option("--against", metavar="DIR", help="Another model on the page. Can be repeated.")
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample",
            metavar="N",
            min=1,
            help="Maximum number of sentences, evenly spaced. [default: all; 50 on a page]",
        ),
    ] = None,
    training: Annotated[
        bool,
        typer.Option("--training", help="A page with the sentences of train.watch, at each validation of the run."),
    ] = False,
    overwrite: options.OverwriteFiles = False,
    device: options.Device = "auto",
    allowed_classes: options.AllowedClasses = None,
) -> None:
    """Show where a model looks: numbers, pictures or a page.

    Example: nmt attention "She kissed him." --picture kiss.png; nmt attention --split test --output attention.html
    """
    import_libraries("nmt.inspection.explorer_data")
    log_default_model(model)
    if output is None:
        _refuse_for_numbers(against=bool(against), training=training)
        report = nmt.measure_attention(
            sentence=sentence,
            model=model,
            target=target,
            split=split,
            data=data,
            src=src,
            ref=ref,
            forced=forced,
            gold=gold,
            links_of=links_of,
            all_heads=all_heads,
            relations=relations,
            json_path=json_path,
            picture=picture,
            sample=sample,
            overwrite=overwrite,
            device=device,
            allowed_classes=allowed_classes or (),
        )
        _show_attention(report, picture=picture, is_sentence=sentence is not None)
        return
    _refuse_for_page(
        target=target is not None,
        json_path=json_path is not None,
        picture=picture is not None,
        forced=forced,
        relations=relations is not None,
    )
    nmt.explore(
        sentence=sentence,
        model=model,
        split=split,
        data=data,
        src=src,
        ref=ref,
        gold=gold,
        links_of=links_of,
        all_heads=all_heads,
        output=output,
        against=against or (),
        sample=sample,
        training=training,
        overwrite=overwrite,
        device=device,
        allowed_classes=allowed_classes or (),
    )
    log.info(f"page: {output}")


def _refuse_for_numbers(**given: bool) -> None:
    """Refuse options of a page where none is written."""
    for name, is_given in given.items():
        if is_given:
            page = Parameter("output", "FILE.html")
            raise ConfigError("{option} is for a page: add {page}", option=Parameter(name), page=page)


def _refuse_for_page(**given: bool) -> None:
    """Refuse options of numbers where a page is written."""
    for name, is_given in given.items():
        if is_given:
            option = Parameter(name)
            page = Parameter("output")
            raise ConfigError("{option} does not go with {page}, which writes a page", option=option, page=page)


def _show_attention(report: "nmt.AttentionReport", *, picture: Path | None, is_sentence: bool) -> None:
    from nmt.evaluation.attention_statistics import SHARP, tabulate_lengths

    if picture is not None:
        log.info(f"picture: {picture}")
    lines = []
    for number, head in enumerate(report.heads, 1):
        title = f"head {number}: " if len(report.heads) > 1 else ""
        lines.append(f"{title}{head}")
    if report.error_rate is not None:
        lines.append(f"alignment error rate {report.error_rate:.3f}")
    text = "\n".join(lines)
    if is_sentence:
        show(report.step_table, text, SHARP)
    else:
        show(text, tabulate_lengths(report.by_length), SHARP)
    if report.all_heads is not None:
        show(*report.all_heads.tables())


def explain(
    sentence: Annotated[str, typer.Argument(metavar="SENTENCE", help="Sentence to translate.")],
    model: options.Model = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            "--against",
            metavar="DIR",
            help="Another model, which reads the same words; its weights stand beside. Can be repeated.",
        ),
    ] = None,
    step: Annotated[
        int, typer.Option("--step", metavar="N", min=1, help="Which word of the translation; its end counts as one.")
    ] = 1,
    target: Annotated[
        str | None, typer.Option("--target", metavar="TEXT", help="What the model is made to say instead.")
    ] = None,
    device: options.Device = "auto",
    allowed_classes: options.AllowedClasses = None,
) -> None:
    """Explain one decoding step: scores, weights, context, words.

    Example: nmt explain "She kissed him." --step 3; nmt explain "She kissed him." --against runs/bahdanau
    """
    import_libraries("nmt.inspection.record")
    show(
        nmt.explain(
            sentence=sentence,
            model=model,
            against=against or (),
            step=step,
            target=target,
            device=device,
            allowed_classes=allowed_classes or (),
        )
    )


def report(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.html", help="File to write.")],
    model: options.Model = None,
    against: Annotated[
        list[Path] | None, typer.Option("--against", metavar="DIR", help="Model to compare with. Can be repeated.")
    ] = None,
    split: options.ScoredSplit = None,
    data: options.ModelData = None,
    src: Annotated[
        Path | None, typer.Option("--src", metavar="FILE", help="Source sentences to score instead of a split.")
    ] = None,
    ref: Annotated[
        list[Path] | None, typer.Option("--ref", metavar="FILE", help="References for --src. Can be repeated.")
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Title. [default: the name of the model]")
    ] = None,
    overwrite: options.OverwriteFiles = False,
    device: options.Device = "auto",
    allowed_classes: options.AllowedClasses = None,
) -> None:
    """Write a report on a model as one HTML file.

    It shows scores, curves, sentences, attention, config and data.

    Example: nmt report --model runs/luong --against runs/bahdanau --output report.html
    """
    import_libraries("nmt.inspection.model_report")
    log_default_model(model)
    page = nmt.report(
        output=output,
        model=model,
        against=against or (),
        split=split,
        data=data,
        src=src,
        ref=ref or (),
        title=title,
        overwrite=overwrite,
        device=device,
        allowed_classes=allowed_classes or (),
    )
    log.info(f"report: {page}")
