"use strict";
// What models are made of: nmt/models/reference.py says each equation, with the same names. The vectors of several
// hypotheses, or of all words of a sentence, stand one after another in one array, [count, size].

/** A function that finds the weights of a part by their names in it. */
const partOf = (weight, part) => (name) => weight(`${part}.${name}`);

const BLOCK = 8; // rows that `multiply` reads at once

/** Where a number of a matrix stands: block after block of rows, and within a block column after column. */
const placeOf = (row, k, columns) => (row - (row % BLOCK)) * columns + k * BLOCK + (row % BLOCK);

/** A matrix whose n-th number, row after row, is `valueAt(n)`; zeros fill up its last block. */
function toMatrix(rows, columns, valueAt) {
  const values = new Float32Array(Math.ceil(rows / BLOCK) * BLOCK * columns);
  for (let n = 0; n < rows * columns; n++) values[placeOf(Math.trunc(n / columns), n % columns, columns)] = valueAt(n);
  return { values, rows, columns };
}

/** Some rows of a matrix, one after the other. */
function lookUp({ values, columns }, rows) {
  const found = new Float32Array(rows.length * columns);
  rows.forEach((row, n) => { for (let k = 0; k < columns; k++) found[n * columns + k] = values[placeOf(row, k, columns)]; });
  return found;
}

/** W x of each of `count` vectors x, added to `sums`: [count, columns] -> [count, rows].
 *
 * The numbers of a block are read in the order in which they stand, which is half again as fast as row after row.
 */
function multiply({ values, rows, columns }, vectors, count, sums = new Float32Array(count * rows)) {
  for (let row = 0; row < rows; row += BLOCK) {
    for (let vector = 0; vector < count; vector++) {
      let a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0, at = row * columns;
      for (let k = vector * columns; k < (vector + 1) * columns; k++) {
        const x = vectors[k];
        a += values[at] * x;
        b += values[at + 1] * x;
        c += values[at + 2] * x;
        d += values[at + 3] * x;
        e += values[at + 4] * x;
        f += values[at + 5] * x;
        g += values[at + 6] * x;
        h += values[at + 7] * x;
        at += BLOCK;
      }
      const to = vector * rows + row, left = rows - row;
      sums[to] += a;
      if (left > 1) sums[to + 1] += b;
      if (left > 2) sums[to + 2] += c;
      if (left > 3) sums[to + 3] += d;
      if (left > 4) sums[to + 4] += e;
      if (left > 5) sums[to + 5] += f;
      if (left > 6) sums[to + 6] += g;
      if (left > 7) sums[to + 7] += h;
    }
  }
  return sums;
}

/** The rows of some arrays side by side: [count, a], [count, b], ... -> [count, a + b + ...]. */
function concatenate(parts, count) {
  if (parts.length === 1) return parts[0];
  const sizes = parts.map((part) => part.length / count), size = sizes.reduce((sum, each) => sum + each, 0);
  const all = new Float32Array(count * size);
  let at = 0;
  parts.forEach((part, n) => {
    for (let row = 0; row < count; row++) all.set(part.subarray(row * sizes[n], (row + 1) * sizes[n]), row * size + at);
    at += sizes[n];
  });
  return all;
}

/** Some rows of [count, size]. */
function takeRows(all, size, rows) {
  const taken = new Float32Array(rows.length * size);
  rows.forEach((row, n) => taken.set(all.subarray(row * size, (row + 1) * size), n * size));
  return taken;
}

/** The columns of each head: [count, heads * size] -> heads times [count, size]. */
function splitHeads(all, count, heads) {
  const size = all.length / count / heads;
  return Array.from({ length: heads }, (_, head) => takeRows(all, size, Array.from({ length: count }, (_, row) => row * heads + head)));
}

/** A vector `count` times. */
const repeat = ({ values }, count) => takeRows(values, values.length, Array(count).fill(0));

/** W x + b, or W x without b, or x itself without W: [count, K] -> [count, M]. */
function linear(weight, name, inputs, count) {
  const W = weight(`${name}.weight`), b = weight(`${name}.bias`);
  return W ? multiply(W, inputs, count, b && repeat(b, count)) : inputs;
}

/** x -> x / |x| for each row, or x / 0.1 if |x| is less: `unit` of nmt/layers/output.py. */
function toUnit(all, size) {
  const units = new Float32Array(all.length);
  for (let begin = 0; begin < all.length; begin += size) {
    let square = 0;
    for (let k = begin; k < begin + size; k++) square += all[k] * all[k];
    const norm = Math.max(Math.sqrt(square), 0.1);
    for (let k = begin; k < begin + size; k++) units[k] = all[k] / norm;
  }
  return units;
}

/** Layer normalisation of each row: `layer_norm`; the rows themselves without weights. */
function normalize(weight, name, all) {
  const gain = weight(`${name}.weight`)?.values, bias = weight(`${name}.bias`)?.values;
  if (!gain) return all;
  const size = gain.length, normal = new Float32Array(all.length);
  for (let begin = 0; begin < all.length; begin += size) {
    const own = all.subarray(begin, begin + size), mean = own.reduce((sum, x) => sum + x, 0) / size;
    const deviation = Math.sqrt(own.reduce((sum, x) => sum + (x - mean) ** 2, 0) / size + 1e-5);
    for (let k = 0; k < size; k++) normal[begin + k] = ((own[k] - mean) / deviation) * gain[k] + bias[k];
  }
  return normal;
}

/** exp(x) / sum exp(x) over the positions from `begin` to `end`, 0 elsewhere. */
function softmax(scores, begin, end) {
  const weights = new Float32Array(scores.length), inside = scores.subarray(begin, end), most = Math.max(...inside);
  const sum = inside.reduce((total, score) => total + Math.exp(score - most), 0);
  for (let n = begin; n < end; n++) weights[n] = Math.exp(scores[n] - most) / sum;
  return weights;
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

/** The sum of `term` over the numbers of each query and each key: [count, K] and [S, K] -> [count, S]. */
function sumPairs(queries, keys, count, S, term) {
  const size = keys.length / S, scores = new Float32Array(count * S);
  for (let n = 0; n < count * S; n++) {
    const query = Math.floor(n / S) * size, key = (n % S) * size;
    let sum = 0;
    for (let k = 0; k < size; k++) sum += term(queries[query + k], keys[key + k], k);
    scores[n] = sum;
  }
  return scores;
}

const products = (weight, queries, keys, count, S) => sumPairs(queries, keys, count, S, (q, key) => q * key);

function additive(weight, queries, keys, count, S) {
  const v = lookUp(weight("energy.weight"), [0]), asked = linear(weight, "query", queries, count);
  return sumPairs(asked, keys, count, S, (q, key, k) => v[k] * Math.tanh(q + key));
}

/** Scores (nmt/layers/attention) of queries [count, Q], and what is kept of the keys of a sentence [S, K]: [count, S]. */
const SCORES = { dot: products, general: products, scaled_dot: products, additive, concat: additive };

/** Attention of several hypotheses to one sentence. */
class Attention {
  constructor(settings, weight) {
    this.settings = settings;
    this.weight = weight;
    this.scoreWeight = partOf(weight, "score");
    this.score = SCORES[settings.score];
  }

  /** What every step needs of encoder states [S, D]; without a score it is their summary. */
  memorize(states, summary, S) {
    if (!this.score) return { S, summary };
    const [all, values] = ["key", "value"].map((part) => splitHeads(linear(this.weight, `heads.${part}`, states, S), S, this.settings.heads));
    const scale = this.settings.score === "scaled_dot" ? Math.sqrt(all[0].length / S) : 1;
    return { S, keys: all.map((part) => linear(this.scoreWeight, "key", part, S).map((value) => value / scale)), values };
  }

  /** Context [count, D], and an alignment [heads * S] for each query [count, Q], at step `t`. */
  attend(queries, memory, count, t) {
    const { S, keys, values, summary } = memory, { heads } = this.settings;
    if (!keys) return { context: repeat({ values: summary }, count), alignments: Array(count).fill(new Float32Array(S)) };
    const asked = splitHeads(linear(this.weight, "heads.query", queries, count), count, heads);
    const alignments = Array.from({ length: count }, () => new Float32Array(heads * S));
    const windows = this.locate(queries, count, t, S);
    const contexts = asked.map((own, head) => {
      const scores = this.score(this.scoreWeight, own, keys[head], count, S), size = values[head].length / S;
      const context = new Float32Array(count * size);
      for (let row = 0; row < count; row++) {
        const weights = this.weigh(scores.subarray(row * S, (row + 1) * S), windows[row]);
        alignments[row].set(weights, head * S);
        for (let s = 0; s < S; s++) for (let k = 0; k < size; k++) context[row * size + k] += weights[s] * values[head][s * size + k];
      }
      return context;
    });
    return { context: linear(this.weight, "heads.output", concatenate(contexts, count), count), alignments };
  }

  /** The centre of the window of each query: p_t of local-m (`monotonic_centre`) or local-p (`predicted_centre`). */
  locate(queries, count, t, S) {
    if (this.settings.window.name !== "local_p") return Array(count).fill(Math.min(t, S - 1));
    const hidden = linear(this.weight, "window.hidden", queries, count).map(Math.tanh);
    return Array.from(linear(this.weight, "window.position", hidden, count), (p) => S * sigmoid(p));
  }

  /** Weights of the positions in the window. */
  weigh(scores, centre) {
    const { window: { name, radius }, normalizer: { temperature } } = this.settings, S = scores.length;
    const [begin, end] = radius ? [Math.max(0, Math.ceil(centre - radius)), Math.min(S, Math.floor(centre + radius) + 1)] : [0, S];
    const weights = softmax(scores.map((score) => score / temperature), begin, end);
    if (name === "hard") {
      const most = weights.indexOf(Math.max(...weights));
      return new Float32Array(S).fill(1, most, most + 1);
    }
    return name === "local_p" ? weights.map((weight, s) => weight * Math.exp(-2 * ((s - centre) / radius) ** 2)) : weights;
  }
}

