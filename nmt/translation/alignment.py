"""Alignments of a model as a stream, the word links derived from them, and their error rate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.corpus.batching import pad
from nmt.system.errors import DataError
from nmt.translation.translator import MAX_SOURCE_LENGTH, Translator

Links = set[tuple[int, int]]
"""Word alignment of a pair: (source token, target token), counted from 0."""

_LINK = re.compile(r"([0-9]{1,9})([-?])([0-9]{1,9})")


class GoldLinks(NamedTuple):
    """Word alignment of a pair made by people (Och & Ney, 2003, section 6).

    Attributes:
        sure: Links that are unambiguous.
        possible: Those and the ambiguous ones.
    """

    sure: Links
    possible: Links


def read_alignments(path: Path) -> list[GoldLinks]:
    """Read links in Pharaoh format: one line per pair, with `i-j` for source token i and target token j, and spaces.

    Links that are only possible are `i?j`.

    Raises:
        DataError: The file cannot be read, is not UTF-8, or has another format.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8 text; write lines such as 0-0 1-2 2-1") from None
    alignments: list[GoldLinks] = []
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else (), 1):
        links = GoldLinks(set(), set())
        for item in line.split():
            found = _LINK.fullmatch(item)
            if found is None:
                raise DataError(f"{path}, line {number}: {item!r} is not a link; write i-j, counted from 0, as in 0-0")
            link = int(found[1]), int(found[3])
            links.possible.add(link)
            if found[2] == "-":
                links.sure.add(link)
        alignments.append(links)
    return alignments


def alignment_error_rate(predicted: Sequence[Links], gold: Sequence[GoldLinks]) -> float:
    """Alignment error rate of a corpus (Och & Ney, 2003, section 6): 1 - (|A & S| + |A & P|) / (|A| + |S|).

    Args:
        predicted: A: links of each pair.
        gold: S and P: sure and possible links of each pair, in the same order.

    Returns:
        0 if all links agree, 1 if none does; 0 if there are none at all.
    """
    common = sum(len(a & s) + len(a & p) for a, (s, p) in zip(predicted, gold, strict=True))
    total = sum(map(len, predicted)) + sum(len(links.sure) for links in gold)
    return 1 - common / total if total else 0.0


@dataclass(frozen=True)
class Alignment:
    """Attention of a model for one sentence pair.

    Attributes:
        source: Raw source.
        target: Translation, or the raw reference.
        src_tokens: Source tokens without EOS.
        tgt_tokens: Target tokens without EOS.
        weights: Attention, [target tokens, heads, source tokens], with EOS last on both sides if it was reached.
        forced: Whether the target is a reference (forced decoding) rather than the model's translation.
    """

    source: str
    target: str
    src_tokens: list[str]
    tgt_tokens: list[str]
    weights: Tensor
    forced: bool


def align(
    translator: Translator, sources: Sequence[str], references: Sequence[str] | None = None
) -> Iterator[Alignment]:
    """Yield the alignments of any text, sentence by sentence.

    Args:
        translator: Model and search settings.
        sources: Raw sentences; the weights of one without tokens have size 0.
        references: Raw targets for forced decoding, one per source; None translates.
    """
    size = translator.options.batch_size
    for start in range(0, len(sources), size):
        chunk = sources[start : start + size]
        if references is not None:
            yield from _forced(translator, chunk, references[start : start + size])
            continue
        for source, found in zip(chunk, translator.translate(chunk, with_alignment=True), strict=True):
            weights = torch.zeros(0, 1, 0) if found.alignment is None else found.alignment
            yield Alignment(source, found.text, found.src_tokens, found.tokens, weights, False)


@torch.inference_mode()
def _forced(translator: Translator, sources: Sequence[str], references: Sequence[str]) -> list[Alignment]:
    """Alignments of a batch of pairs; a token's weights are those of the step that predicts it."""
    processor, model = translator.processor, translator.model
    src_tokens = [tokens[:MAX_SOURCE_LENGTH] for tokens in processor.tokenize_source(sources)]
    tgt_tokens = processor.tokenize_target(references)
    src = [processor.src_vocabulary.encode(tokens) for tokens in src_tokens]
    tgt = [processor.tgt_vocabulary.encode(tokens) for tokens in tgt_tokens]
    encoded = model.encode(pad(src, suffix=True).to(model.device), torch.tensor([len(ids) + 1 for ids in src]))
    weights = model.decoder(pad(tgt, prefix=True).to(model.device), encoded).alignments.cpu()
    texts = zip(sources, references, src_tokens, tgt_tokens, weights, strict=True)
    return [
        Alignment(source, target, src, tgt, rows[: len(tgt) + 1, :, : len(src) + 1], True)
        for source, target, src, tgt, rows in texts
    ]


def strongest_links(weights: Tensor) -> Links:
    """Link each target token to the source token with the largest weight, if that is not 0: [T, S]."""
    if weights.numel() == 0:
        return set()
    weight, position = weights.max(dim=-1)
    return {(int(position[j]), j) for j in weight.nonzero().flatten().tolist()}
