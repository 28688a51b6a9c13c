"use strict";
const PARTS = { encoder: "Encoder: the source reads itself", decoder: "Decoder: each word reads those before it", source: "Decoder: each word reads the source" };

/** What a model did with the shown target: tokens, and the weights of all heads if they are stored for it. */
function readWithHeads(m) {
  const view = read(data.items[state.s], m, m === state.m || state.y === "r" ? state.y : "0", 0);
  return view.steps?.heads ? view : null;
}

/** One head: tokens of its rows and columns, and its weights, [rows][columns]. */
function headMap(view, part, n) {
  const words = ["⟨bos⟩", ...view.tgt.slice(0, -1)];
  const [tgt, src] = { encoder: [view.src, view.src], decoder: [words, words], source: [view.tgt, view.src] }[part];
  return { tgt, src, w: row(view.steps.heads[part], n, tgt.length, src.length) };
}

function drawThumbnail({ tgt, src, w }) {
  const canvas = html("canvas", { width: src.length, height: tgt.length, "aria-hidden": "true" }), context = canvas.getContext("2d"), mirrored = rightToLeft(src);
  context.fillStyle = colour("accent");
  w.forEach((weights, t) => weights.forEach((weight, s) => {
    context.globalAlpha = weight;
    context.fillRect(mirrored ? src.length - 1 - s : s, t, 1, 1);
  }));
  return canvas;
}

/** The heads of one part of a model, a line a layer, and the enlarged one. */
function drawPart(m, part, view) {
  const heads = data.systems[m].heads[part], layer = (n) => heads[n][0].split(".")[0], all = range(heads.length);
  const layers = all.filter((n) => !n || layer(n) !== layer(n - 1)).map((first) => all.filter((n) => layer(n) === layer(first)));
  const name = (n) => `layer ${heads[n][0].replace(".", ", head ")}`, id = (n) => `${m}.${part}.${n}`;
  const lines = layers.map((numbers) => html("div", { class: "heads" }, ...numbers.map((n) => html("button", { type: "button", "aria-pressed": state.a === id(n), "aria-label": `${PARTS[part]}, ${name(n)}${heads[n][1] && `, ${heads[n][1]}`}`, "data-key": `head-${id(n)}`, onclick: () => go({ a: state.a === id(n) ? "" : id(n) }) }, drawThumbnail(headMap(view, part, n)), html("span", {}, heads[n][0]), html("span", {}, heads[n][1])))));
  const chosen = all.find((n) => state.a === id(n)), enlarged = [];
  if (chosen !== undefined) {
    const map = headMap(view, part, chosen);
    enlarged.push(html("h3", {}, `${name(chosen)}${heads[chosen][1] && `: ${heads[chosen][1]}`}`), html("div", { class: "scroll", "data-enlarged": id(chosen) }, drawGrid(map, map.w, (value, t, s) => `${map.tgt[t]} ← ${map.src[s]}: ${number(value, 3)}`, { chosen: part === "source" ? state.t : null, axes: ["reads", "is read"] })));
  }
  return html("div", {}, html("h3", {}, PARTS[part]), ...lines, ...enlarged);
}

/** Small multiples of every head of every model whose heads are on the page. */
function drawHeads() {
  const models = range(data.systems.length).filter((m) => data.systems[m].heads.source);
  const several = models.some((m) => Object.values(data.systems[m].heads).flat().length > 1);
  at("heads-part").hidden ||= !several;
  show("heads", ...models.flatMap((m) => {
    const view = readWithHeads(m), title = models.length > 1 ? [html("h2", {}, data.systems[m].name)] : [];
    const parts = Object.keys(PARTS).filter((part) => data.systems[m].heads[part]);
    return [...title, view ? html("div", { class: "parts" }, ...parts.map((part) => drawPart(m, part, view))) : html("p", { class: "small" }, "Heads are stored for the best translation and the reference.")];
  }));
}
