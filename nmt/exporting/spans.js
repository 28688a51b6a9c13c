"use strict";
// Spans that a translation takes over as they are, as in nmt/translation/protection.py, whose tables the page contains.

const NOT_BLANK = new RegExp(`[^${BLANK}]+`, "gu");
const isSpace = (character) => BLANKS.test(character);
const isWordCharacter = (character) => /^[\p{L}\p{N}]$/u.test(character);
const splitWords = (text) => text.split(BLANKS).filter(Boolean);
const escapePattern = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
/** The last character of a text and its first one; characters beyond the first plane have two units. */
const lastOf = (text) => [...text.slice(-2)].at(-1) ?? "";
const firstOf = (text) => (text ? String.fromCodePoint(text.codePointAt(0)) : "");

/** A text without some characters at its end. */
function trimEnd(text, characters) {
  let end = text.length;
  while (end && characters.includes(text[end - 1])) end -= 1;
  return text.slice(0, end);
}

/** Finds the spans of a text: terms, then names, then addresses, numbers and other marks around them. */
class Protection {
  constructor({ pattern, word, nameWord, namePart, knownWords, after, numbers, closing, opening, names, terms, inflected }) {
    Object.assign(this, { after, numbers, closing, opening, inflected });
    this.nameWord = new RegExp(nameWord, "gu");
    this.namePart = new RegExp(namePart, "gu");
    this.known = new Set(knownWords.split(" ").filter(Boolean));
    this.spans = new RegExp(pattern, "giu");
    const any = (texts) => [...texts].sort((first, second) => [...second].length - [...first].length).map(escapePattern).join("|");
    const whole = (texts, flags) => (texts.length ? new RegExp(`(?<!${word})(?:${any(texts)})(?!${word})`, flags) : null);
    this.names = whole(names, "gu");
    this.terms = whole(Object.keys(terms), "giu");
    this.translations = new Map(Object.entries(terms).map(([term, translation]) => [term.toLowerCase(), translation]));
  }

  /** The spans of a text in order, each { begin, end, text, kind }, where `text` is what the translation has in its place. */
  find(text) {
    const fixed = [...text.matchAll(this.spans)].map((match) => this.trim(text, match)), named = [], terms = [];
    const isApart = ({ begin, end }, places) => places.every((place) => end <= place.begin || place.end <= begin);
    const add = (places, span, others) => { if (isApart(span, others)) places.push(span); };
    const asSpan = (match, kind, written) => ({ begin: match.index, end: match.index + match[0].length, text: written, kind });
    for (const match of this.names ? text.matchAll(this.names) : []) add(named, asSpan(match, "name", match[0]), fixed);
    for (const match of this.terms ? text.matchAll(this.terms) : []) {
      const term = match[0].toLowerCase();
      add(terms, asSpan(match, this.inflected.includes(term) ? "inflected" : "term", this.translations.get(term)), fixed);
    }
    const found = [...terms, ...[...fixed, ...named].filter((span) => isApart(span, terms))];
    const unknown = this.findUnknownNames(text).filter((span) => isApart(span, found));
    return [...found, ...unknown].sort((first, second) => first.begin - second.begin || first.end - second.end);
  }

  /** Words with a capital that the models do not know: find_unknown_names of nmt/text/names.py. */
  findUnknownNames(text) {
    if (!this.known.size) return [];
    return [...text.matchAll(this.nameWord)].flatMap((word) => {
      const parts = [...word[0].matchAll(this.namePart)], small = parts.findIndex(([part]) => !/^\p{Lu}/u.test(part));
      const large = small < 0 ? parts : parts.slice(0, small), last = large.at(-1);
      if (!last) return [];
      const name = word[0].slice(0, last.index + last[0].length);
      if ([...name].length < 2 || large.every(([part]) => this.known.has(part.toLowerCase()))) return [];
      return [{ begin: word.index, end: word.index + name.length, text: name, kind: "name" }];
    });
  }

  /** A match as a span; an address ends before the punctuation of its sentence. */
  trim(text, match) {
    const [kind] = Object.entries(match.groups).find(([, written]) => written !== undefined);
    const brackets = { ")": "(", "]": "[", "}": "{" }, begin = match.index;
    const count = (character, end) => text.slice(begin, end).split(character).length;
    let end = begin + match[0].length;
    while (kind === "url" && this.after.includes(text[end - 1])) {
      const opening = brackets[text[end - 1]];
      if (opening && count(opening, end) >= count(text[end - 1], end)) break;
      end -= 1;
    }
    return { begin, end, text: text.slice(begin, end), kind };
  }

  /** Numbers that stand in for spans, none of which a sentence has; fewer than asked for if there are no more. */
  chooseNumbers(sentence, number) {
    return this.numbers.filter((text) => !sentence.includes(text)).slice(0, number);
  }

  /** A text with another one in it, apart from the words beside it, and not from the marks around it. */
  insert(text, offset, inserted) {
    const before = trimBlanks(text.slice(0, offset), false, true), after = trimBlanks(text.slice(offset), true, false);
    const left = before && !this.opening.includes(lastOf(before)) ? " " : "", right = after && !this.closing.includes(firstOf(after)) ? " " : "";
    return before + left + inserted + right + after;
  }

  /** A translation of a sentence without its spans, with the spans where attention says.
   *
   * `links` are pairs of a source word and a target word. A span stands behind the translation of the word in front of
   * it, and at the end if nothing follows it.
   */
  place(translation, sentence, kept, links) {
    const words = [...translation.matchAll(NOT_BLANK)], reach = new Map();
    for (const [source, target] of links) reach.set(source, Math.max(target, reach.get(source) ?? -1));
    const offsets = kept.map((_, number) => this.findPlace(sentence, kept, number, words, reach));
    const order = kept.map((_, number) => number).sort((first, second) => offsets[second] - offsets[first] || second - first);
    return order.reduce((text, number) => this.insert(text, offsets[number], kept[number].text), translation);
  }

  /** The character of a translation in front of which a span is put. */
  findPlace(sentence, kept, number, words, reach) {
    const { begin, end } = kept[number], before = splitWords(takeOut(sentence.slice(0, begin), kept.slice(0, number)));
    const later = kept.slice(number + 1).map((span) => ({ ...span, begin: span.begin - end, end: span.end - end }));
    if (!words.length || !before.length) return 0;
    const endOf = (word) => word.index + trimEnd(word[0], this.closing).length;
    // Only marks follow: they stay behind the span.
    if (![...takeOut(sentence.slice(end), later)].some(isWordCharacter)) return endOf(words.at(-1));
    for (let word = before.length - 1; word >= 0; word--) {
      if (!reach.has(word)) continue;
      const target = words[reach.get(word)];
      return isWordCharacter(lastOf(before.at(-1))) ? endOf(target) : target.index + target[0].length;
    }
    return 0;
  }
}

/** A text without white space at its beginning, its end, or both. */
function trimBlanks(text, atBegin = true, atEnd = true) {
  let begin = 0, end = text.length;
  while (atBegin && begin < end && isSpace(text[begin])) begin += 1;
  while (atEnd && begin < end && isSpace(text[end - 1])) end -= 1;
  return text.slice(begin, end);
}

/** A sentence with other texts in place of its spans. */
function standIn(sentence, kept, texts) {
  let end = 0;
  const parts = kept.flatMap((span, number) => {
    const before = sentence.slice(end, span.begin);
    end = span.end;
    return [before, texts[number]];
  });
  return parts.join("") + sentence.slice(end);
}

/** The terms of a sentence that the model inflects; a model without marks for them inflects none. */
function inflectedTerms({ kept }, { reserved: { marks } }) {
  return marks.length ? kept.filter(({ kind }) => kind === "inflected") : [];
}

const SHORTEST_STEM = 3, LONGEST_ENDING = 4, MOST_MISSING = 2; // letters of a form: in common, added at most, missing at most

/** True if a word is a term with another ending: keeps_term of nmt/text/inflection.py. */
function keepsTerm(word, term) {
  const letters = [...word], others = [...term];
  let stem = 0;
  while (stem < Math.min(letters.length, others.length) && letters[stem] === others[stem]) stem += 1;
  const missing = others.length - stem, added = letters.length - stem;
  if (missing === 0) return added <= LONGEST_ENDING;
  return missing <= MOST_MISSING && added > 0 && added <= LONGEST_ENDING && stem >= SHORTEST_STEM;
}

/** True if a text has a form of each term, at a place of its own: has_forms of nmt/text/inflection.py. */
function hasForms(text, terms) {
  const words = text.match(/[\p{L}\p{N}_]+/gu) ?? [];
  return terms.every((term) => {
    const parts = term.match(/[\p{L}\p{N}_]+/gu) ?? [];
    const place = words.findIndex((_, n) => n + parts.length <= words.length && parts.every((part, k) => keepsTerm(words[n + k], part)));
    if (place >= 0) words.splice(place, parts.length, "");
    return place >= 0;
  });
}

/** A sentence with the translations of its inflected terms beside them, if a model has marks for them, and its other spans. */
function annotateTerms({ written, kept }, model) {
  const { marks } = model.reserved, notes = inflectedTerms({ kept }, model);
  const texts = notes.map(({ begin, end, text }) => `${written.slice(begin, end)}${marks[0]} ${text}${marks[1]}`);
  const grown = (place) => notes.reduce((sum, { begin, end }, n) => (end <= place ? sum + texts[n].length - (end - begin) : sum), place);
  const spans = kept.filter((span) => !notes.includes(span)).map((span) => ({ ...span, begin: grown(span.begin), end: grown(span.end) }));
  return { annotated: standIn(written, notes, texts), spans };
}

/** A sentence without its spans, with single spaces where they were. */
function takeOut(sentence, kept) {
  return splitWords(standIn(sentence, kept, kept.map(() => ""))).join(" ");
}

/** A translation with the spans in place of what stood in for them; null unless it has each as often as the source. */
function putBack(translation, kept, standIns, sentence) {
  const waiting = new Map(), found = [];
  kept.forEach((span, number) => waiting.set(standIns[number], [...waiting.get(standIns[number]) ?? [], span]));
  for (const [symbol, spans] of waiting) {
    const isNumber = /^\p{Nd}/u.test(symbol), pattern = escapePattern(symbol);
    const bounded = isNumber ? `(?<![\\p{L}\\p{N}_.,-])${pattern}(?![\\p{L}\\p{N}_]|[.,:-]\\p{Nd})` : pattern;
    const places = [...translation.matchAll(new RegExp(bounded, "gu"))];
    if (places.length !== spans.length) return null;
    places.forEach(({ index }, n) => found.push({ begin: index, end: index + symbol.length, span: spans[n] }));
  }
  let position = 0, text = "";
  found.sort((first, second) => first.begin - second.begin || first.end - second.end);
  for (const [n, { begin, end, span }] of found.entries()) {
    const before = translation.slice(position, begin);
    const isBeside = isWordCharacter(lastOf(before)) || (begin === position && n > 0); // a word, or the span before
    text += before + (isBeside && isSpace(lastOf(sentence.slice(0, span.begin))) ? " " : "") + span.text;
    if (isWordCharacter(firstOf(translation.slice(end))) && isSpace(firstOf(sentence.slice(span.end)))) text += " ";
    position = end;
  }
  return text + translation.slice(position);
}

/** Links of source words and target words: align_words of nmt/translation/words.py. `rows` has the weights of a step. */
function alignWords(src, tgt, srcTokens, tgtTokens, rows) {
  const read = takeWords(src), written = takeWords(tgt), of = srcTokens.map((token) => read(token)[0]), weights = new Map();
  tgtTokens.forEach((token, step) => {
    for (const target of written(token)) {
      const sums = weights.get(target) ?? new Map();
      weights.set(target, sums);
      of.forEach((source, n) => { if (source !== undefined && rows[step][n] > 0) sums.set(source, (sums.get(source) ?? 0) + rows[step][n]); });
    }
  });
  const best = (sums) => [...sums].reduce((most, sum) => (sum[1] > most[1] || (sum[1] === most[1] && sum[0] < most[0]) ? sum : most))[0];
  return [...weights].filter(([, sums]) => sums.size).map(([target, sums]) => [best(sums), target]);
}

/** Gives the words that each of some tokens is part of, counting visible characters from left to right. */
function takeWords(words) {
  const visible = (text) => [...text.replace(new RegExp(`[${BLANK}${WORD_BEGINNING}]|${data.protection.control}`, "gu"), "")].length;
  let owners = words.flatMap((word, number) => Array(visible(word)).fill(number)), taken = 0;
  if (!owners.length && words.length) owners = [0];
  return (token) => {
    const begin = taken;
    taken += visible(token);
    const found = owners.slice(begin, Math.max(taken, begin + 1));
    return [...new Set(found.length ? found : owners.slice(-1))];
  };
}
