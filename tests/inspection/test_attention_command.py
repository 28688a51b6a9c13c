"""nmt attention: statistics of a sentence or a test set, and the alignment error rate."""

import json
import math
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest
from conftest import Cli, Project, Refusal, train_arguments

import nmt
from nmt.config import Config, DecodeSection
from nmt.corpus.example import Example, read_examples
from nmt.evaluation.gold_links import GoldLinks
from nmt.inspection.attention_report import make_attention_report
from nmt.models.build import build_model
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WordTokenizer
from nmt.text.vocabulary import Vocabulary
from nmt.translation.translator import Translator


def test_a_sentence_step_by_step(here: Project, cli: Cli) -> None:
    outcome = cli("attention", "a b c", "--json", "a.json", "--picture", "a.png")
    assert outcome.code == 0
    assert "picture: a.png" in outcome.err.splitlines()
    lines = [line.split("\t") for line in outcome.out.splitlines()]
    assert lines[-1][0].startswith("One source token read alone has entropy 0")
    assert lines[0] == ["token", "entropy", "largest weight on", "weights above 0.1"]
    found = nmt.load(here.run).translate("a b c", with_alignment=True)
    weights = found.alignment[:, 0].double()
    assert [line[0] for line in lines[1 : len(weights) + 1]] == [*found.tokens, "⟨eos⟩"]
    for line, row in zip(lines[1:], weights.tolist(), strict=False):
        assert float(line[1]) == pytest.approx(-sum(w * math.log(w) for w in row if w), abs=6e-4)
        label = ["a", "b", "c", "⟨eos⟩"][row.index(max(row))]
        assert line[2] == f"{label} {max(row):.2f}"
        assert int(line[3]) == sum(weight > 0.1 for weight in row)
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    (sentence,) = json.loads(Path("a.json").read_text(encoding="utf-8"))["sentences"]
    assert sentence["target"] == found.text
    assert [step["heads"][0]["maximum"] for step in sentence["steps"]] == pytest.approx(
        [max(row) for row in weights.tolist()], abs=1e-6
    )
    assert sentence["coverage"] == pytest.approx([weights.sum(dim=0).clamp(max=1).mean().item()], abs=1e-6)


def test_a_forced_target_is_what_the_model_is_made_to_say(here: Project, cli: Cli) -> None:
    outcome = cli("attention", "a b", "--target", "H H H")
    assert [line.split("\t")[0] for line in outcome.out.splitlines()[1:5]] == ["H", "H", "H", "⟨eos⟩"]


def test_a_split_is_summed_up(here: Project, cli: Cli) -> None:
    outcome = cli("attention", "--split", "valid", "--json", "v.json", "--picture", "v.png")
    assert outcome.code == 0
    assert outcome.out.startswith("entropy ")
    assert outcome.out.endswith("1 position above 0.1; n read alike have ln n and 1/n.\n")
    metadata = json.loads(Path("v.json").read_text(encoding="utf-8"))
    entropies = [step["heads"][0]["entropy"] for each in metadata["sentences"] for step in each["steps"]]
    assert metadata["heads"][0]["entropy"]["mean"] == pytest.approx(sum(entropies) / len(entropies), abs=1e-5)
    assert sum(each["sentences"] for each in metadata["by_length"]) == len(metadata["sentences"])
    assert Path("v.png").read_bytes().startswith(b"\x89PNG")
    assert nmt.evaluate(here.run, split="valid", attention=True).attention == list(
        nmt.measure_attention(model=here.run, split="valid").heads
    )


def write_gold(sizes: Iterable[int], link: Callable[[int, int], str]) -> None:
    """Write a file with a line of links for each number of words: one for each target word of so many."""
    lines = (" ".join(link(size, j) for j in range(size)) for size in sizes)
    Path("gold.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.mark.parametrize("unit", ["words", "tokens"])
def test_alignment_error_rate_against_gold_links(unit: str, here: Project, cli: Cli) -> None:
    examples = read_examples(here.data / "test.jsonl")
    write_gold((len(example.src.split()) for example in examples), lambda size, j: f"{size - 1 - j}-{j}")
    outcome = cli("attention", "--split", "test", "--forced", "--gold", "gold.txt", "--links-of", unit)
    (line,) = [line for line in outcome.out.splitlines() if line.startswith("alignment error rate")]
    translator, right, total = nmt.load(here.run), 0, 0
    for example in examples:
        (found,) = translator.score([example.src], [example.references[0]], with_alignment=True)
        size = len(found.tokens)
        places = found.alignment[:size, 0, :size].argmax(dim=-1).tolist()
        right += sum(place == size - 1 - step for step, place in enumerate(places))
        total += size
    assert float(line.split()[-1]) == pytest.approx(1 - right / total, abs=6e-4)


def test_possible_links_lower_the_error_rate(here: Project) -> None:
    """The model has learnt the mirrored links; those to the same place are sure, but wrong."""
    sizes, rates = [len(example.src.split()) for example in read_examples(here.data / "test.jsonl")], []
    for possible in ("", " {}?{}"):
        write_gold(sizes, lambda size, j, possible=possible: f"{j}-{j}" + possible.format(size - 1 - j, j))
        rates.append(nmt.measure_attention(model=here.run, split="test", forced=True, gold="gold.txt").error_rate)
    assert 0.3 < rates[1] < rates[0] - 0.3


def translator_of_words() -> Translator:
    """A model that splits punctuation from words."""
    tokenizer, vocabulary = WordTokenizer("de"), Vocabulary(["er", "ist", ",", "hier", ".", "mein", "Freund"])
    config = Config.model_validate({"model": {"encoder": {"hidden_size": 4}, "decoder": {"hidden_size": 8}}}).model
    model = build_model(config, len(vocabulary), len(vocabulary)).eval()
    return Translator(model, TextProcessor(tokenizer, tokenizer, vocabulary, vocabulary), DecodeSection())


def test_gold_links_may_count_tokens() -> None:
    example, gold = Example("er hier.", ("er hier.",)), [GoldLinks({(2, 2)}, {(2, 2)})]
    measure = partial(make_attention_report, "m", translator_of_words(), [example], forced=True, gold=gold)
    with pytest.raises(nmt.DataError, match="line 1: 2-2, but the sentences have 2 and 2 words"):
        measure(unit="words")
    assert 0 <= measure(unit="tokens").error_rate <= 1


def test_gold_words_are_those_of_the_file_not_of_joined_tokens() -> None:
    """A tokenised reference has more words than its tokens have when they are joined to text."""
    translator = translator_of_words()
    example = Example("er ist , hier .", ("er ist , mein Freund , hier .",))
    gold = [GoldLinks({(4, 7)}, {(4, 7)})]
    measure = partial(make_attention_report, "m", translator, [example], forced=True, gold=gold)
    assert measure(unit="words").error_rate == measure(unit="tokens").error_rate


def test_files_instead_of_a_split(here: Project, cli: Cli) -> None:
    Path("in.txt").write_text("a b\nc d e\n", encoding="utf-8")
    Path("out.txt").write_text("B A\nE D C\n", encoding="utf-8")
    assert cli("attention", "--src", "in.txt").code == 0
    Path("gold.txt").write_text("0-1 1-0\n0-2 1-1 2-0\n", encoding="utf-8")
    outcome = cli("attention", "--src", "in.txt", "--ref", "out.txt", "--forced", "--gold", "gold.txt")
    assert "alignment error rate" in outcome.out


def test_a_model_without_attention_says_so(
    random_project: Project, run: Path, cli: Cli, refusal: Refusal, no_pictures: None
) -> None:
    settings = ("model.attention.score=none", "train.max_updates=3")
    assert cli(*train_arguments(random_project, run, *settings)).code == 0
    says = "this model has no attention (model.attention.score: none); use another model"
    assert refusal("attention", "a b", "--model", run).endswith(says)
