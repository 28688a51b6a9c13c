"""Markup in a translation: attention tells where marks, tags and other spans that the model has not read stand."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from nmt.translation.protection import CLOSING, OPENING, PAIRED_MARKS, STOPS, Kept, is_glued, take_out
from nmt.translation.words import align_words, count_visible, link_same_words

if TYPE_CHECKING:
    from torch import Tensor

    from nmt.text.processor import TextProcessor
    from nmt.translation.translation import Translation


def find_pairs(kept: Sequence[Kept]) -> Iterator[tuple[Kept, Kept]]:
    """The spans that open and close a part of a sentence: tags with one name, both ends of a link, equal marks."""
    opened: list[tuple[str, Kept]] = []
    for span in kept:
        tag = re.match(r"<(/?)(\w+)[^>]*?(/?)>$", span.text) if span.kind == "tag" else None
        name = tag[2] if tag else span.text if span.kind == "marks" else span.kind
        may_close = span.text in PAIRED_MARKS or span.text.startswith("]") or bool(tag and tag[1])
        may_open = span.text in PAIRED_MARKS or (not may_close and bool(span.kind == "link" or (tag and not tag[3])))
        if may_close and opened and opened[-1][0] == name:
            yield opened.pop()[1], span
        elif may_open:
            opened.append((name, span))


def find_markup(kept: Sequence[Kept]) -> frozenset[Kept]:
    """The spans that belong to words beside them: marks, and tags and links that open and close a part of a sentence.

    Attention tells where these words are in the translation.
    """
    marks = [span for span in kept if span.kind == "marks"]
    return frozenset(marks).union(*find_pairs(kept))


def place(
    translation: Translation,
    sentence: str,
    kept: Sequence[Kept],
    processor: TextProcessor,
    written: Collection[str] = (),
) -> Translation:
    """The translation of a sentence without its spans, with the spans where attention says.

    A span stands behind the translation of the word in front of it, and at the end if nothing follows it. Two that open
    and close a part of the sentence stand around the translations of its words.

    Args:
        translation: That of `take_out`, with its alignment.
        sentence: The source with its spans.
        kept: The spans.
        processor: The text processor of the model.
        written: Other spans, which the translation has: none is put into them.
    """
    words = list(re.finditer(r"\S+", translation.text))
    whole = [match.span() for text in set(written) for match in re.finditer(re.escape(text), translation.text)]
    shortened = take_out(sentence, kept)
    targets = defaultdict[int, list[int]](list)
    if translation.alignment is not None and words:
        links = align_words(shortened, translation, processor)
        read = shortened.split()
        for source, target in link_same_words(links, read, [word[0] for word in words], written):
            targets[source].append(target)
    reach = {source: max(linked) for source, linked in targets.items()}
    offsets = {span: _place_of(sentence, kept, number, words, reach, whole) for number, span in enumerate(kept)}
    for opening, closing in find_pairs(kept):
        enclosed = [target for source in _find_enclosed(sentence, kept, opening, closing) for target in targets[source]]
        if enclosed:
            first = words[min(enclosed)].start()
            offsets[opening] = next((begin for begin, end in whole if begin < first < end), first)
            offsets[closing] = _end_of(words[max(enclosed)], whole)
        else:
            offsets[opening], offsets[closing] = sorted((offsets[opening], offsets[closing]))
    order = sorted(kept, key=lambda span: (offsets[span], span))
    text = translation.text
    for span in reversed(order):
        text = _insert(text, offsets[span], span, kept, sentence)
    return _with_spans(translation, text, sentence, kept, [(span, offsets[span]) for span in order], processor)


def _with_spans(
    translation: Translation,
    text: str,
    sentence: str,
    kept: Sequence[Kept],
    placed: Iterable[tuple[Kept, int]],
    processor: TextProcessor,
) -> Translation:
    """A translation with another text, in which spans were put at some places: each is a token that attends to nothing.

    Args:
        translation: The translation without the spans.
        text: Its text with them.
        sentence: Its source with them.
        kept: The spans as the source has them, in order.
        placed: Each span, and its place in the text of the translation, in the order of these places.
        processor: The text processor of the model.
    """

    def count_read(part: str) -> int:
        return count_visible(processor.src_tokenizer.fold(processor.normalizer(part)))

    read = []
    for number, span in enumerate(kept):
        before = take_out(sentence[: span.begin], kept[:number])
        read.append((count_read(before), sentence[span.begin : span.end]))
    written = [(count_visible(translation.text[:offset]), span.text) for span, offset in placed]
    tokens, rows = _insert_tokens(translation.tokens, written, count_visible)
    src_tokens, columns = _insert_tokens(translation.src_tokens, read, count_visible)
    alignment = translation.alignment
    if alignment is not None:
        alignment = _spread(_spread(alignment, rows, 0), columns, 2)
    return dataclasses.replace(
        translation, text=text, tokens=tokens, src_tokens=src_tokens, alignment=alignment, token_log_probs=[]
    )


def _insert_tokens(
    tokens: Sequence[str], added: Iterable[tuple[int, str]], count: Callable[[str], int]
) -> tuple[list[str], list[int | None]]:
    """Tokens with others between them, and for each its number before, None for another one.

    Args:
        tokens: The tokens. One that has another inside becomes two.
        added: The others, each with the number of visible characters in front of it, in order.
        count: Number of the visible characters of a text.
    """
    longer: list[str] = []
    numbers: list[int | None] = []
    waiting = deque(added)
    position = 0
    for number, token in enumerate(tokens):
        part = token
        while waiting and (waiting[0][0] <= position or waiting[0][0] < position + count(part)):
            place, text = waiting.popleft()
            cut = next((cut for cut in range(len(part)) if count(part[:cut]) >= place - position > 0), 0)
            if cut:
                longer.append(part[:cut])
                numbers.append(number)
                position += count(part[:cut])
                part = part[cut:]
            longer.append(text)
            numbers.append(None)
        longer.append(part)
        numbers.append(number)
        position += count(part)
    for _, text in waiting:
        longer.append(text)
        numbers.append(None)
    return longer, numbers


def _spread(alignment: Tensor, numbers: Sequence[int | None], dimension: int) -> Tensor:
    """An alignment of other tokens: each has the weights of its number, and none where it has no number.

    Args:
        alignment: Weights; the last place of the dimension is that of EOS.
        numbers: The number of each token before.
        dimension: The dimension of the tokens.
    """
    size = list(alignment.shape)
    size[dimension] = 1
    nothing = alignment.size(dimension)
    padded = torch.cat([alignment, alignment.new_zeros(size)], dim=dimension)
    places = [nothing if number is None else number for number in numbers]
    return padded.index_select(dimension, torch.tensor([*places, nothing - 1], device=alignment.device))


def _place_of(
    sentence: str,
    kept: Sequence[Kept],
    number: int,
    words: Sequence[re.Match[str]],
    reach: Mapping[int, int],
    whole: Sequence[tuple[int, int]],
) -> int:
    """The character of a translation in front of which a span is put."""
    span = kept[number]
    before = take_out(sentence[: span.begin], kept[:number]).split()
    later = [part._replace(begin=part.begin - span.end, end=part.end - span.end) for part in kept[number + 1 :]]
    after = take_out(sentence[span.end :], later)
    if not words or not before:
        return 0
    if not any(map(str.isalnum, after)):  # what follows stays behind the span, and a stop in front of it
        is_behind_stop = before[-1][-1] in STOPS
        return words[-1].end() if is_behind_stop else _end_of(words[-1], whole)
    for word in range(len(before) - 1, -1, -1):
        if word in reach:
            target = words[reach[word]]
            return _end_of(target, whole) if before[-1][-1].isalnum() else _behind(target.end(), whole)
    return 0


def _end_of(word: re.Match[str], whole: Sequence[tuple[int, int]]) -> int:
    """The end of a word without the marks behind it, and not inside a span."""
    return _behind(word.start() + len(word[0].rstrip(CLOSING)), whole)


def _behind(place: int, whole: Sequence[tuple[int, int]]) -> int:
    """A place in a text, or the end of the span that it is inside of."""
    return next((end for begin, end in whole if begin < place < end), place)


def _find_enclosed(sentence: str, kept: Sequence[Kept], opening: Kept, closing: Kept) -> range:
    """The words between two spans of a sentence, counted without all spans."""
    counts = []
    for span in (opening, closing):
        before = [place for place in kept if place.begin < span.begin]
        counts.append(len(take_out(sentence[: span.begin], before).split()))
    begin, end = counts
    is_inside_word = sentence[: opening.begin][-1:].isalnum()
    return range(begin - is_inside_word, end)


def _insert(text: str, offset: int, span: Kept, kept: Sequence[Kept], sentence: str) -> str:
    """A text with a span in it, and spaces around it but to marks, and where the sentence has none.

    What opens or closes a part of a sentence has no space to the part in any case, if it has none in the sentence.
    """
    before = text[:offset].rstrip()
    after = text[offset:].lstrip()
    is_same_before = before[-1:] == sentence[: span.begin][-1:]
    is_same_after = after[:1] == sentence[span.end : span.end + 1]
    is_open = before[-1:] in OPENING or is_same_before or is_glued(sentence, kept, span.begin)
    is_closed = after[:1] in CLOSING or is_same_after or is_glued(sentence, kept, span.end)
    for opening, closing in find_pairs(kept):
        is_open = is_open or (span == closing and not sentence[span.begin - 1].isspace())
        is_closed = is_closed or (span == opening and not sentence[span.end].isspace())
    for neighbour in kept:
        is_open = is_open or (neighbour.end == span.begin and before.endswith(neighbour.text))
        is_closed = is_closed or (neighbour.begin == span.end and after.startswith(neighbour.text))
    left = "" if is_open else " "
    right = "" if is_closed else " "
    return f"{before}{left}{span.text}{right}{after}"
