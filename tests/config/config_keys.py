"""Every key of a config, of all kinds of its sections; and what is said of a wrong one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nmt.config import Config, Section, load_config
from nmt.config.fields import kinds_of
from nmt.system.errors import ConfigError


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


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def load(tmp_path: Path, text: str, *overrides: str) -> Config:
    """A config from the file `mine.yaml`."""
    return load_config(write(tmp_path / "mine.yaml", text), overrides)


def refused(tmp_path: Path, text: str, *overrides: str) -> list[str]:
    """Lines of the error that a config gives, with its path cut down to its name."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text, *overrides)
    return str(caught.value).replace(f"{tmp_path}/", "").split("\n")
