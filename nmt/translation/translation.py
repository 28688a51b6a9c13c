"""What a translator returns."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nmt.drawing.heatmap import EOS_LABEL, make_html_heatmap
from nmt.system.messages import Parameter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

MAX_HTML = 1 << 20
"""Maximum characters of HTML in a notebook."""
CELL = 60
"""Characters of HTML that a weight takes at least."""


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
        truncated: True if the source was longer than the model can read.
        token_log_probs: Natural logarithm of the probability of each target token; empty where it is not known.
        unknown: How many of the target tokens the model predicted as unknown, replaced or not.
        unread: How many of the source tokens the model does not know.
        is_copied: True if it is the source as it is: a text without letters, one that the model cannot read, or a loop.
        is_loop: True if it is the source because the model only repeats words; only if translations are repaired.
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
    unread: int = 0
    is_copied: bool = False
    is_loop: bool = False
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

    @property
    def attention(self) -> NDArray[np.float64]:
        """Attention in the mean over heads as an array, [target tokens + EOS, source tokens + EOS], to draw or to sum.

        Raises:
            ValueError: There is no alignment.
        """
        if self.alignment is None:
            raise ValueError(f"the translation has no attention: translate with {Parameter('with_alignment', True)}")
        return self.alignment.double().mean(dim=1).numpy()

    def _repr_html_(self) -> str:
        """In a notebook: the text, and where the model looked, a heat map a sentence, if the alignments are there.

        At most about a megabyte is drawn, as a notebook stores it. A wide map scrolls by itself.
        """
        parts = [f"<p>{html.escape(self.text)}</p>"]
        attended = [
            translation
            for translation in self.sentences or [self]
            if translation.alignment is not None and bool(translation.alignment.any())
        ]
        size = drawn = 0
        for sentence in attended:
            weights, columns, rows = sentence.weights
            if size + CELL * len(columns) * len(rows) > MAX_HTML:
                break
            text = f"<p>{html.escape(sentence.text)}</p>" if len(attended) > 1 else ""
            part = f'{text}<div style="overflow-x: auto">{make_html_heatmap(weights, columns, rows)}</div>'
            size += len(part)
            if size > MAX_HTML:
                break
            parts.append(part)
            drawn += 1
        if drawn < len(attended):
            problem = f"{drawn:,} of {len(attended):,} sentences are" if drawn else "The attention is not"
            parts.append(f"<p>{problem} drawn here; `attention` is the array of a translation.</p>")
        return "".join(parts)
