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


def test_a_memory_of_other_languages_is_named(tmp_path: Path) -> None:
    path = tmp_path / "m.tmx"
    path.write_text("<tmx><tu><tuv lang='FR'><seg>a</seg></tuv><tuv lang='de'><seg>b</seg></tuv></tu></tmx>")
    source = open_tmx(path)
    pairs, report = collect(source)
    with pytest.raises(DataError, match="no translation unit has en and de; its languages are de, fr: set"):
        source.check(report, len(pairs))


def test_a_hundred_thousand_units_are_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.tmx"
    with path.open("w", encoding="utf-8") as file:
        file.write(HEAD.format("utf-8"))
        for number in range(100_000):
            text = f"This is sentence number {number} of a large memory."
            file.write(f"<tu><tuv lang='en'><seg>{text}</seg></tuv><tuv lang='de'><seg>{text}</seg></tuv></tu>\n")
        file.write("</body></tmx>")
    report, read = LineReport(0), 0
    tracemalloc.start()
    for chunk in open_tmx(path).chunks(report):
        read += chunk.blocks[0].count(b"\n")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert read == 100_000
    assert peak < 20_000_000  # bytes; the file has 14 million, its texts as objects far more
