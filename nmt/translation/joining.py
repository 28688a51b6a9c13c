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


def join_sentences(sentences: Sequence[Sequence[Translation]], glues: Sequence[str]) -> list[Translation]:
    """Translations of a line, by rank: the best ones of its sentences, then the second best ones, and so on.

    A sentence with fewer translations than others repeats its last one. Log-probabilities and scores are summed, so
    that those of the line are ordered too; tokens are concatenated; alignments become blocks on the diagonal.

    Args:
        sentences: The translations of each sentence, best first.
        glues: What stands between each two sentences.
    """
    if len(sentences) == 1:
        return list(sentences[0])
    # What stands in front of a sentence goes with it; one without tokens and text has no place in the line.
    placed = zip(["", *glues], sentences, strict=True)
    parts = [(glue, ranked) for glue, ranked in placed if ranked[0].src_tokens or ranked[0].text]
    parts = parts or [("", sentences[0])]
    ranks = max(len(ranked) for _, ranked in parts)
    return [
        _join([ranked[min(rank, len(ranked) - 1)] for _, ranked in parts], [glue for glue, _ in parts[1:]])
        for rank in range(ranks)
    ]


def _join(sentences: list[Translation], glues: Sequence[str]) -> Translation:
    if len(sentences) == 1:
        return sentences[0]
    text = sentences[0].text
    for glue, sentence in zip(glues, sentences[1:], strict=True):
        text += (glue if text and sentence.text else "") + sentence.text
    return replace(
        sentences[0],
        text=text,
        tokens=[token for sentence in sentences for token in sentence.tokens],
        src_tokens=[token for sentence in sentences for token in sentence.src_tokens],
        log_prob=sum(sentence.log_prob for sentence in sentences),
        score=sum(sentence.score for sentence in sentences),
        alignment=_block_diagonal(sentences),
        truncated=any(sentence.truncated for sentence in sentences),
        unknown=sum(sentence.unknown for sentence in sentences),
        unread=sum(sentence.unread for sentence in sentences),
        is_copied=all(sentence.is_copied for sentence in sentences),
        is_loop=any(sentence.is_loop for sentence in sentences),
        token_log_probs=[value for sentence in sentences for value in sentence.token_log_probs],
        sentences=sentences,
    )


def _block_diagonal(sentences: Sequence[Translation]) -> Tensor | None:
    """Attention of a line, [target tokens + EOS, heads, source tokens + EOS].

    Attention to the EOS of a sentence becomes attention to that of the line. Of the steps that predict EOS, only that
    of the last sentence stays, if there is one.
    """
    parts = [sentence.alignment for sentence in sentences if sentence.alignment is not None]
    rows = sum(len(sentence.tokens) for sentence in sentences) + 1
    columns = sum(len(sentence.src_tokens) for sentence in sentences) + 1
    heads = parts[0].size(1) if parts else 0
    if len(parts) < len(sentences) or rows * heads * columns > MAX_ALIGNMENT:
        return None
    joined = parts[0].new_zeros(rows, heads, columns)
    row = column = 0
    for number, (sentence, weights) in enumerate(zip(sentences, parts, strict=True), start=1):
        steps = weights if number == len(sentences) else weights[: len(sentence.tokens)]
        width = len(sentence.src_tokens)
        joined[row : row + len(steps), :, column : column + width] = steps[:, :, :width]
        joined[row : row + len(steps), :, -1] = steps[:, :, width]
        row = row + len(steps)
        column = column + width
    return joined[:row]
