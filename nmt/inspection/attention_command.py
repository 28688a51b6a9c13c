"""Where a model looks, in numbers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nmt.system.errors import ConfigError, DataError, as_nmt_errors
from nmt.system.files import AnyPath, as_paths, write_json
from nmt.system.messages import Parameter
from nmt.system.surroundings import plain_torch
from nmt.translation.loading import LoadSettings, open_translator

if TYPE_CHECKING:
    from nmt.inspection.attention_report import AttentionReport


@as_nmt_errors()
@plain_torch()
def measure_attention(
    sentence: str | None = None,
    *,
    model: AnyPath | None = None,
    target: str | None = None,
    split: str | None = None,
    data: AnyPath | None = None,
    src: AnyPath | None = None,
    ref: AnyPath | None = None,
    forced: bool = False,
    gold: AnyPath | None = None,
    links_of: Literal["words", "tokens"] = "words",
    all_heads: bool = False,
    relations: AnyPath | None = None,
    json_path: AnyPath | None = None,
    picture: AnyPath | None = None,
    sample: int | None = None,
    overwrite: bool = False,
    device: str = "auto",
    allowed_classes: Collection[str] = (),
) -> AttentionReport:
    """Measure where a model looks, on a sentence or many: entropy, largest weight, coverage and so on, step by step.

    Args:
        sentence: Sentence to translate; None is the test split.
        model: Run or model directory; None is the newest finished run under `runs`.
        target: What the model is made to say, for one sentence.
        split: Split to translate: test, valid or train; None is test.
        data: Data directory; None is the one that the model was trained on.
        src: Source sentences instead of a split, one per line.
        ref: A reference of each line of `src`.
        forced: Let the model read the first references instead of its own words.
        gold: Word alignment made by people, to measure the alignment error rate with `forced`: a line for each
            sentence, i-j for each link, i?j if it is only possible.
        links_of: The unit of `gold` and `relations`: words, separated by spaces, or tokens of the model.
        all_heads: Also measure, or show, every head of every layer, self-attention included, while the model reads the
            targets.
        relations: Words that belong together, to measure which heads read them: a line for each source, name:i-j for
            word i that belongs to word j, such as subject:1-0.
        sample: Maximum number of sentences, evenly spaced; None is all; 50 on a page.
        json_path: Write the statistics of every step to this file.
        picture: Draw the heat map of one sentence, or how sharp attention is on many.
        overwrite: Replace files that are not empty.
        device: auto, cpu, cuda, cuda:N or mps.
        allowed_classes: Dotted paths of classes that the model's config may use; their code runs.

    Raises:
        NmtError: The model, the text or the links cannot be used, or arguments conflict.
        OutOfMemory: Memory ran out.
    """
    names = {name: Parameter(name) for name in ("sentence", "target", "gold", "src", "ref", "forced")}
    if target is not None and sentence is None:
        raise ConfigError("{target} is for one sentence: give {sentence}", **names)
    if gold is not None and not forced:
        raise ConfigError("{gold} aligns references: give a split, or {src} with {ref}, and {forced}", **names)
    if relations is not None and not all_heads:
        raise ConfigError(
            "{relations} are of heads: add {all_heads}",
            relations=Parameter("relations"),
            all_heads=Parameter("all_heads", True),
        )
    if relations is not None and sample is not None:
        raise ConfigError(
            "{relations} has a line for each sentence: leave {sample} out",
            relations=Parameter("relations"),
            sample=Parameter("sample"),
        )
    if forced and (sentence is not None or (src is not None and ref is None)):
        raise ConfigError(
            "{forced} reads references: give a split, or {src} with {ref}; for a sentence {target}", **names
        )
    from nmt.config.outputs import check_files
    from nmt.drawing.picture import check_picture
    from nmt.evaluation.input_text import InputText
    from nmt.inspection.all_heads import measure_heads
    from nmt.inspection.attention_report import draw_attention_statistics, make_attention_report
    from nmt.inspection.head_patterns import read_relations

    check_files({"json_path": json_path, "picture": picture}, (src, ref, gold, relations), overwrite=overwrite)
    if picture is not None:
        check_picture(Path(picture))
    text = InputText.read(sentence, split, links_of, data=data, src=src, ref=ref, gold=gold, target=target)
    models, translator = open_translator(as_paths(model), LoadSettings(device, allowed_classes))
    related = None if relations is None else read_relations(Path(relations))
    examples, links = text.of(models, sample)
    if related is not None and len(related) != len(examples):
        raise DataError(f"{relations}: has {len(related):,} lines, but there are {len(examples):,} sentences")
    name = str(models[0].path)
    known = forced or target is not None
    report = make_attention_report(name, translator, examples, forced=known, gold=links, unit=links_of)
    if all_heads:
        heads = measure_heads(translator, examples, report.sentences, links, links_of, related)
        report = replace(report, all_heads=heads)
    if picture is not None:
        draw_attention_statistics(report, Path(picture))
    if json_path is not None:
        write_json(Path(json_path), report.as_json())
    return report
