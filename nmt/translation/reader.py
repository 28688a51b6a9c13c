"""The reader: turns raw text into the units that a model translates, and their translations back into text."""

from __future__ import annotations

import copy
import dataclasses
import math
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Self

from nmt.search.constraint import DemandedWords
from nmt.system.errors import CONTROL
from nmt.text.casing import Casing, capitalize, upper
from nmt.text.inflection import has_forms
from nmt.text.languages import base_language
from nmt.text.placeholders import MAX_PLACEHOLDERS, TERM_MARKS, make_placeholders
from nmt.text.sentences import is_in_capitals, is_title, split_tokens, untitle
from nmt.text.spans import ends_text
from nmt.text.unread import list_letters
from nmt.text.vocabulary import SPECIAL_TOKENS, UNK_ID
from nmt.translation.joining import join_sentences
from nmt.translation.markup import find_markup, place
from nmt.translation.protection import (
    Kept,
    Knowledge,
    Way,
    annotate_terms,
    choose_numbers,
    put_back,
    stand_in,
    stand_in_apart,
    take_out,
)
from nmt.translation.translation import Translation

if TYPE_CHECKING:
    from nmt.search.hypothesis import Hypothesis
    from nmt.text.processor import TextProcessor
    from nmt.text.sentences import SentenceSplitter
    from nmt.text.tokenizers import Tokenizer
    from nmt.translation.protection import Protection

_WORD = re.compile(r"[^\W\d_]+")
NEXT_WAY: dict[Way, Way] = {"placeholders": "without", "plain": "numbers", "numbers": "without"}
"""How the spans of a sentence are read after a translation lacks one of them."""
MAX_SOURCE_LENGTH = 1000
"""Maximum number of source tokens that a model reads at once, less if it has so many positions."""


@dataclass(frozen=True)
class Unit:
    """A sentence, or a part of one that is too long: a model translates it at once.

    Attributes:
        tokens: The source tokens that the model reads.
        sentence: The sentence, as it was written.
        kept: Spans of the sentence that its translation takes over.
        stand_ins: What stands for each of them in the tokens; nothing for markup, which attention places.
        way: How the spans are read.
        is_in_capitals: True if it is read in small letters, and its translation is set in capitals.
        is_copied: True if it is its own translation: it has no letters, as a number or an emoji, or no token that the
            model knows.
        unread: Number of its tokens that the model does not know.
    """

    tokens: list[str]
    sentence: str = ""
    kept: tuple[Kept, ...] = ()
    stand_ins: tuple[str, ...] = ()
    way: Way = "plain"
    is_in_capitals: bool = False
    is_copied: bool = False
    unread: int = 0

    @property
    def needs_alignment(self) -> bool:
        """True if attention places spans in its translation."""
        return self.way == "without" or "" in self.stand_ins

    def __len__(self) -> int:
        """Number of its tokens."""
        return len(self.tokens)


@dataclass(frozen=True)
class Passage:
    """A text, and the units that it was split into.

    Attributes:
        text: The text as it was given.
        units: Its units, in order; the translation of the text joins theirs.
        gaps: What stands in front of each unit, between them and behind the last; empty where the text is not split.
    """

    text: str
    units: list[Unit]
    gaps: tuple[str, ...] = ()


class Reader:
    """Splits texts into units of tokens, and writes translations of tokens as text. It is thread-safe.

    With a splitter it reads documents: it finds sentences, sets apart white space, and protects spans. Without one it
    reads each text as it is.

    Args:
        processor: Tokenizers and vocabularies.
        splitter: Finds the sentences of a text; None takes a text as it is.
        dictionary: Translations of words that the model does not know, by the word as it reads it.
        protection: Spans that translations take over; None protects none.
        max_length: Maximum number of source tokens that the model reads at once; the rest is cut off.
        longest_part: Maximum number of tokens of each part that a longer sentence is split into, with a splitter.
        takes_constraints: True if the search can be made to write placeholders; otherwise numbers stand for spans.
    """

    def __init__(
        self,
        processor: TextProcessor,
        splitter: SentenceSplitter | None = None,
        dictionary: Mapping[str, str] | None = None,
        protection: Protection | None = None,
        *,
        max_length: int = MAX_SOURCE_LENGTH,
        longest_part: int = MAX_SOURCE_LENGTH,
        takes_constraints: bool = True,
    ) -> None:
        self.processor = processor
        self.splitter = splitter
        self.dictionary = dictionary
        self.protection = protection if splitter else None
        self.max_length = max_length
        self.longest_part = longest_part
        self.takes_constraints = takes_constraints
        self._tokenizing = threading.Lock()  # spaCy fills caches while tokenising
        known = set(processor.src_vocabulary.tokens) & set(processor.tgt_vocabulary.tokens)
        self.placeholders = [symbol for symbol in make_placeholders(MAX_PLACEHOLDERS) if symbol in known]
        """Those that can stand for spans, in order."""
        if not takes_constraints:
            self.placeholders = []
        self.known = Knowledge(
            processor.known_words if self.placeholders else frozenset(),
            frozenset() if dictionary else list_letters(processor.src_vocabulary.tokens[len(SPECIAL_TOKENS) :]),
            splitter.casings[1] if splitter else "",
        )
        """The words that the model knows, if it takes over names that are none of them, and its letters."""
        self.has_term_marks = known.issuperset(TERM_MARKS)
        """True if the model reads the translations of terms beside them."""
        self.reserved = frozenset([*self.placeholders, *(TERM_MARKS if self.has_term_marks else ())])
        """The tokens that no translation has unless a span asks for them."""

    def __getstate__(self) -> dict[str, object]:
        """The attributes that are pickled: all but the lock."""
        return {name: value for name, value in vars(self).items() if name != "_tokenizing"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._tokenizing = threading.Lock()

    def with_longest_part(self, longest_part: int) -> Self:
        """A reader of the same text that splits long sentences into other parts."""
        reader = copy.copy(self)
        reader.longest_part = longest_part
        reader._tokenizing = self._tokenizing  # both use the same tokenizers
        return reader

    def with_protection(self, protection: Protection) -> Self:
        """A reader of the same text that protects other spans."""
        reader = copy.copy(self)
        reader.protection = protection
        reader._tokenizing = self._tokenizing  # both use the same tokenizers
        return reader

    def read(self, texts: Iterable[str]) -> list[Passage]:
        """Split texts into units.

        A sentence of several words in capitals is read in small letters. With a splitter, a text may have several
        sentences, an English title is read as a sentence is written, and spans are protected.
        """
        given = list(texts)
        with self._tokenizing:
            split = [self._split(text) for text in given]
            drafts = [draft for _, drafts in split for draft in drafts]
            tokenized = iter(self.processor.tokenize_source([text for text, _ in drafts]))
            return [
                self._passage(text, gaps, [self._units(draft, next(tokenized)) for _, draft in drafts])
                for text, (gaps, drafts) in zip(given, split, strict=True)
            ]

    def _passage(self, text: str, gaps: Sequence[str], sentences: Sequence[list[Unit]]) -> Passage:
        """A text with the units of each of its sentences; between the parts of one there is a space."""
        units = [unit for parts in sentences for unit in parts]
        if not gaps:
            return Passage(text, units)
        before = [gap for gap, parts in zip(gaps, sentences, strict=False) for gap in (gap, *[" "] * (len(parts) - 1))]
        return Passage(text, units, (*before, gaps[-1]))

    def read_again(self, unit: Unit) -> Unit:
        """A unit of which no translation has all spans, read in another way.

        A term that the model did not inflect is taken over as it is, like every other span. The next way is to leave
        the spans out.
        """
        kept = tuple(_as_term(span) for span in unit.kept)
        way = NEXT_WAY[unit.way] if kept == unit.kept else self._choose_way(kept)
        with self._tokenizing:
            text, draft = self._draft(unit.sentence, kept, way)
            (tokens,) = self.processor.tokenize_source([text])
        return self._with_tokens(draft, tokens)

    def put_back(self, unit: Unit, translation: Translation) -> Translation | None:
        """A translation of a unit with its spans, in capitals if the unit is; None if a span is missing in it."""
        if translation.is_copied and self.splitter is not None:
            return translation
        if not has_forms(translation.text, [span.text for span in unit.kept if span.kind == "inflected"]):
            return None
        if unit.is_in_capitals:
            _, casing = self._casings
            translation = dataclasses.replace(translation, text=upper(translation.text, casing))
        sentence, kept = annotate_terms(unit.sentence, unit.kept)
        if unit.way == "without":
            return place(translation, sentence, kept, self.processor)
        markup = [span for span, symbol in zip(kept, unit.stand_ins, strict=True) if not symbol]
        written = [span for span in kept if span not in markup]
        whole: Translation | None = translation
        if written:
            whole = put_back(translation, written, [*filter(None, unit.stand_ins)], sentence)
        if whole is not None and markup:
            whole = place(whole, sentence, markup, self.processor, [span.text for span in written])
        return whole

    def demand(self, units: Sequence[Unit]) -> DemandedWords | None:
        """The constraint that each translation has the placeholders of its unit, and no other reserved token.

        None if the model has no such tokens, or the search takes no constraints.
        """
        if not (self.takes_constraints and self.reserved):
            return None
        encode = self.processor.tgt_vocabulary.encode
        demanded = [encode([*filter(None, unit.stand_ins)]) if unit.way == "placeholders" else [] for unit in units]
        return DemandedWords(demanded, encode(sorted(self.reserved)))

    def tokenize(self, texts: Sequence[str]) -> list[list[str]]:
        """Source tokens of texts, which are neither split nor changed; an empty text has none."""
        with self._tokenizing:
            return self.processor.tokenize_source(texts)

    def tokenize_target(self, texts: Sequence[str]) -> list[list[str]]:
        """Target tokens of texts, such as given translations."""
        with self._tokenizing:
            return self.processor.tokenize_target(texts)

    def cut_off(self, tokens: Sequence[str]) -> list[str]:
        """The source tokens that the model reads."""
        return list(tokens[: self.max_length])

    def join(self, passage: Passage, units: Sequence[Sequence[Translation]]) -> list[Translation]:
        """Translations of a text, best first, from those of its units; see `join_sentences`.

        White space around the text stays, and so does that between sentences which is more than a space, and what is
        none beside a part that is copied.
        """
        if not passage.gaps:
            return join_sentences(units, [" "] * (len(units) - 1))
        first, *between, last = passage.gaps
        glue = self.splitter.glue if self.splitter else " "
        glues = []
        for gap, (unit, following) in zip(between, pairwise(passage.units), strict=True):
            is_beside_copy = unit.is_copied or following.is_copied
            is_usual = gap == " " or (gap == "" and not is_beside_copy)
            glues.append(glue if is_usual else gap)
        joined = join_sentences(units, glues)
        if not (first or last):
            return joined
        return [dataclasses.replace(ranked, text=f"{first}{ranked.text}{last}") for ranked in joined]

    def write(self, tokens: Sequence[str]) -> str:
        """Target tokens as a line of text."""
        return _as_text(tokens, self.processor.tgt_tokenizer)

    def write_copy(self, unit: Unit) -> str:
        """A unit that is its own translation as text: as it was written, if the reader splits text."""
        if self.splitter is None:
            return self.write_source(self.cut_off(unit.tokens))
        whole = stand_in(unit.sentence, unit.kept, [span.text for span in unit.kept])
        return _without_line_breaks(CONTROL.sub("", whole))

    def write_source(self, tokens: Sequence[str]) -> str:
        """Source tokens as a line of text."""
        return _as_text(tokens, self.processor.src_tokenizer)

    def write_ids(self, ids: Sequence[int]) -> str:
        """Target ids without EOS as a line of text, in which unknown words stay unknown."""
        return self.write(self.processor.target_tokens(ids))

    def translation(
        self, hypothesis: Hypothesis, src_tokens: Sequence[str], given: Sequence[str] = (), *, replace_unknown: bool
    ) -> Translation:
        """A hypothesis as text.

        Args:
            hypothesis: The hypothesis.
            src_tokens: All tokens of the source, of which the model may have read fewer.
            given: The first target tokens as the user gave them, perhaps words that the model does not know.
            replace_unknown: True if an unknown word becomes the source word attended most, or its translation in the
                dictionary.
        """
        read = self.cut_off(src_tokens)
        attended = hypothesis.attended[: len(hypothesis.ids)] if replace_unknown else []
        # An unknown word that attends to a placeholder stays unknown, as that placeholder has its own place.
        words = [SPECIAL_TOKENS[UNK_ID] if token in self.reserved else token for token in read] if attended else []
        tokens = self.processor.target_tokens(hypothesis.ids, words, attended, self.dictionary)
        tokens[: len(given)] = given
        return Translation(
            self.write(tokens),
            tokens,
            read,
            hypothesis.log_prob,
            hypothesis.score,
            hypothesis.alignment,
            len(src_tokens) > len(read),
            hypothesis.token_log_probs,
            hypothesis.ids.count(UNK_ID),
        )

    def _split(self, text: str) -> tuple[tuple[str, ...], list[tuple[str, Unit]]]:
        """The white space around the sentences of a text, and each as the model is to read it, with its unit."""
        decoded = self.processor.normalizer.decode(text)
        if self.splitter is None:
            return (), [self._draft(decoded, (), "plain")]
        spans = self._find_spans(decoded)
        breaks = [(span.begin, span.end) for span in spans if ends_text(span.text, span.kind)]
        places = self.splitter.find(decoded, [(span.begin, span.end) for span in spans], breaks)
        edges = [0, *(edge for place in places for edge in place), len(decoded)]
        gaps = tuple(
            _without_line_breaks(CONTROL.sub("", decoded[begin:end]))
            for begin, end in zip(edges[::2], edges[1::2], strict=True)
        )
        drafts = []
        for begin, end in places:
            kept = tuple(
                span._replace(begin=span.begin - begin, end=span.end - begin)
                for span in spans
                if begin <= span.begin and span.end <= end
            )
            drafts.append(self._draft(decoded[begin:end], kept, self._choose_way(kept)))
        return gaps if places else (gaps[0], ""), drafts or [("", Unit([], is_copied=True))]

    def _find_spans(self, text: str) -> list[Kept]:
        """The spans of a text, with what the model cannot read, and names that a model with placeholders does not know.

        A model without marks for terms has the translations of all terms as they are.
        """
        if self.protection is None:
            return []
        spans = self.protection.find(text, self.known)
        if self.has_term_marks:
            return spans
        return [_as_term(span) for span in spans]

    def _choose_way(self, kept: Sequence[Kept]) -> Way:
        """How a sentence is read first; the terms that the model inflects need no way."""
        markup = find_markup(kept)
        kinds = {span.kind for span in kept if span not in markup} - {"inflected"}
        if not kinds and markup:
            return "without"
        if kinds and self.placeholders:
            return "placeholders"
        return "plain" if kinds <= {"number"} else "numbers"

    def _draft(self, sentence: str, kept: tuple[Kept, ...], way: Way) -> tuple[str, Unit]:
        """A sentence as the model is to read it, and its unit without tokens."""
        whole = stand_in(sentence, kept, [span.text for span in kept])
        if kept and not any(map(str.isalpha, take_out(sentence, kept))):
            return whole, Unit([], whole, is_copied=True)
        annotated, spans = annotate_terms(sentence, kept)
        stand_ins = self._choose_stand_ins(sentence, spans, way)
        if len(stand_ins) < len(spans):
            way = "without"
            stand_ins = [span.text for span in spans]
        text = take_out(annotated, spans) if way == "without" else stand_in_apart(annotated, spans, stand_ins)
        source, _ = self._casings
        is_in_capitals = self._is_in_capitals(text)
        if is_in_capitals:
            text = capitalize(text, source)
        if self.splitter and base_language(self.splitter.language) == "en" and is_title(text):
            text = untitle(text, self._rarity)
        return text, Unit([], sentence, kept, tuple(stand_ins), way, is_in_capitals)

    def _choose_stand_ins(self, sentence: str, spans: Sequence[Kept], way: Way) -> list[str]:
        """What stands in for each span, nothing for markup; fewer if there are not enough numbers."""
        if way == "without":
            return [span.text for span in spans]
        markup = find_markup(spans)
        between = [span for span in spans if span not in markup]
        if way == "placeholders":
            symbols = [self.placeholders[number % len(self.placeholders)] for number in range(len(between))]
        elif way == "numbers":
            symbols = choose_numbers(sentence, len(between))
        else:
            symbols = [span.text for span in between]
        if len(symbols) < len(between):
            return []
        chosen = dict(zip(between, symbols, strict=True))
        return [chosen.get(span, "") for span in spans]

    def _is_in_capitals(self, text: str) -> bool:
        """True if a sentence is read in small letters: several words in capitals, or one that is known so."""
        if is_in_capitals(text):
            return True
        words = _WORD.findall(text)
        if self.splitter is None or len(words) != 1 or len(words[0]) < 2 or not words[0].isupper():
            return False
        source, _ = self._casings
        return self._rarity(capitalize(words[0], source)) < self._rarity(words[0])

    def _units(self, draft: Unit, tokens: list[str]) -> list[Unit]:
        """A unit with its tokens, or its parts if they are too many."""
        parts = [tokens] if draft.is_copied else list(self._cut(tokens))
        if len(parts) == 1:
            return [self._with_tokens(draft, tokens)]
        if not draft.kept or self.protection is None:
            return [
                self._with_tokens(dataclasses.replace(draft, sentence=self.write_source(part)), part) for part in parts
            ]
        # The spans of a part are found again in its text, and each part has stand-ins of its own.
        (whole,) = self.processor.tokenize_source([draft.sentence])
        units = []
        for text in map(self.write_source, self._cut(whole)):
            kept = tuple(self._find_spans(text))
            read, unit = self._draft(text, kept, self._choose_way(kept))
            (part,) = self.processor.tokenize_source([read])
            units.append(self._with_tokens(unit, part))
        return units

    def _with_tokens(self, draft: Unit, tokens: list[str]) -> Unit:
        """A unit with its tokens: the model does not know those of a word that it cannot read."""
        letters = [token for token in tokens if any(map(str.isalpha, token))]
        ids = self.processor.src_vocabulary.encode(letters)
        unread = ids.count(UNK_ID)
        is_copied = draft.is_copied or not letters
        if self.splitter is not None and not self.dictionary and unread == len(ids):
            is_copied = True
        if not is_copied:
            unread += sum(len(span.text.split()) for span in draft.kept if span.kind == "unread")
        return dataclasses.replace(draft, tokens=tokens, is_copied=is_copied, unread=unread)

    @property
    def _casings(self) -> tuple[Casing, Casing]:
        return self.splitter.casings if self.splitter else ("", "")

    def _rarity(self, word: str) -> tuple[float, float]:
        """Number of tokens of a source word, and of a single one its rank by frequency, inf if it is unknown."""
        (tokens,) = self.processor.tokenize_source([word])
        ids = self.processor.src_vocabulary.encode(tokens)
        return len(ids), ids[0] if len(ids) == 1 and ids[0] != UNK_ID else math.inf

    def _cut(self, tokens: list[str]) -> Iterator[list[str]]:
        """A sentence that can be read whole, or parts of it that are short enough to be translated whole."""
        if self.splitter is None or len(tokens) <= self.max_length:
            yield tokens
        else:
            is_subword = self.processor.src_tokenizer.kind == "subword"
            yield from split_tokens(tokens, self.longest_part, subwords=is_subword)


def _as_term(span: Kept) -> Kept:
    """A span; the translation of an inflected term is taken over as it is."""
    return span._replace(kind="term") if span.kind == "inflected" else span


def _as_text(tokens: Sequence[str], tokenizer: Tokenizer) -> str:
    return " ".join(CONTROL.sub("", tokenizer.detokenize(tokens)).split())


def _without_line_breaks(gap: str) -> str:
    """White space in which a line break is a space, as a translation is one line."""
    return "".join(character if len(f"a{character}a".splitlines()) == 1 else " " for character in gap)
