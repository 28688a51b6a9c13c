"""The chapter in numbers: the stored one is consistent in itself, and what is written agrees with the model."""

import math
import re
from pathlib import Path

import pytest
from inspection.test_record import make_translator
from write_walkthrough import CHAPTER, write_chapter

import nmt
from nmt.models import reference
from nmt.system.errors import ConfigError

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


def test_the_stored_chapter_is_consistent_and_quotes_the_reference() -> None:
    text = CHAPTER.read_text(encoding="utf-8")
    check_arithmetic(text)
    source = re.sub(r'\n    """.*?"""\n', "\n", Path(reference.__file__).read_text(encoding="utf-8"), flags=re.DOTALL)
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 6
    for block in blocks:
        assert block.strip() in source


def test_what_is_written_agrees_with_the_model() -> None:
    translator = nmt.load(GOLDEN, device="cpu")
    sentence, step = "The old woman reads a book.", 2
    text = write_chapter(translator, sentence, step)
    check_arithmetic(text)
    best = translator.translate(sentence, with_alignment=True)
    assert best.alignment is not None
    shown = [float(row[4]) for row in table(text, "j | word | e_j")]
    assert shown == pytest.approx(best.alignment[step - 1, 0].tolist(), abs=1e-3)
    assert [row[1] for row in table(text, "j | word | e_j")] == [*best.src_tokens, "⟨eos⟩"]
    assert "differ from those above by less than 1e-0" in text.replace("\n", " ")


@pytest.mark.parametrize("settings", [{"score": "dot", "order": "bahdanau"}, {"score": "additive", "order": "luong"}])
def test_other_models_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="one layer of GRUs in Bahdanau's order with the additive score"):
        write_chapter(make_translator(**settings), "a b", 1)


def test_a_step_past_the_end_is_refused() -> None:
    with pytest.raises(ConfigError, match="--step 99: the translation has"):
        write_chapter(nmt.load(GOLDEN, device="cpu"), "I am old.", 99)
