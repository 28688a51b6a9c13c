import itertools
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import Project, call, read_metrics, train_arguments
from hypothesis import given
from hypothesis import strategies as st

from nmt.config import Config, NoiseSection, TrainSection
from nmt.corpus.batching import make_batch
from nmt.corpus.dataset import DataDirectory, EncodedPairs, Sequences
from nmt.corpus.noise import Segment, bpe_dropout, hide_words, make_noise, no_noise, resample_words, unigram_sampling
from nmt.system.errors import ConfigError
from nmt.system.files import shipped
from nmt.text.tokenizers import SubwordTokenizer, WhitespaceTokenizer
from nmt.text.vocabulary import UNK_ID, Vocabulary

ROWS = [line.split("\t") for line in shipped("data/sample/deu.txt").read_text(encoding="utf-8").splitlines()]
ENGLISH, GERMAN = [row[0] for row in ROWS], [row[1] for row in ROWS]
LEARNT = {
    "bpe": SubwordTokenizer.learn([*ENGLISH, *GERMAN], algorithm="bpe", vocabulary_size=400),
    "unigram": SubwordTokenizer.learn([*ENGLISH, *GERMAN], algorithm="unigram", vocabulary_size=300),
}
SEEN = sorted(set("".join(GERMAN)) - {" "})
algorithms = pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
Directories = dict[str, DataDirectory]
Distribution = dict[tuple[str, ...], float]


def uniform(seed: int = 0) -> Iterator[float]:
    generator = np.random.default_rng(seed)
    while True:
        yield from generator.random(1000).tolist()


def words_of(tokenizer: SubwordTokenizer, lines: Sequence[str]) -> dict[str, list[str]]:
    """SentencePiece's own pieces of each distinct word, which starts with `WORD_BEGINNING`."""
    words: dict[str, list[str]] = {}
    for pieces in tokenizer.tokenize(lines):
        starts = [place for place, piece in enumerate(pieces) if piece.startswith("▁")]
        for start, end in itertools.pairwise([*starts, len(pieces)]):
            words["".join(pieces[start:end])] = pieces[start:end]
    return words


def without_noise(tokenizer: SubwordTokenizer, words: Mapping[str, list[str]]) -> tuple[int, int]:
    """How many words a sampler at its surest segments as SentencePiece does, and of how many."""
    make = {"bpe": lambda s: bpe_dropout(s, 0.0), "unigram": lambda s: unigram_sampling(s, 1e6)}[tokenizer.algorithm]
    segment, draws = make(tokenizer.scores), uniform()
    return sum(list(segment(word, draws)) == pieces for word, pieces in words.items()), len(words)


@algorithms
def test_without_noise_the_sample_is_segmented_as_by_sentencepiece(algorithm: str) -> None:
    words = words_of(LEARNT[algorithm], [*ENGLISH, *GERMAN])
    assert len(words) > 300
    assert without_noise(LEARNT[algorithm], words) == (len(words), len(words))


@given(text=st.text(st.sampled_from(SEEN), min_size=1, max_size=30))
def test_without_noise_any_word_is_segmented_as_by_sentencepiece(text: str) -> None:
    same, number = without_noise(LEARNT["bpe"], words_of(LEARNT["bpe"], [text]))
    assert same == number == 1


INVENTORY = {"ab": 0.0, "bc": -1.0, "abc": -2.0, "cd": -3.0, "bcd": -4.0, "aa": -5.0}


@cache
def bpe_dropout_by_subsets(pieces: tuple[str, ...], p: float) -> Distribution:
    """Algorithm 1 of Provilkov et al. (2020), summed over every set of merges that may be left."""
    merges = [(INVENTORY[a + b], -i) for i, (a, b) in enumerate(itertools.pairwise(pieces)) if a + b in INVENTORY]
    found: Counter[tuple[str, ...]] = Counter()
    for kept in itertools.product([False, True], repeat=len(merges)):
        weight = math.prod(1 - p if keep else p for keep in kept)
        left = [merge for merge, keep in zip(merges, kept, strict=True) if keep]
        if left:
            place = -max(left)[1]
            merged = (*pieces[:place], pieces[place] + pieces[place + 1], *pieces[place + 2 :])
            outcomes = bpe_dropout_by_subsets(merged, p)
        else:
            outcomes = {pieces: 1.0}
        for outcome, probability in outcomes.items():
            found[outcome] += weight * probability
    return dict(found)


LOGS = {"a": -1.5, "b": -2.0, "c": -1.0, "ab": -2.2, "bc": -3.0, "abc": -3.1, "ca": -2.7}


def unigram_by_enumeration(word: str, alpha: float) -> Distribution:
    """P^alpha of every segmentation, normalised."""
    cuts = itertools.product([False, True], repeat=len(word) - 1)
    places = [[0, *(i for i, cut in enumerate(row, 1) if cut), len(word)] for row in cuts]
    splits = [tuple(word[start:end] for start, end in itertools.pairwise(row)) for row in places]
    weights = {s: math.exp(alpha * sum(LOGS[piece] for piece in s)) for s in splits if all(p in LOGS for p in s)}
    return {split: weight / sum(weights.values()) for split, weight in weights.items()}


@pytest.mark.parametrize(
    ("segment", "word", "expected"),
    [
        *((bpe_dropout(INVENTORY, p), "abcd", bpe_dropout_by_subsets(tuple("abcd"), p)) for p in (0.1, 0.5, 0.9)),
        (bpe_dropout(INVENTORY, 0.3), "aaabc", bpe_dropout_by_subsets(tuple("aaabc"), 0.3)),
        *(
            (unigram_sampling(LOGS, alpha), "abcab", unigram_by_enumeration("abcab", alpha))
            for alpha in (0.1, 1.0, 3.0)
        ),
    ],
)
def test_segmentations_have_their_probabilities(segment: Segment, word: str, expected: Distribution) -> None:
    assert sum(expected.values()) == pytest.approx(1)
    assert len(expected) > 5
    number = 20_000
    draws = uniform()
    found = Counter(tuple(segment(word, draws)) for _ in range(number))
    assert set(found) <= set(expected)
    for split, probability in expected.items():
        deviation = math.sqrt(number * probability * (1 - probability))
        assert abs(found[split] - number * probability) < 4.5 * deviation + 1, split


def test_unigram_sampling_keeps_unknown_characters() -> None:
    segment = unigram_sampling({"a": -1.0, "c": -1.0, "bc": -1.0, "abc": -1.0}, 1.0)
    draws = uniform()
    assert {tuple(segment("abca", draws)) for _ in range(100)} == {("a", "bc", "a"), ("abc", "a")}


def characters(word: str, draws: Iterator[float]) -> list[str]:
    """The segmentation in which nothing is merged."""
    return list(word)


def test_words_with_unknown_pieces_keep_their_pieces() -> None:
    # There is no d, but every character of <unk>, which is no text.
    vocabulary = Vocabulary(["▁a", "b", "c", "▁", "a", "▁d", "ab", "▁cc", *"<unk>"])
    ids = {token: index for index, token in enumerate(vocabulary.tokens)}
    resample = resample_words(characters, vocabulary)

    def resampled(*tokens: str) -> list[str]:
        return vocabulary.decode(
            resample(np.array([ids[token] for token in tokens], dtype=np.int32), uniform()).tolist()
        )

    assert resampled("▁a", "ab", "▁cc") == ["▁", "a", "a", "b", "▁", "c", "c"]
    assert resampled("▁a", "▁d", "b", "▁cc") == ["▁", "a", "▁d", "b", "▁", "c", "c"]
    assert resampled("▁cc", "<unk>", "▁a") == ["▁cc", "<unk>", "▁", "a"]
    assert resampled("<unk>", "ab", "▁a") == ["<unk>", "ab", "▁", "a"]
    assert resampled("ab") == ["a", "b"]
    assert resampled() == []


@pytest.mark.parametrize(
    ("symbol", "tokens", "expected"),
    [
        ("▁<b>", "▁<b> ▁ab b", "▁<b> ▁ a b b"),
        ("<b>", "▁ <b> ▁ab b", "▁ <b> ▁ a b b"),  # as older data has it
        ("<b>", "▁ab <b> ab ab", "▁ a b <b> a b a b"),
        ("<b>", "<b> <b> ab", "<b> <b> a b"),
    ],
)
def test_symbols_stay_whole(symbol: str, tokens: str, expected: str) -> None:
    vocabulary = Vocabulary(["▁ab", "ab", "b", "a", "▁", "<", ">", symbol])
    resample = resample_words(characters, vocabulary, [symbol])
    ids = np.array(vocabulary.encode(tokens.split()), dtype=np.int32)
    assert vocabulary.decode(resample(ids, uniform()).tolist()) == expected.split()


def test_the_share_of_hidden_words_is_the_probability() -> None:
    ids = np.arange(10, 20_010, dtype=np.int32)
    hidden = hide_words(ids, 0.2, np.random.default_rng(0))
    assert hidden.dtype == np.int32
    assert set(hidden[hidden != ids].tolist()) == {UNK_ID}
    assert np.mean(hidden == UNK_ID) == pytest.approx(0.2, abs=0.01)
    assert hide_words(ids, 0.0, np.random.default_rng(0)).tolist() == ids.tolist()


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, DataDirectory]:
    """Encoded sentences of the sample with the subwords that each kind of sampling needs."""
    found = {}
    for algorithm, tokenizer in LEARNT.items():
        path = tmp_path_factory.mktemp(algorithm)
        (path / "text").mkdir()
        vocabularies = Vocabulary(tokenizer.scores), Vocabulary(sorted(tokenizer.scores))
        sides = []
        for side, vocabulary, lines in zip(("src", "tgt"), vocabularies, (ENGLISH[:60], GERMAN[:60]), strict=True):
            tokenizer.save(path / "text", side)
            sides.append(Sequences.pack(vocabulary.encode(pieces) for pieces in tokenizer.tokenize(lines)))
        pairs = EncodedPairs(*sides)
        found[algorithm] = DataDirectory(path, Config(), *vocabularies, pairs, pairs, {})
    return found


EVERY_NOISE = {
    "bpe_dropout": ("bpe", NoiseSection(bpe_dropout=0.3)),
    "unigram_alpha": ("unigram", NoiseSection(unigram_alpha=0.3)),
    "src_word_dropout": ("bpe", NoiseSection(src_word_dropout=0.3)),
    "tgt_word_dropout": ("bpe", NoiseSection(tgt_word_dropout=0.3)),
    "all": ("bpe", NoiseSection(bpe_dropout=0.2, src_word_dropout=0.3, tgt_word_dropout=0.3)),
}
every_noise = pytest.mark.parametrize(("algorithm", "section"), EVERY_NOISE.values(), ids=EVERY_NOISE)
Triple = tuple[list[int], list[int], list[int]]


def noisy_pairs(
    data: DataDirectory, options: TrainSection, epoch: int, batches: Sequence[Sequence[int]]
) -> dict[int, Triple]:
    """What the batches hold of each pair, without padding, BOS and EOS."""
    noise = make_noise(options, data)
    found = {}
    for indices in batches:
        batch = make_batch(data.train, np.array(indices), noise, epoch)
        lengths = (batch.tgt_out != 0).sum(dim=1).tolist()
        assert batch.num_tokens == sum(lengths)
        for row, index in enumerate(indices):
            length = lengths[row]
            src = batch.src[row, : batch.src_lengths[row] - 1].tolist()
            found[index] = (src, batch.tgt_in[row, 1:length].tolist(), batch.tgt_out[row, : length - 1].tolist())
    return found


@every_noise
def test_noise_depends_on_seed_epoch_and_pair_alone(
    algorithm: str, section: NoiseSection, directories: Directories
) -> None:
    data, options = directories[algorithm], TrainSection(seed=3, noise=section)
    together = noisy_pairs(data, options, 2, [range(60)])
    assert noisy_pairs(data, options, 2, [[index] for index in range(59, -1, -1)]) == together
    assert noisy_pairs(data, options, 2, [range(30, 60, 2), range(30)]).items() <= together.items()
    assert noisy_pairs(data, options, 1, [range(60)]) != together
    assert noisy_pairs(data, TrainSection(seed=4, noise=section), 2, [range(60)]) != together


def test_the_same_sentence_twice_gets_different_noise(directories: Directories) -> None:
    data = directories["bpe"]
    pairs = EncodedPairs(*(Sequences.pack([side[0].tolist()] * 8) for side in (data.train.src, data.train.tgt)))
    found = noisy_pairs(replace(data, train=pairs), TrainSection(noise=NoiseSection(bpe_dropout=0.5)), 1, [range(8)])
    assert len({str(triple) for triple in found.values()}) > 4


@every_noise
def test_only_the_configured_noise_is_applied(algorithm: str, section: NoiseSection, directories: Directories) -> None:
    data = directories[algorithm]
    resampled = bool(section.bpe_dropout or section.unigram_alpha)

    def text(vocabulary: Vocabulary, ids: Sequence[int]) -> str:
        return "".join(vocabulary.decode(ids))

    pairs = noisy_pairs(data, TrainSection(noise=section), 1, [range(60)])
    originals = {index: (data.train.src[index].tolist(), data.train.tgt[index].tolist()) for index in range(60)}
    for index, (src, fed, tgt) in pairs.items():
        assert text(data.tgt_vocabulary, tgt) == text(data.tgt_vocabulary, originals[index][1])
        assert all(hidden in (UNK_ID, token) for hidden, token in zip(fed, tgt, strict=True))
        if not section.src_word_dropout:
            assert text(data.src_vocabulary, src) == text(data.src_vocabulary, originals[index][0])
    assert all(UNK_ID not in tgt for _, _, tgt in pairs.values())
    assert any(UNK_ID in src for src, _, _ in pairs.values()) == bool(section.src_word_dropout)
    assert any(UNK_ID in fed for _, fed, _ in pairs.values()) == bool(section.tgt_word_dropout)
    assert any(tgt != originals[index][1] for index, (_, _, tgt) in pairs.items()) == resampled
    assert make_noise(TrainSection(), data) is no_noise
    assert any(len(src) != len(originals[index][0]) for index, (src, _, _) in pairs.items()) == resampled


@pytest.mark.parametrize(
    ("algorithm", "key", "kind"),
    [("unigram", "bpe_dropout", "bpe"), ("bpe", "unigram_alpha", "unigram"), ("words", "bpe_dropout", "bpe")],
)
def test_sampling_needs_subwords_of_its_kind(
    algorithm: str, key: str, kind: str, directories: Directories, tmp_path: Path
) -> None:
    (tmp_path / "text").mkdir()
    WhitespaceTokenizer().save(tmp_path / "text", "src")
    data = directories.get(algorithm, replace(directories["bpe"], path=tmp_path))
    with pytest.raises(ConfigError, match=rf"^train\.noise\.{key}: .* has no {kind} subwords; .*$"):
        make_noise(TrainSection(noise=NoiseSection(**{key: 0.1})), data)


@pytest.mark.parametrize("key", ["bpe_dropout", "unigram_alpha"])
def test_sampling_needs_its_library(directories: Directories, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    make_noise(TrainSection(noise=NoiseSection(src_word_dropout=0.1, tgt_word_dropout=0.1)), directories["bpe"])
    with pytest.raises(ConfigError, match=rf"^train\.noise\.{key}: needs the library sentencepiece, which is not .*$"):
        make_noise(TrainSection(noise=NoiseSection(**{key: 0.1})), directories["bpe"])


def test_a_run_has_the_noise_of_its_config(random_project: Project, run: Path) -> None:
    off = ["train.noise.src_word_dropout=0", "train.noise.tgt_word_dropout=0", "train.max_updates=4"]
    assert call(*train_arguments(random_project, run, *off)) == 0
    assert read_metrics(run)[0]["loss"] != read_metrics(random_project.run)[0]["loss"]
