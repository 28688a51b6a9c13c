"""HTML files: all that is no text stays byte for byte."""

import random

import pytest
from file_samples import HTML, read, same, shout, texts, write

from nmt.system.errors import DataError

FRAGMENTS = (
    "<b> </b> <i> </i> <a\thref='x>y'> </a> <span\ttranslate=no> </span> <p> </p> <br> <div\tclass=notranslate> </div> "
    "<img\talt=a> <code> </code> <pre> </pre> <script> </script> <!--\tc\t--> <!-- <td\tx &amp; &lt; &nbsp; < > one "
    "two.\tthree 日本 \" ' </ <? = <a\tb=' <svg> </svg> <textarea> </textarea> <title> </title> <ul> <li> <wbr> <o:p>"
)
PIECES = [*FRAGMENTS.split(" "), *["<b>", "</b>", "<i>", "</i>", "one", "two ", " "] * 4]


def test_texts_change_and_nothing_else() -> None:
    document = read("html")
    found = ["A page", "The old woman reads.", "She sleeps & \ue000 eats.", "one", "two", "I <", "see", "a < b"]
    assert texts(document) == found
    assert shout(document) == (
        HTML.replace("A page", "A PAGE")
        .replace("The <B>old</B> woman&nbsp;", "THE <B>OLD</B> WOMAN ")
        .replace(">reads<", ">READS<")
        .replace("She sleeps", "SHE SLEEPS")
        .replace("eats", "EATS")
        .replace("<li>one<li>two", "<li>ONE<li>TWO")
        .replace("<i>see</p>", "<i>SEE</p>")
        .replace("</pre> a < b", "</pre> A &lt; B")
    )


@pytest.mark.parametrize("seed", range(5))
def test_any_page_comes_back(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(200):
        page = "".join(chance.choices(PIECES, k=chance.randint(0, 25)))
        document = read("html", page)
        assert write(document, same).decode() == page
        shout(document)


def test_the_encoding_is_the_one_that_is_declared() -> None:
    latin = HTML.replace('"utf-8"', "iso-8859-1").replace("A page", "Caf\xe9").encode("latin-1")
    assert "Caf\xe9" in texts(read("html", latin))
    assert b"CAF\xc9" in write(read("html", latin), str.upper)
    with pytest.raises(DataError, match=r"^a\.html:2: is not UTF-8"):
        read("html", latin.replace(b"iso-8859-1", b"utf-8"))
