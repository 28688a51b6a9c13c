"""Files of full size, in every format, and a translation that is killed."""

import signal
import time
from pathlib import Path

import processes
import pytest
from conftest import GOLDEN_MODEL, wait_until
from file_samples import DOCX_PARTS, WORD, make_archive, parts_of, read, same, texts, write

SENTENCES = 20_000
CONTENTS = {
    "srt": ("", "{n}\n00:00:01,000 --> 00:00:02,000\nShe <i>reads</i> book {n}.\n\n"),
    "vtt": ("WEBVTT\n\n", "00:01.000 --> 00:02.000\nShe <i>reads</i> book {n}.\n\n"),
    "po": (
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n',
        'msgid "She reads book {n}."\nmsgstr ""\n\n',
    ),
    "xliff": (
        "<xliff><file><body>\n",
        "<trans-unit id='{n}'><source>She <g id='1'>reads</g> book {n}.</source></trans-unit>\n",
    ),
    "html": ("<html><body>\n", "<p>She <i>reads</i> book {n}.</p>\n"),
    "md": ("# Title\n\n", "She *reads* book {n}.\n\n"),
    "json": ('{"z": ""', ',\n"k{n}": "She reads book {n}."'),
    "yaml": ("z: 1\n", "k{n}: She reads book {n}.\n"),
}
ENDS = {"xliff": "</body></file></xliff>", "json": "}"}


def make_file(sample: str, number: int) -> bytes:
    head, part = CONTENTS[sample]
    return (head + "".join(part.format(n=n) for n in range(number)) + ENDS.get(sample, "")).encode()


@pytest.mark.soak
@pytest.mark.parametrize("sample", CONTENTS)
def test_a_file_of_many_texts_takes_time_in_proportion(sample: str) -> None:
    content = make_file(sample, SENTENCES)
    begin = time.process_time()
    document = read(sample, content)
    number = SENTENCES + (sample == "md")
    assert len(texts(document)) == number
    written = write(document, same)
    assert time.process_time() - begin < 60
    if sample not in ("po", "xliff"):
        assert written == content
    assert len(texts(read(sample, write(document, str.upper), retranslate=True))) == number


@pytest.mark.soak
def test_a_document_of_many_paragraphs_takes_time_in_proportion() -> None:
    runs = "<w:r><w:t>She </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>reads</w:t></w:r><w:r><w:t> a book.</w:t></w:r>"
    body = f'<w:document xmlns:w="{WORD}"><w:body>{f"<w:p>{runs}</w:p>" * SENTENCES}</w:body></w:document>'
    content = make_archive({**DOCX_PARTS, "word/document.xml": body})
    begin = time.process_time()
    document = read("docx", content)
    assert parts_of(write(document, same)) == parts_of(content)
    assert parts_of(write(document, str.upper)) != parts_of(content)
    assert time.process_time() - begin < 120


@pytest.mark.soak
def test_a_killed_translation_is_continued(tmp_path: Path) -> None:
    (tmp_path / "a.srt").write_bytes(make_file("srt", 600))
    command = ["translate", "--model", GOLDEN_MODEL, "-i", tmp_path / "a.srt", "--beam-size", 1, "--batch-size", 2]
    assert processes.run(*command, "-o", tmp_path / "whole.srt").returncode == 0
    parts = tmp_path / "parts.srt"
    running = processes.start(*command, "-o", parts, "--resume")
    wait_until(lambda: (tmp_path / ".parts.srt.partial.json").exists(), 120)
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert not parts.exists()
    done = processes.run(*command, "-o", parts, "--resume", stderr=processes.PIPE)
    assert "resuming after" in done.stderr
    assert parts.read_bytes() == (tmp_path / "whole.srt").read_bytes()
