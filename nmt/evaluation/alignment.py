"""Word alignment: hard links read off attention, gold links from a file, and how far they are apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from nmt.batching import iterate_batches, plan_batches
from nmt.corpus import Pair
from nmt.dataset import EncodedPairs, Sequences
from nmt.errors import ConfigError, DataError
from nmt.evaluation.loss import evaluating
from nmt.model.attention import FixedContext
from nmt.model.seq2seq import Seq2Seq
from nmt.text.processor import TextProcessor

Links = set[tuple[int, int]]
"""Word alignment of a pair: (source token, target token), each counted from 0."""

_LINK = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def read_alignments(path: Path) -> list[Links]:
    """Read links in Pharaoh format: a line a pair, `i-j` for source token i and target token j, blanks between links.

    Raises:
        DataError: The file cannot be read, is not UTF-8, or holds something else.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8 text; word alignments are lines such as 0-0 1-2 2-1") from None
    alignments: list[Links] = []
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else (), 1):
        links: Links = set()
        for item in line.split():
            found = _LINK.fullmatch(item)
            if found is None:
                raise DataError(f"{path}, line {number}: {item!r} is not a link; write i-j, counted from 0, as in 0-0")
            links.add((int(found[1]), int(found[2])))
        alignments.append(links)
    return alignments


def alignment_error_rate(predicted: Sequence[Links], gold: Sequence[Links]) -> float:
    """Alignment error rate of a corpus (Och & Ney, 2003, section 6): 1 - (|A & S| + |A & P|) / (|A| + |S|).

    There is one set of gold links, so that sure links S and possible links P are the same.

    Args:
        predicted: A: links of each pair.
        gold: S: links of each pair, in the same order.

    Returns:
        0 where all links agree, 1 where none does; 0 where there are none at all.
    """
    common = sum(len(a & s) for a, s in zip(predicted, gold, strict=True))
    total = sum(map(len, predicted)) + sum(map(len, gold))
    return 1 - 2 * common / total if total else 0.0


def check_links(gold: Sequence[Links], processor: TextProcessor, pairs: Sequence[Pair]) -> None:
    """Make sure that gold links are about the tokens that a processor makes of the same pairs.

    Raises:
        DataError: A link points past the end of a sentence.
        ConfigError: The tokens are pieces of words.
    """
    for links, pair, src, tgt in zip(gold, pairs, *_tokenize(processor, pairs), strict=True):
        for i, j in sorted(links):
            if i >= len(src) or j >= len(tgt):
                raise DataError(
                    f"gold link {i}-{j} of {pair.src!r} ||| {pair.tgt!r}: the model reads {len(src)} and {len(tgt)} "
                    "tokens there; take alignments of the same pairs and tokenizer"
                )


@torch.inference_mode()
def forced_alignments(
    model: Seq2Seq, processor: TextProcessor, pairs: Sequence[Pair], batch_size: int = 64
) -> list[Links] | None:
    """Link each target token to the source token attended most when the decoder is fed the reference.

    The weights, averaged over heads, are those of the step that predicts the token. Neither end-of-sentence token
    takes part; a target token with no weight on any source token has no link.

    Args:
        model: Any mode; it is put into evaluation mode and back after it.
        processor: Text to ids, in words.
        pairs: Raw sentences with their references.
        batch_size: Sentences at once.

    Returns:
        Links of each pair, in order; None for a model without attention.

    Raises:
        ConfigError: The tokens are pieces of words.
    """
    sources, targets = _tokenize(processor, pairs)
    if isinstance(model.decoder.cell.attention, FixedContext):
        return None
    encoded = EncodedPairs(
        Sequences.pack(map(processor.src_vocabulary.encode, sources)),
        Sequences.pack(map(processor.tgt_vocabulary.encode, targets)),
    )
    plan = plan_batches(encoded.src.lengths, encoded.tgt.lengths, size=batch_size, unit="sentences")
    alignments: list[Links] = [set() for _ in pairs]
    with evaluating(model):
        for batch in iterate_batches(encoded, plan):
            batch = batch.to(model.device)
            output = model.decoder(batch.tgt_in, model.encode(batch.src, batch.src_lengths))
            weights = output.alignments.mean(dim=2).cpu()  # [B, T, heads, S] -> [B, T, S]
            for row, pair in zip(weights, batch.indices.tolist(), strict=True):
                alignments[pair] = _strongest(row[: len(targets[pair]), : len(sources[pair])])
    return alignments


def _strongest(weights: Tensor) -> Links:
    """Link each target token to its strongest source token, where there is one: [T, S]."""
    if weights.numel() == 0:
        return set()
    weight, position = weights.max(dim=-1)
    return {(int(position[j]), j) for j in weight.nonzero().flatten().tolist()}


def _tokenize(processor: TextProcessor, pairs: Sequence[Pair]) -> tuple[list[list[str]], list[list[str]]]:
    """Tokens of sources and targets, cleaned the way training text was."""
    for key, tokenizer in (("source", processor.src_tokenizer), ("target", processor.tgt_tokenizer)):
        if tokenizer.kind == "subword":
            raise ConfigError(
                f"text.tokenizer: the model's {key} tokens are subwords, and alignments link words; "
                "take a model of text.tokenizer: spacy"
            )
    normalized = [processor.normalizer(pair.tgt) for pair in pairs]
    return processor.tokenize_source([pair.src for pair in pairs]), list(processor.tgt_tokenizer.tokenize(normalized))
