"use strict";
// From a line to sentences and back, as nmt/translation/reader.py: sentences, white space, capitals, titles, spans.

const LETTERS = /\p{L}+/gu, SHORT = 3, RARE = 1 << 24; // words; letters of the longest that need no capital; more than any id
const NEXT_WAY = { placeholders: "without", plain: "numbers", numbers: "without" }; // how a sentence is read again that lost a span
const protection = new Protection(data.protection), CONTROL = new RegExp(data.protection.control, "gu"), LINE_BREAK = new RegExp(data.protection.block, "u");
const UNSEEN = new RegExp(`[${BLANK}]|${data.protection.invisible}`, "u"); // white space, and characters that are not seen

/** True if a text has at least two words and all of them are in capitals. Words without letters are ignored. */
function isInCapitals(text) {
  return text === text.toUpperCase() && text.split(/\s/).filter((word) => word !== word.toLowerCase()).length > 1;
}

/** How rare a word is in training text: its number of tokens, and of a single one its rank by frequency. */
function rarity(word, processor) {
  const ids = processor.encode(processor.tokenize(word));
  return ids.length > 1 || ids[0] === UNK ? ids.length * RARE + RARE - 1 : RARE + ids[0];
}

/** An English title as a sentence, other text as it is: is_title and untitle of nmt/text/sentences.py. */
function untitle(text, processor) {
  const words = text.match(LETTERS) ?? [], isLong = (word) => word.length > SHORT, isLarge = (word) => /^\p{Lu}/u.test(word);
  const large = words.slice(1).filter((word) => isLong(word) && isLarge(word)).length;
  if (large < 2 || text.endsWith(".") || words.some((word) => isLong(word) && !isLarge(word))) return text;
  let place = 0;
  return text.replace(LETTERS, (word) => {
    const small = word.toLowerCase(), isSet = place++ && word.slice(1) === small.slice(1);
    return isSet && rarity(small, processor) < rarity(word, processor) ? small : word;
  });
}

const END_MARKS = ".!?\u2026\u203d\u2047-\u2049\u0589\u061f\u06d4\u0964\u0965\u104b\u1362\u17d4", WIDE_MARKS = "\u3002\uff01\uff0e\uff1f\uff61";
const QUOTES = "\"'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a", DASHES = "\u2013\u2014\\-";
const OPENING = `(\\[\\{\u300c\u300e\uff08\u00bf\u00a1${DASHES}`;
const START = `(?:[${QUOTES}${OPENING}]|[*_~]{1,3}(?![\\s*_~])|<[A-Za-z][^<>]{0,200}>(?!\\s))`;
const BEGINNING = `(?:[${DASHES}]\\s+)?${START}*(?!${START})`; // of a sentence, before its first word
const BOUNDARY = new RegExp(
  `(?<![${END_MARKS}${WIDE_MARKS}])(?<end>[${END_MARKS}${WIDE_MARKS}]+)` +
  `(?:(?<=[${WIDE_MARKS}])[\u2019\u201d\u300d\u300f\uff09]*\\s*|(?<=[${END_MARKS}])(?:[${QUOTES})\\]\\}\u200b\u200e\u200f\u2060\ufeff*_~]|</[A-Za-z][^<>\\s]{0,40}>)*(?:\\[\\^?[\\p{L}\\p{N}_]{1,20}\\]){0,9}\\s+)` +
  `(?=${BEGINNING}(?<first>[^\\s${END_MARKS}${WIDE_MARKS}]))`, "gu");
const EMOJI = new RegExp(`[${data.protection.pictures}][${data.protection.pictures}${END_MARKS}${WIDE_MARKS}\ufe0e\ufe0f\u200d\u20e3\\s]*`, "gu");
const rules = data.abbreviations && Object.fromEntries(Object.entries(data.abbreviations).map(([name, words]) => [name, Array.isArray(words) ? new Set(words) : words]));

/** Whether a full stop ends a sentence: Abbreviations.ends_sentence of nmt/text/abbreviations.py. */
function endsWord(before, decorated, following) {
  const bare = (text) => text.replace(new RegExp(`^[${QUOTES}${OPENING}]+`, "u"), ""), word = bare(decorated);
  if (rules.titles.has(word)) return false;
  if (rules.numbered.has(word.toLowerCase()) && /^\p{Nd}/u.test(following)) return false;
  if (rules.endings.has(word) || rules.starters.has(following.toLowerCase())) return true;
  if (/^\p{L}\.$/u.test(word)) {
    const earlier = bare(before);
    return !(/^\p{Ll}/u.test(word) || !earlier || earlier.endsWith(".") || /^\p{Lu}/u.test(earlier));
  }
  if (rules.hasOrdinals && /^[0-9]{1,2}\.$/.test(word)) {
    const isCounted = !rules.beforeOrdinals.size || rules.beforeOrdinals.has(before.toLowerCase());
    return !(parseInt(word, 10) <= rules.highest && isCounted);
  }
  return !(rules.known.has(word) || /^(?:\p{L}\.){2,}$/u.test(word));
}

/** Whether punctuation ends a sentence, as SentenceSplitter of nmt/text/sentences.py. */
function endsSentence(text, { index, groups: { end, first } }, begun) {
  if (WIDE_MARKS.includes(end.at(-1))) return true;
  if (/^\p{Ll}/u.test(first)) return false;
  if (end !== "." || !rules) return true;
  const words = text.slice(Math.max(0, index - 40), index + 1).split(/\s+/u).filter(Boolean), word = words.at(-1);
  const rest = text.slice(begun).replace(new RegExp(`^${BEGINNING}`, "u"), "");
  const [following = ""] = rest.match(/^\p{L}+(?=n['\u2019]t\b)|^\p{L}+|^\p{Nd}+/u) ?? [];
  if (/^\p{L}\./u.test(rest) && /^\p{L}\.$/u.test(word)) return false; // J. F. Kennedy
  return word.length === 1 || endsWord(words.at(-2) ?? "", word, following);
}

/** White space in which a line break is a space, as a translation is one line. */
function withoutLineBreaks(text) {
  return text.replace(/[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/gu, " ");
}

/** The sentences of a line with their spans, and what stands in front of each, and behind the last. */
function split(text) {
  const ends = [], spans = protection.find(text), isBreak = ({ kind, text: written }) => (kind === "tag" ? LINE_BREAK.test(written) : ["\\n", "\\r", "|"].includes(written));
  for (const match of text.matchAll(BOUNDARY)) {
    const begun = match.index + match[0].length, isInside = spans.some(({ begin, end }) => begin < begun && begun < end);
    if (!isInside && endsSentence(text, match, begun)) ends.push(begun);
  }
  for (const { begin, end } of spans.filter(isBreak)) ends.push(begin, end);
  const cuts = [...new Set([0, ...ends, text.length])].sort((one, other) => one - other);
  const places = cuts.slice(1).flatMap((end, n) => withoutEmoji(text, cuts[n], end));
  const edges = [0, ...places.flat(), text.length];
  return {
    sentences: places.map(([begin, end]) => ({
      written: text.slice(begin, end),
      kept: spans.filter((span) => begin <= span.begin && span.end <= end).map((span) => ({ ...span, begin: span.begin - begin, end: span.end - begin })),
    })),
    gaps: [...places, null].map((_, n) => withoutLineBreaks(text.slice(edges[2 * n], edges[2 * n + 1]).replace(CONTROL, ""))),
  };
}

/** The places of a sentence, and of the emoji in front of it or behind it, without blanks around them. */
function withoutEmoji(text, begin, end) {
  const strip = ([from, to]) => {
    while (from < to && UNSEEN.test(text[from])) from += 1;
    while (from < to && UNSEEN.test(text[to - 1])) to -= 1;
    return [from, to];
  };
  const [first, last] = strip([begin, end]), cuts = new Set([first, last]);
  if (first >= last) return [];
  for (const emoji of text.slice(first, last).matchAll(EMOJI)) {
    const from = first + emoji.index, to = from + emoji[0].length;
    if (from === first || to === last) cuts.add(from).add(to);
  }
  const sorted = [...cuts].sort((one, other) => one - other);
  return sorted.slice(1).map((to, n) => strip([sorted[n], to])).filter(([from, to]) => from < to);
}

/** True if a sentence is read in small letters: several words in capitals, or a word that is more usual so. */
function isReadSmall(sentence, processor) {
  if (isInCapitals(sentence)) return true;
  const [word, ...others] = sentence.match(LETTERS) ?? [];
  if (!word || others.length || [...word].length < 2 || word !== word.toUpperCase() || word === word.toLowerCase()) return false;
  return rarity(capitalize(word), processor) < rarity(word, processor);
}

/** How the spans of a sentence are read first: with placeholders, as they are, with small numbers for them, or without them. */
function chooseWay(sentence, model) {
  const { spans } = annotateTerms(sentence, model), markup = findMarkup(spans), others = spans.filter((span) => !markup.has(span));
  if (markup.size && !others.length) return "without";
  if (others.length && model.reserved.placeholders.length) return "placeholders";
  return others.every(({ kind }) => kind === "number") ? "plain" : "numbers";
}

/** What stands in for each span, nothing for markup, which attention places; fewer if there are not enough numbers. */
function chooseStandIns(written, spans, way, placeholders) {
  if (way === "without") return spans.map(({ text }) => text);
  const markup = findMarkup(spans), others = spans.filter((span) => !markup.has(span));
  let symbols = others.map(({ text }) => text);
  if (way === "placeholders") symbols = others.map((_, n) => placeholders[n % placeholders.length]);
  if (way === "numbers") symbols = protection.chooseNumbers(written, others.length);
  return symbols.length < others.length ? [] : spans.map((span) => (markup.has(span) ? "" : symbols[others.indexOf(span)]));
}

/** A sentence of which the translation lacks a span, and how it is read again: first with its inflected terms as they are. */
function readAgain(sentence, way, model) {
  if (!inflectedTerms(sentence, model).length) return { asked: sentence, way: NEXT_WAY[way] };
  const kept = sentence.kept.map((span) => (span.kind === "inflected" ? { ...span, kind: "term" } : span)), asked = { ...sentence, kept };
  return { asked, way: chooseWay(asked, model) };
}

/** A sentence as a model reads it: its text, what stands in for its spans, and whether its translation is set in capitals. */
function draft(sentence, way, model) {
  const { written, kept } = sentence, { placeholders } = model.reserved, { annotated, spans } = annotateTerms(sentence, model);
  const copied = standIn(written, kept, kept.map(({ text }) => text)), whole = withoutLineBreaks(copied.replace(CONTROL, ""));
  if (kept.length && !/\p{L}/u.test(takeOut(written, kept))) return { whole, text: whole, isCopied: true };
  let standIns = chooseStandIns(written, spans, way, placeholders);
  if (standIns.length < spans.length) {
    way = "without";
    standIns = spans.map(({ text }) => text);
  }
  const text = way === "without" ? takeOut(annotated, spans) : standInApart(annotated, spans, standIns), isSmall = isReadSmall(text, model.processor);
  const cased = isSmall ? capitalize(text) : text;
  const inflected = inflectedTerms(sentence, model).map((span) => span.text);
  return { whole, way, standIns, spans, annotated, inflected, isSmall, text: data.source === "en" ? untitle(cased, model.processor) : cased };
}

/** A translation as the model wrote it with the spans of its sentence, null if one is missing. */
function finish({ text: written, src, tgt, rows }, { way, standIns, spans, annotated, inflected, isSmall }, processor) {
  if (!hasForms(written, inflected)) return null;
  let text = isSmall ? toCapitals(written, data.casings[1]) : written, tokens = tgt, srcTokens = src;
  const placed = spans.filter((_, n) => way === "without" || !standIns[n]), others = spans.filter((span) => !placed.includes(span));
  if (others.length) {
    const symbols = standIns.filter(Boolean), whole = putBack(text, others, symbols, annotated);
    if (whole === null) return null;
    tokens = withSpans(tgt, text, whole.places);
    srcTokens = withSourceSpans(src, others, symbols, annotated);
    text = whole.text;
  }
  if (!placed.length) return text;
  return protection.place(text, annotated, placed, alignWords(processor.splitWords(takeOut(annotated, placed)), splitWords(text), srcTokens, tokens, rows), others.map((span) => span.text));
}

/** A text in small letters but for its first one. */
function capitalize(text) {
  return toCapitals(text.slice(0, 1), data.casings[0]) + toSmall(text.slice(1), data.casings[0]);
}
