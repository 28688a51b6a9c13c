"use strict";
// The forward pass of recurrent models: nmt/models/reference.py says each equation, with the same names. The vectors of
// several hypotheses, or of all words of a sentence, stand one after another in one array, [count, size].

/** W x of each of `count` vectors x, added to `sums`: [count, columns] -> [count, rows].
 *
 * Each row of W is read from memory once: four rows at a time are multiplied with all vectors.
 */
function multiply({ values, rows, columns }, vectors, count, sums = new Float32Array(count * rows)) {
  for (let row = 0; row < rows; row += 4) {
    const left = rows - row;
    const one = row * columns, two = one + (left > 1 ? columns : 0), three = two + (left > 2 ? columns : 0);
    const four = three + (left > 3 ? columns : 0);
    for (let vector = 0; vector < count; vector++) {
      const begin = vector * columns, to = vector * rows + row;
      let first = 0, second = 0, third = 0, fourth = 0;
      for (let k = 0; k < columns; k++) {
        const x = vectors[begin + k];
        first += values[one + k] * x;
        second += values[two + k] * x;
        third += values[three + k] * x;
        fourth += values[four + k] * x;
      }
      sums[to] += first;
      if (left > 1) sums[to + 1] += second;
      if (left > 2) sums[to + 2] += third;
      if (left > 3) sums[to + 3] += fourth;
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

/** The columns of each head: [count, heads * size] -> heads times [count, size]. */
function splitHeads(all, count, heads) {
  if (heads === 1) return [all];
  const width = all.length / count, size = width / heads;
  return Array.from({ length: heads }, (_, head) => {
    const part = new Float32Array(count * size);
    for (let row = 0; row < count; row++) part.set(all.subarray(row * width + head * size, row * width + (head + 1) * size), row * size);
    return part;
  });
}

/** Some rows of [count, size]. */
function takeRows(all, size, rows) {
  const taken = new Float32Array(rows.length * size);
  rows.forEach((row, n) => taken.set(all.subarray(row * size, (row + 1) * size), n * size));
  return taken;
}

/** A vector `count` times. */
const repeat = ({ values }, count) => takeRows(values, values.length, Array(count).fill(0));

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

/** Layer normalisation of each row: `layer_norm`. */
function normalizeRows(all, gain, bias) {
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

/** Cells: from x = W x + b and u = U h + d of all gates, [count, gates * size], to the new state, [count, size] each. */
const CELLS = {
  rnn(x, u, { h }) {
    return { h: h.map((_, n) => Math.tanh(x[n] + u[n])) };
  },
  gru(x, u, { h }, size) {
    return { h: h.map((last, n) => {
      const r = Math.floor(n / size) * 2 * size + n, z = r + size, candidate = z + size;
      const update = sigmoid(x[z] + u[z]);
      return (1 - update) * Math.tanh(x[candidate] + sigmoid(x[r] + u[r]) * u[candidate]) + update * last;
    }) };
  },
  lstm(x, u, { h, c }, size) {
    const gate = (n, number) => { const at = Math.floor(n / size) * 3 * size + n + number * size; return x[at] + u[at]; };
    const cell = c.map((last, n) => sigmoid(gate(n, 1)) * last + sigmoid(gate(n, 0)) * Math.tanh(gate(n, 2)));
    return { h: h.map((_, n) => sigmoid(gate(n, 3)) * Math.tanh(cell[n])), c: cell };
  },
};

/** One recurrent layer in one direction. */
class RecurrentLayer {
  constructor(kind, weight, name, number) {
    const parts = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"].map((part) => weight(`${name}.${part}_l${number}`));
    [this.W, this.U, this.b, this.d] = parts;
    this.kind = kind;
    this.size = this.U.columns;
  }

  zeros(count) {
    const zeros = () => new Float32Array(count * this.size);
    return this.kind === "lstm" ? { h: zeros(), c: zeros() } : { h: zeros() };
  }

  /** W x + b of inputs [count, K]. */
  project(inputs, count) {
    return multiply(this.W, inputs, count, repeat(this.b, count));
  }

  /** The state after one step. */
  step(projected, state, count) {
    return CELLS[this.kind](projected, multiply(this.U, state.h, count, repeat(this.d, count)), state, this.size);
  }
}

const products = (weight, keys, queries, count, S) => multiply({ values: keys, rows: S, columns: keys.length / S }, queries, count);
const projected = (weight, keys, S) => multiply(weight("key.weight"), keys, S);
/** Scores (nmt/layers/attention): what is kept of the keys of a sentence [S, K], and queries [count, Q] -> [count, S]. */
const SCORES = {
  dot: { project: (weight, keys) => keys, score: products },
  general: { project: projected, score: products },
  scaled_dot: { project: (weight, keys, S) => keys.map((value) => value / Math.sqrt(keys.length / S)), score: products },
  additive: {
    project: projected,
    score(weight, keys, queries, count, S) {
      const v = weight("energy.weight").values, size = v.length, scores = new Float32Array(count * S);
      const asked = multiply(weight("query.weight"), queries, count);
      for (let n = 0; n < count * S; n++) {
        const query = Math.floor(n / S) * size, key = (n % S) * size;
        for (let k = 0; k < size; k++) scores[n] += v[k] * Math.tanh(asked[query + k] + keys[key + k]);
      }
      return scores;
    },
  },
};
SCORES.concat = SCORES.additive;

/** Attention of several hypotheses to one sentence. */
class Attention {
  constructor(settings, weight) {
    this.settings = settings;
    this.weight = (name) => weight(`decoder.cell.attention.${name}`);
    this.scoreWeight = (name) => this.weight(`score.${name}`);
    this.score = SCORES[settings.score];
  }

  /** What every step needs of encoder states [S, D]; without a score it is their summary. */
  memorize(states, summary, S) {
    if (!this.score) return { S, summary };
    const { heads } = this.settings, project = (part) => (heads > 1 ? multiply(this.weight(`heads.${part}.weight`), states, S) : states);
    const keys = splitHeads(project("key"), S, heads).map((part) => this.score.project(this.scoreWeight, part, S));
    return { S, keys, values: splitHeads(project("value"), S, heads) };
  }

  /** Context [count, D], and an alignment [heads * S] for each query [count, Q], at step `t`. */
  attend(queries, memory, count, t) {
    const { S, keys, values, summary } = memory, { heads } = this.settings;
    if (!keys) return { context: repeat({ values: summary }, count), alignments: Array(count).fill(new Float32Array(S)) };
    const asked = splitHeads(heads > 1 ? multiply(this.weight("heads.query.weight"), queries, count) : queries, count, heads);
    const alignments = Array.from({ length: count }, () => new Float32Array(heads * S));
    const windows = this.locate(queries, count, t, S);
    const contexts = asked.map((own, head) => {
      const scores = this.score.score(this.scoreWeight, keys[head], own, count, S), size = values[head].length / S;
      const context = new Float32Array(count * size);
      for (let row = 0; row < count; row++) {
        const weights = this.weigh(scores.subarray(row * S, (row + 1) * S), windows[row]);
        alignments[row].set(weights, head * S);
        for (let s = 0; s < S; s++) for (let k = 0; k < size; k++) context[row * size + k] += weights[s] * values[head][s * size + k];
      }
      return context;
    });
    const joined = concatenate(contexts, count);
    return { context: heads > 1 ? multiply(this.weight("heads.output.weight"), joined, count) : joined, alignments };
  }

  /** The centre of the window of each query: p_t of local-m (`monotonic_centre`) or local-p (`predicted_centre`). */
  locate(queries, count, t, S) {
    if (this.settings.window.name !== "local_p") return Array(count).fill(Math.min(t, S - 1));
    const hidden = multiply(this.weight("window.hidden.weight"), queries, count).map(Math.tanh);
    return Array.from(multiply(this.weight("window.position.weight"), hidden, count), (p) => S * sigmoid(p));
  }

  /** Weights of the positions in the window. */
  weigh(scores, centre) {
    const { window: { name, radius }, normalizer: { temperature } } = this.settings, S = scores.length;
    const [begin, end] = radius ? [Math.max(0, Math.ceil(centre - radius)), Math.min(S, Math.floor(centre + radius) + 1)] : [0, S];
    const weights = softmax(scores.map((score) => score / temperature), begin, end);
    const most = weights.indexOf(Math.max(...weights));
    if (name === "hard") return new Float32Array(S).fill(1, most, most + 1);
    return name === "local_p" ? weights.map((weight, s) => weight * Math.exp(-2 * ((s - centre) / radius) ** 2)) : weights;
  }
}

/** A model with a recurrent encoder and decoder.
 *
 * `settings` is the model section of its config; `weight` returns a weight by its name in the model directory: a vector
 * { values }, or a matrix with { rows, columns } too.
 */
class Network {
  constructor(settings, weight) {
    const { encoder, decoder } = this.settings = settings;
    this.weight = weight;
    const directions = encoder.bidirectional ? [0, 1] : [0];
    this.encoder = Array.from({ length: encoder.num_layers }, (_, n) => directions.map((d) => new RecurrentLayer(encoder.cell, weight, `encoder.layers.${n}.${d}.rnn`, 0)));
    const stack = "decoder.cell.recurrent", single = weight(`${stack}.rnn.weight_ih_l0`);
    this.decoder = Array.from({ length: decoder.num_layers }, (_, n) => new RecurrentLayer(decoder.cell, weight, `${stack}${single ? "" : `.layers.${n}`}.rnn`, single ? n : 0));
    this.attention = new Attention(settings.attention, weight);
    const output = weight("decoder.output.weight");
    this.output = settings.output_norm === null ? output : { ...output, values: toUnit(output.values, output.columns) };
  }

  embed(side, ids) {
    const { values, columns } = this.weight(`${side}.embedding.weight`);
    return takeRows(values, columns, ids);
  }

  /** What a layer above the first reads of the one below: its output, perhaps normalised. */
  enter(connection, below) {
    const gain = this.weight(`${connection}.norm.weight`);
    return gain ? normalizeRows(below, gain.values, this.weight(`${connection}.norm.bias`).values) : below;
  }

  /** Encode a sentence; pauses after each word. Returns its memory, and the state before the first word. */
  *read(ids) {
    const { encoder } = this.settings, S = ids.length, ends = [];
    let outputs = this.embed("encoder", ids);
    for (const [n, directions] of this.encoder.entries()) {
      const inputs = this.enter(`encoder.connections.${n}`, outputs), parts = [], last = [];
      for (const [backward, layer] of directions.entries()) {
        const projected = layer.project(inputs, S), gates = projected.length / S, states = new Float32Array(S * layer.size);
        let state = layer.zeros(1);
        for (let step = 0; step < S; step++) {
          const at = backward ? S - 1 - step : step;
          state = layer.step(projected.subarray(at * gates, (at + 1) * gates), state, 1);
          states.set(state.h, at * layer.size);
          yield;
        }
        parts.push(states);
        last.push(state);
      }
      const joined = concatenate(parts, S);
      outputs = encoder.residual && n ? joined.map((value, k) => value + outputs[k]) : joined;
      ends.push(Object.fromEntries(Object.keys(last[0]).map((part) => [part, concatenate(last.map((state) => state[part]), 1)])));
    }
    const size = outputs.length / S, own = encoder.hidden_size;
    const final = concatenate([outputs.subarray((S - 1) * size, (S - 1) * size + own), outputs.subarray(own, size)], 1);
    return { memory: this.attention.memorize(outputs, final, S), state: this.begin(final, outputs.subarray(own, size), ends) };
  }

  /** The decoder's first state (`initial_state`), from the encoder's. */
  begin(final, backward, ends) {
    const { decoder } = this.settings, W = this.weight("decoder.initial_state.projection.weight");
    const layers = decoder.initial_state === "copy" ? ends : this.decoder.map((layer) => layer.zeros(1));
    if (W) {
      const x = decoder.initial_state === "backward" ? backward : final;
      const all = multiply(W, x, 1, repeat(this.weight("decoder.initial_state.projection.bias"), 1)).map(Math.tanh);
      let at = 0; // h of all layers, then c of all layers
      for (const part of Object.keys(layers[0])) for (const layer of layers) { layer[part] = all.slice(at, at + layer.h.length); at += layer.h.length; }
    }
    const feedback = decoder.input_feeding ? new Float32Array(this.output.columns) : null;
    return { layers, feedback, t: 0 };
  }

  /** The decoder's layers, given [input; extra]: their outputs and new states. */
  update(inputs, extra, states, count) {
    const { decoder } = this.settings, outputs = [], layers = [];
    this.decoder.forEach((layer, n) => {
      const below = outputs[n - 1], own = n ? [this.enter(`decoder.cell.recurrent.connections.${n - 1}`, below)] : [inputs];
      if (extra && (!n || decoder.context_to === "all")) own.push(extra);
      const state = layer.step(layer.project(concatenate(own, count), count), states[n], count);
      outputs.push(n && decoder.residual ? state.h.map((value, k) => value + below[k]) : state.h);
      layers.push(state);
    });
    return { outputs, layers };
  }

  /** The vector before the output layer, from [s; c; y] or [c; h]. */
  readOut(parts, count) {
    const { readout } = this.settings.decoder;
    if (readout === "state") return parts[0];
    const all = concatenate(parts, count);
    if (readout === "linear") return all;
    const bias = this.weight("decoder.cell.output.bias"), W = this.weight("decoder.cell.output.weight");
    const sums = multiply(W, all, count, bias ? repeat(bias, count) : undefined);
    return readout === "plain" ? sums.map(Math.tanh) : Float32Array.from({ length: sums.length / 2 }, (_, k) => Math.max(sums[2 * k], sums[2 * k + 1]));
  }

  /** Read one word in each hypothesis: logits [count, V], an alignment [heads * S] each, and the new state. */
  step(words, { layers, feedback, t }, memory) {
    const { decoder, output_norm: norm } = this.settings, count = words.length;
    const query = decoder.attend_from === "first" ? 0 : layers.length - 1, embedded = this.embed("decoder", words);
    let attended, parts, after;
    if (decoder.order === "bahdanau") {
      attended = this.attention.attend(layers[query].h, memory, count, t);
      after = this.update(embedded, attended.context, layers, count);
      parts = [after.outputs.at(-1), attended.context, embedded];
    } else {
      after = this.update(embedded, feedback, layers, count);
      attended = this.attention.attend(after.outputs[query], memory, count, t);
      parts = [attended.context, after.outputs.at(-1)];
    }
    const readout = this.readOut(parts, count), size = readout.length / count;
    const stretched = norm === null ? readout : toUnit(readout, size).map((value) => norm ** 2 * value);
    const logits = multiply(this.output, stretched, count, repeat(this.weight("decoder.output.bias"), count));
    return { logits, alignments: attended.alignments, state: { layers: after.layers, feedback: feedback && readout, t: t + 1 } };
  }

  /** The state of some hypotheses. */
  select({ layers, feedback, t }, rows) {
    const taken = layers.map((state, n) => Object.fromEntries(Object.entries(state).map(([part, all]) => [part, takeRows(all, this.decoder[n].size, rows)])));
    return { layers: taken, feedback: feedback && takeRows(feedback, this.output.columns, rows), t };
  }
}
