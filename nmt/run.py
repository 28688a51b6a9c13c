"""A run: the check before it, and the object that one keeps, with its methods."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from nmt.corpus.prepare import find_prepared_data, warn_of_changed_sources, warn_of_other_parent
from nmt.evaluation.evaluate import evaluate
from nmt.inspection.report_command import report
from nmt.system.errors import DataError, as_nmt_errors
from nmt.system.files import AnyPath
from nmt.system.messages import Message
from nmt.system.surroundings import plain_torch
from nmt.training.run import train as train_run
from nmt.training.run_records import RunOutcome
from nmt.translation.loading import load

if TYPE_CHECKING:
    from nmt.config import Config, Overrides
    from nmt.training.findings import Finding

P = ParamSpec("P")
Result = TypeVar("Result")


def _of_run(function: Callable[Concatenate[Any, P], Result]) -> Callable[Concatenate[Run, P], Result]:
    """A method that calls a function with the run as its model."""

    @wraps(function)
    def method(run: Run, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        return function(run.path, *args, **{**run.settings, **kwargs})

    return method


class Run(RunOutcome):
    """A run directory, with methods that use its best model.

    The attributes are those of its last record: `path`, `model`, `updates`, `epochs`, `metric`, `best`, `best_update`
    and `seconds`.

    Args:
        path: The run directory, which `nmt train` writes.
        device: Where its model computes: auto, cpu, cuda, cuda:N or mps.
        allowed_classes: Dotted paths of classes that its config may use; their code runs.

    Raises:
        CheckpointError: It is not a run directory.
    """

    settings: dict[str, Any]

    @as_nmt_errors()
    def __init__(
        self, path: AnyPath | RunOutcome, *, device: str = "auto", allowed_classes: Collection[str] = ()
    ) -> None:
        outcome = path if isinstance(path, RunOutcome) else RunOutcome.read(Path(path))
        super().__init__(**{field.name: getattr(outcome, field.name) for field in fields(outcome)})
        object.__setattr__(self, "settings", {"device": device, "allowed_classes": allowed_classes})  # it is frozen

    evaluate = _of_run(evaluate)
    report = _of_run(report)
    translator = _of_run(load)


def _with_run(function: Callable[P, RunOutcome]) -> Callable[P, Run]:
    @wraps(function)
    def train(*args: P.args, **kwargs: P.kwargs) -> Run:
        return Run(function(*args, **kwargs))

    return train


train = _with_run(train_run)


def check(
    config: str | Path | Config,
    *,
    data: AnyPath | None = None,
    overrides: Overrides = (),
    export_format: str | None = None,
) -> Iterator[Finding]:
    """Check data, model, memory and speed before a long run. Nothing is written.

    Args:
        config: Name of a shipped config, path of a YAML file, or a config.
        data: Data directory; None is the one nmt preprocess writes for this config.
        overrides: Values in place of the config's.
        export_format: Check first that such a model can be exported: to ctranslate2, onnx, argos, hub or html. The rest
            is checked if it can be and there are data.

    Yields:
        Findings, as soon as each is known.

    Raises:
        NmtError: The config, the data or the device cannot be used, or there is no such format.
    """
    with as_nmt_errors():
        may_lack_data = False
        if export_format is not None:
            from nmt.config import load_config
            from nmt.exporting.formats import check_export

            wanted = load_config(config, overrides)
            findings = check_export(wanted, export_format)
            yield from findings
            if any(finding.ok is False for finding in findings):
                return
            # The answer about the export is worth having before there are data.
            data_directory = wanted.data_directory if data is None else Path(data)
            may_lack_data = not data_directory.exists()
        try:
            settings, directory = find_prepared_data(config, overrides, data)
        except DataError as error:
            if not may_lack_data:
                raise
            from nmt.training.findings import Finding

            yield Finding("data", None, Message("{error}; nothing else is checked without it", error=error))
            return
        warn_of_changed_sources(config, overrides, settings, directory)
        warn_of_other_parent(settings, directory)
        from nmt.system.device import restored_products
        from nmt.training.readiness import check_readiness

        # torch's settings are changed only while a finding is made, not while the caller has it.
        readiness = check_readiness(settings, directory)
        with restored_products():
            while True:
                with plain_torch():
                    finding = next(readiness, None)
                if finding is None:
                    return
                yield finding
