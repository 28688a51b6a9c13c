"""Checks of a config beyond single sections: combinations that cannot work, and settings without effect."""

from collections.abc import Iterator, Sequence

from nmt.config.attention_scores import names_class
from nmt.config.fields import AUTO, Conflict, Section
from nmt.config.sections import Config


def conflicts(config: Config, wrong: Sequence[str] = ()) -> Iterator[Conflict]:
    """Combinations that cannot work.

    Args:
        config: The config.
        wrong: Dotted paths of values in whose place it has defaults: sections with one are not checked.
    """
    yield from _conflicts_within(config, wrong)
    if wrong:
        return
    model = config.model
    text = config.text
    noise = config.train.noise
    if model.tying == "all" and not text.vocabulary.joint:
        yield "model.tying", "all needs text.vocabulary.joint: true"
    if config.data.augment.placeholders and not text.placeholders:
        yield "data.augment.placeholders", "needs placeholders; set text.placeholders: 8, or 0 here"
    if config.data.augment.terms and not text.term_marks:
        yield "data.augment.terms", "needs marks of terms; set text.term_marks: true"
    algorithm = text.subword.algorithm if text.tokenizer == "subword" else None
    for name, plain, needed in (("bpe_dropout", 0, "bpe"), ("unigram_alpha", None, "unigram")):
        if getattr(noise, name) != plain and algorithm != needed:
            yield f"train.noise.{name}", f"needs text.tokenizer: subword and algorithm: {needed}"
    if config.train.graphs is True:
        for key, reason in unrecordable(config):
            yield "train.graphs", f"true does not go with {key}, as {reason}; set auto, or change that"


def unrecordable(config: Config) -> Iterator[Conflict]:
    """Settings with which updates cannot be recorded for `train.graphs`, and the reason: mostly a wait for the host."""
    train = config.train
    attention = config.model.mechanism
    if train.batch.accumulate > 1:
        yield "train.batch.accumulate", "the batches of an update have too many shapes"
    if train.optimizer.name not in ("adam", "adamw", "sgd"):
        yield "train.optimizer.name", f"{train.optimizer.name} waits for the device in each update"
    if train.consistency.name != "none":
        yield "train.consistency.name", "the host draws the words to cut"
    if train.teacher_forcing.lowest < 1:
        yield "train.teacher_forcing.ratio", "the host draws the words that the decoder reads"
    if getattr(config.model.decoder, "initial_state", None) == "copy":
        yield "model.decoder.initial_state", "the host reads the lengths"
    if attention.window.name == "hard":
        yield "model.attention.window.name", "the host checks the chances to draw from"
    if names_class(attention.score):
        yield "model.attention.score", "a class of your own may wait for the device"


def _conflicts_within(section: Section, wrong: Sequence[str], above: str = "") -> Iterator[Conflict]:
    """The conflicts of a section and of all below it."""
    if not any(path.startswith(above) for path in wrong):
        for key, message in section.conflicts(above):
            yield f"{above}{key}", message
    for name in type(section).model_fields:
        if isinstance(part := getattr(section, name), Section):
            yield from _conflicts_within(part, wrong, f"{above}{name}.")


def ineffective(config: Config, *, asks_for_test_size: bool = False) -> Iterator[Conflict]:
    """Combinations in which a setting never takes effect.

    For new configs only: a model that was trained with such a config is still valid.

    Args:
        config: The config.
        asks_for_test_size: True if a person wrote the size of the test split, rather than a shipped or whole config.
    """
    data = config.data
    text = config.text
    schedule = config.train.schedule
    patience = config.train.validation.patience
    if schedule.name == "plateau" and patience is not None and schedule.patience + 1 >= patience:
        yield (
            "train.schedule.patience",
            f"{schedule.patience} never lowers the learning rate, as train.validation.patience: {patience} stops the "
            f"run first; lower this, or set {schedule.patience + 2} or more there",
        )
    if schedule.name == "plateau" and len(data.source) in (1, 2, 3) and data.split.valid_size == 0:
        yield "train.schedule.name", "plateau needs validation, but data.split.valid_size is 0"
    test_size = data.split.test_size
    if asks_for_test_size and data.test and test_size not in (0, AUTO):
        yield (
            "data.split.test_size",
            f"{test_size} has no effect with data.test, whose pairs are the test split; set 0, or leave data.test out",
        )
    if text.placeholders and not data.augment.placeholders:
        yield (
            "text.placeholders",
            f"{text.placeholders} tokens that no training pair has; set data.augment.placeholders: 0.2",
        )
    if text.term_marks and not data.augment.terms:
        yield "text.term_marks", "two tokens that no training pair has; set data.augment.terms: 0.2"
    subword_keys = {"text.tokenized": text.tokenized, "text.vocabulary.min_count": text.vocabulary.min_count == 0}
    for key, is_set in subword_keys.items():
        if is_set and text.tokenizer != "subword":
            yield key, f"has no effect with text.tokenizer: {text.tokenizer}, only with subword; change it or that"
