"use strict";
// Self-attentive encoders, and decoders of the same sublayers: nmt/models/reference.py says each equation.

/** Words at positions: sqrt(E) times their embeddings, plus sinusoids or learnt vectors, [count, D]. */
function embedAt(weight, ids, positions) {
  const words = weight("words.weight"), learned = weight("learned.weight"), { columns } = words, scale = Math.sqrt(columns);
  const embedded = lookUp(words, ids).map((value) => scale * value);
  positions.forEach((position, row) => {
    for (let k = 0; k < columns; k++) {
      const angle = position / 10000 ** ((k - (k % 2)) / columns);
      embedded[row * columns + k] += learned ? scale * learned.values[placeOf(position, k, columns)] : k % 2 ? Math.cos(angle) : Math.sin(angle);
    }
  });
  return linear(weight, "resize", embedded, ids.length);
}

/** A sublayer f with its residual connection: x + f(norm(x)) if `pre`, else norm(x + f(x)). */
function surround(weight, pre, inputs, f) {
  const outputs = f(pre ? normalize(weight, "norm", inputs) : inputs), sums = inputs.map((value, k) => value + outputs[k]);
  return pre ? sums : normalize(weight, "norm", sums);
}

/** The error function, to 2e-7 (Abramowitz & Stegun, 1964, 7.1.26). */
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const sum = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return Math.sign(x) * (1 - sum * Math.exp(-x * x));
}

const ACTIVATIONS = { relu: (x) => Math.max(0, x), gelu: (x) => (x / 2) * (1 + erf(x / Math.SQRT2)) };

/** The feed-forward sublayer: W2 activation(W1 x + b1) + b2. */
function feedForward(weight, { norm, activation }, inputs, count) {
  const f = (x) => linear(weight, "outer", linear(weight, "inner", x, count).map(ACTIVATIONS[activation]), count);
  return surround(partOf(weight, "residual"), norm === "pre", inputs, f);
}

/** Query, key and value of each word: [count, D] -> count times three vectors of D. */
function projectWords(weight, inputs, count) {
  const all = linear(weight, "project", inputs, count), size = all.length / count / 3;
  return Array.from({ length: count }, (_, row) => [0, 1, 2].map((part) => all.subarray((3 * row + part) * size, (3 * row + part + 1) * size)));
}

/** What each of `count` queries reads of words, by all heads: softmax(Q K^T / sqrt(d)) V, [count, D]. */
function readWords(queries, count, words, heads) {
  const contexts = new Float32Array(queries.length), size = queries.length / count / heads, scores = new Float32Array(words.length);
  for (let begin = 0; begin < queries.length; begin += size) {
    const own = begin % (heads * size);
    words.forEach(([, key], s) => {
      let score = 0;
      for (let k = 0; k < size; k++) score += queries[begin + k] * key[own + k];
      scores[s] = score / Math.sqrt(size);
    });
    const weights = softmax(scores, 0, words.length);
    words.forEach(([, , value], s) => { for (let k = 0; k < size; k++) contexts[begin + k] += weights[s] * value[own + k]; });
  }
  return contexts;
}

/** Every word reads all. */
class SelfAttentionEncoder {
  constructor({ encoder }, weight) {
    this.settings = encoder;
    this.weight = weight;
  }

  /** Encode a sentence; pauses after each layer. Returns its states, [S, D]. */
  *read(ids) {
    const { num_layers: layers, num_heads: heads, norm } = this.settings, S = ids.length;
    let states = embedAt(partOf(this.weight, "embedding"), ids, [...ids.keys()]);
    for (let n = 0; n < layers; n++) {
      const layer = partOf(this.weight, `layers.${n}`), attention = partOf(layer, "attention");
      states = surround(partOf(layer, "residual"), norm === "pre", states, (x) => {
        const words = projectWords(attention, x, S), queries = concatenate(words.map(([query]) => query), 1);
        return linear(attention, "output", readWords(queries, S, words, heads), S);
      });
      states = feedForward(partOf(layer, "feed_forward"), this.settings, states, S);
      yield;
    }
    return { states: normalize(this.weight, "norm", states) };
  }
}

/** What a decoder's layer keeps of the words of each hypothesis, and how it reads them: outputs [count, D], and what is kept then. */
const HISTORIES = {
  transformer: {
    start: () => [],
    step(weight, { num_heads: heads }, inputs, histories) {
      const attention = partOf(weight, "attention"), words = projectWords(attention, inputs, histories.length);
      const after = histories.map((history, row) => [...history, words[row]]);
      const contexts = after.map((history, row) => readWords(words[row][0], 1, history, heads));
      return { outputs: linear(attention, "output", concatenate(contexts, 1), words.length), after };
    },
  },
  ssru: {
    start: (size) => new Float32Array(size),
    step(weight, settings, inputs, histories) {
      const [gates, candidates] = ["forget", "candidate"].map((name) => linear(weight, name, inputs, histories.length));
      const after = histories.map((cell, row) => cell.map((last, k) => {
        const n = row * cell.length + k, gate = sigmoid(gates[n]);
        return gate * last + (1 - gate) * candidates[n];
      }));
      return { outputs: concatenate(after, 1).map(ACTIVATIONS.relu), after };
    },
  },
};

/** A Transformer's decoder. */
class TransformerDecoder {
  constructor({ decoder, attention }, weight) {
    this.settings = decoder;
    this.weight = weight;
    this.history = HISTORIES[decoder.kind];
    this.layers = Array.from({ length: decoder.num_layers }, (_, n) => partOf(weight, `layers.${n}`));
    this.attentions = this.layers.map((layer) => new Attention(attention, partOf(layer, "attention")));
  }

  /** Memory of a sentence, and the state before the first word. */
  start({ states }, S) {
    const histories = this.layers.map(() => [this.history.start(this.settings.hidden_size)]);
    return { memory: this.attentions.map((attention) => attention.memorize(states, null, S)), state: { histories, t: 0 } };
  }

  /** Read one word in each hypothesis: readouts [count, D], alignments of the layer that stands for all, and the new state. */
  advance(words, { histories, t }, memory) {
    const count = words.length, pre = this.settings.norm === "pre", kept = [], alignments = [];
    let rows = embedAt(partOf(this.weight, "embedding"), words, words.map(() => t));
    this.layers.forEach((layer, n) => {
      rows = surround(partOf(layer, "history_residual"), pre, rows, (x) => {
        const { outputs, after } = this.history.step(partOf(layer, "history"), this.settings, x, histories[n]);
        kept.push(after);
        return outputs;
      });
      rows = surround(partOf(layer, "attention_residual"), pre, rows, (x) => {
        const attended = this.attentions[n].attend(x, memory[n], count, t);
        alignments.push(attended.alignments);
        return attended.context;
      });
      rows = feedForward(partOf(layer, "feed_forward"), this.settings, rows, count);
    });
    const readout = linear(this.weight, "readout.1", normalize(this.weight, "readout.0", rows), count);
    return { readout, alignments: alignments[Math.max(this.layers.length - 2, 0)], state: { histories: kept, t: t + 1 } };
  }

  /** The state of some hypotheses, which share what they keep of the words that they share. */
  select({ histories, t }, rows) {
    return { histories: histories.map((own) => rows.map((row) => own[row])), t };
  }
}
