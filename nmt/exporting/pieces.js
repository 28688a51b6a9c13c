"use strict";
// From text to ids and back, as in nmt/text: repairs, SentencePiece's BPE and unigram pieces, or words between spaces.

const WORD_BEGINNING = "\u2581";
// What str.split() of Python takes for white space.
const BLANK = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const BLANKS = new RegExp(`[${BLANK}]+`, "u");
const MARKS = /((?:\p{M}|[\uff9e\uff9f]){30})(?:\p{M}|[\uff9e\uff9f])+/gu;

/** An entity by what browsers show for it. */
function readEntity(entity) {
  const element = document.createElement("textarea");
  element.innerHTML = entity;
  return element.value;
}

/** A text in small letters, as in nmt/text/casing.py: Turkish has two letters i. */
function toSmall(text, casing) {
  const dotted = casing ? text.replace(/I\u0307|\u0130/g, "i").replace(/I/g, "\u0131") : text;
  return dotted.toLowerCase();
}

/** A text in capitals. */
function toCapitals(text, casing) {
  return (casing ? text.replace(/i/g, "\u0130") : text).toUpperCase();
}

/** A text in which control characters are what their numbers are in Windows-1252. */
function decodeControl(text, { decoded }) {
  return text.replace(/[\x80-\x9f]/g, (control) => decoded[control] ?? control);
}

/** Repair a sentence: the steps of nmt/text/normalization.py, until nothing changes. */
function repair(text, { decoded, removed, unescape, unicode, replaced }) {
  for (let before = null; text !== before;) {
    before = text;
    text = decodeControl(text, { decoded });
    for (const pattern of removed) text = text.replace(new RegExp(pattern, "gu"), "");
    if (unescape) text = text.replace(/&(?:amp;)+/g, "&amp;").replace(/&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]*);/g, readEntity);
    if (unicode) text = text.replace(MARKS, "$1").normalize(unicode);
    for (const [pattern, by] of replaced) text = text.replace(new RegExp(pattern, "gu"), by);
    text = text.split(BLANKS).filter(Boolean).join(" ");
  }
  return text;
}

/** Characters of a text, but each of the user's symbols in it whole: at every place the longest. */
function splitAtSymbols(text, symbols) {
  const parts = [];
  for (let begin = 0; begin < text.length;) {
    const fitting = symbols.filter((symbol) => text.startsWith(symbol, begin));
    const character = String.fromCodePoint(text.codePointAt(begin));
    const part = fitting.reduce((longest, symbol) => (symbol.length > longest.length ? symbol : longest), "") || character;
    parts.push(part);
    begin += part.length;
  }
  return parts;
}

/** Byte pair encoding (Sennrich et al., 2016): the neighbours whose piece was learnt first are merged first. */
function mergePairs(scores, symbols) {
  const whole = new Set(symbols);
  return (text) => {
    const parts = splitAtSymbols(text, symbols);
    for (;;) {
      let best = -Infinity, place = -1;
      for (let n = 0; n + 1 < parts.length; n++) {
        if (whole.has(parts[n]) || whole.has(parts[n + 1])) continue;
        const score = scores.get(parts[n] + parts[n + 1]);
        if (score > best) [best, place] = [score, n];
      }
      if (place < 0) return parts;
      parts.splice(place, 2, parts[place] + parts[place + 1]);
    }
  };
}

/** The most probable segmentation into unigram pieces (Kudo, 2018). Sums are rounded as there. */
function findBestPath(learnt, symbols) {
  // As in SentencePiece, where this exceeds the score of all that is learnt, so that a symbol stays whole.
  const scores = new Map([...learnt, ...symbols.map((symbol) => [symbol, -0.1])]);
  const longest = Math.max(...[...scores.keys()].map((piece) => [...piece].length));
  const unknown = Math.fround(Math.min(...learnt.values()) - 10);
  return (text) => {
    const characters = [...text];
    const ends = [{ total: 0, begin: 0 }], found = [];
    characters.forEach((character, begin) => {
      let piece = "";
      for (let end = begin + 1; end <= Math.min(characters.length, begin + longest); end++) {
        piece += characters[end - 1];
        const score = scores.get(piece) ?? (end === begin + 1 ? unknown : undefined);
        if (score === undefined) continue;
        const total = Math.fround(ends[begin].total + score);
        if (!ends[end] || total > ends[end].total) ends[end] = { total, begin };
      }
    });
    for (let end = characters.length; end > 0; end = ends[end].begin) found.unshift(characters.slice(ends[end].begin, end).join(""));
    return found;
  };
}

const ALGORITHMS = { bpe: mergePairs, unigram: findBestPath };

/** Both sides of a language pair.
 *
 * `settings` has the repairs, the tokens of both vocabularies, and of the source the kind of tokenizer, its pieces and
 * the user's symbols, which no algorithm has learnt.
 */
class TextProcessor {
  constructor(settings) {
    this.settings = settings;
    this.ids = new Map(settings.src.tokens.map((token, id) => [token, id]).filter(([, id]) => id > EOS));
    const { algorithm, symbols, pieces, scores } = settings.src;
    const learnt = new Map(pieces.map((piece, rank) => [piece, scores ? Math.fround(scores[rank]) : -rank]));
    this.known = new Set([...symbols, ...pieces]);
    this.segment = algorithm && ALGORITHMS[algorithm](learnt, symbols);
  }

  /** Tokens of a source. */
  tokenize(text) {
    let line = repair(text, this.settings.repairs);
    if (this.settings.src.lowercase) line = toSmall(line, this.settings.src.casing);
    if (!this.segment) return line.split(BLANKS).filter(Boolean);
    const marked = `${WORD_BEGINNING}${line.replace(/ /g, WORD_BEGINNING)}`.replace(/\u2581+$/, "");
    const tokens = [];
    let unknown = false;
    for (const piece of this.segment(marked)) {
      // Unknown pieces in a row are one.
      if (unknown && !this.known.has(piece)) tokens.push(tokens.pop() + piece); else tokens.push(piece);
      unknown = !this.known.has(piece);
    }
    return tokens;
  }

  /** Words of a source as its tokens have them. */
  splitWords(text) {
    const { lowercase, casing } = this.settings.src, words = text.split(BLANKS).filter(Boolean).map((word) => repair(word, this.settings.repairs));
    return lowercase ? words.map((word) => toSmall(word, casing)) : words;
  }

  /** Ids of tokens. */
  encode(tokens) {
    return tokens.map((token) => this.ids.get(token) ?? UNK);
  }

  /** Tokens as text. */
  join(tokens) {
    const text = this.settings.tgt.subwords ? tokens.join("").replaceAll(WORD_BEGINNING, " ") : tokens.join(" ");
    return text.replace(new RegExp(data.protection.control, "gu"), "").split(BLANKS).filter(Boolean).join(" ");
  }
}
