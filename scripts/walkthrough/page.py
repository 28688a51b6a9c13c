"""What the chapters share: a template filled with numbers and code."""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from torch import Tensor

from nmt.models import reference
from nmt.system.errors import ConfigError
from nmt.text.vocabulary import EOS_ID
from nmt.translation.translator import Translator

EOS = "⟨eos⟩"
SHOWN = 4
"""Shown numbers of a vector."""
TOP = 5
WIDTH = 130


def fill(name: str, translator: Translator, **values: Any) -> str:
    """Fill a template of this folder: prose in lines of equal width; tables, code, lists and headings as they are."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, autoescape=False
    )

    def most_probable(p: Tensor) -> Iterator[tuple[str, Tensor]]:
        shares, places = p.topk(min(TOP, len(p)))
        words = translator.processor.tgt_vocabulary.tokens
        return zip([EOS if place == EOS_ID else words[place] for place in places.tolist()], shares, strict=True)

    filters = (code, number, vector, products, bar, bound, most_probable)
    environment.filters |= {function.__name__: function for function in filters}
    text = environment.get_template(name).render(values, reference=reference, zip=zip, shown=SHOWN)
    return "\n\n".join(map(wrapped, re.split(r"\n\n+", text.strip()))) + "\n"


def wrapped(part: str) -> str:
    """A paragraph in lines of equal width; anything else as it is."""
    if part.startswith(("|", "`" * 3, " ", "#", "- ")):
        return part
    return textwrap.fill(part, WIDTH, break_long_words=False, break_on_hyphens=False)


def code(function: Callable[..., Any]) -> str:
    """The source of a function without its docstring, as a block of code."""
    text = re.sub(r'\n    """.*?"""\n', "\n", inspect.getsource(function), count=1, flags=re.DOTALL)
    return f"```python\n{text.strip()}\n```"


def number(value: float | Tensor) -> str:
    """A number."""
    return f"{float(value):z.3f}".replace("inf", "∞")


def vector(values: Tensor) -> str:
    """The first numbers of a vector, and how many there are."""
    return f"{' '.join(map(number, values[:SHOWN]))} ... ({len(values)} numbers)"


def products(vectors: Tensor, weights: Tensor) -> str:
    """The first number of a weighted sum of vectors as its terms."""
    terms = (f"{number(weight)} × {number(first)}" for weight, first in zip(weights, vectors[:, 0], strict=True))
    return " + ".join(terms).replace("+ -", "- ")


def bar(weight: Tensor) -> str:
    """A weight as a bar."""
    return "█" * round(20 * float(weight))


def bound(difference: float) -> str:
    """The power of ten above a difference."""
    return f"{next(power for power in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1.0) if difference < power):.0e}"


def target_tokens(translator: Translator, sentence: str, step: int) -> list[str]:
    """The words of the translation of a sentence.

    Raises:
        ConfigError: There is no such step.
    """
    tokens = translator.translate(sentence).tokens
    if not 1 <= step <= len(tokens):
        raise ConfigError(f"--step {step}: the translation has {len(tokens)} words: {' '.join(tokens)}")
    return tokens
