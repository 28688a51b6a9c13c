"""Office documents: formats, fields, notes, boxes and tracked changes, and archives that are attacks."""

import io
import re
import struct
import zipfile
from collections import Counter
from xml.etree import ElementTree

import docx
import odfdo
import pytest
from file_samples import (
    CONTENT,
    DOCUMENT,
    DOCX_PARTS,
    ODT_PARTS,
    SAMPLES,
    WORD,
    make_archive,
    parts_of,
    read,
    same,
    texts,
    write,
)

from nmt.system.errors import DataError
from nmt.translation.files.docx import DOCX
from nmt.translation.files.file_format import Task


def word(paragraph: str) -> bytes:
    """A document with a paragraph."""
    body = f'<w:document xmlns:w="{WORD}" xmlns:m="urn:m"><w:body><w:p>{paragraph}</w:p></w:body></w:document>'
    return make_archive({"word/document.xml": body})


def paragraph_of(content: bytes) -> str:
    text = parts_of(content)["word/document.xml"].decode()
    return re.sub(r".*?<w:p>|</w:p>.*", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("sample", ["docx", "odt"])
def test_parts_without_text_and_their_order_stay(sample: str) -> None:
    before = parts_of(SAMPLES[sample])
    assert list(parts_of(write(read(sample), same)).items()) == list(before.items())
    after = parts_of(write(read(sample), str.upper))
    assert list(after) == list(before)
    changed = [name for name in before if before[name] != after[name]]
    assert changed == (["content.xml"] if sample == "odt" else ["word/document.xml", "word/footnotes.xml"])
    with zipfile.ZipFile(io.BytesIO(write(read(sample), str.upper))) as archive:
        first = archive.infolist()[0]
        assert sample == "docx" or (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)


def test_the_texts_of_a_word_document() -> None:
    expected = ["A heading", "She reads the old book.", "See this page on \ue000 now", "Name:", "first", "second"]
    expected += ["I really sleep", "In a cell", "In a box", "With a picture & text", "A note."]
    assert texts(read("docx")) == expected
    document = docx.Document(io.BytesIO(write(read("docx"), str.upper)))
    found = [paragraph.text for paragraph in document.paragraphs]
    assert found[:4] == ["A HEADING", "SHE READS THE OLD BOOK.", "SEE THIS PAGE ON 7 NOW", "NAME:\tFIRST\nSECOND"]
    assert [run.text for run in document.paragraphs[1].runs if run.bold] == ["OLD"]
    assert document.tables[0].cell(0, 0).text == "IN A CELL"
    written = parts_of(write(read("docx"), str.upper))["word/document.xml"].decode()
    assert "<w:delText>never</w:delText>" in written
    assert re.search("<w:ins [^>]*><w:r><w:t [^>]*>REALLY</w:t></w:r></w:ins>", written)
    assert "IN A BOX</w:t></w:r></w:p></w:txbxContent>" in written


def test_the_texts_of_a_document_of_libreoffice() -> None:
    expected = ["A heading", "A note.", "She reads the old book.", "Name:", "first", "second half"]
    expected += ["On page \ue000 now & then", "In a cell", "In a box", "With a picture"]
    assert texts(read("odt")) == expected
    written = write(read("odt"), str.upper)
    assert odfdo.Document(io.BytesIO(written)).body.get_element("//text:h").text == "A HEADING"
    content = parts_of(written)["content.xml"].decode()
    for kept in ("<text:p>Gone text</text:p>", "<text:p>A remark.</text:p>", "<text:page-number>7</text:page-number>"):
        assert content.count(kept) == CONTENT.count(kept) == 1


@pytest.mark.parametrize("part", ["docx", "odt"])
def test_no_tag_is_lost_or_doubled_wherever_words_go(part: str) -> None:
    name = "word/document.xml" if part == "docx" else "content.xml"
    before, after = (
        Counter(element.tag.rpartition("}")[2] for element in ElementTree.fromstring(parts_of(content)[name]).iter())
        for content in (SAMPLES[part], write(read(part), lambda text: " ".join(reversed(text.split()))))
    )
    state = {"r", "t", "rPr", "b", "i", "vertAlign", "proofErr", "s"}
    assert {tag: number for tag, number in after.items() if tag not in state} == {
        tag: number for tag, number in before.items() if tag not in state
    }
    assert after["b"] <= before["b"]


def test_a_link_and_a_field_stay_whole() -> None:
    link = '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>HYPERLINK "http://a.de"</w:instrText></w:r>'
    link += '<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:rPr><w:u/></w:rPr><w:t>my page</w:t></w:r>'
    link += '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    content = word(f'<w:r><w:t xml:space="preserve">See </w:t></w:r>{link}<w:r><w:t>.</w:t></w:r>')
    assert texts(read("docx", content)) == ["See my page."]
    assert write(read("docx", content), same) == write(read("docx", content), same)
    found = paragraph_of(write(read("docx", content), str.upper))
    space = ' xml:space="preserve"'
    expected = f"<w:r><w:t{space}>SEE </w:t></w:r>{link}<w:r><w:t>.</w:t></w:r>".replace("my page", "MY PAGE")
    assert found.replace(space, "") == expected.replace(space, "")
    open_field = '<w:r><w:t>one</w:t></w:r><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:t>two</w:t></w:r>'
    assert texts(read("docx", word(open_field))) == ["one", "two"]


def test_very_many_formats_are_translated_one_by_one() -> None:
    runs = "".join(f"<w:r>{'<w:rPr><w:b/></w:rPr>' if n % 2 else ''}<w:t>word</w:t></w:r>" for n in range(300))
    document = read("docx", word(runs))
    assert len(texts(document)) == 300
    assert paragraph_of(write(document, str.upper)).count("<w:rPr><w:b/></w:rPr>") == 150


ENTITY = '<!DOCTYPE a [<!ENTITY b "c">]><a/>'


def lying_archive() -> bytes:
    """An archive whose part is larger than its entry states."""
    content = bytearray(make_archive({**DOCX_PARTS, "word/document.xml": DOCUMENT + " " * 1_000_000}))
    size = struct.pack("<L", len(DOCUMENT) + 1_000_000)
    return bytes(content.replace(size, struct.pack("<L", 100)))


@pytest.mark.parametrize(
    ("sample", "content", "problem"),
    [
        ("docx", b"PK\x03\x04 broken", "is not a DOCX file, or is damaged (File is not a zip file); save it again"),
        ("docx", SAMPLES["docx"][:-300], "is not a DOCX file, or is damaged (File is not a zip file); save it again"),
        ("docx", SAMPLES["odt"], "is not a DOCX file: it has no text of one"),
        ("odt", SAMPLES["docx"], "is not an ODT file: it has no text of one"),
        ("docx", SAMPLES["html"], "is not a DOCX file, or is damaged (File is not a zip file); save it again"),
        ("docx", word("<w:r>"), "1: is not XML: mismatched tag"),
        (
            "odt",
            make_archive({**ODT_PARTS, "content.xml": '<!DOCTYPE a [<!ENTITY b "c">]><a/>'}),
            "1: declares the entity",
        ),
        ("docx", lying_archive(), "is not a DOCX file, or is damaged"),
    ],
)
def test_damaged_files_are_refused(sample: str, content: bytes, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        read(sample, content)
    assert str(caught.value).removeprefix(f"a.{sample}:").strip().startswith(problem)


def test_a_bomb_is_not_unpacked() -> None:
    bomb = make_archive({**DOCX_PARTS, "word/document.xml": b" " * 5_000_000})
    assert len(bomb) < 20_000
    with pytest.raises(
        DataError, match=r"^a\.docx: has 5,0\d\d,\d\d\d bytes when it is unpacked; the limit is 1,000,000"
    ):
        DOCX.read(bomb, Task("a.docx", "en", "de", max_unpacked=1_000_000))
    many = make_archive({f"{n}.xml": "" for n in range(10_001)})
    with pytest.raises(DataError, match="has very many parts"):
        read("docx", many)
