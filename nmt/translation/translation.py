"""What a translator returns."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nmt.drawing.heatmap import EOS_LABEL, make_html_heatmap

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Translation:
    """One translation of one line.

    Attributes:
        text: Detokenised text, never with a line break.
        tokens: Target tokens.
        src_tokens: Source tokens.
        log_prob: Natural logarithm of the model's probability.
        score: Log-probability after length normalisation, by which hypotheses are ranked.
        alignment: Attention, [target tokens + EOS, heads, source tokens + EOS]; None unless requested.
        truncated: Whether the source was longer than the model can read.
        token_log_probs: Natural logarithm of the probability of each target token; empty where it is not known.
        unknown: How many of the target tokens the model predicted as unknown, replaced or not.
        sentences: The translations of the sentences of a line that was split; empty where it was not.
    """

    text: str
    tokens: list[str] = field(default_factory=list)
    src_tokens: list[str] = field(default_factory=list)
    log_prob: float = 0.0
    score: float = 0.0
    alignment: Tensor | None = None
    truncated: bool = False
    token_log_probs: list[float] = field(default_factory=list)
    unknown: int = 0
    sentences: list[Translation] = field(default_factory=list)

    @property
    def weights(self) -> tuple[list[list[float]], list[str], list[str]]:
        """Attention in the mean over heads, [rows, columns], and the names of columns (source) and rows (target).

        Without an alignment there are no rows.
        """
        mean = [] if self.alignment is None else self.alignment.double().mean(dim=1).tolist()
        return mean, [*self.src_tokens, EOS_LABEL], [*self.tokens, EOS_LABEL][: len(mean)]

    def __repr__(self) -> str:
        return f"<Translation {self.text!r}, score {self.score:z.4f}>"

    def _repr_html_(self) -> str:
        """In a notebook: the text, and where the model looked if the alignment is there."""
        attends = self.alignment is not None and bool(self.alignment.any())
        return f"<p>{html.escape(self.text)}</p>" + (make_html_heatmap(*self.weights) if attends else "")
