"""Joins the translations of sentences into translations of their line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from nmt.translation.translation import Translation

MAX_ALIGNMENT = 1 << 24
"""Maximum number of weights in the alignment of a joined line, which grows quadratically; larger ones are omitted."""


def join_sentences(found: Sequence[Sequence[Translation]], glue: str) -> list[Translation]:
    """Translations of a line, by rank: the best ones of its sentences, then the second best ones, and so on.

    A sentence with fewer translations than others repeats its last one. Log-probabilities and scores are summed, so
    that those of the line are ordered too; tokens are concatenated; alignments become blocks on the diagonal.

    Args:
        found: The translations of each sentence, best first.
        glue: Separator between sentences.
    """
    if len(found) == 1:
        return list(found[0])
    with_tokens = [each for each in found if each[0].src_tokens] or found[:1]
    ranks = max(map(len, with_tokens))
    return [_join([each[min(rank, len(each) - 1)] for each in with_tokens], glue) for rank in range(ranks)]


def _join(sentences: list[Translation], glue: str) -> Translation:
    if len(sentences) == 1:
        return sentences[0]
    return replace(
        sentences[0],
        text=glue.join(each.text for each in sentences if each.text),
        tokens=[token for each in sentences for token in each.tokens],
        src_tokens=[token for each in sentences for token in each.src_tokens],
        log_prob=sum(each.log_prob for each in sentences),
        score=sum(each.score for each in sentences),
        alignment=_block_diagonal(sentences),
        truncated=any(each.truncated for each in sentences),
        unknown=sum(each.unknown for each in sentences),
        token_log_probs=[value for each in sentences for value in each.token_log_probs],
        sentences=sentences,
    )


def _block_diagonal(sentences: Sequence[Translation]) -> Tensor | None:
    """Attention of a line, [target tokens + EOS, heads, source tokens + EOS].

    Attention to the EOS of a sentence becomes attention to that of the line. Of the steps that predict EOS, only that
    of the last sentence is kept, if there is one.
    """
    parts = [each.alignment for each in sentences if each.alignment is not None]
    rows = sum(len(each.tokens) for each in sentences) + 1
    columns = sum(len(each.src_tokens) for each in sentences) + 1
    heads = parts[0].size(1) if parts else 0
    if len(parts) < len(sentences) or rows * heads * columns > MAX_ALIGNMENT:
        return None
    joined = parts[0].new_zeros(rows, heads, columns)
    row = column = 0
    for number, (sentence, weights) in enumerate(zip(sentences, parts, strict=True), start=1):
        kept = weights if number == len(sentences) else weights[: len(sentence.tokens)]
        width = len(sentence.src_tokens)
        joined[row : row + len(kept), :, column : column + width] = kept[:, :, :width]
        joined[row : row + len(kept), :, -1] = kept[:, :, width]
        row, column = row + len(kept), column + width
    return joined[:row]
