import gzip
import tracemalloc
from pathlib import Path

import pytest

from nmt.config import DataSection
from nmt.corpus import Pair
from nmt.corpus.sources import LineReport, Source, open_corpus, parse_chunk
from nmt.system.errors import DataError

HEAD = '<?xml version="1.0" encoding="{}"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><header/><body>'
UNITS = """
<tu tuid="1"><tuv xml:lang="EN-GB"><seg>Hi &amp; bye,
  Tom.</seg></tuv><tuv xml:lang="de"><note>x</note><seg>Hallo &#38; tsch&#252;ss, Tom.</seg></tuv></tu>
<tu><tuv xml:lang="fr"><seg>Salut</seg></tuv><tuv xml:lang="de_AT"><seg>Servus</seg></tuv></tu>
<tu><tuv lang="de"><seg>Ein <bpt i="1">&lt;b></bpt>fettes<ept i="1">&lt;/b></ept> <hi>Wort</hi></seg></tuv>
<tuv lang="en"><seg>A bold<ph>{1}</ph> word</seg></tuv></tu>
"""


def open_tmx(path: Path, **options: str | bool | int) -> Source:
    return open_corpus([path], DataSection(**options))["train"]


def collect(source: Source) -> tuple[list[Pair], LineReport]:
    report, pairs = LineReport(0), list[Pair]()
    for chunk in source.chunks(report):
        some, lines = parse_chunk(chunk)
        pairs += some
        report.add(lines)
    return pairs, report


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
@pytest.mark.parametrize("suffix", [".tmx", ".tmx.gz"])
def test_units_are_pairs_without_the_codes_of_other_programs(tmp_path: Path, encoding: str, suffix: str) -> None:
    path = tmp_path / f"memory{suffix}"
    content = (HEAD.format(encoding) + UNITS + "</body></tmx>").encode(encoding)
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    pairs, report = collect(open_tmx(path))
    assert pairs == [Pair("Hi & bye, Tom.", "Hallo & tschüss, Tom."), Pair("A bold word", "Ein fettes Wort")]
    assert (report.read, report.blank) == (3, 1)
    assert collect(open_tmx(path, first_lines=1))[0] == pairs[:1]
    assert collect(open_tmx(path, reverse=True))[0] == [Pair(tgt, src) for src, tgt in pairs]
    assert collect(open_tmx(path, src_language="fr"))[0] == [Pair("Salut", "Servus")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<tmx><body><tu>", r"m.tmx:1: not XML \(no element found\)"),
        ("Hi.\tHallo!\n", "m.tmx:1: not XML"),
        ("", "m.tmx:1: not XML"),
        ('<!DOCTYPE tmx [\n<!ENTITY a "aaa">]><tmx/>', "m.tmx:2: declares the entity 'a'"),
        ('<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]><tmx>&x;</tmx>', "m.tmx:1: declares the entity 'x'"),
        ('<!DOCTYPE tmx [<!ENTITY % x SYSTEM "http://a/b">%x;]><tmx/>', "m.tmx:1: declares the entity 'x'"),
        ("<tmx><tu><tuv lang='en'><seg>" + "x" * 2_000_000 + "</seg></tuv></tu></tmx>", "longer than a megabyte"),
    ],
)
def test_what_is_not_a_translation_memory_is_refused_with_its_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "m.tmx"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        collect(open_tmx(path))


@pytest.mark.parametrize(
    "encoding", ["Shift_JIS", "EUC-JP", "GB2312", "Big5", "utf-7", "rot13", "hex", "hz", "iso-2022-jp", "cp037", "none"]
)
def test_an_encoding_that_cannot_be_read_is_refused(tmp_path: Path, encoding: str) -> None:
    """Some were a traceback, and hz was read as the letters of its escapes."""
    path = tmp_path / "m.tmx"
    path.write_bytes(HEAD.format(encoding).encode() + b"</body></tmx>")
    with pytest.raises(DataError, match=rf"m.tmx:1: declares the encoding '{encoding}', which cannot be read; convert"):
        collect(open_tmx(path))


@pytest.mark.parametrize("encoding", ["windows-1252", "ISO-8859-15", "us-ascii", "UTF-16LE", "UTF-8"])
def test_an_encoding_that_is_declared_is_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "m.tmx"
    unit = "<tu><tuv lang='en'><seg>a caf&#233;</seg></tuv><tuv lang='de'><seg>ein Caf{}</seg></tuv></tu>"
    letter = "\u00e9" if encoding != "us-ascii" else "&#233;"
    path.write_bytes((HEAD.format(encoding) + unit.format(letter) + "</body></tmx>").encode(encoding))
    assert collect(open_tmx(path))[0] == [Pair("a caf\u00e9", "ein Caf\u00e9")]


MEMORY = (
    HEAD
    + "<tu><tuv lang='en'><seg>a caf\u00e9</seg></tuv><tuv lang='de'><seg>ein Caf\u00e9</seg></tuv></tu></body></tmx>"
)
PAIRS = [Pair("a caf\u00e9", "ein Caf\u00e9")]


@pytest.mark.parametrize("mark", ["'", '"'])
@pytest.mark.parametrize(
    ("declared", "used"),
    [
        ("utf16", "utf-16"),
        ("UTF_16", "utf-16"),
        ("u16", "utf-16"),
        ("utf-16", "utf-16-le"),
        ("Utf16", "utf-16-be"),
        ("utf_16_le", "utf-16-le"),
        ("UTF-16BE", "utf-16-be"),
        ("UTF8", "utf-8"),
        ("utf_8", "utf-8"),
        ("U8", "utf-8"),
        ("cp65001", "utf-8"),
        ("utf_8_sig", "utf-8"),
        ("utf_8_sig", "utf-8-sig"),
        ("latin1", "latin-1"),
        ("L1", "latin-1"),
        ("cp1252", "cp1252"),
        ("Windows_1252", "cp1252"),
        ("iso8859_15", "iso8859-15"),
        # A byte order mark, or the zeros of UTF-16, show more than the declaration says.
        ("utf-16", "utf-8-sig"),
        ("ISO-8859-1", "utf-8-sig"),
        ("Shift_JIS", "utf-8-sig"),
        ("utf-8", "utf-16"),
        ("windows-1252", "utf-16"),
        ("utf-8", "utf-16-le"),
        ("utf-16-le", "utf-16-be"),
        ("ISO-10646-UCS-2", "utf-16"),
    ],
)
def test_an_encoding_is_read_however_its_name_is_spelt(tmp_path: Path, declared: str, used: str, mark: str) -> None:
    """`utf16` was a traceback, `UTF8` was not XML, and ISO-8859-1 after a byte order mark of UTF-8 became mojibake."""
    path = tmp_path / "m.tmx.gz"
    path.write_bytes(
        gzip.compress(MEMORY.format(declared).replace(f'"{declared}"', mark + declared + mark).encode(used))
    )
    assert collect(open_tmx(path))[0] == PAIRS


@pytest.mark.parametrize(
    ("declared", "used", "message"),
    [
        ("cp037", "cp037", "1: declares the encoding 'cp037', which cannot be read"),
        ("Shift_JIS", "utf-8", "1: declares the encoding 'Shift_JIS', which cannot be read"),
        ("utf_32", "utf-32", "1: is in the encoding utf-32, which cannot be read"),
        ("UTF-8", "utf-32-le", "1: is in the encoding utf-32, which cannot be read"),
        ("utf-8", "cp037", "1: is in the encoding EBCDIC, which cannot be read"),
        ("raw_unicode_escape", "latin-1", "1: declares the encoding 'raw_unicode_escape', which cannot be read"),
        ("utf16", "utf-8", "1: declares the encoding 'utf16', but its bytes are not in it"),
        ("UTF-16LE", "latin-1", "1: declares the encoding 'UTF-16LE', but its bytes are not in it"),
        ("utf_8", "latin-1", "3: has bytes that are not in its encoding, utf_8"),
        ("us-ascii", "latin-1", "3: has bytes that are not in its encoding, us-ascii"),
    ],
)
def test_an_encoding_that_is_not_that_of_the_bytes_is_refused(
    tmp_path: Path, declared: str, used: str, message: str
) -> None:
    path = tmp_path / "m.tmx"
    path.write_bytes(MEMORY.format(declared).encode(used))
    with pytest.raises(DataError) as refused:
        collect(open_tmx(path))
    assert str(refused.value).startswith(f"{path}:{message}; convert it to UTF-8, and write")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf16", "latin1"])
def test_characters_across_the_pieces_of_a_file_are_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "m.tmx"
    unit = "<tu><tuv lang='en'><seg>\u00e9{0}</seg></tuv><tuv lang='de'><seg>\u00e9\u00e9{0}</seg></tuv></tu>"
    body = "".join(unit.format(number) for number in range(3_000))
    path.write_bytes((HEAD.format(encoding) + body + "</body></tmx>").encode(encoding))
    assert collect(open_tmx(path))[0] == [Pair(f"\u00e9{n}", f"\u00e9\u00e9{n}") for n in range(3_000)]


@pytest.mark.parametrize(
    "attribute", ['xml:lang="&de;"', "lang = 'd&e;'", 'x="&lt;>" xml:lang="&#100;&e;"', 'srclang="&x;"']
)
@pytest.mark.parametrize("before", [0, *range(65_300, 65_540, 7)])
def test_an_undeclared_entity_in_the_name_of_a_language_is_refused(tmp_path: Path, attribute: str, before: int) -> None:
    """It vanished, and with it the language. The reader takes 65,536 bytes at a time."""
    path = tmp_path / "m.tmx"
    path.write_text(
        HEAD.format("utf-8") + f"\n<!--{'x' * before}--><tu><tuv {attribute}><seg>a</seg></tuv></tu></body></tmx>"
    )
    with pytest.raises(DataError, match=r"m.tmx:4: uses the entity '(de|e|x)', which the file does not declare; write"):
        collect(open_tmx(path))


def test_entities_where_nothing_reads_them_are_no_fault(tmp_path: Path) -> None:
    unit = "<tu creationid='Andr&eacute; lang=x'><tuv xml:lang='&#101;n'><!-- &x; --><seg>a <![CDATA[&y;]]></seg></tuv>"
    path = tmp_path / "m.tmx"
    path.write_text(HEAD.format("utf-8") + unit + "<tuv xml:lang='de'><seg>b</seg></tuv></tu></body></tmx>")
    assert collect(open_tmx(path))[0] == [Pair("a &y;", "b")]


@pytest.mark.parametrize("text", ["caf&eacute; noir", "&nbsp;", "a <hi>&x;</hi>"])
def test_an_entity_that_the_file_does_not_declare_is_refused(tmp_path: Path, text: str) -> None:
    """It vanished: `caf&eacute;` was read as `caf`."""
    path = tmp_path / "m.tmx"
    path.write_text(HEAD.format("utf-8") + f"\n<tu><tuv lang='en'><seg>{text}</seg></tuv></tu></body></tmx>")
    with pytest.raises(DataError, match=r"m.tmx:4: uses the entity '(eacute|nbsp|x)', which the file does not declare"):
        collect(open_tmx(path))


def test_prefixes_of_namespaces_are_ignored(tmp_path: Path) -> None:
    text = UNITS.replace("</t", "</x:t").replace("<t", "<x:t").replace("</s", "</x:s").replace("<s", "<x:s")
    path = tmp_path / "m.tmx"
    path.write_text(f'<x:tmx xmlns:x="http://www.lisa.org/tmx14"><x:body>{text}</x:body></x:tmx>', encoding="utf-8")
    pairs, _ = collect(open_tmx(path))
    assert pairs == [Pair("Hi & bye, Tom.", "Hallo & tschüss, Tom."), Pair("A bold word", "Ein fettes Wort")]


def test_several_texts_of_a_language_are_several_pairs(tmp_path: Path) -> None:
    """The last translation replaced those before it. Equal ones, and empty ones, are one and none."""
    texts = [("en", "a"), ("de", "b"), ("DE", "c"), ("de-AT", "b"), ("de", ""), ("en-GB", "d"), ("fr", "e")]
    unit = "".join(f"<tuv xml:lang='{code}'><seg>{text}</seg></tuv>" for code, text in texts)
    path = tmp_path / "m.tmx"
    path.write_text(f"<tmx><tu>{unit}</tu><tu><tuv lang='en'><seg>f</seg></tuv></tu></tmx>")
    pairs, report = collect(open_tmx(path))
    assert pairs == [Pair("a", "b"), Pair("a", "c"), Pair("d", "b"), Pair("d", "c")]
    assert (report.read, report.blank) == (5, 1)


ENDLESS = {
    "deep": (b"<tmx>", b"<a>", "more than 100 elements inside each other"),
    "texts": (b"<tmx><tu><tuv lang='de'>", b"<seg/>", "a unit of more than 200 texts"),
    "empty lines": (b"<tmx><tu><tuv lang='de'><seg>", b"\n", "a unit longer than a megabyte"),
    "tag": (b"<tmx><tuv x='", b"xxxxxxxx", "a tag or comment longer than a megabyte"),
    "comment": (b"<tmx><!--", b"xxxxxxxx", "a tag or comment longer than a megabyte"),
    "name": (b"<", b"xxxxxxxx", "a tag or comment longer than a megabyte"),
    "instruction": (b"<?x ", b"xxxxxxxx", "a tag or comment longer than a megabyte"),
    "declarations": (b"<!DOCTYPE tmx [", b"<!ELEMENT a EMPTY>", "a DOCTYPE longer than a megabyte"),
    "names": (b"<tmx>", b"<a%d/>", "more than 10,000 names"),
    "attributes": (b"<tmx>", b"<a b%d='c'/>", "more than 10,000 names"),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_small_file_that_needs_much_memory_is_refused(tmp_path: Path, kind: str) -> None:
    """61 KB took 2.7 GiB."""
    begin, part, message = ENDLESS[kind]
    numbered = b"%d" in part
    with gzip.open(tmp_path / "m.tmx.gz", "wb", compresslevel=1) as file:
        file.write(begin)
        for block in range(40):
            file.write(b"".join(part % (block << 14 | n) for n in range(1 << 14)) if numbered else part * (1 << 17))
    tracemalloc.start()
    with pytest.raises(DataError, match=message):
        collect(open_tmx(tmp_path / "m.tmx.gz"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_pairs_of_many_texts_are_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "m.tmx"
    texts = "".join(f"<tuv lang='{code}'><seg>{n}</seg></tuv>" for code in ("en", "de") for n in range(100))
    path.write_text(f"<tmx>{f'<tu>{texts}</tu>' * 10}</tmx>")
    report, read = LineReport(0), 0
    tracemalloc.start()
    for chunk in open_tmx(path).chunks(report):
        read += chunk.blocks[0].count(b"\n")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert read == 10 * 100 * 100
    assert peak < 20_000_000


def test_a_text_inside_a_text_has_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "m.tmx"
    path.write_text("<tmx><seg>x<tu>a<tuv lang='en'>b<seg>c<seg>d</seg>e</seg></tuv></tu></seg></tmx>")
    assert collect(open_tmx(path))[0] == []


def test_a_memory_of_other_languages_is_named(tmp_path: Path) -> None:
    path = tmp_path / "m.tmx"
    path.write_text("<tmx><tu><tuv lang='FR'><seg>a</seg></tuv><tuv lang='de'><seg>b</seg></tuv></tu></tmx>")
    source = open_tmx(path)
    pairs, report = collect(source)
    with pytest.raises(DataError, match="no translation unit has en and de; its languages are de, fr: set"):
        source.check(report, len(pairs))


def test_many_units_are_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.tmx"
    with path.open("w", encoding="utf-8") as file:
        file.write(HEAD.format("utf-8"))
        for number in range(5_000):
            text = f"This is sentence number {number} of a large memory." + " It goes on and on." * 32
            file.write(f"<tu><tuv lang='en'><seg>{text}</seg></tuv><tuv lang='de'><seg>{text}</seg></tuv></tu>\n")
        file.write("</body></tmx>")
    report, read = LineReport(0), 0
    tracemalloc.start()
    for chunk in open_tmx(path).chunks(report):
        read += chunk.blocks[0].count(b"\n")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert read == 5_000
    assert peak < 6_000_000  # bytes; the file has 6.8 million, its texts as objects far more
