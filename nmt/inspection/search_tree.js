"use strict";
/** The prefixes in the beam, from left to right; the chosen translation is the thick path. */
function drawTree(view) {
  const tree = view.found, on = new Set(view.nodes || []), depth = [], children = tree.p.map(() => []);
  tree.p.forEach((parent, node) => { depth[node] = parent < 0 ? 0 : depth[parent] + 1; if (parent >= 0) children[parent].push(node); });
  const y = []; let next = 0;
  const settle = (node) => { children[node].forEach(settle); y[node] = children[node].length ? y[children[node][0]] : next++; };
  tree.p.forEach((parent, node) => { if (parent < 0) settle(node); });
  const widths = [];
  tree.l.forEach((label, node) => { widths[depth[node]] = Math.max(widths[depth[node]] || 0, size(label) + (tree.sc[node] === null ? 26 : 70)); });
  const x = [8]; widths.forEach((width, n) => { x[n + 1] = x[n] + width; });
  const parts = [], labels = [];
  tree.l.forEach((label, node) => {
    const [left, top] = [x[depth[node]], 16 + 22 * y[node]], parent = tree.p[node], chosen = on.has(node), dropped = !children[node].length && tree.sc[node] === null;
    if (parent >= 0) parts.push(svg("path", { d: `M${x[depth[parent]] + size(tree.l[parent]) + 8} ${16 + 22 * y[parent]}L${left - 4} ${top}`, stroke: chosen ? colour("accent") : colour("line"), "stroke-width": chosen ? 2.5 : 1, "stroke-opacity": chosen ? 1 : 0.5, fill: "none" }));
    const text = tree.sc[node] === null ? label : `${label} (${number(tree.sc[node])})`;
    labels.push(svg("text", { x: left, y: top + 5, tabindex: 0, "data-key": `node-${node}`, role: "button", "aria-label": `${path(tree, node).map((each) => tree.l[each]).join(" ")}, log-probability ${number(tree.lp[node])}${dropped ? ", dropped" : ""}`, fill: colour("text"), "fill-opacity": dropped ? 0.55 : 1, "font-weight": chosen ? 700 : 400, onclick: () => go({ y: `n${node}`, t: depth[node], u: 0 }), onkeydown: (event) => press(event, () => go({ y: `n${node}`, t: depth[node], u: 0 })) }, text, svg("title", {}, `log-probability ${number(tree.lp[node])}${dropped ? "; dropped from the beam" : ""}`)));
  });
  const width = x[x.length - 1] + 8, height = 22 * next + 16;
  show("tree", svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Prefixes in the beam; scores in parentheses where a translation ends" }, ...parts, ...labels));
}
