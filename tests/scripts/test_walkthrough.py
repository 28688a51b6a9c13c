"""The chapters in numbers: the stored ones are consistent in themselves, and what is written agrees with the model."""

import itertools
import math
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from inspection.test_record import WORDS, make_translator
from numpy.typing import NDArray
from walkthrough import context_vector, transformer
from write_walkthrough import FOLDER, write_chapter

import nmt
from nmt.config import Config, DecodeSection, load_config
from nmt.models import reference
from nmt.models.build import build_model
from nmt.system.errors import ConfigError
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import BOS_ID, EOS_ID, Vocabulary
from nmt.translation.translator import Translator

GOLDEN = Path(__file__).parents[1] / "golden/model"
NUMBER = r"-?\d+\.\d{3}"


def table(text: str, header: str) -> list[list[str]]:
    """The cells of the table whose header line begins like this."""
    lines = text[text.index(f"| {header}") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def check_arithmetic(text: str) -> None:
    """Check that the shown numbers follow from each other, as far as their rounding lets them."""
    rows = table(text, "j | word | e_j")
    scores, powers, weights = ([float(row[column]) for row in rows] for column in (2, 3, 4))
    assert weights == pytest.approx([math.exp(e) / sum(map(math.exp, scores)) for e in scores], abs=2e-3)
    assert powers == pytest.approx(list(map(math.exp, scores)), rel=1e-3, abs=1e-3)
    found = re.search(rf"Each a_j is exp\(e_j\) divided by their sum, ({NUMBER})", text)
    assert found is not None
    assert float(found[1]) == pytest.approx(sum(powers), rel=1e-3)

    states = [float(row[2].split()[0]) for row in table(text, "j | word | h_j")]
    (line, total) = re.findall(r"^    (.+ × .+)\n    = (\S+)$", text, flags=re.MULTILINE)[0]
    terms = re.findall(rf"([-+]? ?)({NUMBER}) × ({NUMBER})", line)
    assert [float(weight) for _, weight, _ in terms] == weights
    assert [float(state) for _, _, state in terms] == states
    context = sum(weight * state for weight, state in zip(weights, states, strict=True))
    assert float(total) == pytest.approx(context, abs=2e-3)
    assert re.search(rf"c_\d+ = {re.escape(total)} ", text)

    gate = re.search(rf"z = ({NUMBER}), n = ({NUMBER}), so h = .* × 0 = ({NUMBER})", text.replace("\n", " "))
    assert gate is not None
    z, n, h = map(float, gate.groups())
    assert (1 - z) * n == pytest.approx(h, abs=2e-3)
    assert h == states[0]

    rows = re.findall(rf"^- (W s|U h_\d+|tanh of their sum) = ({NUMBER}) ({NUMBER})", text, flags=re.MULTILINE)
    (_, *query), (_, *key), (_, *both) = rows
    for one, other, result in zip(query, key, both, strict=True):
        assert math.tanh(float(one) + float(other)) == pytest.approx(float(result), abs=2e-3)


def shown(text: str, name: str) -> NDArray[np.float64]:
    """The numbers that a chapter shows of a vector."""
    values = re.search(rf"{re.escape(name)} = ((?:{NUMBER} )+)\.\.\.", text.replace("\n", " "))
    assert values is not None, name
    return np.array([float(value) for value in values[1].split()])


def columns(text: str, header: str, first: int, last: int) -> NDArray[np.float64]:
    """The columns of a table, a row for each line."""
    return np.array([[float(cell.replace("∞", "inf")) for cell in row[first:last]] for row in table(text, header)])


def check_transformer(text: str) -> int:
    """Check that the shown numbers of the second chapter follow from each other; returns the position of its word."""
    (j,), (size,) = (map(int, re.findall(pattern, text)) for pattern in (r"stands at p = (\d+)", r"√(\d+) × embedding"))
    place = [wave(j / 10_000 ** (2 * i / size)) for i in range(size // 2) for wave in (math.sin, math.cos)]
    assert shown(text, f"position({j})") == pytest.approx(place[:4], abs=6e-4)
    assert shown(text, f"x_{j}") == pytest.approx(shown(text, f"√{size} × embedding") + place[:4], abs=2e-3)
    assert shown(text, f"u_{j} = x_{j} + o") == pytest.approx(shown(text, f"x_{j}") + shown(text, "o"), abs=2e-3)
    for i, *numbers in columns(text, "i | angle", 0, 4):
        angle = j / 10_000 ** (2 * i / size)
        assert numbers == pytest.approx([angle, math.sin(angle), math.cos(angle)], abs=6e-4)

    products, scores, powers, weights = columns(text, "j | word | q_", 2, 6).T
    (d,) = {int(number) for number in re.findall(r"q_\d+ = .* \((\d+) numbers\)", text)}
    assert scores == pytest.approx(products / math.sqrt(d), abs=1e-3)
    assert powers == pytest.approx(np.exp(scores), rel=1e-3, abs=1e-3)
    assert weights == pytest.approx(powers / powers.sum(), abs=1e-3)
    (head,) = map(int, re.findall(r"In head (\d+) of\s+the\s+encoder", text))
    assert columns(text, "word | head 1", head, head + 1)[:, 0] == pytest.approx(weights, abs=1e-9)
    (line, total) = re.findall(r"^    (.+ × .+)\n    = (\S+)$", text, flags=re.MULTILINE)[0]
    terms = [float(a) * float(v) for a, v in re.findall(rf"({NUMBER}) × ({NUMBER})", line.replace("- ", "+ -"))]
    assert len(terms) == len(weights)
    assert float(total) == pytest.approx(sum(terms), abs=3e-3)

    rows = table(text, " | ⟨bos⟩")
    for number, (_, *cells) in enumerate(rows):
        assert cells[number + 1 :] == ["0"] * (len(rows) - number - 1)
        assert sum(map(float, cells)) == pytest.approx(1, abs=5e-3)
    (last,) = columns(text, "⟨bos⟩", 0, len(rows))
    step = int(np.isfinite(last).sum())
    assert np.isneginf(last[step:]).all()
    expected = np.exp(last) / np.exp(last).sum()
    assert [float(cell) for cell in rows[step - 1][1:]] == pytest.approx(expected, abs=2e-3)
    return j


@pytest.mark.parametrize(
    ("chapter", "check", "number"),
    [(context_vector, check_arithmetic, 6), (transformer, check_transformer, 7)],
    ids=["context vector", "transformer"],
)
def test_the_stored_chapters_are_consistent_and_quote_the_reference(chapter: Any, check: Any, number: int) -> None:
    text = (FOLDER / chapter.FILE).read_text(encoding="utf-8")
    check(text)
    source = re.sub(r'\n    """.*?"""\n', "\n", Path(reference.__file__).read_text(encoding="utf-8"), flags=re.DOTALL)
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == number
    for block in blocks:
        assert block.strip() in source


def test_what_is_written_agrees_with_the_model() -> None:
    translator = nmt.load(GOLDEN, device="cpu")
    sentence, step = "The old woman reads a book.", 2
    file, text = write_chapter(translator, sentence, step)
    assert file == "walkthrough.md"
    check_arithmetic(text)
    best = translator.translate(sentence, with_alignment=True)
    assert best.alignment is not None
    shown = [float(row[4]) for row in table(text, "j | word | e_j")]
    assert shown == pytest.approx(best.alignment[step - 1, 0].tolist(), abs=1e-3)
    assert [row[1] for row in table(text, "j | word | e_j")] == [*best.src_tokens, "⟨eos⟩"]
    assert "differ from those above by less than 1e-0" in text.replace("\n", " ")


def make_transformer(**changes: Any) -> Translator:
    """A translator with random weights; keys of both sides, or of the model where it has them."""
    sizes = {"hidden_size": 12, "num_layers": 2, "num_heads": 3, "feed_forward_size": 10}
    model = {key: changes.pop(key) for key in ("embedding_size", "output_norm", "encoder", "decoder") if key in changes}
    sides = {"encoder": {"kind": "self_attention"}, "decoder": {"kind": "transformer"}}
    parts = {name: model.pop(name, {**kind, **sizes, **changes}) for name, kind in sides.items()}
    return random_translator(Config.model_validate({"model": {"embedding_size": 12, **model, **parts}}))


def random_translator(config: Config) -> Translator:
    torch.manual_seed(1)
    vocabulary, tokenizer = Vocabulary(WORDS), WhitespaceTokenizer()
    model = build_model(config.model, len(vocabulary), len(vocabulary)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.6, 0.6)
        model.decoder.output.bias[EOS_ID] -= 3
    processor = TextProcessor(tokenizer, tokenizer, vocabulary, vocabulary)
    return Translator(model, processor, DecodeSection(beam_size=2, max_length=6))


@torch.no_grad()
def test_what_is_written_of_self_attention_agrees_with_the_model() -> None:
    translator, step = make_transformer(), 3
    file, text = write_chapter(translator, "a b c d e", step)
    assert file == "walkthrough_transformer.md"
    j = check_transformer(text)
    best, model, vocabulary = translator.translate("a b c d e"), translator.model, translator.processor.tgt_vocabulary
    encoded = model.encode(torch.tensor([[*vocabulary.encode(best.src_tokens), EOS_ID]]), torch.tensor([6]))
    output = model.decoder(torch.tensor([[BOS_ID, *vocabulary.encode(best.tokens)]]), encoded)
    first, _ = output.alignments[0, step - 1].chunk(2)  # of the two decoder layers, each [heads, S]
    part = text[text.index("## 8") :]
    assert columns(part, "word | head 1", 1, 4) == pytest.approx(first.T.numpy(), abs=1e-3)
    assert [row[0] for row in table(part, "word | head 1")] == [*"abcde", "⟨eos⟩"]
    assert shown(text, f"h_{j}") == pytest.approx(encoded.states[0, j, :4].tolist(), abs=1e-3)
    assert shown(text, "is r") == pytest.approx(output.readouts[0, step - 1, :4].tolist(), abs=1e-3)
    chances = model.decoder.output(output.readouts)[0, step - 1].softmax(dim=0).topk(5).values
    assert columns(text, "word | probability", 1, 2)[:, 0] == pytest.approx(chances.tolist(), abs=1e-3)
    assert re.search(r"later words is 0\. .* differ from those above by less than 1e-0[456]", text.replace("\n", " "))


def test_the_command_of_the_second_chapter_makes_such_a_model() -> None:
    text = (FOLDER / transformer.FILE).read_text(encoding="utf-8")
    command = text[text.index("    nmt train") :].split("    python")[0].replace("\\\n", "")
    words = shlex.split(command)
    settings = [value for option, value in itertools.pairwise(words) if option == "--set"]
    config = load_config(words[words.index("--config") + 1], settings)
    _, own = write_chapter(random_translator(config), "a b", 1)
    for pattern in (r"The encoder\s.*?shown", r"cut\sinto.*?numbers", r"W_1 makes \d+ numbers"):
        stored, made = (re.search(pattern, chapter.replace("\n", " ")) for chapter in (text, own))
        assert stored is not None
        assert made is not None
        assert stored[0] == made[0]


@pytest.mark.parametrize("settings", [{"score": "dot", "order": "bahdanau"}, {"score": "additive", "order": "luong"}])
def test_other_models_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="one layer of GRUs in Bahdanau's order with the additive score"):
        write_chapter(make_translator(**settings), "a b", 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"norm": "post"},
        {"activation": "gelu"},
        {"learned_positions": 20},
        {"embedding_size": 8},
        {"output_norm": 5.0},
        {"decoder": {"initial_state": "zeros"}},
        {"decoder": {"kind": "ssru", "hidden_size": 12}},
        {"encoder": {"kind": "recurrent", "hidden_size": 12}},
    ],
    ids=str,
)
def test_other_models_with_self_attention_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="about a Transformer with pre-norm, ReLU, sinusoids and embeddings of"):
        write_chapter(make_transformer(**changes), "a b", 1)


def test_a_step_past_the_end_is_refused() -> None:
    for translator, sentence in ((nmt.load(GOLDEN, device="cpu"), "I am old."), (make_transformer(), "a b")):
        with pytest.raises(ConfigError, match="--step 99: the translation has"):
            write_chapter(translator, sentence, 99)
