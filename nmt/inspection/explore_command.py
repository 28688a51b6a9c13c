"""A page in which attention can be explored."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from nmt.system.errors import ConfigError, DataError, as_nmt_errors
from nmt.system.files import AnyPath, AnyPaths, as_path, as_paths
from nmt.system.messages import Message, Parameter
from nmt.system.surroundings import plain_torch
from nmt.text.direction import Direction
from nmt.translation.loading import LoadSettings, open_translator

if TYPE_CHECKING:
    from nmt.inspection.html_page import Page
    from nmt.models.storage import ModelFolder
    from nmt.translation.translator import Translator


@as_nmt_errors()
@plain_torch()
def explore(
    sentence: str | None = None,
    *,
    model: AnyPath | None = None,
    split: str | None = None,
    data: AnyPath | None = None,
    src: AnyPath | None = None,
    ref: AnyPath | None = None,
    gold: AnyPath | None = None,
    links_of: Literal["words", "tokens"] = "words",
    all_heads: bool = False,
    output: AnyPath | None = None,
    against: AnyPaths = (),
    sample: int | None = None,
    training: bool = False,
    title: str = "Attention",
    overwrite: bool = False,
    device: str = "auto",
    allowed_classes: Collection[str] = (),
) -> Page:
    """Make a page in which the attention of models can be explored: one HTML file, which loads nothing.

    In a notebook, the result is shown in a frame; its `write("page.html")` stores it.

    Args:
        sentence: One sentence; None is a file or a split.
        model: Run or model directory; None is the newest finished run under `runs`.
        against: Another model on the page.
        split: Split of the data directory: test, valid or train; None is test.
        data: Data directory; None is the one that the model was trained on.
        src: Source sentences, one per line, instead of a split.
        ref: A reference of each line of `src`.
        gold: Word alignment of people in Pharaoh format, with `i?j` for links that are only possible, between each
            source and its first reference.
        links_of: The unit of the numbers in `gold`: words, separated by spaces, or tokens of the model.
        all_heads: Also show every head of every layer, self-attention included.
        sample: Maximum number of sentences, evenly spaced; None is 50.
        training: A page with the sentences of train.watch, at each validation of the run.
        output: File to write.
        title: Title of the page.
        overwrite: Replace a file that is not empty.
        device: auto, cpu, cuda, cuda:N or mps.
        allowed_classes: Dotted paths of classes that the models' configs may use; their code runs.

    Raises:
        NmtError: A model, the text or the links cannot be used, or arguments conflict.
        OutOfMemory: Memory ran out.
    """
    drawn = "statistics" if sentence is None else "weights of the sentence"
    otherwise = Message("; {picture} draws the {drawn}", picture=Parameter("picture"), drawn=drawn)
    check_page(output, (src, ref, gold), overwrite=overwrite, otherwise=Message("") if against else otherwise)
    from nmt.corpus.example import Example
    from nmt.evaluation.input_text import InputText
    from nmt.inspection.explorer_data import make_explorer_page
    from nmt.training.attention_history import read_attention

    has_text = any(argument is not None for argument in (sentence, src, split, data, sample))
    if training and (has_text or against):
        raise ConfigError(
            "{training} shows the sentences that one run has watched: leave other text and models out",
            training=Parameter("training", True),
        )
    text = InputText.read(sentence, split, links_of, data=data, src=src, ref=ref, gold=gold)
    opened = open_all(model, against, device, allowed_classes)
    watched = read_attention(opened[0][0].path.parent) if training else None
    if watched:
        text = replace(
            text, examples=[Example(sentence["source"], (sentence["reference"],)) for sentence in watched["sentences"]]
        )
    examples, links = text.of([opened[0][0]], 50 if sample is None and not training else sample)
    page = make_explorer_page(
        opened, examples, title=title, watched=watched, gold=links, unit=links_of, all_heads=all_heads
    )
    if output is not None:
        page.write(output, overwrite=True)
    return page


def open_all(
    model: AnyPath | None, against: AnyPaths, device: str, allowed_classes: Collection[str]
) -> list[tuple[ModelFolder, Translator]]:
    """Open a model, and those to compare it with.

    Raises:
        ConfigError: They translate between other languages.
    """
    opened = []
    for path in (model, *as_paths(against)):
        (saved,), translator = open_translator(as_paths(path), LoadSettings(device, allowed_classes))
        opened.append((saved, translator))
        check_directions([saved for saved, _ in opened])
    return opened


def check_directions(models: Sequence[ModelFolder]) -> None:
    """Check that models which are shown beside each other translate between the same languages.

    Raises:
        ConfigError: One does not.
    """
    wanted, *others = (Direction.of(saved.config.data) for saved in models)
    for saved, direction in zip(models[1:], others, strict=True):
        if not direction.is_same(wanted):
            raise ConfigError(
                "{against}: translates {found}, not {wanted}",
                against=Parameter("against", saved.path),
                found=direction,
                wanted=wanted,
            )


def check_page(
    output: AnyPath | None, inputs: Sequence[AnyPath | None], *, overwrite: bool, otherwise: str | Message = ""
) -> None:
    """Check the file that a page is written to: devices and pipes are allowed.

    Args:
        output: The file.
        inputs: Files that the command reads.
        overwrite: True if a file that is not empty may be replaced.
        otherwise: The call that writes a picture, for an error.
    """
    from nmt.config.outputs import check_files

    path = as_path(output)
    if path is not None and path.suffix.lower() not in (".html", ".htm") and (path.is_file() or not path.exists()):
        raise DataError(
            "{output}: a page is HTML; give a name that ends in .html{otherwise}",
            output=Parameter("output", path),
            otherwise=otherwise,
        )
    check_files({"output": output}, inputs, overwrite=overwrite)
