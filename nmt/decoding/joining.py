"""One translation of a line out of those of its sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from nmt.decoding.translator import Translation

MAX_ALIGNMENT = 1 << 24
"""Most weights in the alignment of a joined line: it grows with the square of the line, and is left out above."""


def join_sentences(found: Sequence[Sequence[Translation]], glue: str) -> list[Translation]:
    """Translations of a line, by rank: the best ones of its sentences, then the second best ones, and so on.

    A sentence with fewer translations than others stands with its last. Log-probabilities and scores are added, so
    that the line's are ordered too; tokens follow each other; alignments stand block by block on the diagonal.

    Args:
        found: For each sentence its translations, best first.
        glue: What stands between sentences.
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
        token_log_probs=[value for each in sentences for value in each.token_log_probs],
        sentences=sentences,
    )


def _block_diagonal(sentences: Sequence[Translation]) -> Tensor | None:
    """Attention of a line, [target tokens + EOS, heads, source tokens + EOS].

    What a sentence gives to its own end is given to that of the line. Of the steps that end a sentence, the last
    alone is kept, if there is one.
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
