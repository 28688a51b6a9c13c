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

/** True if a place overlaps none of some others. */
function isApart({ begin, end }, places) {
  return places.every((place) => end <= place.begin || place.end <= begin);
}

/** Places with others in place of those that they contain; one that overlaps a place otherwise is left out. */
function putOver(places, others) {
  return others.reduce((found, other) => {
    const touched = found.filter((place) => !isApart(other, [place]));
    if (touched.some(({ begin, end }) => begin < other.begin || other.end < end)) return found;
    return [...found.filter((place) => !touched.includes(place)), other];
  }, places);
}

/** The spans that open and close the same part of a sentence: tags with one name, both ends of a link, equal marks. */
function findPairs(kept) {
  const opened = [], pairs = [];
  for (const span of kept) {
    const tag = span.kind === "tag" ? span.text.match(/^<(\/?)([\p{L}\p{N}_]+)[^>]*?(\/?)>$/u) : null;
    const isMark = data.protection.pairedMarks.includes(span.text), name = tag ? tag[2] : span.kind === "marks" ? span.text : span.kind;
    const mayClose = isMark || span.text.startsWith("]") || Boolean(tag?.[1]), mayOpen = isMark || (!mayClose && (span.kind === "link" || (tag && !tag[3])));
    if (mayClose && opened.at(-1)?.name === name) pairs.push([opened.pop().span, span]);
    else if (mayOpen) opened.push({ name, span });
  }
  return pairs;
}

/** The spans that belong to words beside them: marks, and tags and links that open and close a part of a sentence. */
function findMarkup(kept) {
  return new Set([...kept.filter(({ kind }) => kind === "marks"), ...findPairs(kept).flat()]);
}

/** True if a sentence has a word on the other side of an edge of a span, without a space between them. */
function isGlued(sentence, kept, edge) {
  for (const { begin, end } of kept) {
    if (end === edge && isWordCharacter(firstOf(sentence.slice(edge)))) return kept.every((span) => span.begin !== edge);
    if (begin === edge && isWordCharacter(lastOf(sentence.slice(0, edge)))) return kept.every((span) => span.end !== edge);
  }
  return false;
}

/** Finds the spans of a text: terms, then names, then addresses, numbers and other marks around them. */
class Protection {
  constructor({ pattern, word, nameWord, namePart, knownWords, unreadWord, letters, after, numbers, closing, stops, opening, names, terms, termPattern, inflected }) {
    Object.assign(this, { after, numbers, closing, stops, opening, inflected });
    this.nameWord = new RegExp(nameWord, "gu");
    this.namePart = new RegExp(namePart, "gu");
    this.known = new Set(knownWords.split(" ").filter(Boolean));
    this.unreadWord = new RegExp(unreadWord, "gu");
    this.letters = new Set(letters);
    this.spans = new RegExp(pattern, "gu");
    const any = (texts) => [...texts].sort((first, second) => [...second].length - [...first].length).map(escapePattern).join("|");
    this.names = names.length ? new RegExp(`(?<!${word})(?:${any(names)})(?!${word})`, "gu") : null;
    this.terms = termPattern && new RegExp(termPattern, "gu");
    this.translations = new Map(Object.entries(terms));
  }

  /** The spans of a text in order, each { begin, end, text, kind }, where `text` is what the translation has in its place. */
  find(text) {
    const asSpan = (match, kind, written) => ({ begin: match.index, end: match.index + match[0].length, text: written, kind });
    const fixed = [...text.matchAll(this.spans)].map((match) => this.trim(text, match));
    const names = [...(this.names ? text.matchAll(this.names) : [])].map((match) => asSpan(match, "name", match[0]));
    const terms = [...(this.terms ? text.matchAll(this.terms) : [])].map((match) => {
      const [term, isLouder] = this.findTerm(match[0]), translation = this.translations.get(term);
      if (isLouder) return asSpan(match, "term", toCapitals(translation, data.casings[1]));
      return asSpan(match, this.inflected.includes(term) ? "inflected" : "term", translation);
    });
    const isName = ({ kind }) => kind === "name", withNames = putOver(fixed, names);
    const found = putOver(withNames.filter((span) => !isName(span)), terms);
    found.push(...withNames.filter((span) => isName(span) && isApart(span, found)));
    found.push(...this.findUnread(text).filter((span) => isApart(span, found)));
    found.push(...this.findUnknownNames(text).filter((span) => isApart(span, found)));
    return found.sort((first, second) => first.begin - second.begin || first.end - second.end);
  }

  /** The term that a text has, and true if the text sets it in capitals, unlike the glossary. */
  findTerm(written) {
    const small = written.toLowerCase(), isLoud = written === written.toUpperCase() && written !== small;
    if (this.translations.has(written)) return [written, false];
    if (this.translations.has(small)) return [small, isLoud && [...written].length > 1];
    return [[...this.translations.keys()].find((term) => term.toUpperCase() === written), true];
  }

  /** Words that the models cannot read: find_unread of nmt/text/unread.py. */
  findUnread(text) {
    if (!this.letters.size) return [];
    const isRead = (word) => [...word, ...word.normalize("NFKC").toLowerCase()].some((letter) => this.letters.has(letter));
    return [...text.matchAll(this.unreadWord)].filter(([word]) => !isRead(word)).reduce((spans, { 0: word, index }) => {
      const last = spans.at(-1), goesOn = last && !trimBlanks(text.slice(last.end, index)), begin = goesOn ? last.begin : index, end = index + word.length;
      return [...(goesOn ? spans.slice(0, -1) : spans), { begin, end, text: text.slice(begin, end), kind: "unread" }];
    }, []);
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

  /** A match as a span, without white space in front; an address ends before the punctuation of its sentence. */
  trim(text, match) {
    const [kind] = Object.entries(match.groups).find(([, written]) => written !== undefined);
    const brackets = { ")": "(", "]": "[", "}": "{" };
    let begin = match.index;
    const count = (character, end) => text.slice(begin, end).split(character).length;
    let end = begin + match[0].length;
    while (kind === "url" && this.after.includes(text[end - 1])) {
      const opening = brackets[text[end - 1]];
      if (opening && count(opening, end) >= count(text[end - 1], end)) break;
      end -= 1;
    }
    while (isSpace(text[begin])) begin += 1;
    return { begin, end, text: text.slice(begin, end), kind };
  }

  /** Numbers that stand in for spans, none of which a sentence has; fewer than asked for if there are no more. */
  chooseNumbers(sentence, number) {
    return this.numbers.filter((text) => !sentence.includes(text)).slice(0, number);
  }

  /** A text with a span in it, apart from what is beside it unless the sentence has none between them, or a mark is. */
  insert(text, offset, span, kept, sentence) {
    const before = trimBlanks(text.slice(0, offset), false, true), after = trimBlanks(text.slice(offset), true, false);
    const pairs = findPairs(kept), isOpening = pairs.some(([opening]) => opening === span), isClosing = pairs.some(([, closing]) => closing === span);
    const isOpen = !before || lastOf(before) === lastOf(sentence.slice(0, span.begin)) || (isClosing && !isSpace(lastOf(sentence.slice(0, span.begin)))) || this.opening.includes(lastOf(before)) || isGlued(sentence, kept, span.begin) ||
      kept.some((neighbour) => neighbour.end === span.begin && before.endsWith(neighbour.text));
    const isClosed = !after || firstOf(after) === firstOf(sentence.slice(span.end)) || (isOpening && !isSpace(firstOf(sentence.slice(span.end)))) || this.closing.includes(firstOf(after)) || isGlued(sentence, kept, span.end) ||
      kept.some((neighbour) => neighbour.begin === span.end && after.startsWith(neighbour.text));
    return before + (isOpen ? "" : " ") + span.text + (isClosed ? "" : " ") + after;
  }

  /** A translation of a sentence without its spans, with the spans where attention says.
   *
   * `links` are pairs of a source word and a target word. A span stands behind the translation of the word in front of
   * it, and at the end if nothing follows it. Two that open and close a part stand around the translations of its words.
   * The translation has the spans `written`; none is put into them.
   */
  place(translation, sentence, kept, links, written) {
    const words = [...translation.matchAll(NOT_BLANK)], targets = new Map(), texts = new Set(written);
    const whole = [...texts].flatMap((text) => [...translation.matchAll(new RegExp(escapePattern(text), "gu"))].map(({ index }) => [index, index + text.length]));
    for (const [source, target] of linkSameWords(links, splitWords(takeOut(sentence, kept)), splitWords(translation), texts)) targets.set(source, [...targets.get(source) ?? [], target]);
    const reach = new Map([...targets].map(([source, linked]) => [source, Math.max(...linked)]));
    const offsets = new Map(kept.map((span, number) => [span, this.findPlace(sentence, kept, number, words, reach, whole)]));
    for (const [opening, closing] of findPairs(kept)) {
      const enclosed = findEnclosed(sentence, kept, opening, closing).flatMap((source) => targets.get(source) ?? []);
      let places = [offsets.get(opening), offsets.get(closing)].sort((one, other) => one - other);
      if (enclosed.length) places = [findOutside(words[Math.min(...enclosed)].index, whole, 0), this.findEnd(words[Math.max(...enclosed)], whole)];
      offsets.set(opening, places[0]).set(closing, places[1]);
    }
    const order = [...kept].sort((first, second) => offsets.get(second) - offsets.get(first) || second.begin - first.begin);
    return order.reduce((text, span) => this.insert(text, offsets.get(span), span, kept, sentence), translation);
  }

  /** The end of a word without the marks behind it, and not inside a span. */
  findEnd(word, whole) {
    return findOutside(word.index + trimEnd(word[0], this.closing).length, whole, 1);
  }

  /** The character of a translation in front of which a span is put. */
  findPlace(sentence, kept, number, words, reach, whole) {
    const { begin, end } = kept[number], before = splitWords(takeOut(sentence.slice(0, begin), kept.slice(0, number)));
    const later = kept.slice(number + 1).map((span) => ({ ...span, begin: span.begin - end, end: span.end - end }));
    if (!words.length || !before.length) return 0;
    // What follows stays behind the span, and a stop in front of it.
    if (![...takeOut(sentence.slice(end), later)].some(isWordCharacter)) {
      const last = words.at(-1);
      return this.stops.includes(lastOf(before.at(-1))) ? last.index + last[0].length : this.findEnd(last, whole);
    }
    for (let word = before.length - 1; word >= 0; word--) {
      if (!reach.has(word)) continue;
      const target = words[reach.get(word)];
      return isWordCharacter(lastOf(before.at(-1))) ? this.findEnd(target, whole) : findOutside(target.index + target[0].length, whole, 1);
    }
    return 0;
  }
}

/** A place in a text, or the beginning (0) or end (1) of the span that it is inside of. */
function findOutside(place, whole, edge) {
  return whole.find(([begin, end]) => begin < place && place < end)?.[edge] ?? place;
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

/** A sentence as a model reads it: what stands in for a span has a space to a word beside it, and to another span. */
function standInApart(sentence, kept, texts) {
  let end = -1;
  const apart = kept.map((span, number) => {
    const symbol = texts[number], before = span.begin === end || isWordCharacter(lastOf(sentence.slice(0, span.begin)));
    const behind = isWordCharacter(firstOf(sentence.slice(span.end)));
    end = span.end;
    return symbol && (before ? " " : "") + symbol + (behind ? " " : "");
  });
  const text = standIn(sentence, kept, apart);
  return texts.every(Boolean) ? text : splitWords(text).join(" ");
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

/** The words between two spans of a sentence, counted without all spans. */
function findEnclosed(sentence, kept, opening, closing) {
  const count = ({ begin }) => splitWords(takeOut(sentence.slice(0, begin), kept.filter((span) => span.begin < begin))).length;
  const first = count(opening) - (isWordCharacter(lastOf(sentence.slice(0, opening.begin))) ? 1 : 0);
  return range(Math.max(0, count(closing) - first)).map((n) => first + n);
}

/** A translation with the spans in place of what stood in for them, and the places that these had; null unless it has
 * each as often as the source. */
function putBack(translation, kept, standIns, sentence) {
  const waiting = new Map(), places = [];
  kept.forEach((span, number) => waiting.set(standIns[number], [...waiting.get(standIns[number]) ?? [], span]));
  for (const [symbol, spans] of waiting) {
    const left = /^\p{Nd}/u.test(symbol) ? "(?<![\\p{L}\\p{N}_.,-])" : "", right = /\p{Nd}$/u.test(symbol) ? "(?![\\p{L}\\p{N}_]|[.,:-]\\p{Nd})" : "";
    const matches = [...translation.matchAll(new RegExp(left + escapePattern(symbol) + right, "gu"))];
    if (matches.length !== spans.length) return null;
    matches.forEach(({ index }, n) => places.push({ begin: index, end: index + symbol.length, span: spans[n] }));
  }
  let position = 0, text = "";
  places.sort((first, second) => first.begin - second.begin || first.end - second.end);
  for (const [n, { begin, end, span }] of places.entries()) {
    const rest = translation.slice(end), after = trimBlanks(rest, true, false), bare = trimBlanks(translation.slice(position, begin), false, true);
    const isBesideWord = isWordCharacter(lastOf(bare)), isBesideSpan = n > 0 && !bare;
    let before = translation.slice(position, begin);
    if (isBesideWord && isGlued(sentence, kept, span.begin)) before = bare;
    else if (isBesideSpan && before && places[n - 1].span.end === span.begin) before = "";
    else if ((isBesideWord || isBesideSpan) && before === bare && isSpace(lastOf(sentence.slice(0, span.begin)))) before += " ";
    text += before + span.text;
    position = end;
    // The full stop of the span is that of the sentence too.
    if (span.text.endsWith(".") && translation[end] === "." && sentence[span.end] !== ".") position += 1;
    if (!isWordCharacter(firstOf(after))) continue;
    if (isGlued(sentence, kept, span.end)) position = translation.length - after.length;
    else if (after === rest && isSpace(firstOf(sentence.slice(span.end)))) text += " ";
  }
  return { text: beginLarge(text + translation.slice(position), kept, sentence), places };
}

/** A translation that begins with a term in small letters begins with a capital, unless its sentence does not. */
function beginLarge(text, kept, sentence) {
  const isSmall = (written) => written === written.toLowerCase() && written !== written.toUpperCase();
  const begin = Math.max(0, text.search(/[\p{L}\p{N}]/u)), [first = ""] = sentence.match(/\p{L}/u) ?? [];
  const begins = kept.some((span) => span.kind === "term" && isSmall(span.text) && text.startsWith(span.text, begin));
  return isSmall(first) || !begins ? text : text.slice(0, begin) + text.charAt(begin).toUpperCase() + text.slice(begin + 1);
}

/** Tokens of a translation with the spans at some places of its text: the first token of each has it, others nothing. */
function withSpans(tokens, text, places) {
  const changed = [...tokens], ends = [];
  for (const token of tokens) ends.push((ends.at(-1) ?? 0) + countVisible(token));
  const findToken = (visible) => { const place = ends.findIndex((end) => end >= visible); return place < 0 ? ends.length : place; };
  for (const { begin, end, span } of places) {
    const first = findToken(countVisible(text.slice(0, begin)) + 1), last = findToken(countVisible(text.slice(0, end)));
    if (first >= changed.length) continue;
    const lead = changed[first].startsWith(WORD_BEGINNING) ? WORD_BEGINNING : "";
    for (let place = first; place <= Math.min(last, changed.length - 1); place++) changed[place] = "";
    changed[first] = lead + span.text;
  }
  return changed;
}

/** Source tokens with the spans in place of what stood in for them, from left to right. */
function withSourceSpans(tokens, kept, standIns, sentence) {
  const changed = [...tokens], text = tokens.join("");
  let position = 0;
  for (const [number, { begin: from, end: to }] of kept.entries()) {
    const begin = text.indexOf(standIns[number], position);
    if (begin < 0) break;
    position = begin + standIns[number].length;
    let length = 0;
    for (const [place, token] of tokens.entries()) {
      const isFirst = length <= begin;
      if (length < position && begin < length + token.length) changed[place] = isFirst ? token.slice(0, begin - length) + sentence.slice(from, to) : "";
      length += token.length;
    }
  }
  return changed;
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

/** Links in which a span of the source leads to the same span only: link_same_words of nmt/translation/words.py. */
function linkSameWords(links, source, target, spans) {
  const { marks } = data.protection, bare = (word) => trimEnd([...trimEnd([...word].reverse(), marks)].reverse().join(""), marks) || word;
  const names = new Set([...spans].map(bare)), places = Map.groupBy(source.keys(), (number) => bare(source[number]));
  const same = target.map((word) => (names.has(bare(word)) ? places.get(bare(word)) ?? [] : [])), taken = new Set(same.flat());
  return target.flatMap((_, number) => {
    const found = links.filter(([, linked]) => linked === number), right = found.filter(([place]) => same[number].includes(place));
    if (same[number].length) return right.length ? right : [[same[number][0], number]];
    return found.filter(([place]) => !taken.has(place));
  });
}

/** Number of the characters of a text that are seen. */
function countVisible(text) {
  return [...text.replace(new RegExp(`[${BLANK}${WORD_BEGINNING}]|${data.protection.control}`, "gu"), "")].length;
}

/** Gives the words that each of some tokens is part of, counting visible characters from left to right. */
function takeWords(words) {
  let owners = words.flatMap((word, number) => Array(countVisible(word)).fill(number)), taken = 0;
  if (!owners.length && words.length) owners = [0];
  return (token) => {
    const begin = taken;
    taken += countVisible(token);
    const found = owners.slice(begin, Math.max(taken, begin + 1));
    return [...new Set(found.length ? found : owners.slice(-1))];
  };
}
