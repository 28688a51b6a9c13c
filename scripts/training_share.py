"""Share of its own training sources that a model translates as one of their references.

Usage: python scripts/training_share.py --model runs/tutorial_luong_concat [--beam-size 1]
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from tqdm import tqdm

from nmt.corpus.dataset import open_data
from nmt.models.runs import find_data, find_model
from nmt.models.storage import load_model
from nmt.translation.translator import Translator


def main() -> None:
    """Translate every distinct training source and compare the result with its references."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--beam-size", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=256)
    arguments = parser.parse_args()
    saved = load_model(find_model(arguments.model))
    processor = saved.load_processor()
    data = open_data(find_data(saved))
    references: dict[str, set[str]] = defaultdict(set)
    for index in range(len(data.train)):
        source = processor.src_tokenizer.detokenize(processor.src_vocabulary.decode(data.train.src[index]))
        target = processor.tgt_tokenizer.detokenize(processor.tgt_vocabulary.decode(data.train.tgt[index]))
        references[source].add(target)
    sources = sorted(references)
    options = saved.config.decode.model_copy(
        update={"beam_size": arguments.beam_size, "batch_size": arguments.batch_size}
    )
    with tqdm(total=len(sources), unit=" sentences", disable=None) as bar:
        found = Translator(saved.model, processor, options).translate(sources, advance=bar.update)
    hits = sum(best.text in references[source] for source, best in zip(sources, found, strict=True))
    print(
        f"{hits:,} of {len(sources):,} training sources ({hits / len(sources):.1%}) "
        "are translated as one of their references"
    )


if __name__ == "__main__":
    main()
