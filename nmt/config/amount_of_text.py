"""Values that depend on the amount of training text: what `auto` stands for."""

from collections.abc import Mapping
from functools import reduce
from typing import Any

from nmt.config.fields import is_auto
from nmt.config.sections import Config

PIECES = "text.subword.vocabulary_size"
SPLITS = "data.split.valid_size", "data.split.test_size"


def choose_split(pairs: int) -> dict[str, int]:
    """Sizes of the validation and the test split, by the number of pairs of a corpus: a tenth, 1,000 at most."""
    return dict.fromkeys(SPLITS, min(pairs // 10, 1000))


def choose_by_amount(pairs: int, characters: int = 0) -> dict[str, Any]:
    """Values that fit an amount of training text.

    They pass through settings that were measured: those of `tatoeba_small` with 20,000 pairs and of `tatoeba` with
    162,000, and, with 3,000 pairs of Multi30k, 1,500 pieces with dropout 0.5, the fixed norm and batches of 32. Between
    them they are a guess.

    Args:
        pairs: Training pairs, without copies in other forms.
        characters: Pieces that the characters of the training text need; 0 if they are not known.

    Returns:
        A value for every other key that can be `auto`, by its dotted path: one piece for every two pairs, from 500 to
        8,000, but at least one for each character; stronger regularisation and smaller batches for less text; and
        epochs for 6,000 updates or more, from 20 to 200.
    """
    batch = 32 if pairs < 10_000 else 64 if pairs < 100_000 else 128
    return {
        PIECES: max(min(max(500, pairs // 2), 8000), characters),
        "model.dropout": 0.5 if pairs < 25_000 else 0.4 if pairs < 100_000 else 0.3,
        "model.output_norm": 5.0 if pairs < 25_000 else None,
        "train.batch.size": batch,
        "train.epochs": min(max(20, 6000 * batch // pairs), 200),
    }


def automatic_keys(config: Config) -> list[str]:
    """The dotted paths of the values that are still to be chosen."""
    return [path for path in (*SPLITS, *choose_by_amount(1)) if is_auto(value_at(config, path))]


def value_at(config: Config, path: str) -> Any:
    """The value at a dotted path; None below a name that a mapping lacks."""

    def look(part: Any, name: str) -> Any:
        return part.get(name) if isinstance(part, Mapping) else getattr(part, name, None)

    return reduce(look, path.split("."), config)


def resolve_auto(config: Config, values: Mapping[str, Any]) -> Config:
    """The config with values in place of `auto`, by dotted path; what is lacking there remains."""
    for path in automatic_keys(config):
        if path in values:
            config = _replace(config, path.split("."), values[path])
    return config


def _replace(section: Any, path: list[str], value: Any) -> Any:
    name, *below = path
    new = _replace(getattr(section, name), below, value) if below else value
    return section.model_copy(update={name: new})
