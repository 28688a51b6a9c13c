"""Tokenizers: spaCy's words, SentencePiece's subwords, and white space.

A tokenizer turns a line of text into tokens and tokens into text. It learns only from training text, and is saved as
plain files that `load_tokenizer` reads.
"""

import io
import pkgutil
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

from nmt.system.errors import ConfigError, DataError, shorten
from nmt.system.files import check_file, read_bytes, write_json
from nmt.system.limits import MAX_TEXT_FILE
from nmt.system.messages import Message, Parameter
from nmt.text.casing import Casing, lower
from nmt.text.languages import base_language
from nmt.text.piece_model import Algorithm, read_training
from nmt.text.settings import TokenizerSettings, WordSettings, read_settings
from nmt.text.spacing import Spacing

PIECES = "text.subword.vocabulary_size"
"""The key of the number of pieces."""
OWN_PIECES = 3
"""Pieces that SentencePiece has of its own: unknown, beginning and end."""
WORD_BEGINNING = "\u2581"  # SentencePiece's mark for a space and for the start of a line

ANY_LANGUAGE = "use text.tokenizer: subword or whitespace"
"""Advice for a language that spaCy does not know."""
_OVERLONG = re.compile(r"(\S{200})(?=\S)")


class TooLittleText(DataError):
    """The training text has fewer pieces than were asked for."""


class Tokenizer(ABC):
    """Text <-> tokens, for one language."""

    kind: str
    lowercase: bool
    casing: Casing = ""
    """How letters become small: by the rules of which language."""

    def fold(self, text: str) -> str:
        """A text in small letters, if the tokenizer reads such text."""
        return lower(text, self.casing) if self.lowercase else text

    def settings(self, **others: Any) -> dict[str, Any]:
        """Saved settings of any tokenizer, and others after them; older versions had no rules of a language."""
        casing = {"casing": self.casing} if self.lowercase and self.casing else {}
        return {"kind": self.kind, "lowercase": self.lowercase, **casing, **others}

    @abstractmethod
    def tokenize(self, lines: Sequence[str]) -> Iterator[list[str]]:
        """Tokens of each line; an empty line has none."""

    @abstractmethod
    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join tokens; `detokenize(tokenize(text))` restores ordinary text."""

    @abstractmethod
    def save(self, directory: Path, side: str) -> None:
        """Write the files that `load_tokenizer` needs, whose names start with `side` (`src`, `tgt`)."""


class WhitespaceTokenizer(Tokenizer):
    """Splits at white space, for text that is already tokenised."""

    kind = "whitespace"

    def __init__(self, *, lowercase: bool = False, casing: Casing = "") -> None:
        self.lowercase = lowercase
        self.casing = casing

    def tokenize(self, lines: Sequence[str]) -> Iterator[list[str]]:
        """Split at white space."""
        for line in lines:
            yield self.fold(line).split()

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join with single spaces."""
        return " ".join(tokens)

    def save(self, directory: Path, side: str) -> None:
        """Write the settings."""
        write_json(directory / f"{side}.tokenizer.json", self.settings())


class WordTokenizer(Tokenizer):
    """Words by the rules of spaCy's blank language: no model is downloaded.

    Args:
        language: Language code that spaCy knows, such as `en`.
        lowercase: Lower-case before splitting.
        casing: Rules of small letters.
        spacing: Where spaces go when tokens are joined; see `learn_spacing`.
        symbols: Texts between spaces that are always one token.

    Raises:
        ConfigError: spaCy has no tokenizer for the language.
    """

    kind = "spacy"

    def __init__(
        self,
        language: str,
        *,
        lowercase: bool = False,
        casing: Casing = "",
        spacing: Spacing | None = None,
        symbols: Iterable[str] = (),
    ) -> None:
        try:
            self._nlp = blank_language(language)
        except ImportError as error:
            reason = str(error).split("\n")[0].split(". ")[0]
            raise ConfigError(
                f"language {shorten(repr(language))}: spaCy has no blank tokenizer for it ({reason}); {ANY_LANGUAGE}"
            ) from None
        self.language = language
        self.lowercase = lowercase
        self.casing = casing
        self.spacing = spacing or Spacing()
        self.symbols = sorted(set(symbols))
        for symbol in self.symbols:
            self._nlp.tokenizer.add_special_case(symbol, [{"ORTH": symbol}])

    def _docs(self, lines: Iterable[str]) -> Iterator[Any]:
        for line in lines:
            parts = _OVERLONG.sub(r"\1 ", line)  # spaCy takes quadratic time for a run of punctuation
            yield self._nlp.tokenizer(self.fold(parts))

    def tokenize(self, lines: Sequence[str]) -> Iterator[list[str]]:
        """spaCy's tokens without those that are only white space."""
        for doc in self._docs(lines):
            yield [token.text for token in doc if not token.is_space]

    def learn_spacing(self, lines: Iterable[str]) -> None:
        """Learn from training text where spaces go."""
        sentences = (
            ([token.text for token in doc], [bool(token.whitespace_) for token in doc]) for doc in self._docs(lines)
        )
        self.spacing = Spacing.learn(sentences, self._compounds())

    def _compounds(self) -> set[tuple[str, str]]:
        """Pairs of tokens that spaCy's rules for the language make of one word: `can` and `not` of `cannot`.

        Numbers are left out, as `10am` is one word of its rules, and `10 am` is more usual.
        """
        from spacy.symbols import ORTH

        rules = getattr(self._nlp.tokenizer, "rules", {})  # Chinese, Japanese and others have tokenizers without rules
        words = ([part[ORTH] for part in parts] for word, parts in rules.items() if word not in self.symbols)
        pairs = {pair for word in words for pair in pairwise(word) if not re.search(r"\d", "".join(pair))}
        return {(before.lower(), token.lower()) for before, token in pairs} if self.lowercase else pairs

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join with spaces where training text has them between such tokens."""
        return self.spacing.join(tokens)

    def save(self, directory: Path, side: str) -> None:
        """Write language, casing, spaCy's version, the learnt spacing and the symbols."""
        settings = self.settings(
            language=self.language,
            spacy_version=version("spacy"),
            glue_left=sorted(self.spacing.left),
            glue_right=sorted(self.spacing.right),
            glue_pairs=sorted(self.spacing.compounds),
            **({"symbols": self.symbols} if self.symbols else {}),
        )
        write_json(directory / f"{side}.tokenizer.json", settings)


def blank_language(language: str) -> Any:
    """spaCy's blank pipeline for a language.

    Nothing but languages is imported by that name: `en.stop_words` is not a language.

    Raises:
        ImportError: spaCy does not know the language, or needs a library for it that is not installed.
    """
    import spacy.lang
    from spacy.util import find_matching_language, registry

    if language not in registry.languages and find_matching_language(language) is None:
        language = base_language(language)
    packages = {module.name for module in pkgutil.iter_modules(spacy.lang.__path__) if module.ispkg}
    if language not in registry.languages and (find_matching_language(language) or language) not in packages:
        raise ImportError("it knows no such language")
    return spacy.blank(language)


class SubwordTokenizer(Tokenizer):
    """SentencePiece BPE (Sennrich et al., 2016) or unigram pieces (Kudo, 2018); spacing is part of the pieces.

    Args:
        model: A serialised model of SentencePiece.
        lowercase: Lower-case text first.

    Attributes:
        algorithm: The algorithm that learnt the pieces, as the model records it.
        symbols: Pieces that no algorithm has learnt: they are whole wherever a text has them.

    Raises:
        ValueError: The model is damaged, or its pieces were learnt in another way.
        RuntimeError: The model is damaged.
    """

    kind = "subword"

    def __init__(self, model: bytes, *, lowercase: bool = False, casing: Casing = "") -> None:
        import sentencepiece

        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(model)
        self.lowercase = lowercase
        self.casing = casing
        training = read_training(model)
        self.algorithm = training.algorithm
        self.symbols = [symbol for symbol in training.symbols if self._is_piece(symbol)]

    def _is_piece(self, text: str) -> bool:
        """True if a text is a piece."""
        return not self._processor.is_unknown(self._processor.piece_to_id(text))

    @classmethod
    def learn(
        cls,
        lines: Iterable[str],
        *,
        algorithm: Algorithm,
        vocabulary_size: int,
        lowercase: bool = False,
        casing: Casing = "",
        symbols: Iterable[str] = (),
        placeholders: Iterable[str] = (),
        fewer: bool = False,
    ) -> Self:
        """Learn pieces from training text.

        Args:
            lines: Training text.
            algorithm: `bpe` or `unigram`.
            vocabulary_size: Total number of pieces.
            lowercase: Lower-case the text first.
            casing: Rules of small letters.
            symbols: Words that are always one piece, together with the space before them.
            placeholders: Texts that are always one piece, without a space before them.
            fewer: True if there may be fewer pieces, where the text is too small for so many.

        Raises:
            TooLittleText: The text is too small for so many pieces.
            DataError: The text is too varied for so few.
        """
        import sentencepiece

        # With the space before it, a word is one piece and not two: google/sentencepiece puts a space before a line.
        whole = [WORD_BEGINNING + symbol for symbol in sorted(set(symbols))] + list(placeholders)
        model = io.BytesIO()
        characters = set(WORD_BEGINNING)

        def read() -> Iterator[str]:
            for line in lines:
                text = lower(line, casing) if lowercase else line
                characters.update(text)
                yield text

        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=read(),
                model_writer=model,
                model_type=algorithm,
                vocab_size=vocabulary_size,
                character_coverage=1.0,
                normalization_rule_name="identity",
                remove_extra_whitespaces=True,
                hard_vocab_limit=not fewer,
                user_defined_symbols=whole,
                num_threads=1,
                max_sentence_length=1_000_000,
                minloglevel=2,
            )
        except (RuntimeError, OSError) as error:
            message = " ".join(str(error).split())
            larger = re.search(r"[Vv]ocabulary size is smaller than required_chars\. \d+ vs (\d+)", message)
            limit = re.search(r"value <= (\d+)", message)
            advice: str | Message
            if limit:
                most = int(limit[1])  # most of that many are so rare that little is learnt about them
                least = max(most // 4, count_needed(characters, whole))
                remedy = Message("use fewer: {pieces}", pieces=Parameter("overrides", {PIECES: least}))
                if most < 400 or most <= least:
                    remedy = Message(f"lower {PIECES}")
                raise TooLittleText(
                    "cannot learn {number} {algorithm} pieces: the training text has at most {most}; {remedy}",
                    number=vocabulary_size,
                    algorithm=algorithm,
                    most=most,
                    remedy=remedy,
                ) from None
            if larger:
                advice = f"the text has {larger[1]} different characters; raise {PIECES}"
            elif "INTERNAL" in message:
                advice = f"SentencePiece itself needs three; raise {PIECES}"
            else:
                advice = shorten(message)
            raise DataError(
                "cannot learn {size} {algorithm} pieces: {advice}",
                size=vocabulary_size,
                algorithm=algorithm,
                advice=advice,
            ) from None
        return cls(model.getvalue(), lowercase=lowercase, casing=casing)

    def tokenize(self, lines: Sequence[str]) -> Iterator[list[str]]:
        """Pieces of each line; unseen characters stay as pieces without an id."""
        yield from self._processor.encode([*map(self.fold, lines)] if self.lowercase else lines, out_type=str)

    def with_casing(self, casing: Casing) -> Self:
        """The same pieces for a language with other rules of small letters."""
        return type(self)(self._model, lowercase=self.lowercase, casing=casing)

    @property
    def scores(self) -> dict[str, float]:
        """The pieces that the algorithm has learnt, without symbols, in SentencePiece's order, and their scores.

        A score is a log-probability, or for BPE minus the rank of its merge.
        """
        processor = self._processor
        ids = (i for i in range(processor.get_piece_size()) if not (processor.is_unknown(i) or processor.is_control(i)))
        scores = {processor.id_to_piece(index): processor.get_score(index) for index in ids}
        return {piece: score for piece, score in scores.items() if piece not in self.symbols}

    @property
    def characters(self) -> set[str]:
        """The characters that have a piece: those of the training text."""
        return {piece for piece in self.scores if len(piece) == 1}

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join the pieces; spaces are part of them."""
        return "".join(tokens).replace(WORD_BEGINNING, " ").strip()

    def save(self, directory: Path, side: str) -> None:
        """Write the model and the settings."""
        (directory / f"{side}.subwords.model").write_bytes(self._model)
        settings = self.settings(sentencepiece_version=version("sentencepiece"))
        write_json(directory / f"{side}.tokenizer.json", settings)


def count_needed(characters: Iterable[str], symbols: Iterable[str] = ()) -> int:
    """The pieces that the characters of a text need: one each, a space, symbols, and SentencePiece's own."""
    return len({*characters, " "} - {WORD_BEGINNING}) + len(set(symbols)) + OWN_PIECES


def load_tokenizer(directory: Path, side: str) -> Tokenizer:
    """Load the files of `Tokenizer.save`.

    Raises:
        DataError: Files are missing or damaged.
    """
    path = directory / f"{side}.tokenizer.json"
    settings = read_settings(path, TokenizerSettings)
    if settings.kind == "whitespace":
        return WhitespaceTokenizer(lowercase=settings.lowercase, casing=settings.casing)
    if settings.kind == "spacy":
        words = read_settings(path, WordSettings)
        try:
            return WordTokenizer(
                words.language,
                lowercase=words.lowercase,
                casing=words.casing,
                spacing=Spacing(words.glue_left, words.glue_right, words.glue_pairs),
                symbols=words.symbols,
            )
        except ConfigError as error:
            raise DataError(f"{path}: {str(error).removesuffix(f'; {ANY_LANGUAGE}')}") from None
    model = check_file(directory / f"{side}.subwords.model", directory)
    try:
        return SubwordTokenizer(read_bytes(model, MAX_TEXT_FILE), lowercase=settings.lowercase, casing=settings.casing)
    except (RuntimeError, ValueError) as error:
        raise DataError(f"{model}: damaged ({shorten(str(error))})") from None
    except OSError as error:
        raise DataError(f"{model}: cannot be read ({error.strerror}); the directory is incomplete") from None
