"use strict";

const ENCODERS = { recurrent: RecurrentEncoder, self_attention: SelfAttentionEncoder };
const DECODERS = { recurrent: RecurrentDecoder, transformer: TransformerDecoder, ssru: TransformerDecoder };

/** An encoder and a decoder.
 *
 * `settings` is the model section of a config; `weight` returns a weight by its name in the model directory: a vector
 * { values }, or what `toMatrix` returns.
 */
class Network {
  constructor(settings, weight) {
    this.encoder = new ENCODERS[settings.encoder.kind](settings, partOf(weight, "encoder"));
    this.decoder = new DECODERS[settings.decoder.kind](settings, partOf(weight, "decoder"));
    this.norm = settings.output_norm;
    this.bias = weight("decoder.output.bias");
    const W = weight("decoder.output.weight");
    const units = this.norm !== null && toUnit(lookUp(W, [...Array(W.rows).keys()]), W.columns);
    this.output = units ? toMatrix(W.rows, W.columns, (n) => units[n]) : W;
  }

  /** Encode a sentence, with pauses. Returns its memory, and the state before the first word. */
  *read(ids) {
    return this.decoder.start(yield* this.encoder.read(ids), ids.length);
  }

  /** Read one word in each hypothesis: logits [count, V], an alignment [heads * S] each, and the new state. */
  step(words, before, memory) {
    const { readout, alignments, state } = this.decoder.advance(words, before, memory), count = words.length;
    const stretched = this.norm === null ? readout : toUnit(readout, readout.length / count).map((value) => this.norm ** 2 * value);
    return { logits: multiply(this.output, stretched, count, repeat(this.bias, count)), alignments, state };
  }
}
