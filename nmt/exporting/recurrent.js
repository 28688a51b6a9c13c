"use strict";
// Recurrent encoders and decoders: nmt/models/reference.py says each equation, with the same names.

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

  /** The state of one hypothesis before the first step. */
  zeros() {
    const zeros = () => new Float32Array(this.size);
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

const embed = (weight, ids) => lookUp(weight("embedding.weight"), ids);

/** A recurrent encoder, in one or both directions. */
class RecurrentEncoder {
  constructor({ encoder }, weight) {
    this.settings = encoder;
    this.weight = weight;
    const directions = encoder.bidirectional ? [0, 1] : [0];
    this.layers = Array.from({ length: encoder.num_layers }, (_, n) => directions.map((d) => new RecurrentLayer(encoder.cell, weight, `layers.${n}.${d}.rnn`, 0)));
  }

  /** Encode a sentence; pauses after each word. Returns its states [S, D], and the last ones. */
  *read(ids) {
    const S = ids.length, ends = [];
    let outputs = embed(this.weight, ids);
    for (const [n, directions] of this.layers.entries()) {
      const inputs = normalize(this.weight, `connections.${n}.norm`, outputs), parts = [], last = [];
      for (const [backward, layer] of directions.entries()) {
        const projected = layer.project(inputs, S), gates = projected.length / S, states = new Float32Array(S * layer.size);
        let state = layer.zeros();
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
      outputs = this.settings.residual && n ? joined.map((value, k) => value + outputs[k]) : joined;
      ends.push(Object.fromEntries(Object.keys(last[0]).map((part) => [part, concatenate(last.map((state) => state[part]), 1)])));
    }
    const size = outputs.length / S, own = this.settings.hidden_size, backward = outputs.subarray(own, size);
    return { states: outputs, final: concatenate([outputs.subarray((S - 1) * size, (S - 1) * size + own), backward], 1), backward, ends };
  }
}

/** A recurrent decoder in either order. */
class RecurrentDecoder {
  constructor({ decoder, attention }, weight) {
    this.settings = decoder;
    this.weight = weight;
    const stack = "cell.recurrent", single = weight(`${stack}.rnn.weight_ih_l0`);
    this.layers = Array.from({ length: decoder.num_layers }, (_, n) => new RecurrentLayer(decoder.cell, weight, `${stack}${single ? "" : `.layers.${n}`}.rnn`, single ? n : 0));
    this.attention = new Attention(attention, partOf(weight, "cell.attention"));
    this.readoutSize = weight("output.weight").columns;
  }

  /** Memory of a sentence, and the state before the first word (`initial_state`). */
  start({ states, final, backward, ends }, S) {
    const { initial_state: initial, input_feeding } = this.settings;
    const layers = initial === "copy" ? ends : this.layers.map((layer) => layer.zeros());
    if (this.weight("initial_state.projection.weight")) {
      const all = linear(this.weight, "initial_state.projection", initial === "backward" ? backward : final, 1).map(Math.tanh);
      let at = 0; // h of all layers, then c of all layers
      for (const part of Object.keys(layers[0])) for (const layer of layers) { layer[part] = all.slice(at, at + layer.h.length); at += layer.h.length; }
    }
    const feedback = input_feeding ? new Float32Array(this.readoutSize) : null;
    return { memory: this.attention.memorize(states, final, S), state: { layers, feedback, t: 0 } };
  }

  /** The layers, given [input; extra]: their outputs and new states. */
  update(inputs, extra, states, count) {
    const outputs = [], layers = [];
    this.layers.forEach((layer, n) => {
      const below = outputs[n - 1], own = n ? [normalize(this.weight, `cell.recurrent.connections.${n - 1}.norm`, below)] : [inputs];
      if (extra && (!n || this.settings.context_to === "all")) own.push(extra);
      const state = layer.step(layer.project(concatenate(own, count), count), states[n], count);
      outputs.push(n && this.settings.residual ? state.h.map((value, k) => value + below[k]) : state.h);
      layers.push(state);
    });
    return { outputs, layers };
  }

  /** The vector before the output layer, from [s; c; y] or [c; h]. */
  readOut(parts, count) {
    const { readout } = this.settings;
    if (readout === "state") return parts[0];
    const sums = linear(this.weight, "cell.output", concatenate(parts, count), count);
    if (readout === "plain") return sums.map(Math.tanh);
    return readout === "linear" ? sums : Float32Array.from({ length: sums.length / 2 }, (_, k) => Math.max(sums[2 * k], sums[2 * k + 1]));
  }

  /** Read one word in each hypothesis: readouts [count, D], an alignment [heads * S] each, and the new state. */
  advance(words, { layers, feedback, t }, memory) {
    const { order, attend_from } = this.settings, count = words.length;
    const query = attend_from === "first" ? 0 : layers.length - 1, embedded = embed(this.weight, words);
    let attended, parts, after;
    if (order === "bahdanau") {
      attended = this.attention.attend(layers[query].h, memory, count, t);
      after = this.update(embedded, attended.context, layers, count);
      parts = [after.outputs.at(-1), attended.context, embedded];
    } else {
      after = this.update(embedded, feedback, layers, count);
      attended = this.attention.attend(after.outputs[query], memory, count, t);
      parts = [attended.context, after.outputs.at(-1)];
    }
    const readout = this.readOut(parts, count);
    return { readout, alignments: attended.alignments, state: { layers: after.layers, feedback: feedback && readout, t: t + 1 } };
  }

  /** The state of some hypotheses. */
  select({ layers, feedback, t }, rows) {
    const taken = layers.map((state, n) => Object.fromEntries(Object.entries(state).map(([part, all]) => [part, takeRows(all, this.layers[n].size, rows)])));
    return { layers: taken, feedback: feedback && takeRows(feedback, this.readoutSize, rows), t };
  }
}
