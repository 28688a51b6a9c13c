"""Checks before a long run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from nmt.corpus.prepare import find_prepared_data
from nmt.system import options
from nmt.system.errors import as_nmt_errors

if TYPE_CHECKING:
    from nmt.config import Config, Overrides
    from nmt.training.findings import Finding


def check(
    config: Annotated[str | Path | Config, options.CONFIG],
    *,
    data: options.DataFolder = None,
    overrides: Annotated[Overrides, options.SETTINGS] = (),
) -> Iterator[Finding]:
    """Check data, model, memory and speed before a long run; nothing is written.

    Args:
        config: Name of a shipped config, path of a YAML file, or a config.
        data: Data directory; None is the one nmt preprocess writes for this config.
        overrides: Values in place of the config's.

    Yields:
        Findings, as soon as each is known.

    Raises:
        NmtError: The config, the data or the device cannot be used.
    """
    with as_nmt_errors():
        settings, directory = find_prepared_data(config, overrides, data)
        from nmt.training.readiness import check_readiness

        yield from check_readiness(settings, directory)
