"use strict";
const label = (x, y, text, attributes = {}) => svg("text", { x, y, fill: colour("text"), ...attributes }, text);
const drawing = (role, width, height, name, ...parts) => svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role, "aria-label": name }, ...parts);

/** Boxes of the source's and the target's tokens: two rows across the width if they fit, else two columns. */
function placeTokens(both, width) {
  const length = (tokens) => tokens.reduce((sum, token) => sum + size(token) + 30, 0);
  const scale = Math.min(1.6, width / Math.max(...both.map(length))), columns = scale < 1;
  const side = Math.min(0.36 * width, Math.max(...both.flat().map(size)) + 20), height = columns ? 28 + 32 * Math.max(both[0].length, both[1].length) : within(width / 3, 320) + 60;
  const boxes = both.map((tokens, n) => {
    if (columns) return tokens.map((_, t) => ({ x: n ? width - side - 2 : 42, y: 26 + 32 * t, width: side, height: 28 }));
    const gap = 10 * scale + Math.min(48, (width - scale * length(tokens)) / tokens.length), mirrored = rightToLeft(tokens);
    let x = (width - tokens.reduce((sum, token) => sum + scale * (size(token) + 20) + gap, -gap)) / 2;
    return tokens.map((token) => {
      const box = { x, y: n ? height - 28 - 26 * scale : 42, width: scale * (size(token) + 20), height: 26 * scale };
      x += box.width + gap;
      return mirrored ? { ...box, x: width - box.x - box.width } : box;
    });
  });
  return { boxes, columns, height, font: columns ? 14 : 14 * scale };
}

function drawLines(view) {
  const width = at("lines").clientWidth, { boxes, columns, height, font } = placeTokens([view.src, view.tgt], width), hidden = guessing(), weights = view.w[state.t] || [];
  const link = (s, t, weight) => {
    const [from, to] = [boxes[0][s], boxes[1][t]], chosen = t === state.t, middle = (box, side, length) => box[side] + box[length] / 2;
    const [x1, y1, x2, y2] = columns ? [from.x + from.width, middle(from, "y", "height"), to.x, middle(to, "y", "height")] : [middle(from, "x", "width"), from.y + from.height, middle(to, "x", "width"), to.y];
    const bend = columns ? `${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2}` : `${x1} ${(y1 + y2) / 2} ${x2} ${(y1 + y2) / 2}`;
    return svg("path", { d: `M${x1} ${y1}C${bend} ${x2} ${y2}`, fill: "none", stroke: colour(chosen ? "accent" : "line"), "stroke-width": (0.8 + (chosen ? 13 : 7) * weight).toFixed(1), "stroke-opacity": chosen ? 1 : (0.1 + 0.25 * weight).toFixed(2), "data-link": `${t},${s}` });
  };
  const links = hidden ? [] : view.w.flatMap((row, t) => row.map((weight, s) => (weight < 0.02 ? null : link(s, t, weight)))).filter(Boolean);
  links.sort((one, other) => one.getAttribute("stroke-opacity") - other.getAttribute("stroke-opacity"));
  const token = (text, { x, y, width, height }, chosen, tint, options) => svg("g", options, svg("title", {}, text),
    svg("rect", { x, y, width, height, rx: 5, fill: colour("soft"), stroke: colour(chosen ? "accent" : "line"), "stroke-width": chosen ? 3 : 1 }),
    svg("rect", { x, y, width, height, rx: 5, fill: colour("accent"), "fill-opacity": tint.toFixed(3) }),
    label(x + width / 2, y + height / 2 + font * 0.35, text, { "text-anchor": "middle", "font-size": font, "font-weight": chosen ? 700 : 400, ...(columns && width > 12 && size(text) > width - 12 ? { textLength: width - 12, lengthAdjust: "spacingAndGlyphs" } : {}) }));
  const sources = view.src.map((text, s) => {
    const box = boxes[0][s], part = token(text, box, false, hidden ? 0 : 0.4 * (weights[s] || 0), { tabindex: state.g ? 0 : null, "data-key": `source-${s}`, onclick: () => state.g && answer(s), onkeydown: (event) => state.g && press(event, () => answer(s)) });
    if (!hidden && weights[s] >= 0.02) part.append(label(columns ? box.x - 5 : box.x + box.width / 2, columns ? box.y + 19 : box.y - 6, percent(weights[s]), { "text-anchor": columns ? "end" : "middle", "font-size": 13, "data-weight": s }));
    return part;
  });
  const targets = view.tgt.map((text, t) => token(text, boxes[1][t], t === state.t, 0, { tabindex: t === state.t ? 0 : -1, role: "button", "aria-pressed": t === state.t, "aria-label": `word ${t + 1}: ${text}`, "data-step": t, "data-key": `step-${t}`, onmouseenter: () => !state.g && go({ t }), onclick: () => go({ t }), onfocus: () => t !== state.t && go({ t }) }));
  const names = [label(columns ? 42 : 0, 14, "Source"), label(columns ? width : 0, columns ? 14 : height - 4, "Translation", { "text-anchor": columns ? "end" : "start" })];
  show("lines", drawing("group", width, height, "Source and translation; lines are attention weights", ...links, ...sources, ...targets, ...names));
}

/** A grid of values from -1 to 1: how opaque the accent is, or two other colours if some are negative or `signed`. The `chosen` row is marked; `ends` are the ends of the scale. */
function drawGrid(view, values, describe, { signed = false, gold = [], focus = null, chosen = state.t, axes = ["translation", "source"], ends = ["weight 0", "1"] } = {}) {
  const mirrored = rightToLeft(view.src), columns = view.src.length, left = Math.max(...view.tgt.map(size)) + 12, right = size(view.src[mirrored ? 0 : columns - 1]) * 0.72 + 10;
  const cell = Math.max(16, Math.min(32, Math.floor((Math.min(640, at("view").clientWidth) - left - right) / columns))), top = Math.max(...view.src.map(size)) * 0.72 + 36, bottom = top + view.tgt.length * cell;
  const start = size(ends[0]) + 8, width = Math.max(left + columns * cell + right, start + 108 + size(ends[1])), x = (s) => left + (mirrored ? columns - 1 - s : s) * cell, y = (t) => top + t * cell, font = cell < 20 ? 12 : 14;
  const paint = (value) => ({ fill: signed || value < 0 ? colour(value < 0 ? "less" : "more") : colour("accent"), "fill-opacity": Math.min(1, Math.abs(value)).toFixed(3) });
  const parts = [label(0, 14, `↓ ${axes[0]}   ${mirrored ? "←" : "→"} ${axes[1]}`, { "font-size": 13 }), ...view.src.map((token, s) => label(0, 0, token, { transform: `translate(${x(s) + cell / 2 + 4} ${top - 5}) rotate(-45)`, "font-size": font }))];
  view.tgt.forEach((token, t) => {
    parts.push(label(left - 6, y(t) + cell / 2 + 5, token, { "text-anchor": "end", "font-size": font, "font-weight": t === chosen ? 700 : 400 }));
    values[t].forEach((value, s) => {
      if (value === undefined) return;
      const name = describe(value, t, s), read = (event) => { event.target.closest("details").querySelector(".readout").textContent = name; };
      parts.push(svg("rect", { x: x(s), y: y(t), width: cell - 1, height: cell - 1, fill: colour("soft") }));
      parts.push(svg("rect", { x: x(s), y: y(t), width: cell - 1, height: cell - 1, ...paint(value), "data-cell": `${t},${s}`, onclick: (event) => { read(event); if (chosen !== null) go({ t }); }, onmouseenter: read }, svg("title", {}, name)));
    });
  });
  for (const [s, t, sure] of gold) if (t < view.tgt.length && s < columns) parts.push(svg("rect", { x: x(s) + 1, y: y(t) + 1, width: cell - 3, height: cell - 3, fill: "none", stroke: colour("more"), "stroke-width": 2, "stroke-dasharray": sure ? null : "3 2" }));
  if (focus) focus.centres.forEach((centre, t) => {
    const place = (s) => left + (mirrored ? columns - s : s) * cell, borders = [centre - focus.radius, centre + focus.radius + 1].map((s) => place(Math.max(0, Math.min(columns, s))));
    parts.push(svg("path", { d: `M${place(centre + 0.5)} ${y(t) + 2}v${cell - 5}`, stroke: colour("more"), "stroke-width": 3, "data-centre": t }));
    parts.push(svg("path", { d: `M${borders[0]} ${y(t) + cell - 1}H${borders[1]}`, stroke: colour("more"), "stroke-dasharray": "3 2" }));
  });
  if (chosen !== null) parts.push(svg("rect", { x: left - 1, y: y(chosen) - 1, width: columns * cell + 1, height: cell + 1, fill: "none", stroke: colour("accent"), "stroke-width": 1.5 }));
  const shades = signed ? [-1, -0.5, 0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1];
  shades.forEach((value, n) => parts.push(svg("rect", { x: start + 20 * n, y: bottom + 12, width: 20, height: 12, stroke: colour("line"), "stroke-width": 0.5, ...paint(value) })));
  parts.push(label(0, bottom + 23, ends[0]), label(start + 108, bottom + 23, ends[1]));
  return drawing("img", width, bottom + 30, `Rows: ${axes[0]}; columns: ${axes[1]}`, ...parts);
}

/** Mean entropy over the validations of a run, and the alignment error rate if it is known; the chosen one is marked. */
function drawCurve(view) {
  const frames = state.y === "r" ? view.found.frames ?? [] : [], chosen = frames[state.v - 1], rated = Boolean(frames.length) && frames[0].aer !== null;
  at("emerged").hidden = !frames.length;
  at("rated").hidden = !rated;
  if (!frames.length) return play(false);
  at("when").max = frames.length + 1;
  at("when").value = state.v || frames.length + 1;
  at("when").setAttribute("aria-valuetext", chosen ? `update ${chosen.update}` : "the best model");
  const rate = rated ? `, alignment error rate ${number(chosen ? chosen.aer : view.found.measures.AER)}` : "";
  at("frame").textContent = chosen ? `Update ${chosen.update.toLocaleString("en")}, validation ${state.v} of ${frames.length}: entropy ${number(chosen.entropy)} nats${rate}` : `The best model of the run${rate}`;
  const width = Math.min(at("curve").clientWidth, 620), height = 210, most = Math.max(0.1, ...frames.map((frame) => frame.entropy)), last = frames[frames.length - 1].update;
  const x = (update) => 48 + (update / last) * (width - 96), y = (share) => 30 + (1 - share) * (height - 76);
  const line = (value, options) => svg("polyline", { points: frames.map((frame) => `${x(frame.update)},${y(value(frame))}`).join(" "), fill: "none", "stroke-width": 2.5, ...options });
  const tick = (share, text, place, anchor) => label(place, y(share) + 5, text, { "text-anchor": anchor, "font-size": 12 });
  const grid = [0, 0.5, 1].flatMap((share) => [svg("path", { d: `M48 ${y(share)}H${width - 48}`, stroke: colour("line"), "stroke-width": share ? 0.4 : 1 }), tick(share, number(share * most), 42, "end"), ...(rated ? [tick(share, number(share, 1), width - 42, "start")] : [])]);
  const updates = [0, last / 2, last].map((update) => label(x(update), height - 28, Math.round(update).toLocaleString("en"), { "text-anchor": "middle", "font-size": 12 }));
  show("curve", drawing("img", width, height, `Entropy of attention${rated ? " and alignment error rate" : ""} over ${frames.length} validations`, ...grid, ...updates,
    label(0, 14, "entropy (nats)", { "font-size": 13 }), label(width / 2, height - 8, "update of the training", { "text-anchor": "middle", "font-size": 13 }), ...(rated ? [label(width, 14, "alignment error rate (dashed)", { "text-anchor": "end", "font-size": 13 })] : []),
    ...(chosen ? [svg("path", { d: `M${x(chosen.update)} ${y(0)}V${y(1)}`, stroke: colour("more"), "stroke-width": 2, "data-frame": state.v })] : []), line((frame) => frame.entropy / most, { stroke: colour("accent") }), ...(rated ? [line((frame) => frame.aer, { stroke: colour("more"), "stroke-dasharray": "5 3" })] : []),
    ...frames.map((frame, n) => svg("circle", { cx: x(frame.update), cy: y(frame.entropy / most), r: frame === chosen ? 7 : 4.5, fill: colour(frame === chosen ? "more" : "accent"), onclick: () => go({ v: n + 1 }) }, svg("title", {}, `update ${frame.update}: ${number(frame.entropy)} nats`)))));
}

/** The prefixes in the beam, from left to right; the chosen translation is the thick path. */
function drawTree(view) {
  const tree = view.found, on = new Set(view.nodes || []), depth = [], children = tree.p.map(() => []), line = 24;
  tree.p.forEach((parent, node) => { depth[node] = parent < 0 ? 0 : depth[parent] + 1; if (parent >= 0) children[parent].push(node); });
  at("shown-path").hidden = !on.size; // a reference is no beginning of the beam
  const y = []; let next = 0;
  const settle = (node) => { children[node].forEach(settle); y[node] = children[node].length ? y[children[node][0]] : next++; };
  tree.p.forEach((parent, node) => { if (parent < 0) settle(node); });
  const widths = [];
  tree.l.forEach((text, node) => { widths[depth[node]] = Math.max(widths[depth[node]] || 0, size(text) + (tree.sc[node] === null ? 26 : 70)); });
  const x = [8]; widths.forEach((width, n) => { x[n + 1] = x[n] + width; });
  const parts = [], labels = [];
  tree.l.forEach((token, node) => {
    const [left, top] = [x[depth[node]], 16 + line * y[node]], parent = tree.p[node], chosen = on.has(node), dropped = !children[node].length && tree.sc[node] === null;
    if (parent >= 0) parts.push(svg("path", { d: `M${x[depth[parent]] + size(tree.l[parent]) + 8} ${16 + line * y[parent]}L${left - 4} ${top}`, stroke: colour(chosen ? "accent" : "line"), "stroke-width": chosen ? 2.5 : 1, fill: "none" }));
    const text = tree.sc[node] === null ? token : `${token} (${number(tree.sc[node])})`, act = () => go({ y: `n${node}`, t: depth[node], u: 0 });
    labels.push(svg("text", { x: left, y: top + 5, tabindex: 0, "data-key": `node-${node}`, role: "button", "aria-label": `${path(tree, node).map((step) => tree.l[step]).join(" ")}, log-probability ${number(tree.lp[node])}${dropped ? ", dropped" : ""}`, fill: colour(dropped ? "muted" : "text"), "font-weight": chosen ? 700 : 400, onclick: act, onkeydown: (event) => press(event, act) }, text, svg("title", {}, `log-probability ${number(tree.lp[node])}${dropped ? "; dropped from the beam" : ""}`)));
  });
  show("tree", drawing("group", x[x.length - 1] + 8, line * next + 16, "Prefixes in the beam; scores in parentheses where a translation ends", ...parts, ...labels));
}
