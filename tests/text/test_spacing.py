import pytest

from nmt.system.files import shipped
from nmt.text.spacing import Spacing
from nmt.text.tokenizers import WordTokenizer


def marked(text: str) -> tuple[list[str], list[bool]]:
    """Tokens of a text where `_` is between tokens that are attached: `I do_n't know_.`"""
    tokens: list[str] = []
    blanks: list[bool] = []
    for word in text.split(" "):
        parts = word.split("_")
        tokens += parts
        blanks += [False] * (len(parts) - 1) + [True]
    return tokens, blanks


def learn(*sentences: str) -> Spacing:
    return Spacing.learn(marked(sentence) for sentence in sentences)


@pytest.mark.parametrize(
    ("sentences", "left", "right"),
    [
        ([], set(), set()),
        (["one two three"], set(), set()),
        (["I know_.", "You know_, do you_?", "We go_, they go on_."], {".", ",", "?"}, set()),
        (["I do_n't know_.", "Do_n't go_, we do_n't_!"], {"n't", ".", ",", "!"}, set()),
        (["He_'s here_.", "She_'s not_."], {"'s", "."}, set()),
        (["see (_here_) now", "here is (_nothing_) to say", "and nothing is here"], {")"}, {"("}),
        (["a (_b_) c", "d (_e_) f", "g (_h_) i"], {")"}, {"("}),
        (["it costs $_5 now", "or $_6 then", "or $_7 later"], set(), {"$"}),
        (["ja_, „_nein_“ sagte er", "das „_Haus_“ steht", "„_Ja_“"], {",", "“"}, {"„"}),
        # Glued once, apart once: not in most cases.
        (["he can_not go", "he can not go"], set(), set()),
        (["he can_not go", "we can_not go", "he can not go"], {"not"}, set()),
    ],
)
def test_attachment_is_learnt_from_most_cases(sentences: list[str], left: set[str], right: set[str]) -> None:
    spacing = learn(*sentences)
    assert (spacing.left, spacing.right) == (left, right)


def test_a_word_seen_only_after_an_opening_mark_is_not_attached_to_other_words() -> None:
    german = learn(
        "Er fragte_: „_Wie geht es_?_“",
        "Sie sagte_: „_Wie schön_!_“",
        "Wir sagten_: „_Danke_!_“",
        "Das „_Haus_“ steht_.",
    )
    assert german.join(["Hallo", ".", "Wie", "geht", "es", "?"]) == "Hallo. Wie geht es?"
    assert german.join(["Er", "fragte", ":", "„", "Wo", "?", "“"]) == "Er fragte: „Wo?“"


def test_a_word_seen_only_after_a_straight_quote_is_not_attached_to_other_words() -> None:
    english = learn('He asked_, "_How are you_?_"', 'She said_, "_How nice_!_"', 'We said_, "_Thanks_._"')
    assert english.join(["Hello", ".", "How", "are", "you", "?"]) == "Hello. How are you?"


def test_straight_quotes_are_never_learnt() -> None:
    spacing = learn('he said "_yes_" and "_no_" to us', "she said '_yes_' and '_no_' to us")
    assert not {'"', "'"} & (spacing.left | spacing.right)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ([], ""),
        (["Hi"], "Hi"),
        (["."], "."),
        (["Hello", ",", "World", "!"], "Hello, World!"),
        (["I", "do", "n't", "know", "."], "I don't know."),
        (["see", "(", "here", ")", ",", "now"], "see (here), now"),
        (["(", "a", ")"], "(a)"),
        (["(", "(", "a", ")", ")", "b"], "((a)) b"),
        (["He", "said", '"', "go", '"', "twice", "."], 'He said "go" twice.'),
        (['"', "Go", "!", '"', "he", "said", "."], '"Go!" he said.'),
        (['"', "a", '"', "and", '"', "b", '"'], '"a" and "b"'),
        (['"', "a", "'", "b", "'", "c", '"'], "\"a 'b' c\""),
        (['"', "a"], '"a'),
        (['"', "a", '"', '"', "b", '"'], '"a" "b"'),
        (['"'], '"'),
        (["a", "b"], "a b"),
        (["The", "boys", "'", "room", "."], "The boys' room."),  # an apostrophe has no partner
        (["She", "said", ":", "'", "Go", "!"], "She said : 'Go!"),
        (["Lass", "'", "den", "'", "Hund", "'", "da"], "Lass 'den' Hund' da"),
        (["never", "seen", "#"], "never seen #"),
    ],
)
def test_tokens_are_joined(tokens: list[str], text: str) -> None:
    assert Spacing([".", ",", "!", ")", "n't"], ["("]).join(tokens) == text


@pytest.mark.parametrize(("language", "column"), [("en", 0), ("de", 1)])
def test_every_sentence_of_the_sample_is_restored(language: str, column: int) -> None:
    lines = shipped("data/sample/deu.txt").read_text(encoding="utf-8").splitlines()
    sentences = sorted({line.split("\t")[column] for line in lines})
    assert len(sentences) > 1000
    tokenizer = WordTokenizer(language)
    tokenizer.learn_spacing(sentences)
    assert [tokenizer.detokenize(tokens) for tokens in tokenizer.tokenize(sentences)] == sentences


@pytest.mark.parametrize(
    ("training", "tokens", "text"),
    [
        (["It is open."], ["You", "can", "not", "buy", "it", "."], "You cannot buy it."),
        (["It is open.", "You can not go."], ["You", "can", "not", "buy", "it", "."], "You can not buy it."),
        (["You cannot go.", "You can not."], ["I", "can", "not", "."], "I cannot."),  # as often together as apart
        (["It is open."], ["I", "do", "n't", "know", "."], "I don't know."),
        (["It is open."], ["At", "10", "am", "."], "At 10 am."),
    ],
)
def test_words_that_spacy_splits_are_one_word_unless_text_has_two(
    training: list[str], tokens: list[str], text: str
) -> None:
    tokenizer = WordTokenizer("en")
    tokenizer.learn_spacing(training)
    assert tokenizer.detokenize(tokens) == text
