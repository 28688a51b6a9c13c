"""Noise on training text: sampled subword segmentations, and tokens replaced by the unknown token.

The noise of a pair depends only on the seed, the epoch and the index of the pair, not on its batch or on the
pairs that were read before it.
"""

import math
from bisect import bisect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import accumulate, chain, islice, pairwise, repeat

import numpy as np

from nmt.config import NoiseSection, TrainSection
from nmt.corpus.dataset import DataDirectory, Ids
from nmt.system.errors import ConfigError
from nmt.text.tokenizers import WORD_BEGINNING, SubwordTokenizer, load_tokenizer
from nmt.text.vocabulary import UNK_ID, Vocabulary

Noise = Callable[[Ids, Ids, int, int], tuple[Ids, Ids, Ids]]
Segment = Callable[[str, Iterator[float]], Sequence[str]]
Resample = Callable[[Ids, Iterator[float]], Ids]

CACHED = 2**15  # words per side: the vocabulary of all but the largest corpora, in at most about 100 MB


def no_noise(src: Ids, tgt: Ids, epoch: int, index: int) -> tuple[Ids, Ids, Ids]:
    """Return a pair unchanged.

    Args:
        src: Source ids without EOS.
        tgt: Target ids without EOS.
        epoch: Current epoch, from 1.
        index: Index of the pair in its data set.

    Returns:
        Source ids, decoder input after BOS, and the ids to predict before EOS.
    """
    return src, tgt, tgt


def make_noise(options: TrainSection, data: DataDirectory) -> Noise:
    """Build the noise function of a config, which is called like `no_noise`.

    Args:
        options: Seed and noise of the run.
        data: Training data, whose subword models are used for sampling.

    Raises:
        ConfigError: The data has no subwords of the kind to sample, or their library is not installed.
        DataError: The data directory is damaged.
    """
    noise = options.noise
    seed = options.seed
    if noise == NoiseSection():
        return no_noise
    resample_src = _make_resample(noise, data, "src", data.src_vocabulary)
    resample_tgt = _make_resample(noise, data, "tgt", data.tgt_vocabulary)

    def disturb(src: Ids, tgt: Ids, epoch: int, index: int) -> tuple[Ids, Ids, Ids]:
        generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(epoch, index)))
        draws = _uniform(generator)
        src = resample_src(src, draws)
        tgt = resample_tgt(tgt, draws)
        src = hide_words(src, noise.src_word_dropout, generator)
        return src, hide_words(tgt, noise.tgt_word_dropout, generator), tgt

    return disturb


def hide_words(ids: Ids, probability: float, generator: np.random.Generator) -> Ids:
    """Word dropout: make each token unknown with the same probability (Sennrich et al., 2016, for WMT16)."""
    return np.where(generator.random(len(ids)) < probability, np.int32(UNK_ID), ids)


def bpe_dropout(scores: Mapping[str, float], probability: float) -> Segment:
    """BPE dropout: BPE that skips merges at random (Provilkov et al., 2020, algorithm 1).

    Args:
        scores: Score of each piece; the merge that yields the highest score comes first.
        probability: Probability of skipping a possible merge, drawn again in each round; 0 is plain BPE.

    Returns:
        A function from a word and draws from U[0, 1) to the pieces of the word.
    """

    def merge(word: str, draws: Iterator[float]) -> list[str]:
        pieces = list(word)
        while True:
            candidates = ((scores.get(left + right), index) for index, (left, right) in enumerate(pairwise(pieces)))
            ranked = sorted((-score, index) for score, index in candidates if score is not None)
            # In order of score, the first merge that is not skipped is the best of the remaining ones.
            chosen = next((index for _, index in ranked if next(draws) >= probability), None)
            if chosen is None:
                return pieces
            pieces[chosen : chosen + 2] = [pieces[chosen] + pieces[chosen + 1]]

    merge_all = lru_cache(CACHED)(partial(merge, draws=repeat(1.0)))

    def segment(word: str, draws: Iterator[float]) -> Sequence[str]:
        # If no merge is skipped, each takes one draw and the result is plain BPE: the usual case, which is cached.
        plain = merge_all(word)
        first = list(islice(draws, len(word) - len(plain)))
        return plain if min(first, default=1.0) >= probability else merge(word, chain(first, draws))

    return segment


def unigram_sampling(scores: Mapping[str, float], alpha: float) -> Segment:
    """Sample segmentations with probability ~ P(segmentation)^alpha (Kudo, 2018, section 3.3, l = infinity).

    Forward filtering sums over all segmentations of each prefix of the word; backward sampling draws pieces from last
    to first.

    Args:
        scores: Log-probability of each piece.
        alpha: 1 samples from the model; near 0 all segmentations are equally likely, large values favour the best.

    Returns:
        A function from a word and draws from U[0, 1) to the pieces of the word.
    """
    longest = max(map(len, scores))

    @lru_cache(CACHED)
    def filter_forward(word: str) -> list[tuple[list[str], list[float]]]:
        """For each prefix of the word, the pieces that it may end in and their cumulative probabilities."""
        totals = {0: 0.0}  # log of the sum of P^alpha over all segmentations of word[:end]
        endings: list[tuple[list[str], list[float]]] = [([], [])]
        for end in range(1, len(word) + 1):
            starts = [s for s in range(max(0, end - longest), end) if s in totals and word[s:end] in scores]
            logs = [totals[start] + alpha * scores[word[start:end]] for start in starts]
            if logs:
                best = max(logs)
                totals[end] = best + math.log(sum(math.exp(log - best) for log in logs))
            sums = list(accumulate(math.exp(log - totals[end]) for log in logs))
            endings.append(([word[start:end] for start in starts], sums))
        return endings

    def segment(word: str, draws: Iterator[float]) -> Sequence[str]:
        endings = filter_forward(word)
        end = len(word)
        pieces: list[str] = []
        while end:
            candidates, sums = endings[end]
            pieces.append(candidates[bisect(sums, next(draws), hi=len(sums) - 1)])
            end -= len(pieces[-1])
        return pieces[::-1]

    return segment


def resample_words(segment: Segment, vocabulary: Vocabulary, symbols: Collection[str] = ()) -> Resample:
    """Build a function that segments the words of a sentence again.

    A word keeps its pieces if one of them, or one of the new ones, is not in the vocabulary.

    Args:
        segment: Function from a word and draws to pieces.
        vocabulary: Subwords; a word is a piece that starts with `WORD_BEGINNING` and the pieces up to the next such.
        symbols: Pieces that stay whole: each is a word.
    """
    begins_word = [token.startswith(WORD_BEGINNING) for token in vocabulary.tokens]
    is_symbol = [token in symbols for token in vocabulary.tokens]

    def starts_word(before: int, word_id: int) -> bool:
        return begins_word[word_id] or is_symbol[word_id] or is_symbol[before]

    def resample(ids: Ids, draws: Iterator[float]) -> Ids:
        sentence: list[int] = ids.tolist()
        starts = [index for index, pair in enumerate(pairwise(sentence), start=1) if starts_word(*pair)]
        segmented: list[int] = []
        for start, end in pairwise([0, *starts, len(sentence)]):
            usual = sentence[start:end]
            if UNK_ID in usual or (usual and is_symbol[usual[0]]):
                segmented += usual
            else:
                sampled = vocabulary.encode(segment("".join(vocabulary.decode(usual)), draws))
                segmented += usual if UNK_ID in sampled else sampled
        return np.array(segmented, dtype=np.int32)

    return resample


def _make_resample(noise: NoiseSection, data: DataDirectory, side: str, vocabulary: Vocabulary) -> Resample:
    """Build the function that samples the subwords of one side."""
    sample: Callable[[Mapping[str, float]], Segment]
    if noise.unigram_alpha is not None:
        key = "unigram_alpha"
        algorithm = "unigram"
        sample = partial(unigram_sampling, alpha=noise.unigram_alpha)
    elif noise.bpe_dropout:
        key = "bpe_dropout"
        algorithm = "bpe"
        sample = partial(bpe_dropout, probability=noise.bpe_dropout)
    else:
        return lambda ids, draws: ids
    try:
        tokenizer = load_tokenizer(data.text, side)
    except ImportError as error:
        raise ConfigError(
            f"train.noise.{key}: needs the library {error.name}, which is not installed; install it, or turn this off"
        ) from None
    if not isinstance(tokenizer, SubwordTokenizer) or tokenizer.algorithm != algorithm:
        raise ConfigError(
            f"train.noise.{key}: {data.path} has no {algorithm} subwords; preprocess again, or turn this off"
        )
    return resample_words(sample(tokenizer.scores), vocabulary, tokenizer.symbols)


def _uniform(generator: np.random.Generator) -> Iterator[float]:
    """Draws from U[0, 1), generated in blocks for speed."""
    while True:
        yield from generator.random(64).tolist()
