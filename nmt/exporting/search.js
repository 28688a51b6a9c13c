"use strict";
// Greedy and beam search, as in nmt/search: the same limits, scores, and order of equal ones.

const PAD = 0, UNK = 1, BOS = 2, EOS = 3;
const SHOWN_WORDS = 10;

/** The `number` most probable of the words that can follow, best first, as [word, log-probability]; of equal ones the lower id is first. */
function topWords(logits, number, isForbidden) {
  const most = logits.reduce((best, value) => Math.max(best, value), -Infinity), top = [];
  let sum = 0, least = -Infinity;
  for (let word = 0; word < logits.length; word++) {
    const value = logits[word];
    sum += Math.exp(value - most);
    if ((top.length === number && !(value > least)) || isForbidden(word)) continue;
    let place = top.length;
    while (place && value > top[place - 1][1]) place--;
    top.splice(place, 0, [word, value]);
    if (top.length > number) top.pop();
    least = top.at(-1)[1];
  }
  const total = most + Math.log(sum);
  return top.map(([word, value]) => [word, Math.fround(value - total)]);
}

/** Finds whether a word may not follow others, which have `left` more at most: a reserved one that is not missing, the
 * end while one is, and every other one in the last places. See DemandedWords of nmt/search/constraint.py. */
function forbid({ reserved, demanded }, words, left) {
  const count = (ids, id) => ids.filter((each) => each === id).length, lacking = new Map();
  for (const id of reserved) {
    const missing = count(demanded, id) - count(words, id);
    if (missing > 0) lacking.set(id, missing);
  }
  const number = [...lacking.values()].reduce((sum, missing) => sum + missing, 0), isLastChance = number > 0 && number >= left - 1;
  return (word) => !lacking.has(word) && (isLastChance || (number > 0 && word === EOS) || reserved.includes(word));
}

/** Maximum number of words of a translation of a source with so many words, its end among them. */
function findLongest({ max_length: longest, max_length_ratio: ratio }, S) {
  return Math.min(longest, Math.trunc(Math.fround(Math.fround(ratio) * S) + 10));
}

/** Search for translations of a source, ids without EOS; pauses after each word with the words of the best prefix.
 *
 * A translation has the `demanded` of the ids that are `reserved`, each exactly once for each time that it is demanded.
 *
 * Returns the prefixes that were in the beam, each a node { parent, word, total, score, alignment, top }: its last word,
 * its log-probability, its score if it ended there, and the attention and the most probable words of its last step; and
 * the numbers of those that ended, best first.
 */
function* search(network, source, decode, constraint) {
  const S = source.length + 1, beam = decode.beam_size;
  const limit = findLongest(decode, S);
  const fewest = Math.min(Math.max(Math.trunc(Math.fround(decode.min_length_ratio) * (S - 1)), decode.min_length), limit - 1);
  const norm = (length) => (decode.length_norm === "wu" ? (5 + length) / 6 : length) ** decode.length_penalty;
  let { memory, state } = yield* network.read([...source, EOS]);
  let rows = [{ number: -1, word: BOS, total: 0, words: [] }], complete = 0, best = -Infinity;
  const nodes = [];
  for (let length = 1; rows.length && length <= limit; length++) {
    const { logits, alignments, state: after } = network.step(rows.map(({ word }) => word), state, memory);
    const size = logits.length / rows.length;
    const candidates = rows.flatMap((row, n) => {
      const isRuledOut = forbid(constraint, row.words, limit - length + 1);
      const isForbidden = (word) => word === PAD || word === BOS || (word === EOS && length <= fewest) || isRuledOut(word);
      const top = topWords(logits.subarray(n * size, (n + 1) * size), Math.max(beam, SHOWN_WORDS), isForbidden);
      return top.slice(0, beam).map(([word, value]) => ({ row: n, parent: row.number, word, total: row.total + value, score: null, alignment: alignments[n], top }));
    });
    candidates.sort((one, other) => other.total - one.total); // stable, as equal ones keep their order
    // A hypothesis that has ended keeps its place in the beam.
    const alive = candidates.slice(0, beam - complete).filter(({ total }) => Number.isFinite(total));
    const words = rows.map((row) => row.words);
    rows = [];
    for (const node of alive) {
      const number = nodes.push(node) - 1;
      if (node.word !== EOS && length < limit) { rows.push({ ...node, number, words: [...words[node.row], node.word] }); continue; }
      node.score = node.total / norm(length);
      if (node.word !== EOS) continue;
      complete += 1;
      best = Math.max(best, node.score);
    }
    // Log-probabilities only fall, so no other hypothesis can score higher than this.
    if (!rows.length || !(rows[0].total / norm(limit) > best)) break;
    state = network.decoder.select(after, rows.map(({ row }) => row));
    yield rows[0].words;
  }
  const ends = nodes.flatMap(({ score }, number) => (score === null ? [] : [number]));
  return { nodes, ends: ends.sort((one, other) => nodes[other].score - nodes[one].score) };
}

/** The nodes from the first word to one where a translation ends. */
function trace(nodes, end) {
  const steps = [];
  for (let number = end; number >= 0; number = nodes[number].parent) steps.unshift(nodes[number]);
  return steps;
}
