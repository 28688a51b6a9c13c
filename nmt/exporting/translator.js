"use strict";
{
  const SLICE = 25, PAUSE = 150; // milliseconds of work at a time; milliseconds without a key before it begins
  const LONGEST_DRAWN = 100, LONGEST = 1000; // source tokens whose attention is drawn, and that are read
  const END = "⟨eos⟩";
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
    one.reservedIds = one.processor.encode([...one.reserved.placeholders, ...one.reserved.marks]);
    one.tokens = (one.text.tgt.tokens ?? one.text.src.tokens).map((token, id) => (id === EOS ? END : token));
    one.longest = Math.min(LONGEST, (one.model.encoder.learned_positions ?? Infinity) - 1);
    one.result = at(`result${n || ""}`);
  }

  /** The tokens of a translation; an unknown word becomes the source word that was read most to write it. */
  function write({ tokens, decode, reserved }, steps, src) {
    const positions = range(src.length + 1), words = src.map((token) => ([...reserved.placeholders, ...reserved.marks].includes(token) ? tokens[UNK] : token));
    return steps.filter(({ word }) => word !== EOS).map(({ word, alignment }) => {
      if (word !== UNK || !decode.replace_unknown) return tokens[word];
      const sums = positions.map((s) => alignment.reduce((sum, weight, n) => sum + (n % positions.length === s ? weight : 0), 0));
      const most = Math.max(...sums);
      return (most && words[sums.indexOf(most)]) || tokens[UNK];
    });
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
      text: Object.fromEntries(ends.map((end) => [end, model.processor.join(write(model, trace(nodes, end), src))])),
      steps: { top: best.map(({ top }) => top.flatMap(([word, value]) => [word, Math.round(1000 * Math.exp(value))])), agree: [] },
      words: tokens,
      measures: { length: src.filter((token) => token.startsWith("▁")).length, "log-probability": best.at(-1).total / best.length },
    };
    decoded.set(found, weights);
    return found;
  }

  /** Translate a sentence in slices, so that one can go on typing; null if another text was asked for meanwhile. */
  async function translate(model, sentence, isLatest, showPart) {
    let asked = sentence;
    for (let way = chooseWay(asked, model); ; ) {
      const unit = draft(asked, way, model), found = await translateAsRead(model, unit, isLatest, showPart);
      if (!found || found.isCopied) return found;
      const text = found.runsAway ? null : finish(found, unit, model.processor);
      if (text !== null) return { ...found, text };
      ({ asked, way } = readAgain(asked, unit.way, model));
    }
  }

  /** Translate a sentence with what stands in for its spans: text, tokens of both sides, and the mean attention of each step. */
  async function translateAsRead({ processor, network, decode, tokens, longest, reserved, reservedIds }, unit, isLatest, showPart) {
    const all = processor.tokenize(unit.text), letters = all.filter((token) => /\p{L}/u.test(token));
    // What has no letters, and what the model cannot read, stays as it is.
    const unknown = processor.encode(letters).filter((id) => id === UNK).length;
    if (unit.isCopied || unknown === letters.length) return { text: unit.whole, isCopied: true, isUnread: unknown > 0 };
    const src = all.slice(0, longest), cut = all.length > longest && longest;
    const demanded = unit.way === "placeholders" ? processor.encode(unit.standIns.filter(Boolean)) : [];
    const work = search(network, processor.encode(src), decode, { reserved: reservedIds, demanded });
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
    const steps = trace(nodes, ends[0]), heads = steps[0].alignment.length / (src.length + 1);
    const tgt = write({ tokens, decode, reserved }, steps, src);
    return {
      text: processor.join(tgt), src, tgt, cut,
      rows: steps.map(({ alignment }) => mean(range(heads).map((head) => [...alignment].slice(head * (src.length + 1), (head + 1) * (src.length + 1))))),
      // The search then made the model write what it did not want to write.
      runsAway: ["placeholders", "numbers"].includes(unit.way) && steps.length >= findLongest(decode, src.length + 1),
      read: unit.text, found: src.length <= LONGEST_DRAWN ? describe({ processor, tokens, decode, reserved }, src, step.value) : null,
    };
  }

  /** Translate what is in the box, or the example, and show it. */
  async function look() {
    const asked = ++latest, isLatest = () => asked === latest, box = at("text").value, text = decodeControl(box.trim() ? box : example, data.models[0].text.repairs);
    const lines = text.split(/\r?\n/).map((line) => ({ ...split(line), done: [] }));
    const sentences = lines.flatMap((line) => line.sentences);
    const say = (text) => { at("asked").textContent = text; };
    const show = (n, begun = lines, part = "") => {
      const written = begun.map(({ done, gaps, sentences }, line) => {
        const isLast = line === begun.length - 1, parts = done.map((each) => each[n]);
        if (isLast && part) parts.push({ text: part });
        const isUsual = (place) => gaps[place] === " " || (gaps[place] === "" && !parts[place - 1].isCopied && !parts[place].isCopied);
        const glued = parts.map(({ text }, place) => (place && isUsual(place) ? data.glue : gaps[place]) + text);
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
          const key = JSON.stringify(sentence), each = known.get(key) ?? [];
          for (const [n, model] of data.models.entries()) {
            each[n] ??= await translate(model, sentence, isLatest, (part) => show(n, begun, part));
            if (!each[n]) return;
            show(n, begun, each[n].text);
          }
          known.set(key, each);
          line.done.push(each);
        }
      }
      data.models.forEach((_, n) => show(n));
    } catch (error) { say(`Not translated: ${error.message}`); }
    setBusy(false);
    const done = lines.flatMap((line) => line.done);
    const drawn = done.map((each, n) => ({ source: each[0].read ?? sentences[n].written, reference: null, gold: null, of: each.map(({ found }) => found) }));
    data.items = drawn.filter(({ of }) => of.every(Boolean));
    if (drawn.some(({ of }) => of.includes(null))) say(`Sentences of more than ${LONGEST_DRAWN} tokens are not drawn.`);
    const unread = done.flat().filter(({ isUnread }) => isUnread).length;
    if (unread) say(`${unread === 1 ? "1 sentence is" : `${unread} sentences are`} unchanged: the model knows none of the words.`);
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
