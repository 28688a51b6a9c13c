"""The sample corpus: grammar by hand-written pairs, files by their documented format."""

import contextlib
from pathlib import Path

import make_sample_corpus as corpus
import pytest
import spacy

SAMPLE = Path(corpus.__file__).parents[1] / "data/sample"
VERBS = corpus.VERBS
noun = corpus.noun_phrase
pronoun = corpus.pronoun


def _lines(name: str) -> list[str]:
    return (SAMPLE / name).read_text(encoding="utf-8").splitlines()


def _tokens(text: str) -> list[str]:
    for mark in ",.?!":
        text = text.replace(mark, f" {mark}")
    return text.split()


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    rows = [line.split("\t") for line in _lines("deu.txt")]
    assert {len(row) for row in rows} == {3}
    return [(row[0], row[1]) for row in rows]


def test_script_reproduces_the_committed_files(tmp_path: Path) -> None:
    corpus.write(tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["alignments.txt", "deu.txt", "relations.txt", "unseen.txt"]
    for name in names:
        assert (tmp_path / name).read_bytes() == (SAMPLE / name).read_bytes(), name


def test_every_alignment_fits_its_sentences(pairs: list[tuple[str, str]]) -> None:
    alignments = _lines("alignments.txt")
    assert len(alignments) == len(pairs)
    for (english, german), line in zip(pairs, alignments, strict=True):
        source, target = _tokens(english), _tokens(german)
        links = [tuple(int(n) for n in link.split("-")) for link in line.split()]
        assert len(set(links)) == len(links)
        assert {i for i, _ in links} | {i for i, t in enumerate(source) if t == ","} == set(range(len(source)))
        assert {j for _, j in links} | {j for j, t in enumerate(target) if t == ","} == set(range(len(target)))


def test_relations_of_a_sentence_by_hand() -> None:
    """Relations of articles and verbs; an imperative has no subject, and a possessive is no article."""
    the_teacher = clause(VERBS["call"], noun("the", "teacher", "old"), obj=noun("my", "friend")).statement()
    assert corpus.finish(the_teacher)[0] == "The old teacher calls my friend."
    assert corpus.finish(the_teacher).relations == [("noun", 0, 2), ("subject", 3, 2)]
    does = clause(VERBS["read"], pronoun("she"), "want", obj=noun("a", "letter"), question=True).question()
    assert corpus.finish(does, "?")[0] == "Does she want to read a letter?"
    assert corpus.finish(does, "?").relations == [("subject", 2, 1), ("noun", 5, 6)]
    sick = clause(corpus.BE, noun("the", "dog"), "past", complement=corpus.linked("sick = krank")).statement()
    assert corpus.finish(sick).relations == [("noun", 0, 1), ("subject", 2, 1)]


def test_relations_fit_their_sentences(pairs: list[tuple[str, str]]) -> None:
    found = [line.split() for line in _lines("relations.txt")]
    names = {relation.split(":")[0] for line in found for relation in line}
    assert names == {"noun", "subject"}
    for (english, _), line in zip(pairs, found, strict=True):
        source = [word.lower() for word in _tokens(english)]
        for relation in line:
            name, _, place = relation.partition(":")
            reader, read = map(int, place.split("-"))
            assert name != "noun" or (source[reader] in corpus.ARTICLES and source[read] in corpus.NOUNS)
            assert max(reader, read) < len(source)
            assert reader != read


def test_spacy_gives_the_documented_tokens(pairs: list[tuple[str, str]]) -> None:
    # The end of the file has the long sentences; every word form of the vocabulary is in the rest.
    drawn = pairs[::6] + pairs[-100:]
    for side, tokenizer in enumerate((spacy.blank("en").tokenizer, spacy.blank("de").tokenizer)):
        for pair in drawn:
            assert [token.text for token in tokenizer(pair[side])] == _tokens(pair[side])


def test_translation_is_a_function_in_both_directions(pairs: list[tuple[str, str]]) -> None:
    assert len({english for english, _ in pairs}) == len(pairs)
    assert len({german for _, german in pairs}) == len(pairs)
    # The files are free of twins by construction; the grammar has to be, too.
    drawn = set()
    grammar = corpus.Grammar(7)
    while len(drawn) < 3000:
        with contextlib.suppress(corpus.Misfit):
            drawn.add(grammar.draw(grammar.weighted(corpus.KINDS))[:2])
    assert len({english for english, _ in drawn}) == len({german for _, german in drawn}) == len(drawn)


MONDAY = {"time": corpus.linked(corpus.MONDAY)}
clause = corpus.clause
CLAUSES = [
    (
        lambda: clause(VERBS["call"], noun("the", "teacher"), obj=noun("the", "friend")),
        ("The teacher calls the friend.", "Der Lehrer ruft den Freund an."),
        "0-0 1-1 2-2 2-5 3-3 4-4 5-6",  # a separable verb has two links
    ),
    (
        lambda: clause(VERBS["eat"], pronoun("she"), "past", obj=noun("a", "apple"), front=True, **MONDAY),
        ("On Monday she ate an apple.", "Am Montag hat sie einen Apfel gegessen."),
        "0-0 1-1 2-3 3-2 3-6 4-4 5-5 6-7",  # so has a perfect
    ),
    (
        lambda: clause(VERBS["pick up"], noun("my", "uncle"), "past", obj=pronoun("he"), **MONDAY),
        ("My uncle picked him up on Monday.", "Mein Onkel hat ihn am Montag abgeholt."),
        "0-0 1-1 2-2 2-6 3-3 4-2 4-6 5-4 6-5 7-7",
    ),
    (
        lambda: clause(VERBS["read"], pronoun("he"), obj=noun("no", "book"), negated=True),
        ("He does not read a book.", "Er liest kein Buch."),
        "0-0 1-1 2-2 3-1 4-2 5-3 6-4",  # kein is the article and not; the verb is do and the verb
    ),
    (
        lambda: clause(VERBS["drink"], noun("the", "boy"), obj=noun("no", "milk"), negated=True),
        ("The boy does not drink milk.", "Der Junge trinkt keine Milch."),
        "0-0 1-1 2-2 3-3 4-2 5-4 6-5",
    ),
    (
        lambda: clause(VERBS["close"], pronoun("I"), obj=noun("the", "door"), negated=True),
        ("I do not close the door.", "Ich mache die Tür nicht zu."),
        "0-0 1-1 2-4 3-1 3-5 4-2 5-3 6-6",
    ),
    (
        lambda: clause(VERBS["help"], pronoun("he"), "want", obj=pronoun("they"), negated=True),
        ("He does not want to help them.", "Er will ihnen nicht helfen."),
        "0-0 1-1 2-3 3-1 4-4 5-4 6-2 7-5",
    ),
    (
        lambda: clause(
            corpus.BE, noun("his", "sister"), "past", complement=corpus.linked("tired = müde"), negated=True
        ),
        ("His sister was not tired.", "Seine Schwester war nicht müde."),
        "0-0 1-1 2-2 3-3 4-4 5-5",
    ),
]


@pytest.mark.parametrize(("build", "expected", "links"), CLAUSES)
def test_clauses_and_their_links(build, expected: tuple[str, str], links: str) -> None:
    pair = corpus.finish(build().statement())
    assert pair[:2] == expected
    assert " ".join(f"{i}-{j}" for i, j in pair.links) == links
