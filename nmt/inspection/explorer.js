"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const on = (id, type, act) => at(id).addEventListener(type, act);
const state = { s: 0, m: 0, y: "0", h: 0, t: 0, u: 0, v: 0, d: 0, g: 0, k: "order", a: "" };
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
const rightToLeft = (tokens) => /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(tokens.join(""));

const decoded = new WeakMap();
function bytes(owner) {
  if (!decoded.has(owner)) decoded.set(owner, Uint8Array.from(atob(owner.w), (each) => each.charCodeAt(0)));
  return decoded.get(owner);
}
/** Weights of a row, [heads][sources]. */
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

function drawLines(view) {
  const gap = 14, pad = 5, height = 190;
  const place = (tokens) => {
    let x = 8;
    const boxes = tokens.map((token) => { const width = Math.max(10, size(token)) + 2 * pad, box = { x, width, centre: x + width / 2 }; x += width + gap; return box; });
    return { boxes, width: x };
  };
  const both = [place(view.src), place(view.tgt)], width = Math.max(both[0].width, both[1].width);
  both.forEach((each, n) => {
    const shift = (width - each.width) / 2, mirrored = rightToLeft(n ? view.tgt : view.src);
    each.boxes.forEach((box) => { box.x += shift; if (mirrored) box.x = width - box.x - box.width; box.centre = box.x + box.width / 2; });
  });
  const links = [];
  view.w.forEach((weights, t) => weights.forEach((weight, s) => {
    const chosen = t === state.t;
    if (weight < 0.02 || (state.g && !revealed())) return;
    const [x1, x2] = [both[0].boxes[s].centre, both[1].boxes[t].centre];
    links.push(svg("path", { d: `M${x1} 34C${x1} 95 ${x2} 95 ${x2} 156`, fill: "none", stroke: colour("accent"), "stroke-width": (0.5 + 7 * weight).toFixed(1), "stroke-opacity": (chosen ? 0.15 + 0.85 * weight : 0.12 * weight).toFixed(3) }));
  }));
  const box = (token, at, y, options, ...more) => svg("g", options,
    svg("rect", { x: at.x, y, width: at.width, height: 24, rx: 4, fill: colour("soft"), stroke: colour("line"), "stroke-opacity": 0.4 }), ...more,
    svg("text", { x: at.centre, y: y + 17, "text-anchor": "middle", fill: colour("text") }, token));
  const weights = view.w[state.t] || [];
  const sources = view.src.map((token, s) => {
    const at = both[0].boxes[s], hidden = state.g && !revealed();
    const part = box(token, at, 10, { tabindex: state.g ? 0 : null, "data-key": `source-${s}`, onclick: () => state.g && answer(s), onkeydown: (event) => state.g && press(event, () => answer(s)) },
      svg("rect", { x: at.x, y: 10, width: at.width, height: 24, rx: 4, fill: colour("accent"), "fill-opacity": hidden ? 0 : (0.75 * (weights[s] || 0)).toFixed(3) }));
    if (!hidden && weights[s] >= 0.01) part.append(svg("text", { x: at.centre, y: 7, "text-anchor": "middle", "font-size": 9, fill: colour("text") }, number(weights[s])));
    return part;
  });
  const targets = view.tgt.map((token, t) => {
    const at = both[1].boxes[t], chosen = t === state.t;
    const part = box(token, at, 156, { tabindex: chosen ? 0 : -1, role: "button", "aria-pressed": chosen, "aria-label": `step ${t + 1}: ${token}`, "data-step": t, "data-key": `step-${t}`, onmouseenter: () => !state.g && go({ t }), onclick: () => go({ t }), onfocus: () => t !== state.t && go({ t }) });
    if (chosen) part.firstChild.setAttribute("stroke", colour("accent")), part.firstChild.setAttribute("stroke-width", 2), part.firstChild.setAttribute("stroke-opacity", 1);
    return part;
  });
  show("lines", svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Source above, translation below; lines are attention weights" }, ...links, ...sources, ...targets));
}

/** A grid of values from -1 to 1: how opaque the accent is, or two other colours if some are negative or `signed`. The `chosen` row is marked. */
function drawGrid(view, values, signed, describe, gold = [], focus = null, chosen = state.t) {
  const cell = 22, left = Math.max(...view.tgt.map(size)) + 12, top = Math.max(...view.src.map(size)) * 0.72 + 18;
  const mirrored = rightToLeft(view.src), columns = view.src.length, width = left + columns * cell + 46, height = top + view.tgt.length * cell + 6;
  const x = (s) => left + (mirrored ? columns - 1 - s : s) * cell, y = (t) => top + t * cell;
  const parts = view.src.map((token, s) => svg("text", { x: 0, y: 0, transform: `translate(${x(s) + 14} ${top - 6}) rotate(-45)`, fill: colour("text") }, token));
  view.tgt.forEach((token, t) => {
    parts.push(svg("text", { x: left - 6, y: y(t) + 16, "text-anchor": "end", fill: colour("text"), "font-weight": t === chosen ? 700 : 400 }, token));
    values[t].forEach((value, s) => {
      if (value === undefined) return;
      const name = describe(value, t, s), fill = signed || value < 0 ? colour(value < 0 ? "less" : "more") : colour("accent");
      parts.push(svg("rect", { x: x(s), y: y(t), width: cell - 1, height: cell - 1, fill: colour("soft") }));
      parts.push(svg("rect", { x: x(s), y: y(t), width: cell - 1, height: cell - 1, fill, "fill-opacity": Math.min(1, Math.abs(value)).toFixed(3), "data-cell": `${t},${s}`, onclick: () => chosen !== null && go({ t }), onmouseenter: () => { at("status").textContent = name; } }, svg("title", {}, name)));
    });
  });
  for (const [s, t, sure] of gold) if (t < view.tgt.length && s < columns) parts.push(svg("rect", { x: x(s) + 1, y: y(t) + 1, width: cell - 3, height: cell - 3, fill: "none", stroke: colour("more"), "stroke-width": 2, "stroke-dasharray": sure ? null : "3 2" }));
  if (focus) focus.centres.forEach((centre, t) => {
    const place = (s) => left + (mirrored ? columns - s : s) * cell, ends = [centre - focus.radius, centre + focus.radius + 1].map((s) => place(Math.max(0, Math.min(columns, s))));
    parts.push(svg("path", { d: `M${place(centre + 0.5)} ${y(t) + 2}v${cell - 5}`, stroke: colour("more"), "stroke-width": 3, "data-centre": t }));
    parts.push(svg("path", { d: `M${ends[0]} ${y(t) + cell - 1}H${ends[1]}`, stroke: colour("more"), "stroke-dasharray": "3 2" }));
  });
  if (chosen !== null) parts.push(svg("rect", { x: left - 1, y: y(chosen) - 1, width: columns * cell + 1, height: cell + 1, fill: "none", stroke: colour("accent"), "stroke-width": 1.5 }));
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": chosen === null ? "Rows: words that read; columns: words that are read" : "Rows: translation; columns: source; the table below has the numbers of the chosen step" }, ...parts);
}

/** Mean entropy over the validations of a run; the chosen one is marked. */
function drawCurve(view) {
  const frames = state.y === "r" ? view.found.frames ?? [] : [];
  at("when-part").hidden = !frames.length;
  if (!frames.length) { show("curve"); return; }
  at("when").max = frames.length + 1;
  at("when").value = state.v || frames.length + 1;
  const width = 420, height = 90, most = Math.max(0.1, ...frames.map((each) => each.entropy)), last = frames[frames.length - 1].update;
  const x = (each) => 40 + (each.update / last) * (width - 60), y = (each) => 12 + (1 - each.entropy / most) * (height - 40);
  const chosen = frames[state.v - 1], rated = frames[0].aer !== null, best = view.found.measures.AER;
  const what = chosen ? `update ${chosen.update}: entropy ${number(chosen.entropy)} nats` : "the best model";
  const rate = rated ? `, AER ${number(chosen ? chosen.aer : best)} (dashed, 0 to 1)` : "";
  const error = (each) => 12 + (1 - each.aer) * (height - 40);
  show("curve", svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Entropy of attention${rated ? " and alignment error rate" : ""} over ${frames.length} validations` },
    ...(rated ? [svg("polyline", { points: frames.map((each) => `${x(each)},${error(each)}`).join(" "), fill: "none", stroke: colour("more"), "stroke-width": 2, "stroke-dasharray": "5 3" })] : []),
    svg("polyline", { points: frames.map((each) => `${x(each)},${y(each)}`).join(" "), fill: "none", stroke: colour("accent"), "stroke-width": 2 }),
    ...frames.map((each, n) => svg("circle", { cx: x(each), cy: y(each), r: each === chosen ? 6 : 4, fill: each === chosen ? colour("more") : colour("accent"), onclick: () => go({ v: n + 1 }) }, svg("title", {}, `update ${each.update}: ${number(each.entropy)} nats`))),
    svg("text", { x: 40, y: height - 4, fill: colour("text"), "font-size": 12 }, `${what}${rate}`)));
}

function drawMaps(view) {
  const item = data.items[state.s], hidden = state.g && !revealed(), blank = (rows) => rows.map((weights) => weights.map(() => 0));
  const name = (m) => data.systems[m].name, next = (state.m + 1) % data.systems.length;
  const other = state.d && !hidden ? current(next) : null;
  const same = other && other.src.join(" ") === view.src.join(" ") && other.tgt.join(" ") === view.tgt.join(" ");
  const values = hidden ? blank(view.w) : same ? view.w.map((weights, t) => weights.map((weight, s) => weight - other.w[t][s])) : view.w;
  at("map-title").textContent = same ? `${name(state.m)} minus ${name(next)}` : other ? `${name(state.m)} (no difference: its tokens are others${item.of[state.m].ref ? "; those of the reference are the same" : ""})` : "Attention";
  const gold = state.y === "r" ? goldLinks(item, view) : [];
  show("map", drawGrid(view, values, Boolean(same), (value, t, s) => `${view.tgt[t]} ← ${view.src[s]}: ${number(value, 3)}`, gold, view.steps ? view.steps.focus : null));
  const occlusion = hidden || other ? null : view.occ;
  at("beside").hidden = !occlusion && !other;
  at("beside-title").textContent = other ? name(next) : "Without each source token";
  at("agreement").textContent = "";
  if (other) show("beside-map", drawGrid(other, other.w, false, (value, t, s) => `${other.tgt[t]} ← ${other.src[s]}: ${number(value, 3)}`));
  if (!occlusion) return;
  const most = Math.max(1e-9, ...occlusion.flat().map(Math.abs));
  const kept = { ...view, src: view.src.slice(0, -1) };
  show("beside-map", drawGrid(kept, occlusion.map((drops) => drops.map((drop) => drop / most)), true, (value, t, s) => `log P(${view.tgt[t]}) falls by ${number(value * most)} without ${view.src[s]}`));
  const agreement = view.steps.agree[state.t];
  at("agreement").textContent = `How much the log-probability of each token falls without a source token (at most ${number(most)}).` + ((agreement ?? null) === null ? "" : ` Rank correlation with attention at this step: ${number(agreement)}.`);
}

/** Gold links; of words, if tokens are shown, between the first tokens of the words. */
function goldLinks(item, view) {
  if (!item.gold || (state.u && data.tokenLinks)) return [];
  if (data.tokenLinks) return item.gold;
  const subwords = data.systems[state.m].subwords;
  if (state.u) return item.gold;
  const src = words(view.src, subwords[0], item.source), tgt = words(view.tgt, subwords[1], view.text);
  return item.gold.filter(([s, t]) => src[s] && tgt[t]).map(([s, t, sure]) => [src[s][0], tgt[t][0], sure]);
}

function drawStep(view) {
  const t = state.t, weights = view.w[t] || [], steps = view.steps, system = data.systems[state.m], hidden = state.g && !revealed();
  at("step-title").textContent = `Step ${t + 1} of ${view.tgt.length}: ${view.tgt[t]}`;
  const entropy = -weights.reduce((sum, w) => sum + (w > 0 ? w * Math.log(w) : 0), 0);
  const likely = view.lp ? ` Probability ${number(Math.exp(view.lp[t]), 3)}, loss ${number(-view.lp[t])} (mean of all steps ${number(-mean(view.lp.map((each) => [each]))[0])}).` : "";
  const sharp = hidden ? "" : ` Entropy ${number(entropy)}, largest weight ${number(Math.max(0, ...weights))}.`;
  at("mechanism").textContent = `${[system.mechanism, system.equation].filter(Boolean).join(". ")}.${likely}${sharp}`;
  at("vectors").textContent = "";
  if (hidden) { show("step"); show("top"); return; }
  const heads = view.found.heads, head = heads > 1 ? state.h - 1 : 0;
  const ofHead = (text) => (text && head >= 0 ? hundredths(text, heads * view.src.length)[t].slice(head * view.src.length, (head + 1) * view.src.length) : null);
  const scores = ofHead(steps?.e), chances = ofHead(steps?.chances);
  const occlusion = view.occ ? view.occ[t] : null;
  const covered = (s) => view.w.slice(0, t).reduce((sum, row) => sum + row[s], 0);
  const columns = [["weight", (s) => number(weights[s], 3)], ["before", (s) => number(covered(s))]];
  if (scores) columns.push(["score", (s) => number(scores[s])]);
  if (chances) columns.push(["chance", (s) => number(chances[s])]);
  if (occlusion) columns.push(["without it", (s) => (s < occlusion.length ? number(-occlusion[s]) : "–")]);
  const titles = ["source", ...columns.map(([title]) => title)];
  const rows = view.src.map((token, s) => html("tr", {}, html("th", { scope: "row" }, token), ...columns.map(([, text]) => html("td", { class: "number" }, text(s)))));
  show("step", html("table", {}, html("thead", {}, html("tr", {}, ...titles.map((title, n) => html("th", { scope: "col", class: n ? "number" : null }, title)))), html("tbody", {}, ...rows)));
  const top = steps?.top[t] && range(steps.top[t].length / 2).map((n) => [(data.items[state.s].words ?? data.words)[steps.top[t][2 * n]], steps.top[t][2 * n + 1] / 1000]);
  const vector = (name, text) => { const row = text ? hundredths(text, 5)[t].map((each) => number(each)) : []; return text ? `${name} ${row.slice(0, 4).join(" ")} … (norm ${row[4]}). ` : ""; };
  at("vectors").textContent = vector("Query", steps?.q) + vector("Context", steps?.c);
  show("top", ...(top ? [html("table", {}, html("thead", {}, html("tr", {}, html("th", { scope: "col" }, "next word"), html("th", { scope: "col", class: "number" }, "probability"), html("th", {}))), html("tbody", {}, ...top.map(([token, share]) => html("tr", {}, html("td", {}, token), html("td", { class: "number" }, number(share, 3)), html("td", {}, html("meter", { value: share, max: 1, "aria-hidden": "true" }))))))] : [html("p", { class: "small" }, state.u ? "Choose tokens as units to see the most probable next tokens and the scores." : view.lp ? "The most probable next words are stored for the best translation and the reference." : "Of earlier validations only the attention is stored.")]));
}

const key = () => `${state.s}/${state.m}/${state.y}/${state.t}`;
const revealed = () => right.at === key();
function answer(s) {
  if (revealed()) return;
  const weights = current().w[state.t];
  const hit = weights[s] === Math.max(...weights);
  right.guesses += 1; right.hits += hit ? 1 : 0; right.at = key();
  draw();
  at("status").textContent = `${hit ? "Right" : `It looked at ${current().src[weights.indexOf(Math.max(...weights))]}`}: ${right.hits} of ${right.guesses}.`;
}

function options(id, entries, chosen) {
  show(id, ...entries.map(([value, label]) => html("option", { value }, label)));
  at(id).value = chosen;
}
const measured = (name, value) => number(value, /^(length|repetition)$/.test(name) ? 0 : 2);
const sorting = () => state.k.replace(/^-/, "");
const measure = (n) => data.items[n].of[state.m].measures[sorting()];
function order() {
  const found = range(data.items.length), sign = state.k[0] === "-" ? -1 : 1, value = (n) => sign * (measure(n) ?? sign * Infinity);
  return state.k === "order" ? found : found.sort((a, b) => value(a) - value(b));
}
function drawList() {
  show("list", ...order().map((n) => {
    const value = state.k === "order" ? "" : measured(sorting(), measure(n));
    return html("li", {}, html("button", { "aria-current": n === state.s ? "true" : null, "data-key": `item-${n}`, onclick: () => go({ s: n, t: 0, y: initial.y }) }, html("span", { dir: "auto" }, data.items[n].source), html("span", {}, value)));
  }));
}
/** Scroll an element to show a place in it. */
function reveal(id, scroll, length, place) {
  const found = at(id), [first, size] = [found[scroll], found[length]];
  if ((place ?? null) !== null && (place < first + 20 || place > first + size - 20)) found[scroll] = place - size / 2;
}
function draw() {
  document.querySelector("main").hidden = !data.items.length;
  if (!data.items.length) return;
  const item = data.items[state.s], found = item.of[state.m], view = current();
  state.t = within(state.t, view.tgt.length);
  const measures = new Set(data.items.flatMap((each) => Object.keys(each.of[state.m].measures)));
  options("sort", [["order", "order"], ...[...measures].flatMap((name) => [[name, `${name} ↑`], [`-${name}`, `${name} ↓`]])], state.k);
  options("system", data.systems.map((each, n) => [n, each.name]), state.m);
  const targets = found.best.map((node, n) => [String(n), `${n + 1}. ${found.text[node]} (${number(found.sc[node])})`]);
  if (found.ref) targets.push(["r", `${data.live ? "given" : "reference"}: ${found.ref.text}`]);
  if (state.y[0] === "n") targets.push([state.y, "chosen in the search"]);
  options("target", targets, state.y);
  options("head", [[0, found.heads > 1 ? "mean" : "1"], ...(found.heads > 1 ? range(found.heads).map((h) => [h + 1, h + 1]) : [])], state.h);
  options("unit", [[0, "tokens"], [1, "words"]], state.u);
  at("difference").hidden = data.systems.length < 2;
  at("difference").setAttribute("aria-pressed", Boolean(state.d));
  at("guess").hidden = !view.w.some((weights) => weights.some(Boolean));
  at("guess").setAttribute("aria-pressed", Boolean(state.g));
  at("source").textContent = item.source;
  at("reference").textContent = item.reference && !data.live ? `Reference: ${item.reference}` : "";
  at("measures").textContent = Object.entries(found.measures).map(([name, value]) => `${name} ${measured(name, value)}`).join(", ");
  at("status").textContent = state.g && !revealed() ? `Where does the model look to write “${view.tgt[state.t]}”? Choose a source word.` : "";
  const focused = document.activeElement?.closest("[data-key]")?.getAttribute("data-key");
  drawList(); drawCurve(view); drawLines(view); drawMaps(view); drawStep(view); drawTree(view); drawHeads();
  reveal("lines", "scrollLeft", "clientWidth", document.querySelector(`#lines [data-step="${state.t}"] text`)?.getAttribute("x"));
  const chosen = document.querySelector("#list [aria-current]");
  reveal("list", "scrollTop", "clientHeight", chosen && chosen.offsetTop + chosen.offsetHeight / 2);
  if (focused) document.querySelector(`[data-key="${focused.startsWith("step") ? `step-${state.t}` : focused}"]`)?.focus({ preventScroll: true });
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
const initial = { ...state };
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
  draw();
}

on("sort", "change", (event) => go({ k: event.target.value }));
on("system", "change", (event) => go({ m: Number(event.target.value), y: initial.y, h: 0 }));
on("target", "change", (event) => go({ y: event.target.value, t: 0 }));
on("head", "change", (event) => go({ h: Number(event.target.value) }));
on("when", "input", (event) => go({ v: Number(event.target.value) % Number(event.target.max) }));
on("unit", "change", (event) => go({ u: Number(event.target.value), t: 0 }));
on("difference", "click", () => go({ d: state.d ? 0 : 1 }));
on("guess", "click", () => go({ g: state.g ? 0 : 1 }));
document.addEventListener("keydown", (event) => {
  if (!data.items.length || event.altKey || event.ctrlKey || event.metaKey || /^(SELECT|INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
  const places = order(), place = places.indexOf(state.s), steps = current().tgt.length;
  const moves = { ArrowLeft: { t: within(state.t - 1, steps) }, ArrowRight: { t: within(state.t + 1, steps) }, ArrowUp: { s: places[within(place - 1, places.length)], t: 0, y: initial.y }, ArrowDown: { s: places[within(place + 1, places.length)], t: 0, y: initial.y } };
  if (moves[event.key]) { event.preventDefault(); go(moves[event.key]); }
});
addEventListener("hashchange", follow);
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
