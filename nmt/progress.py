"""Progress bars, for whoever wants to be told."""

from __future__ import annotations

import logging
from typing import Any, NoReturn, TypeAlias

from tqdm import tqdm

Bar: TypeAlias = "tqdm[NoReturn]"


def progress_bar(*, shown: bool = True, **options: Any) -> Bar:
    """A bar on standard error where that is a terminal and messages of level INFO are wanted; else nothing.

    Args:
        shown: False for none in any case.
        options: What else tqdm takes.
    """
    wanted = shown and logging.getLogger("nmt").isEnabledFor(logging.INFO)
    return tqdm(disable=None if wanted else True, **options)
