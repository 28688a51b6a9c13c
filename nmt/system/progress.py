"""Progress bars."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

if TYPE_CHECKING:
    from tqdm import tqdm

Bar: TypeAlias = "tqdm[NoReturn]"


def progress_bar(*, shown: bool = True, **options: Any) -> Bar:
    """A bar on standard error if that is a terminal and the log level of `nmt` is INFO or lower.

    Args:
        shown: False disables the bar.
        options: Further arguments of tqdm.
    """
    from tqdm import tqdm

    wanted = shown and logging.getLogger("nmt").isEnabledFor(logging.INFO)
    return tqdm(disable=None if wanted else True, **options)
