"""A page that contains a model and translates with it as one types, in any browser, without a network."""

import base64
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nmt.config import Config
from nmt.exporting.formats import Format, Obstacle, find_other_values
from nmt.exporting.javascript import as_javascript
from nmt.inspection.explorer_data import name_models
from nmt.inspection.explorer_page import System, make_page, page_data
from nmt.layers.attention.catalog import describe_mechanism
from nmt.models.storage import SavedModel
from nmt.system.errors import CONTROL
from nmt.system.files import write_text
from nmt.text.abbreviations import HIGHEST, load_abbreviations
from nmt.text.direction import Direction
from nmt.text.languages import base_language
from nmt.text.names import PART, WORD
from nmt.text.normalization import DASHES, DOUBLE_QUOTES, INVISIBLE, SINGLE_QUOTES, WINDOWS_1252, Normalizer
from nmt.text.placeholders import TERM_MARKS
from nmt.text.processor import TextProcessor
from nmt.text.spans import AFTER, BLOCK, PATTERN, PICTURES
from nmt.text.tokenizers import SubwordTokenizer, Tokenizer
from nmt.text.unread import WORD as UNREAD_WORD
from nmt.translation.protection import CLOSING, NUMBERS, OPENING, PAIRED_MARKS, STOPS, Protection, match_terms
from nmt.translation.reader import Reader
from nmt.translation.words import MARKS

FOLDER = Path(__file__).parent
NETWORK = ("layers.js", "recurrent.js", "transformer.js", "network.js")
FILES = ("translator.css", *NETWORK, "search.js", "pieces.js", "spans.js", "reader.js", "translator.js")
"""Style and scripts, after those of the explorer's page."""
COMPUTED = {
    "model.encoder.kind": ("recurrent", "self_attention"),
    "model.decoder.kind": ("recurrent", "transformer", "ssru"),
    "model.encoder.layer_norm": ("none", "layers"),
    "model.decoder.layer_norm": ("none", "layers"),
    "model.attention.score": ("additive", "concat", "dot", "general", "scaled_dot", "none"),
    "model.attention.normalizer.name": ("softmax",),
    "model.attention.past.name": ("none",),
    "text.tokenizer": ("subword", "whitespace"),
    "decode.coverage_penalty": (0,),
    "decode.no_repeat_ngram_size": (None,),
    "decode.sampling.temperature": (None,),
}
"""Values that the scripts have, of the keys that matter."""


def find_obstacles(config: Config) -> Iterator[Obstacle]:
    """Find what the page's scripts do not compute."""
    return find_other_values(config, "a page", COMPUTED)


def write(
    model: SavedModel, path: Path, quantization: str, *others: SavedModel, protection: Protection | None = None
) -> Iterator[str]:
    """Write the page; see `Format`.

    Args:
        model: The model.
        path: The file.
        quantization: int8.
        others: Further models, shown beside it.
        protection: Names and terms of a user; None has none.
    """
    systems = list[System]()
    models = list[dict[str, Any]]()
    contents = list[str]()
    readers = list[Reader]()
    for name, (saved, processor) in name_models(
        [(saved, saved.load_processor()) for saved in (model, *others)]
    ).items():
        subwords = (processor.src_tokenizer.kind == "subword", processor.tgt_tokenizer.kind == "subword")
        systems.append(System(name, *describe_mechanism(saved.config.model), subwords, []))
        weights, content = _pack(saved)
        readers.append(Reader(processor))
        models.append(
            {
                **_describe_model(saved),
                "text": _describe_text(processor),
                "reserved": _describe_reserved(readers[-1]),
                "weights": weights,
            }
        )
        contents.append(base64.b64encode(content).decode())
    direction = Direction.of(model.config.data)
    data = {**page_data([], systems), "languages": [direction.source, direction.target], "models": models}
    data["casings"] = direction.casings
    data["source"] = base_language(direction.source)
    data["glue"] = direction.separator
    abbreviations = load_abbreviations(direction.source)
    data["abbreviations"] = abbreviations and {
        "known": sorted(abbreviations.known),
        "titles": sorted(abbreviations.titles),
        "endings": sorted(abbreviations.endings),
        "numbered": sorted(abbreviations.numbered),
        "starters": sorted(abbreviations.starters),
        "hasOrdinals": abbreviations.has_ordinals,
        "beforeOrdinals": sorted(abbreviations.before_ordinals),
        "highest": HIGHEST,
    }
    data["protection"] = _describe_protection(protection or Protection(), readers)
    title = direction.name
    files = [FOLDER / name for name in FILES]
    shown = {"direction": direction, "names": [system.name for system in systems], "contents": contents}
    write_text(path, make_page(title, data, FOLDER / "translator.html", files, **shown).html)
    return iter(())


def _describe_model(saved: SavedModel) -> dict[str, Any]:
    model = saved.config.model
    decode = saved.config.decode
    return {
        "model": {**model.model_dump(mode="json"), "attention": model.mechanism.model_dump(mode="json")},
        "decode": {
            **decode.model_dump(mode="json"),
            "max_length": min(filter(None, (decode.max_length, saved.model.decoder.max_length))),
        },
    }


def _pack(model: SavedModel) -> tuple[dict[str, Any], bytes]:
    """Names and shapes of all weights, and their bytes: of a matrix a scale for each row and int8, else float32."""
    places: dict[Tensor, int] = {}  # of tied weights the same
    names: dict[str, int] = {}
    content: list[bytes] = []
    for name, weight in model.model.state_dict(keep_vars=True).items():
        names[name] = places.setdefault(weight, len(places))
        if len(content) < len(places):
            exact = weight.detach().float()
            parts = quantize(exact) if exact.dim() > 1 and len(exact) > 1 else (exact,)
            content.append(b"".join(part.numpy().tobytes() for part in parts))
    return {"names": names, "shapes": [list(weight.shape) for weight in places]}, b"".join(content)


def quantize(weights: Tensor) -> tuple[Tensor, Tensor]:
    """Round a matrix to int8 times a scale for each row: [N, K] -> [N] and [N, K]."""
    scales = weights.abs().amax(dim=1) / 127
    rounded = (weights / scales.clamp(min=torch.finfo(scales.dtype).tiny).unsqueeze(1)).round()
    return scales, rounded.to(torch.int8)


def _describe_text(processor: TextProcessor) -> dict[str, Any]:
    """What `pieces.js` needs for text to become ids, and ids text."""
    source, target = processor.tokenizers
    joint = processor.src_vocabulary == processor.tgt_vocabulary
    return {
        "repairs": _describe_repairs(processor.normalizer),
        "src": {"tokens": processor.src_vocabulary.tokens, **_describe_casing(source), **_describe_pieces(source)},
        "tgt": {"tokens": None if joint else processor.tgt_vocabulary.tokens, "subwords": target.kind == "subword"},
    }


def _describe_reserved(reader: Reader) -> dict[str, Any]:
    """The placeholders of a model, and its marks around the translation of a term, of which it may have none."""
    return {"placeholders": reader.placeholders, "marks": TERM_MARKS if reader.has_term_marks else []}


def _describe_protection(protection: Protection, readers: Sequence[Reader]) -> dict[str, Any]:
    """What `spans.js` needs to find spans, and to write them into a translation.

    Several models take over the names that none of them knows, and what none of them can read.
    """
    known_words = [frozenset(reader.known.words) for reader in readers]
    letters = frozenset().union(*(reader.known.letters for reader in readers))
    return {
        "pattern": as_javascript(PATTERN.pattern),
        "pictures": as_javascript(PICTURES),
        "pairedMarks": PAIRED_MARKS,
        "word": as_javascript(r"[^\W_]"),
        "nameWord": as_javascript(WORD),
        "namePart": as_javascript(PART),
        "knownWords": " ".join(sorted(frozenset().union(*known_words))) if all(known_words) else "",
        "unreadWord": as_javascript(UNREAD_WORD),
        "letters": "".join(sorted(letters)),
        "after": AFTER,
        "numbers": NUMBERS,
        "closing": CLOSING,
        "stops": STOPS,
        "marks": MARKS,
        "block": as_javascript(BLOCK),
        "opening": OPENING,
        "control": CONTROL.pattern,
        "invisible": INVISIBLE.pattern,
        "names": protection.names,
        "terms": protection.terms,
        "termPattern": as_javascript(match_terms(protection.terms)) if protection.terms else None,
        "inflected": sorted(protection.inflected),
    }


def _describe_casing(tokenizer: Tokenizer) -> dict[str, Any]:
    return {"lowercase": tokenizer.lowercase, "casing": tokenizer.casing}


def _describe_repairs(normalizer: Normalizer) -> dict[str, Any]:
    quotes = ((DOUBLE_QUOTES.pattern, '"'), (SINGLE_QUOTES.pattern, "'")) if normalizer.quotes else ()
    return {
        "decoded": WINDOWS_1252 if normalizer.control_characters else {},
        "removed": [INVISIBLE.pattern] if normalizer.control_characters else [],
        "unescape": normalizer.html_entities,
        "unicode": None if normalizer.unicode == "none" else normalizer.unicode.upper(),
        "replaced": [*quotes, *([(DASHES.pattern, "-")] if normalizer.dashes else [])],
    }


def _describe_pieces(tokenizer: Tokenizer) -> dict[str, Any]:
    """Pieces in order, and symbols; the scores of BPE are ranks, those of unigram pieces float32 numbers."""
    if not isinstance(tokenizer, SubwordTokenizer):
        return {"algorithm": None, "symbols": [], "pieces": [], "scores": None}
    algorithm = tokenizer.algorithm
    scores = tokenizer.scores
    floats = None if algorithm == "bpe" else [float(str(np.float32(score))) for score in scores.values()]
    return {"algorithm": algorithm, "symbols": tokenizer.symbols, "pieces": list(scores), "scores": floats}


FORMAT = Format(write, find_obstacles, quantizations=("int8",), suffix=".html", several=True, protects=True)
