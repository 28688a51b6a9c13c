"""Values that depend on the amount of training text: the meaning of `auto`."""

from collections.abc import Mapping
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
    if pairs < 10_000:
        batch_size = 32
    elif pairs < 100_000:
        batch_size = 64
    else:
        batch_size = 128

    if pairs < 25_000:
        dropout = 0.5
    elif pairs < 100_000:
        dropout = 0.4
    else:
        dropout = 0.3

    pieces = _clamp(pairs // 2, 500, 8000)
    epochs = _clamp(6000 * batch_size // pairs, 20, 200)
    return {
        PIECES: max(pieces, characters),
        "model.dropout": dropout,
        "model.output_norm": 5.0 if pairs < 25_000 else None,
        "train.batch.size": batch_size,
        "train.epochs": epochs,
    }


def _clamp(number: int, least: int, most: int) -> int:
    return max(least, min(number, most))


def automatic_keys(config: Config) -> list[str]:
    """The dotted paths of the values that are still to be chosen."""
    possible = [*SPLITS, *choose_by_amount(1)]  # only the paths, whatever the amount
    return [path for path in possible if is_auto(value_at(config, path))]


def value_at(config: Config, path: str) -> Any:
    """The value at a dotted path; None below a name that a mapping lacks."""
    part: Any = config
    for name in path.split("."):
        part = part.get(name) if isinstance(part, Mapping) else getattr(part, name, None)
    return part


def resolve_auto(config: Config, values: Mapping[str, Any]) -> Config:
    """The config with values in place of `auto`, by dotted path; an `auto` without a value there remains."""
    for path in automatic_keys(config):
        if path in values:
            config = _replace(config, path.split("."), values[path])
    return config


def _replace(section: Any, path: list[str], value: Any) -> Any:
    """A copy of a section with another value at a path of names, in which the sections on the path are copies too."""
    name, *below = path
    if below:
        value = _replace(getattr(section, name), below, value)
    return section.model_copy(update={name: value})
