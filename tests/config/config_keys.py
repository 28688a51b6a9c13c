"""Every key of a config, of all kinds of its sections."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from nmt.config import Config, Section
from nmt.config.sections import kinds_of


class Key(NamedTuple):
    """A key, its type, and the settings that choose the kind of section that has it."""

    path: str
    annotation: Any
    kinds: tuple[str, ...]


def every_key(section: type[Section] = Config, above: str = "", kinds: tuple[str, ...] = ()) -> Iterator[Key]:
    for name, field in section.model_fields.items():
        mark, sections = kinds_of(field)
        for kind in sections:
            chosen = (f"{above}{name}.{mark.key}={mark.name(kind)}",) if mark else ()
            yield from every_key(kind, f"{above}{name}.", (*kinds, *chosen))
        if not sections:
            yield Key(f"{above}{name}", field.annotation, kinds)
