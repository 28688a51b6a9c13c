"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const on = (id, type, act) => at(id).addEventListener(type, act);
const state = { s: 0, m: 0, y: "0", h: 0, t: 0, u: 0, v: 0, d: 0, g: 0, k: "order", a: "", o: "" };
const toggles = { difference: "d", guess: "g" };
let playing = 0;
const right = { guesses: 0, hits: 0, at: "" };

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
const html = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const number = (value, digits = 2) => ((value ?? null) === null ? "–" : value.toFixed(digits).replace(/^-(?=[0.]+$)/, ""));
const range = (length) => Array.from({ length }, (_, n) => n);
const within = (place, length) => Math.max(0, Math.min(place, length - 1));
const quote = (word) => `“\u2068${word}\u2069”`;
const percent = (share, digits = 0) => `${number(100 * share, digits)}%`;
const rightToLeft = (tokens) => /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(tokens.join(""));

const decoded = new WeakMap();
function bytes(owner) {
  if (!decoded.has(owner)) decoded.set(owner, Uint8Array.from(atob(owner.w), (each) => each.charCodeAt(0)));
  return decoded.get(owner);
}
/** The weights at a place among those of an owner: of a row, [heads][sources], or of a head, [rows][columns]. */
function row(owner, index, heads, sources) {
  const all = bytes(owner), start = index * heads * sources;
  return range(heads).map((h) => Array.from(all.subarray(start + h * sources, start + (h + 1) * sources), (value) => value / 255));
}
/** Rows of numbers stored in hundredths. */
function hundredths(text, columns) {
  const all = new DataView(Uint8Array.from(atob(text), (each) => each.charCodeAt(0)).buffer), rows = [];
  for (let n = 0; n + columns <= all.byteLength / 2; n += columns) rows.push(range(columns).map((k) => all.getInt16(2 * (n + k), true) / 100));
  return rows;
}
const mean = (rows) => rows[0].map((_, n) => rows.reduce((sum, each) => sum + each[n], 0) / rows.length);

function path(tree, end) {
  const found = [];
  for (let node = end; node >= 0; node = tree.p[node]) found.unshift(node);
  return found;
}

/** What is shown of a model: tokens, weights of the chosen head, and its known steps. */
function read(item, system, y, head) {
  const found = item.of[system], src = found.src, heads = found.heads;
  const pick = (rows) => (head && head <= heads ? rows[head - 1] : mean(rows));
  if (y === "r" && found.ref) {
    const ref = found.ref, frame = found.frames?.[state.v - 1];
    return { found, src, tgt: ref.l, lp: frame ? null : ref.lp, w: ref.l.map((_, t) => pick(row(frame ?? ref, t, heads, src.length))), steps: frame ? null : ref, text: ref.text };
  }
  const end = y[0] === "n" ? Number(y.slice(1)) : found.best[Number(y)] ?? found.best[0];
  const nodes = path(found, end ?? found.p.length - 1);
  const total = (node) => (node < 0 ? 0 : found.lp[node]);
  return {
    found, src, nodes, tgt: nodes.map((node) => found.l[node]),
    lp: nodes.map((node) => total(node) - total(found.p[node])),
    w: nodes.map((node) => pick(row(found, node, heads, src.length))),
    steps: end === found.best[0] ? found.steps : null, text: found.text[end] ?? "",
  };
}

/** Tokens grouped into words, by counting characters: [[first, ...], ...]. */
function words(tokens, subwords, text) {
  const owners = subwords || !text ? null : text.split(/\s+/).filter(Boolean).flatMap((word, n) => Array(word.length).fill(n));
  const groups = [];
  let taken = 0, last;
  tokens.forEach((token, n) => {
    const owner = owners?.[taken];
    const starts = !groups.length || token === "⟨eos⟩" || (owners ? owner !== last : !subwords || token.startsWith("▁"));
    taken += token.replace(/\s/g, "").length;
    last = owner;
    if (starts) groups.push([n]); else groups[groups.length - 1].push(n);
  });
  return groups;
}
function inWords(view, subwords, source) {
  const src = words(view.src, subwords[0], source), tgt = words(view.tgt, subwords[1], view.text);
  const label = (tokens, group) => group.map((n) => tokens[n]).join("").replaceAll("▁", "");
  const merge = (rows) => tgt.map((ts) => src.map((ss) => ts.reduce((sum, t) => sum + ss.reduce((part, s) => part + (rows[t][s] ?? 0), 0), 0) / ts.length));
  return {
    ...view, src: src.map((group) => label(view.src, group)), tgt: tgt.map((group) => label(view.tgt, group)),
    w: merge(view.w), lp: view.lp && tgt.map((group) => group.reduce((sum, t) => sum + view.lp[t], 0)),
    steps: null, occ: null,
  };
}
function current(system = state.m) {
  const y = system === state.m || state.y === "r" ? state.y : "0", view = read(data.items[state.s], system, y, state.h);
  if (state.u) return inWords(view, data.systems[system].subwords, data.items[state.s].source);
  return { ...view, occ: view.steps?.occ ? hundredths(view.steps.occ, view.src.length - 1) : null };
}

const size = (() => {
  const context = document.createElement("canvas").getContext("2d");
  context.font = "14px system-ui, sans-serif";
  return (text) => context.measureText(text).width;
})();
const show = (id, ...children) => at(id).replaceChildren(...children);

function drawMaps(view) {
  const item = data.items[state.s], name = (m) => data.systems[m].name, next = (state.m + 1) % data.systems.length, other = next === state.m ? null : current(next);
  const alike = other && other.src.join(" ") === view.src.join(" ") && other.tgt.join(" ") === view.tgt.join(" "), subtract = state.d && alike;
  const describe = ({ tgt, src }) => (value, t, s) => `${tgt[t]} ← ${src[s]}: ${number(value, 3)}`;
  const gold = state.y === "r" ? goldLinks(item, view) : [], difference = { signed: true, ends: [`${name(next)} 1 more`, `${name(state.m)} 1 more`] };
  at("map-title").textContent = subtract ? `${name(state.m)} minus ${name(next)}` : state.d && other ? `${name(state.m)} (no difference: its tokens are others${item.of[state.m].ref ? "; those of the reference are the same" : ""})` : `Weights of ${name(state.m)}`;
  at("links-of-people").hidden = !gold.length;
  at("windows").hidden = !view.steps?.focus;
  show("map", drawGrid(view, subtract ? view.w.map((weights, t) => weights.map((weight, s) => weight - other.w[t][s])) : view.w, describe(view), { gold, focus: view.steps?.focus, ...(subtract ? difference : {}) }));
  at("beside-title").textContent = other ? `Weights of ${name(next)}` : "";
  show("beside", ...(other ? [drawGrid(other, other.w, describe(other), { chosen: alike ? state.t : null })] : []));
  at("occlusion-part").hidden ||= !view.occ;
  if (!view.occ) return;
  const most = Math.max(1e-9, ...view.occ.flat().map(Math.abs)), ends = [`rises ${number(most)}`, `falls ${number(most)} nats`];
  show("occlusion", drawGrid({ ...view, src: view.src.slice(0, -1) }, view.occ.map((drops) => drops.map((drop) => drop / most)), (value, t, s) => `log P(${view.tgt[t]}) falls by ${number(value * most)} nats without ${view.src[s]}`, { signed: true, axes: ["translation", "source word that is left out"], ends }));
}

/** Gold links; of words, if tokens are shown, between the first tokens of the words. */
function goldLinks(item, view) {
  const subwords = data.systems[state.m].subwords;
  if (!item.gold || state.u || data.tokenLinks) return state.u && data.tokenLinks ? [] : item.gold ?? [];
  const src = words(view.src, subwords[0], item.source), tgt = words(view.tgt, subwords[1], view.text);
  return item.gold.filter(([s, t]) => src[s] && tgt[t]).map(([s, t, sure]) => [src[s][0], tgt[t][0], sure]);
}

/** Show the rows of a table for which there are values. */
function fill(id, values) {
  for (const line of at(id).querySelectorAll("[data-name]")) {
    const value = values[line.dataset.name];
    line.hidden = value === undefined;
    if (line.cells) line.cells[1].textContent = value;
  }
}
function drawTable(id, caption, titles, rows) {
  const head = titles.map((title, n) => html(title ? "th" : "td", { scope: title ? "col" : null, class: n === 0 || !title ? null : "number" }, title));
  show(id, html("table", {}, html("caption", {}, caption), html("thead", {}, html("tr", {}, ...head)), html("tbody", {}, ...rows)));
}
const cell = (text) => html("td", { class: "number" }, text);

function drawStep(view) {
  const t = state.t, weights = view.w[t] || [], steps = view.steps, system = data.systems[state.m], token = view.tgt[t];
  const probability = view.lp ? Math.exp(view.lp[t]) : null, read = range(weights.length).filter((s) => weights[s] >= 0.05).sort((one, other) => weights[other] - weights[one]).slice(0, 3);
  at("step-title").textContent = `${!state.u && system.subwords.some(Boolean) ? "Token" : "Word"} ${t + 1} of ${view.tgt.length}: ${token}`;
  at("step-word").textContent = quote(token);
  at("mechanism").textContent = [system.mechanism, system.equation].filter(Boolean).join(". ");
  const sources = new Intl.ListFormat("en").format(read.map((s) => `${quote(view.src[s])} (${percent(weights[s])})`));
  at("said").textContent = `To write it, ${data.systems.length > 1 ? system.name : "the model"} ${sources ? `read above all ${sources}` : weights.some(Boolean) ? "read every source word a little" : "used no attention"}.${view.lp ? ` It gave ${quote(token)} a probability of ${percent(probability, 1)}.` : ""}`;
  const heads = view.found.heads, head = heads > 1 ? state.h - 1 : 0;
  const ofHead = (text) => (text && head >= 0 ? hundredths(text, heads * view.src.length)[t].slice(head * view.src.length, (head + 1) * view.src.length) : null);
  const scores = ofHead(steps?.e), chances = ofHead(steps?.chances), occlusion = view.occ?.[t];
  const columns = { weight: (s) => number(weights[s], 3), before: (s) => number(view.w.slice(0, t).reduce((sum, row) => sum + row[s], 0)) };
  if (scores) columns.score = (s) => number(scores[s]);
  if (chances) columns.chance = (s) => number(chances[s]);
  if (occlusion) columns["without it"] = (s) => (s < occlusion.length ? number(-occlusion[s]) : "–");
  fill("columns", columns);
  drawTable("step", "One row for each source word", ["source", ...Object.keys(columns)], view.src.map((word, s) => html("tr", {}, html("th", { scope: "row" }, word), ...Object.values(columns).map((text) => cell(text(s))))));
  const entropy = -weights.reduce((sum, weight) => sum + (weight > 0 ? weight * Math.log(weight) : 0), 0);
  const sharpness = weights.some(Boolean) ? { "word entropy": number(entropy), "word largest": number(Math.max(...weights)), "word clear": weights.filter((weight) => weight > 0.1).length } : {};
  const ofWord = view.lp ? { probability: number(probability, 3), loss: number(-view.lp[t]), "mean loss": number(-view.lp.reduce((sum, value) => sum + value, 0) / view.lp.length) } : {};
  const ofSentence = Object.entries(view.found.measures).map(([name, value]) => [name, measured(name, value)]);
  fill("measures", { ...ofWord, ...sharpness, "word agreement": view.occ ? number(steps.agree[t]) : undefined, ...Object.fromEntries(ofSentence) });
  if (!steps?.top[t]) return show("top", html("p", { class: "small" }, state.u ? "Choose text in tokens to see what else it could have written." : view.lp ? "What else it could have written is stored for the best translation and the reference." : "Of earlier validations only the attention is stored."));
  const top = range(steps.top[t].length / 2).map((n) => [(view.found.words ?? data.items[state.s].words ?? data.words)[steps.top[t][2 * n]], steps.top[t][2 * n + 1] / 1000]).filter(([, share], n) => n < 3 || share >= 0.001);
  if (!top.some(([word]) => word === token)) top.push([token, probability]);
  drawTable("top", "The most probable words at this place", ["next word", "probability", ""], top.map(([word, share]) => {
    const bar = svg("rect", { width: percent(share, 1), height: 12, fill: colour(word === token ? "accent" : "line") });
    return html("tr", {}, html(word === token ? "th" : "td", {}, word), cell(percent(share, 1)), html("td", {}, svg("svg", { width: "100%", height: 12, "aria-hidden": "true" }, svg("rect", { width: "100%", height: 12, fill: colour("soft") }), bar)));
  }));
}

const key = () => `${state.s}/${state.m}/${state.y}/${state.t}`;
const guessing = () => state.g && right.at !== key();
function answer(s) {
  if (!guessing()) return;
  const weights = current().w[state.t];
  const hit = weights[s] === Math.max(...weights);
  right.guesses += 1; right.hits += hit ? 1 : 0; right.at = key();
  draw();
  at("status").textContent = `${hit ? "Right" : `It looked at ${quote(current().src[weights.indexOf(Math.max(...weights))])}`}: ${right.hits} of ${right.guesses}.`;
}

function options(id, entries, chosen) {
  show(id, ...entries.map(([value, text]) => html("option", { value }, text)));
  at(id).value = chosen;
  at(id).closest("label").hidden = entries.length < 2;
}
const measured = (name, value) => number(value, /^(length|repetition)$/.test(name) ? 0 : 2);
const sorting = () => state.k.replace(/^-/, "");
const measure = (n) => data.items[n].of[state.m].measures[sorting()];
function order() {
  const found = range(data.items.length), sign = state.k[0] === "-" ? -1 : 1, value = (n) => sign * (measure(n) ?? sign * Infinity);
  return state.k === "order" ? found : found.sort((a, b) => value(a) - value(b));
}
function draw() {
  document.querySelector("main").hidden = !data.items.length;
  if (!data.items.length) return;
  const item = data.items[state.s], found = item.of[state.m], view = current();
  state.t = within(state.t, view.tgt.length);
  const measures = new Set(data.items.flatMap((each) => Object.keys(each.of[state.m].measures)));
  options("item", order().map((n) => [n, `${data.items[n].source}${state.k === "order" ? "" : ` (${sorting()} ${measured(sorting(), measure(n))})`}`]), state.s);
  options("sort", [["order", "order"], ...(data.items.length > 1 ? [...measures].flatMap((name) => [[name, `${name} ↑`], [`-${name}`, `${name} ↓`]]) : [])], state.k);
  options("system", data.systems.map((system, n) => [n, system.name]), state.m);
  const targets = found.best.map((node, n) => [String(n), `${n + 1}. ${found.text[node]} (score ${number(found.sc[node])})`]);
  if (found.ref) targets.push(["r", `${data.live ? "given" : "reference"}: ${found.ref.text}`]);
  if (state.y[0] === "n") targets.push([state.y, "chosen in the search"]);
  options("target", targets, state.y);
  options("head", [[0, found.heads > 1 ? "mean of all" : "1"], ...(found.heads > 1 ? range(found.heads).map((h) => [h + 1, h + 1]) : [])], state.h);
  const tokens = state.u ? read(item, state.m, state.y, 0) : view, subwords = data.systems[state.m].subwords;
  const merged = words(tokens.src, subwords[0], item.source).length < tokens.src.length || words(tokens.tgt, subwords[1], tokens.text).length < tokens.tgt.length;
  options("unit", [[0, "tokens: what the model reads"], ...(merged ? [[1, "words: between spaces"]] : [])], state.u);
  at("difference").hidden = data.systems.length < 2;
  const attends = view.w.some((weights) => weights.some(Boolean));
  for (const id of ["guess", "lead", "thicker", "map-part"]) at(id).hidden = !attends;
  for (const id of ["said", "top", "map-part", "occlusion-part", "heads-part", "numbers-part"]) at(id).hidden = guessing() || (id === "map-part" && !attends);
  for (const [id, name] of Object.entries(toggles)) at(id).setAttribute("aria-pressed", Boolean(state[name]));
  at("source").textContent = item.source;
  at("reference").textContent = item.reference && !data.live ? `Reference: ${item.reference}` : "";
  at("marks").textContent = `⟨eos⟩ is the end of the sentence.${!state.u && subwords.some(Boolean) ? " ▁ begins a word; tokens without it go on with one." : ""}`;
  at("status").textContent = guessing() ? `Where does the model look to write ${quote(view.tgt[state.t])}? Choose a source word.` : "";
  const focused = document.activeElement?.closest("[data-key]")?.getAttribute("data-key");
  drawCurve(view); drawLines(view); drawMaps(view); drawStep(view); drawTree(view); drawHeads();
  if (focused) document.querySelector(`[data-key="${focused.startsWith("step") ? `step-${state.t}` : focused}"]`)?.focus({ preventScroll: true });
}
/** Show the next validation and go on up to the best model, or stop. */
function play(more) {
  clearTimeout(playing);
  if (more) go({ v: (state.v + 1) % Number(at("when").max) });
  playing = more && state.v ? setTimeout(play, 800, true) : 0;
  at("play").textContent = playing ? "Pause" : "Play";
}
function go(change) {
  Object.assign(state, change);
  const hash = Object.entries({ ...state, ...data.asked?.(state.s) }).filter(([name, value]) => `${value}` !== `${initial[name]}`).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  draw();
  try { history.replaceState(null, "", `#${hash}`); } catch { /* in the frame of a notebook */ }
}
function press(event, act) {
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); }
}
if (data.items[0]?.of[0].frames) state.y = "r";
const initial = { ...state }, parts = [...document.querySelectorAll("main > details")];
for (const part of parts) part.addEventListener("toggle", () => {
  const open = parts.filter((one) => one.open).map((one) => one.id.replace("-part", "")).join(".");
  if (open !== state.o) go({ o: open });
});
function follow() {
  Object.assign(state, initial);
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) if (name in state) state[name] = typeof initial[name] === "number" ? Math.max(0, Math.trunc(Number(value))) || 0 : value;
  state.s = within(state.s, data.items.length);
  state.m = within(state.m, data.systems.length);
  const found = data.items[state.s]?.of[state.m];
  if (!(state.h <= found?.heads)) state.h = 0;
  if (!(state.v <= found?.frames?.length)) state.v = 0;
  if (!data.items.some((each) => Object.hasOwn(each.of[state.m].measures, sorting()))) state.k = "order";
  if (!found || !/^(\d+|r|n\d+)$/.test(state.y) || (state.y[0] === "n" && Number(state.y.slice(1)) >= found.p.length)) state.y = "0";
  for (const part of parts) part.open = state.o.split(".").includes(part.id.replace("-part", ""));
  draw();
  parts.find((part) => part.open)?.scrollIntoView();
}

const choices = { item: ["s", { t: 0, y: initial.y }], sort: ["k"], system: ["m", { y: initial.y, h: 0 }], target: ["y", { t: 0 }], head: ["h"], unit: ["u", { t: 0 }] };
for (const [id, [name, rest]] of Object.entries(choices)) on(id, "change", ({ target }) => go({ ...rest, [name]: typeof initial[name] === "number" ? Number(target.value) : target.value }));
on("when", "input", ({ target }) => go({ v: Number(target.value) % Number(target.max) }));
on("play", "click", () => play(!playing));
for (const [id, name] of Object.entries(toggles)) on(id, "click", () => go({ [name]: state[name] ? 0 : 1 }));
document.addEventListener("keydown", (event) => {
  if (!data.items.length || event.altKey || event.ctrlKey || event.metaKey || /^(SELECT|INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
  const places = order(), place = places.indexOf(state.s), steps = current().tgt.length;
  const moves = { ArrowLeft: { t: within(state.t - 1, steps) }, ArrowRight: { t: within(state.t + 1, steps) }, ArrowUp: { s: places[within(place - 1, places.length)], t: 0, y: initial.y }, ArrowDown: { s: places[within(place + 1, places.length)], t: 0, y: initial.y } };
  if (!moves[event.key]) return;
  event.preventDefault(); go(moves[event.key]);
  const { top, bottom } = at("lines").getBoundingClientRect();
  if (bottom > 0 && top < innerHeight) document.querySelector("#lines [aria-pressed=true]").scrollIntoView({ block: "nearest" });
});
addEventListener("hashchange", follow);
// Not the event of the window alone, as the frame of a notebook can be shown, or made wider, without it.
let drawnWidth = document.documentElement.clientWidth;
new ResizeObserver(() => {
  const { clientWidth } = document.documentElement;
  if (clientWidth !== drawnWidth) { drawnWidth = clientWidth; draw(); }
}).observe(document.documentElement);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

function save(name, type, content) {
  const link = html("a", { href: URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
function picture() {
  const copy = document.querySelector("#map svg").cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("font-family", "sans-serif"); copy.setAttribute("font-size", "14");
  copy.prepend(svg("rect", { width: "100%", height: "100%", fill: colour("back") }));
  return new XMLSerializer().serializeToString(copy);
}
on("save-svg", "click", () => save("attention.svg", "image/svg+xml", picture()));
on("save-png", "click", () => {
  const image = new Image(), shown = document.querySelector("#map svg");
  image.onload = () => {
    const canvas = html("canvas", { width: 2 * shown.getAttribute("width"), height: 2 * shown.getAttribute("height") });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save("attention.png", "image/png", blob));
  };
  image.src = `data:image/svg+xml,${encodeURIComponent(picture())}`;
});
on("save-json", "click", () => {
  const view = current();
  save("attention.json", "application/json", JSON.stringify({ model: data.systems[state.m].name, head: state.h || "mean", units: state.u ? "words" : "tokens", update: view.found.frames?.[state.v - 1]?.update ?? null, source: data.items[state.s].source, translation: view.text, src: view.src, tgt: view.tgt, weights: view.w, log_probs: view.lp }, null, 1));
});
on("save-links", "click", () => {
  const lines = data.items.map((item) => {
    const view = inWords(read(item, state.m, "0", state.h), data.systems[state.m].subwords, item.source), end = view.src.length - 1;
    return view.tgt.map((token, t) => { const weights = view.w[t].slice(0, end), most = Math.max(...weights); return token === "⟨eos⟩" || !(most > 0) ? null : `${weights.indexOf(most)}-${t}`; }).filter(Boolean).join(" ");
  });
  save("alignments.txt", "text/plain", `${lines.join("\n")}\n`);
});
follow();
