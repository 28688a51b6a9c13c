"use strict";
{
  const SLICE = 25, PAUSE = 150; // milliseconds of work at a time; milliseconds without a key before it begins
  const LONGEST_DRAWN = 100, LONGEST = 1000; // source tokens whose attention is drawn, and that are read
  const END = "⟨eos⟩";
  const LETTERS = /\p{L}+/gu, SHORT = 3, RARE = 1 << 24; // words; letters of the longest that need no capital; more than any id
  const EXAMPLES = {
    cs: "Ona čte knihu.", de: "Sie liest ein Buch.", en: "She is reading a book.", es: "Ella lee un libro.", fr: "Elle lit un livre.",
    it: "Lei legge un libro.", ja: "彼女は本を読んでいる。", pt: "Ela lê um livro.", ru: "Она читает книгу.", zh: "她在看书。",
  };
  const example = EXAMPLES[data.source] ?? "", known = new Map();
  let latest = 0, timer = 0;

  /** A function that finds the weights of a model by name, as float32 numbers. */
  function expand({ names, shapes }, holder) {
    const text = atob(holder.textContent), content = new Uint8Array(text.length);
    for (let n = 0; n < text.length; n++) content[n] = text.charCodeAt(n);
    holder.remove();
    let place = 0;
    const take = (Type, length) => new Type(content.buffer.slice(place, place += length * Type.BYTES_PER_ELEMENT));
    const all = shapes.map(([rows, columns]) => {
      if (columns === undefined) return { values: take(Float32Array, rows) };
      if (rows === 1) { const exact = take(Float32Array, columns); return toMatrix(1, columns, (n) => exact[n]); }
      const scales = take(Float32Array, rows), rounded = take(Int8Array, rows * columns);
      return toMatrix(rows, columns, (n) => rounded[n] * scales[Math.trunc(n / columns)]);
    });
    return (name) => all[names[name]];
  }
  for (const [n, one] of data.models.entries()) {
    one.network = new Network(one.model, expand(one.weights, at(`weights${n}`)));
    one.processor = new TextProcessor(one.text);
    one.tokens = (one.text.tgt.tokens ?? one.text.src.tokens).map((token, id) => (id === EOS ? END : token));
    one.longest = Math.min(LONGEST, (one.model.encoder.learned_positions ?? Infinity) - 1);
    one.result = at(`result${n || ""}`);
  }

  /** Whether a text has several words, all in capitals; what has no letter is none. */
  function isInCapitals(text) {
    return text === text.toUpperCase() && text.split(/\s/).filter((word) => word !== word.toLowerCase()).length > 1;
  }

  /** How rare a word is in training text: its number of tokens, and of a single one its rank by frequency. */
  function rarity(word) {
    const { processor } = data.models[0], ids = processor.encode(processor.tokenize(word));
    return ids.length > 1 || ids[0] === UNK ? ids.length * RARE + RARE - 1 : RARE + ids[0];
  }

  /** An English title as a sentence, other text as it is: is_title and untitle of nmt/text/sentences.py. */
  function untitle(text) {
    const words = text.match(LETTERS) ?? [], isLong = (word) => word.length > SHORT, isLarge = (word) => /^\p{Lu}/u.test(word);
    const large = words.slice(1).filter((word) => isLong(word) && isLarge(word)).length;
    if (large < 2 || text.endsWith(".") || words.some((word) => isLong(word) && !isLarge(word))) return text;
    let place = 0;
    return text.replace(LETTERS, (word) => {
      const small = word.toLowerCase(), isSet = place++ && word.slice(1) === small.slice(1);
      return isSet && rarity(small) < rarity(word) ? small : word;
    });
  }

  const END_MARKS = ".!?\u2026\u203d\u2047-\u2049\u0589\u061f\u06d4\u0964\u0965\u104b\u1362\u17d4", WIDE_MARKS = "\u3002\uff01\uff0e\uff1f\uff61";
  const QUOTES = "\"'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a", OPENING = "(\\[\\{\u300c\u300e\uff08\u00bf\u00a1\u2013\u2014\\-";
  const BOUNDARY = new RegExp(
    `(?<![${END_MARKS}${WIDE_MARKS}])(?<end>[${END_MARKS}${WIDE_MARKS}]+)` +
    `(?:(?<=[${WIDE_MARKS}])[\u2019\u201d\u300d\u300f\uff09]*\\s*|(?<=[${END_MARKS}])[${QUOTES})\\]\\}]*\\s+)` +
    `(?=[${QUOTES}${OPENING}]*(?<first>[^\\s${END_MARKS}${WIDE_MARKS}]))`, "gu");
  const PICTURE = "\u2600-\u27bf\u2b50\u2b55\u{1f000}-\u{1faff}";
  const EMOJI = new RegExp(`[${PICTURE}][${PICTURE}${END_MARKS}${WIDE_MARKS}\ufe0e\ufe0f\u200d\u20e3\\s]*`, "gu");
  const rules = data.abbreviations && Object.fromEntries(Object.entries(data.abbreviations).map(([name, words]) => [name, Array.isArray(words) ? new Set(words) : words]));

  /** Whether a full stop ends a sentence: Abbreviations.ends_sentence of nmt/text/abbreviations.py. */
  function endsWord(before, decorated, following) {
    const bare = (text) => text.replace(new RegExp(`^[${QUOTES}${OPENING}]+`, "u"), ""), word = bare(decorated);
    if (rules.titles.has(word)) return false;
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
    const rest = text.slice(begun).replace(new RegExp(`^[${QUOTES}${OPENING}]+`, "u"), "");
    const [following = ""] = rest.match(/^\p{L}+(?=n['\u2019]t\b)|^\p{L}+/u) ?? [];
    if (/^\p{L}\./u.test(rest) && /^\p{L}\.$/u.test(word)) return false; // J. F. Kennedy
    return word.length === 1 || endsWord(words.at(-2) ?? "", word, following);
  }

  /** The sentences of a line with what stands in front of each, and behind the last: Reader.read of nmt/translation. */
  function split(text) {
    const cuts = [0];
    for (const match of text.matchAll(BOUNDARY)) {
      const begun = match.index + match[0].length;
      if (endsSentence(text, match, begun)) cuts.push(begun);
    }
    cuts.push(text.length);
    const places = cuts.slice(1).flatMap((end, n) => withoutEmoji(text, cuts[n], end));
    const edges = [0, ...places.flat(), text.length];
    return {
      sentences: places.map(([begin, end]) => read(text.slice(begin, end))),
      gaps: [...places, null].map((_, n) => text.slice(edges[2 * n], edges[2 * n + 1]).replace(/[\v\f\x1c-\x1e\x85\u2028\u2029]/gu, " ")),
    };
  }

  /** The places of a sentence, and of the emoji in front of it or behind it, without blanks around them. */
  function withoutEmoji(text, begin, end) {
    const strip = ([from, to]) => {
      const part = text.slice(from, to);
      return [to - part.trimStart().length, from + part.trimEnd().length];
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

  /** Whether a sentence is read in small letters: several words in capitals, or a word that is more usual so. */
  function isRead(sentence) {
    if (isInCapitals(sentence)) return true;
    const words = sentence.match(LETTERS) ?? [];
    if (words.length !== 1 || [...words[0]].length < 2 || words[0] !== words[0].toUpperCase() || words[0] === words[0].toLowerCase()) return false;
    return rarity(capitalize(words[0])) < rarity(words[0]);
  }

  /** A sentence as the model reads it, and what sets its translation in capitals if it is. */
  function read(sentence) {
    const isSmall = isRead(sentence), text = isSmall ? capitalize(sentence) : sentence;
    return {
      written: sentence,
      text: data.source === "en" ? untitle(text) : text,
      set: isSmall ? (translation) => toCapitals(translation, data.casings[1]) : String,
    };
  }

  /** A text in small letters but for its first one. */
  function capitalize(text) {
    return toCapitals(text.slice(0, 1), data.casings[0]) + toSmall(text.slice(1), data.casings[0]);
  }

  /** The text of a translation; an unknown word becomes the source word that was read most to write it. */
  function render({ processor, tokens, decode }, steps, src) {
    const positions = range(src.length + 1), written = steps.filter(({ word }) => word !== EOS);
    return processor.join(written.map(({ word, alignment }) => {
      if (word !== UNK || !decode.replace_unknown) return tokens[word];
      const sums = positions.map((s) => alignment.reduce((sum, weight, n) => sum + (n % positions.length === s ? weight : 0), 0));
      const most = Math.max(...sums);
      return (most && src[sums.indexOf(most)]) || tokens[UNK];
    }));
  }

  /** What the explorer shows of a model's search; see _encode in nmt/inspection/explorer_page.py. */
  function describe(model, src, { nodes, ends }) {
    const { tokens } = model;
    const best = trace(nodes, ends[0]), size = nodes[0].alignment.length, weights = new Uint8Array(nodes.length * size);
    nodes.forEach(({ alignment }, n) => weights.set(alignment.map((weight) => Math.round(255 * weight)), n * size));
    const found = {
      src: [...src, END], heads: size / (src.length + 1), best: ends, ref: null,
      p: nodes.map(({ parent }) => parent), l: nodes.map(({ word }) => tokens[word]),
      lp: nodes.map(({ total }) => total), sc: nodes.map(({ score }) => score),
      text: Object.fromEntries(ends.map((end) => [end, render(model, trace(nodes, end), src)])),
      steps: { top: best.map(({ top }) => top.flatMap(([word, value]) => [word, Math.round(1000 * Math.exp(value))])), agree: [] },
      words: tokens,
      measures: { length: src.filter((token) => token.startsWith("▁")).length, "log-probability": best.at(-1).total / best.length },
    };
    decoded.set(found, weights);
    return found;
  }

  /** Translate a sentence in slices, so that one can go on typing; null if another text was asked for meanwhile. */
  async function translate(model, sentence, isLatest, showPart) {
    const { processor, network, decode, tokens, longest } = model;
    const all = processor.tokenize(sentence.text), letters = all.filter((token) => /\p{L}/u.test(token));
    // What the model cannot read stays as it is.
    if (processor.encode(letters).every((id) => id === UNK)) return { text: sentence.written };
    const src = all.slice(0, longest), cut = all.length > longest && longest;
    const work = search(network, processor.encode(src), decode);
    let step = work.next();
    for (let slice = performance.now(); !step.done; step = work.next()) {
      if (performance.now() - slice < SLICE) continue;
      if (step.value) showPart(processor.join(step.value.map((word) => tokens[word])));
      await new Promise((resolve) => { setTimeout(resolve); });
      if (!isLatest()) return null;
      slice = performance.now();
    }
    const { nodes, ends } = step.value;
    if (!ends.length) throw new Error("the model’s probabilities are not finite");
    return { text: sentence.set(render(model, trace(nodes, ends[0]), src)), cut, found: src.length <= LONGEST_DRAWN ? describe(model, src, step.value) : null };
  }

  /** Translate what is in the box, or the example, and show it. */
  async function look() {
    const asked = ++latest, isLatest = () => asked === latest, box = at("text").value, text = decodeControl(box.trim() ? box : example, data.models[0].text.repairs);
    const lines = text.split(/\r?\n/).map((line) => ({ ...split(line), done: [] }));
    const sentences = lines.flatMap((line) => line.sentences);
    const say = (text) => { at("asked").textContent = text; };
    const show = (n, begun = lines, part = "") => {
      const written = begun.map(({ done, gaps, sentences }, line) => {
        const isLast = line === begun.length - 1, texts = done.map((each) => each[n].text);
        if (isLast && part) texts.push(sentences[texts.length].set(part));
        const glued = texts.map((text, place) => (place ? (["", " "].includes(gaps[place]) ? data.glue : gaps[place]) : gaps[0]) + text);
        return (glued.join("") || gaps[0]) + (done.length === sentences.length && done.length ? gaps.at(-1) : "");
      });
      data.models[n].result.textContent = written.join("\n");
    };
    const setBusy = (busy) => data.models.forEach(({ result }) => result.setAttribute("aria-busy", busy));
    say("");
    setBusy(true);
    try {
      for (const [number, line] of lines.entries()) {
        const begun = lines.slice(0, number + 1);
        for (const sentence of line.sentences) {
          const each = known.get(sentence.written) ?? [];
          for (const [n, model] of data.models.entries()) {
            each[n] ??= await translate(model, sentence, isLatest, (part) => show(n, begun, part));
            if (!each[n]) return;
            show(n, begun, each[n].text);
          }
          known.set(sentence.written, each);
          line.done.push(each);
        }
      }
      data.models.forEach((_, n) => show(n));
    } catch (error) { say(`Not translated: ${error.message}`); }
    setBusy(false);
    const done = lines.flatMap((line) => line.done);
    const drawn = done.map((each, n) => ({ source: sentences[n].text, reference: null, gold: null, of: each.map(({ found }) => found) }));
    data.items = drawn.filter(({ of }) => of.every(Boolean));
    if (drawn.some(({ of }) => of.includes(null))) say(`Sentences of more than ${LONGEST_DRAWN} tokens are not drawn.`);
    const cuts = done.flat().flatMap(({ cut }) => cut || []);
    if (cuts.length) say(`Of a sentence the first ${Math.min(...cuts)} tokens are read.`);
    go({ ...initial, m: state.m, u: state.u, o: state.o, h: state.h, s: Math.max(0, data.items.length - 1) });
  }

  /** Translate what the address names. */
  function open() {
    const wanted = new URLSearchParams(location.hash.slice(1)).get("q");
    if (wanted !== null && wanted !== at("text").value) at("text").value = wanted;
    look();
  }

  at("text").placeholder = example || at("text").placeholder;
  data.asked = () => ({ s: 0, ...(at("text").value && { q: at("text").value }) });
  on("text", "input", () => { clearTimeout(timer); latest += 1; timer = setTimeout(look, PAUSE); });
  addEventListener("hashchange", open);
  open();
}
