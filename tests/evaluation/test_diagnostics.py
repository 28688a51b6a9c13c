import pytest

from nmt.corpus.example import Example
from nmt.evaluation.diagnostics import diagnose, find_faults, find_faults_of_references, repeats
from nmt.evaluation.metrics import ScoringRules
from nmt.text.normalization import Normalizer

RULES = ScoringRules()


def examples(*pairs: tuple[str, str]) -> list[Example]:
    return [Example(src, (reference,)) for src, reference in pairs]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", False),
        ("das ist gut", False),
        ("sehr sehr gut", False),  # German and English double words
        ("sehr sehr Sehr gut", True),
        ("ich bin ich bin da", True),
        ("ich bin da ich bin", False),
        ("a b c a b c", True),
        ("a b c d e a b c d e", False),
        ("x a b c d a b c d y", True),
    ],
)
def test_repeated_words(text: str, expected: bool) -> None:
    assert repeats(text) is expected


def test_faults_are_counted_by_hand() -> None:
    given = examples(
        ("He is here.", "Er ist hier."),
        ("Tom laughed.", "Tom lachte."),
        ("No no no!", "Nein nein nein!"),
        ("Berlin", "Berlin"),
        ("", "Nichts."),
        ("Hello!", "Hallo!"),
    )
    hypotheses = ["Er er er ist hier.", "tom  laughed.", "Nein nein nein!", "Berlin", "", ""]
    found = diagnose(given, hypotheses, 0.25, RULES)
    assert (found.sentences, found.exact, found.repetitions, found.copies, found.empty) == (6, 2, 1, 1, 1)
    assert (found.same, found.unknown_tokens) == (2, 0.25)
    # Words and punctuation, as BLEU counts them: 6 + 3 + 4 + 1 of 4 + 3 + 4 + 1 + 2 + 2.
    assert found.length_ratio == pytest.approx(14 / 16)
    assert str(found) == (
        "equal to a reference 2, length ratio 0.875, unknown words 25.00%, with repetitions 1, "
        "copies of the source 1, empty 1"
    )


CASED = [(f"This is sentence {n}.", f"Das ist Satz {n}.") for n in range(20)]


def test_good_translations_have_no_fault() -> None:
    given = examples(*CASED)
    assert list(find_faults(given, [example.references[0] for example in given], RULES)) == []


def test_a_model_that_ignores_its_input_is_reported() -> None:
    given = examples(*CASED)
    hypotheses = [given[0].references[0]] * 5 + ["Ja."] * 15
    [fault] = find_faults(given, hypotheses, RULES)
    assert fault.startswith("15 of 20 translations are the same ('Ja.'): the model ignores what it reads")
    assert list(find_faults([given[0]] * 20, ["Ja."] * 20, RULES)) == []  # all inputs are the same, too
    assert list(find_faults(given[:9], ["Ja."] * 9, RULES)) == []


def test_tokenised_references_are_reported() -> None:
    given = examples(*((src, reference.replace(".", " .")) for src, reference in CASED))
    hypotheses = [reference for _, reference in CASED]
    [fault] = find_faults(given, hypotheses, RULES)
    assert "the references look tokenised" in fault
    assert list(find_faults(given, hypotheses, ScoringRules(tokenize="none"))) == []
    assert list(find_faults(given, [example.references[0] for example in given], RULES)) == []


def test_lowercased_references_are_reported() -> None:
    given = examples(*((src, reference.lower()) for src, reference in CASED))
    hypotheses = [reference for _, reference in CASED]
    [fault] = find_faults(given, hypotheses, RULES)
    assert "the references have no capitals" in fault
    assert list(find_faults(given, hypotheses, ScoringRules(lowercase=True))) == []


def test_references_that_are_not_split_into_words_are_named() -> None:
    chinese = [Example("x", (text,)) for text in ["我今天去學校。", "他們喜歡喝茶嗎？", "明天會下雨。"] * 4]
    [fault] = find_faults_of_references(chinese, RULES)
    assert fault == (
        "BLEU's tokenizer 13a leaves 12 of 12 references as one or two words: if the target is written without spaces, "
        "set data.tgt_language to its code, such as zh, ja or th"
    )
    assert list(find_faults_of_references(chinese, ScoringRules(tokenize="zh"))) == []
    assert list(find_faults_of_references(chinese[:9], RULES)) == []  # too few to judge
    spaced = [Example("x", ("Er kommt.",))] * 12  # three words: the full stop is one
    assert list(find_faults_of_references(spaced, RULES)) == []


def test_references_that_other_tools_have_changed_are_reported() -> None:
    given = examples(*((src, reference.replace(".", " .")) for src, reference in CASED * 5))
    references = [example.references[0] for example in given]
    [fault] = find_faults(given, references, RULES)  # sacreBLEU's own criterion: 100 lines
    assert fault.startswith("test set: 100 of 100 target lines look tokenised")
    assert list(find_faults(given, references, ScoringRules(tokenize="none"))) == []
    given = examples(*((src, f"{reference} <unk>") for src, reference in CASED))
    [fault] = find_faults(given, [example.references[0] for example in given], RULES)
    assert "have a mark of an unknown word" in fault


@pytest.mark.parametrize("number", [1, 20])
def test_empty_references_are_counted(number: int) -> None:
    given = examples(*CASED[: number - 1], ("Where is it?", " "))
    [fault] = find_faults(given, [example.src for example in given], RULES)
    assert fault.startswith(f"1 of {number} references are empty, and no translation is right there: ")


def test_escapes_that_training_text_keeps_are_no_fault() -> None:
    given = [Example(f"s {number}", (f"It &apos;s number {number}.",)) for number in range(20)]
    references = [example.references[0] for example in given]
    [fault] = find_faults(given, references, RULES, Normalizer())
    assert "20 of 20 target lines have escapes of Moses' tokenizer" in fault
    assert list(find_faults(given, references, RULES, Normalizer(html_entities=False))) == []
    assert list(find_faults(given, references, ScoringRules(repaired=True), Normalizer())) == []
