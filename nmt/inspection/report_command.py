"""A report on a model as one HTML file."""

from __future__ import annotations

import html
from collections.abc import Collection
from pathlib import Path
from urllib.parse import quote

from nmt.inspection.explore_command import check_page, open_all
from nmt.system.errors import as_nmt_errors
from nmt.system.files import AnyPath, AnyPaths, as_paths
from nmt.system.surroundings import plain_torch


class ReportFile(type(Path())):  # type: ignore[misc]  # a path of this system
    """The path of a report, which a notebook shows as a link."""

    def __repr__(self) -> str:
        return f"<Report {self}: open it in a browser>"

    def _repr_html_(self) -> str:
        name = html.escape(str(self))
        return f'<p>Report: <a href="{html.escape(quote(self.as_posix()))}" target="_blank">{name}</a></p>'


@as_nmt_errors()
@plain_torch()
def report(
    model: AnyPath | None = None,
    *,
    output: AnyPath,
    against: AnyPaths = (),
    split: str | None = None,
    data: AnyPath | None = None,
    src: AnyPath | None = None,
    ref: AnyPaths = (),
    title: str | None = None,
    overwrite: bool = False,
    device: str = "auto",
    allowed_classes: Collection[str] = (),
) -> Path:
    """Write a report on a model as one HTML file.

    It shows scores, curves, sentences, attention, config and data.

    Example: nmt report --model runs/luong --against runs/bahdanau --output report.html

    Args:
        model: Run or model directory; None is the newest finished run under `runs`.
        against: Model to compare with.
        split: Split to score: test, valid or train; None is test.
        data: Data directory; None is the one that the model was trained on.
        src: Source sentences to score instead of a split.
        ref: References for `src`.
        output: File to write.
        title: Title; None is the name of the model.
        overwrite: Replace a file that is not empty.
        device: auto, cpu, cuda, cuda:N or mps.
        allowed_classes: Dotted paths of classes that the models' configs may use; their code runs.

    Raises:
        NmtError: A model or the test set cannot be used, or arguments conflict.
        OutOfMemory: Memory ran out.
    """
    from nmt.evaluation.input_text import InputText
    from nmt.evaluation.model_evaluation import check_comparable
    from nmt.inspection.explorer_data import name_of
    from nmt.inspection.model_report import make_report

    check_page(output, (src, *as_paths(ref)), overwrite=overwrite)
    text = InputText.read(split=split, data=data, src=src, ref=ref, scored=True)
    opened = open_all(model, against, device, allowed_classes)
    first = opened[0]
    test_set = text.evaluation_set([first[0]])
    if len(opened) > 1:
        check_comparable(test_set.examples)
    heading = title or f"Report on {name_of(first[0].path)}"
    page = make_report(opened, test_set, heading)
    page.write(output, overwrite=True)
    return ReportFile(output)
