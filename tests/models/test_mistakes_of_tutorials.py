"""The page on tutorials: all its scripts give what it says, and each row of its table has one."""

import doctest
import re

import pytest
import torch

from nmt.system.files import PACKAGE

PAGE = PACKAGE.parent / "docs/learn/tutorials.md"
TEXT = PAGE.read_text(encoding="utf-8")
INTRODUCTION, *SECTIONS = re.split(r"^## ", TEXT, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def start() -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(INTRODUCTION)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.split(".")[0])
def test_scripts_give_what_the_page_says(
    section: str, start: list[doctest.Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)  # the page says that its machine has no GPU
    examples = doctest.DocTestParser().get_examples(section)
    assert any(example.want or example.exc_msg for example in examples)
    report: list[str] = []
    test = doctest.DocTest([*start, *examples], {}, section.splitlines()[0], str(PAGE), 0, None)
    failed, tried = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert not failed, "".join(report)
    assert tried == len(start) + len(examples)


def test_each_row_has_its_section() -> None:
    rows = re.findall(r"^\| \[(\d+)\]\(#([^)]+)\) \|", TEXT, flags=re.MULTILINE)
    titles = [section.splitlines()[0] for section in SECTIONS]
    assert [number for number, _ in rows] == [title.split(".")[0] for title in titles]
    assert [anchor for _, anchor in rows] == [title.lower().replace(".", "").replace(" ", "-") for title in titles]
