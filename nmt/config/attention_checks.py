"""Checks for conflicting choices in a config's `model.attention`, without importing torch."""

import importlib.util
import inspect
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any

from pydantic import TypeAdapter, ValidationError

from nmt.config.attention_scores import SCORES, ScoreProperties, import_score, names_class, names_of, properties_of
from nmt.config.attention_sections import AttentionSection
from nmt.config.fields import differences
from nmt.config.messages import in_words, suggest
from nmt.config.sections import Config
from nmt.system.errors import ConfigError, shorten
from nmt.system.messages import Message, Parameter

SPARSE_LIBRARY = "entmax"
"""Package of the normalisers other than softmax."""
LOCAL_WINDOWS = ("local_m", "local_p")
ELSEWHERE = {
    "bahdanau": "attention.score=additive decoder.order=bahdanau",
    "luong": "attention.score=general decoder.order=luong decoder.input_feeding=true",
    "dot_product": "attention.score=dot",
    "multiplicative": "attention.score=general",
    "local": "attention.score=general attention.window.name=local_p",
    "self": "encoder.kind=self_attention decoder.kind=transformer",
    "self_attention": "encoder.kind=self_attention decoder.kind=transformer",
}
"""Names of attentions in papers and other toolkits, with the values of `model` that make it here."""


def find_properties(score: str) -> ScoreProperties | None:
    """The properties of a score: a name, or the dotted path of a class, which is imported; None for `none`.

    Raises:
        ConfigError: There is no such score.
    """
    if score == "none":
        return None
    if score in SCORES:
        return SCORES[score]
    if values := ELSEWHERE.get(score.casefold().replace("-", "_")):
        pairs = (part.partition("=") for part in values.split())
        settings = {f"model.{key}": True if value == "true" else value for key, _, value in pairs}
        score_name = settings.get("model.attention.score", "scaled_dot")
        raise ConfigError(
            "{score} is not the name of a score here: its score is {own}; for a model, set what it is: {settings}",
            score=score,
            own=score_name,
            settings=Parameter("overrides", settings),
        )
    if not names_class(score):
        known = ["none", *SCORES]
        raise ConfigError(f"unknown score {score!r}; known: {', '.join(known)}{suggest(score, known)}")
    return properties_of(import_score(score), score)


def check_sizes(score: ScoreProperties, query_size: int, key_size: int) -> None:
    """Reject sizes of decoder and encoder states that a score cannot combine.

    Raises:
        ConfigError: The score needs equal sizes.
    """
    if score.needs_equal_sizes and query_size != key_size:
        raise ConfigError(
            f"{score.name} needs equal sizes, found queries (decoder states) of {query_size} and keys (encoder states) "
            f"of {key_size}; use general, or change a size, model.decoder.hidden_size or model.encoder.hidden_size"
        )


def attention_conflicts(config: Config, allowed_classes: Collection[str] | None) -> Iterator[tuple[str, str | Message]]:
    """Choices in `model.attention` that cannot work together.

    Args:
        config: The config.
        allowed_classes: Dotted paths of classes that may be imported to check their options; None allows all. If the
            config names any other class, its attention is not checked.
    """
    section = config.model.attention
    decoder = config.model.decoder
    if decoder.own_attention:
        return
    if names_class(section.score) and allowed_classes is not None and section.score not in allowed_classes:
        return
    key_size = config.model.encoder.output_size
    query_size = decoder.hidden_size
    try:
        properties = find_properties(section.score)
        if properties is not None and section.heads == 1:
            check_sizes(properties, query_size, key_size)
    except ConfigError as error:
        yield "model.attention.score", Message("{error}", error=error)
        return
    problems = chain(
        check_options(properties, section.options),
        _without_effect(section) if properties is None else _incompatible(properties, section, key_size),
    )
    for key, message in problems:
        yield f"model.attention.{key}", message


def _without_effect(section: AttentionSection) -> Iterator[tuple[str, str]]:
    """Choices that have no effect without a score."""
    chosen = AttentionSection(score=section.score, options=section.options)
    yield from ((key, "has no effect: the score is none") for key, _, _ in differences(chosen, section))


def _incompatible(score: ScoreProperties, section: AttentionSection, key_size: int) -> Iterator[tuple[str, str]]:
    """Conflicting choices, with the key to change, relative to the attention section."""
    heads = section.heads
    window = section.window.name
    past = section.past.name
    if heads > 1 and not score.multi_head:
        several = names_of(lambda score: score.multi_head)
        yield "heads", f"the score {section.score} supports only one head; {several} support several"
    if heads > 1 and section.head_size is None and key_size % heads:
        yield "heads", f"{heads} do not divide the encoder states' {key_size} units; change it or set head_size"
    if heads == 1 and section.head_size is not None:
        yield "head_size", "needs heads above 1"
    if window in LOCAL_WINDOWS and not score.local:
        yield "window.name", f"{window} can be out of reach of the score {section.score}; use global or hard"
    if past != "none" and not score.takes_features:
        takers = names_of(lambda score: score.takes_features)
        yield "past.name", f"the score {section.score} does not support {past}; {takers} does"
    if past != "none" and heads > 1:
        yield "past.name", f"{past} needs one head, found {heads} heads"
    normalizer = section.normalizer.name
    if normalizer != "softmax" and importlib.util.find_spec(SPARSE_LIBRARY) is None:
        missing = f"{normalizer} needs the package {SPARSE_LIBRARY}, which is not installed"
        yield "normalizer.name", f"{missing}: pip install {SPARSE_LIBRARY}"


def check_options(score: ScoreProperties | None, options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Check the options of a score.

    Yields:
        The key, relative to the attention section, and the fault, for every unknown, missing or mistyped option.
    """
    accepted = {option.name: option for option in score.options} if score else {}
    for name, value in options.items():
        if name not in accepted:
            known = f"; known options: {', '.join(accepted)}" if accepted else "; there are no options"
            yield f"options.{name}", f"unknown option{suggest(name, list(accepted)) or known}"
        elif accepted[name].annotation is not inspect.Parameter.empty:
            try:
                TypeAdapter(accepted[name].annotation).validate_python(value, strict=True)
            except ValidationError as error:
                yield f"options.{name}", f"{in_words(error.errors()[0])}, found {shorten(repr(value))}"
    for option in accepted.values():
        if option.default is inspect.Parameter.empty and option.name not in options:
            yield f"options.{option.name}", "is required"
