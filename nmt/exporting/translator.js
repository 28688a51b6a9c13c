"use strict";
{
  const SLICE = 25, PAUSE = 150; // milliseconds of work at a time; milliseconds without a key before it begins
  const LONGEST_DRAWN = 100; // source tokens whose attention is drawn
  const longest = Math.min(1000, (data.model.encoder.learned_positions ?? Infinity) - 1); // source tokens that are read
  const END = "⟨eos⟩";
  const EXAMPLES = {
    cs: "Ona čte knihu.", de: "Sie liest ein Buch.", en: "She is reading a book.", es: "Ella lee un libro.", fr: "Elle lit un livre.",
    it: "Lei legge un libro.", ja: "彼女は本を読んでいる。", pt: "Ela lê um livro.", ru: "Она читает книгу.", zh: "她在看书。",
  };
  const [source, target] = data.languages, example = EXAMPLES[source.slice(0, 2)] ?? "", tokens = (data.text.tgt.tokens ?? data.text.src.tokens).map((token, id) => (id === EOS ? END : token));
  const processor = new TextProcessor(data.text), known = new Map();
  let latest = 0, timer = 0;

  /** A function that finds the weights of the page by name, as float32 numbers. */
  function expand({ names, shapes }) {
    const text = atob(at("weights").textContent), content = new Uint8Array(text.length);
    for (let n = 0; n < text.length; n++) content[n] = text.charCodeAt(n);
    at("weights").remove();
    let place = 0;
    const take = (Type, length) => new Type(content.buffer.slice(place, place += length * Type.BYTES_PER_ELEMENT));
    const all = shapes.map(([rows, columns]) => {
      if (columns === undefined || rows === 1) return { values: take(Float32Array, rows * (columns ?? 1)), rows, columns };
      const scales = take(Float32Array, rows), rounded = take(Int8Array, rows * columns), values = new Float32Array(rows * columns);
      for (let n = 0; n < values.length; n++) values[n] = rounded[n] * scales[Math.trunc(n / columns)];
      return { values, rows, columns };
    });
    return (name) => all[names[name]];
  }
  const network = new Network(data.model, expand(data.weights));

  /** The sentences of a text. */
  function split(text) {
    const ends = /\n+|(?<=[.!?\u2026\u061f\u06d4\u0964]["'\u2019\u201d\u00bb)\]]*)\s+(?=\P{Ll})|(?<=[\u3002\uff01\uff1f]["'\u2019\u201d\u300d\u300f\uff09]*)(?=[^"'\u2019\u201d\u300d\u300f\uff09\s])/u;
    return text.split(ends).map((sentence) => sentence.trim()).filter(Boolean);
  }

  /** The text of a translation; an unknown word becomes the source word that was read most to write it. */
  function render(steps, src) {
    const positions = range(src.length + 1), written = steps.filter(({ word }) => word !== EOS);
    return processor.join(written.map(({ word, alignment }) => {
      if (word !== UNK || !data.decode.replace_unknown) return tokens[word];
      const sums = positions.map((s) => alignment.reduce((sum, weight, n) => sum + (n % positions.length === s ? weight : 0), 0));
      const most = Math.max(...sums);
      return (most && src[sums.indexOf(most)]) || tokens[UNK];
    }));
  }

  /** What the explorer shows of a search; see _encode in nmt/inspection/explorer_page.py. */
  function describe(text, src, { nodes, ends }) {
    const best = trace(nodes, ends[0]), size = nodes[0].alignment.length, weights = new Uint8Array(nodes.length * size);
    nodes.forEach(({ alignment }, n) => weights.set(alignment.map((weight) => Math.round(255 * weight)), n * size));
    const found = {
      src: [...src, END], heads: size / (src.length + 1), best: ends, ref: null,
      p: nodes.map(({ parent }) => parent), l: nodes.map(({ word }) => tokens[word]),
      lp: nodes.map(({ total }) => total), sc: nodes.map(({ score }) => score),
      text: Object.fromEntries(ends.map((end) => [end, render(trace(nodes, end), src)])),
      steps: { top: best.map(({ top }) => top.flatMap(([word, value]) => [word, Math.round(1000 * Math.exp(value))])), agree: [] },
      measures: { length: src.length, "log-probability": best.at(-1).total / best.length },
    };
    decoded.set(found, weights);
    return { source: text, reference: null, gold: null, of: [found], words: tokens };
  }

  /** Translate a sentence in slices, so that one can go on typing; null if another text was asked for meanwhile. */
  async function translate(sentence, isLatest, showPart) {
    const all = processor.tokenize(sentence), src = all.slice(0, longest), cut = all.length > longest;
    if (!src.length) return { text: "" };
    const work = search(network, processor.encode(src), data.decode);
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
    return { text: render(trace(nodes, ends[0]), src), cut, item: src.length <= LONGEST_DRAWN ? describe(sentence, src, step.value) : null };
  }

  /** Translate what is in the box, or the example, and show it. */
  async function look() {
    const asked = ++latest, isLatest = () => asked === latest, text = at("text").value.trim() || example;
    const sentences = split(text), done = [], glue = /^(zh|yue|ja)\b/.test(target) ? "" : " ";
    const say = (text) => { at("asked").textContent = text; };
    const show = (part = "") => { at("result").textContent = [...done.map((one) => one.text), part].filter(Boolean).join(glue); };
    say("");
    at("result").setAttribute("aria-busy", true);
    try {
      for (const sentence of sentences) {
        if (!known.has(sentence)) {
          const one = await translate(sentence, isLatest, show);
          if (!one) return;
          known.set(sentence, one);
        }
        done.push(known.get(sentence));
      }
      show();
    } catch (error) { say(`Not translated: ${error.message}`); }
    at("result").setAttribute("aria-busy", false);
    data.items = done.map(({ item }) => item).filter(Boolean);
    if (done.some(({ item }) => item === null)) say(`Sentences of more than ${LONGEST_DRAWN} tokens are not drawn.`);
    if (done.some(({ cut }) => cut)) say(`Of a sentence the first ${longest} tokens are read.`);
    go({ ...initial, u: state.u, o: state.o, h: state.h, s: Math.max(0, data.items.length - 1) });
  }

  /** Translate what the address names. */
  function open() {
    const wanted = new URLSearchParams(location.hash.slice(1)).get("q");
    if (wanted !== null && wanted !== at("text").value) at("text").value = wanted;
    look();
  }

  at("text").placeholder = example || at("text").placeholder;
  data.network = network;
  data.asked = () => ({ s: 0, ...(at("text").value && { q: at("text").value }) });
  on("text", "input", () => { clearTimeout(timer); latest += 1; timer = setTimeout(look, PAUSE); });
  addEventListener("hashchange", open);
  open();
}
