"""Further corpora, only for training, such as back-translations or another domain: `data.extra`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from nmt.config import DataSection
from nmt.corpus.cleaning import clean_corpus, drop_repeated, make_text_normalizer
from nmt.corpus.lines import Rows
from nmt.corpus.report_schema import ExtraReport
from nmt.corpus.sources import Source
from nmt.corpus.splitting import Splits, without_overlap
from nmt.corpus.store import PairStore
from nmt.corpus.traces import Sample
from nmt.system.errors import DataError


def add_corpora(
    data: DataSection, sources: Mapping[str, Source], store: PairStore, splits: Splits, samples: Mapping[str, Sample]
) -> tuple[Splits, Rows, dict[str, ExtraReport]]:
    """Add the pairs of `data.extra` to a store and to the training split.

    Args:
        data: How to clean, and weight and tag of each corpus.
        sources: The corpora, by name.
        store: Clean pairs.
        splits: Their splits.
        samples: Receive raw pairs of each corpus, by name.

    Returns:
        The splits with the further training pairs, each once; rows of their repetitions; and a report on each corpus.

    Raises:
        DataError: A corpus has no usable pair, or too many malformed lines.
    """
    examples = [example for split in splits.evaluation.values() for example in split]
    train = [splits.train]
    repetitions = [np.empty(0, dtype=np.int64)]
    reports = {}
    for name, source in sources.items():
        corpus = data.extra[name]
        before = len(store)
        try:
            _, cleaned = clean_corpus(data, source, store, corpus.tag, sample=samples[name])
            clean = drop_repeated(data.cleaning, store, cleaned, before)
        except DataError as error:
            raise DataError("data.extra.{name}: {error}", name=name, error=error) from None
        unseen = without_overlap(store, clean, examples, make_text_normalizer(data.cleaning))
        whole, part = divmod(corpus.weight, 1)
        # The last bytes come first, as the first ones have drawn the training split.
        times = int(whole) + (store.fingerprints("pair_draw")[unseen].byteswap() < part * 2.0**64)
        train.append(unseen[times > 0])
        repetitions.append(np.repeat(unseen, np.maximum(times - 1, 0)))
        numbers = cleaned.read, len(clean), len(clean) - len(unseen), len(train[-1]), len(repetitions[-1])
        reports[name] = ExtraReport(*numbers)
    return replace(splits, train=np.concatenate(train)), np.concatenate(repetitions), reports
