"""Files with markup and every oddity of their formats, and translations without a model."""

import io
import zipfile
from collections.abc import Callable

from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import Vocabulary
from nmt.translation.files.file_format import FileDocument, FileFormat, Task
from nmt.translation.files.registry import FILE_FORMATS
from nmt.translation.translation import Translation

PROCESSOR = TextProcessor(WhitespaceTokenizer(), WhitespaceTokenizer(), Vocabulary([]), Vocabulary([]))

SRT = """\ufeff1
00:00:01,000 --> 00:00:02,000 X1:40 X2:600 Y1:20 Y2:50
<i>She is reading
a book</i> in

2
00:00:02,500 --> 00:00:04,000
the house.

3
00:00:05,000 --> 00:00:06,000
- I am old.
- {\\an8}Do <font color="#fff">you</font> know?

4
00:00:07,000 --> 00:00:08,000

♪ ♪

9
00:01:07,000 --> 00:01:08,000
12
""".replace("\n", "\r\n")
VTT = """WEBVTT - a title
Kind: captions

STYLE
::cue(b) { color: red }

NOTE Good night.
This is not shown.

REGION
id:r width:40%

intro
00:01.000 --> 00:02.000 line:0 position:20% align:start
<v Bob>I <b.loud>am</b> &amp; stay <00:00:01.500><c>old</c>.

01:00:03.000 --> 01:00:04.000
&lt;She&gt; sleeps
"""
PO = r"""# A header.
msgid ""
msgstr ""
"Project-Id-Version: nmt 1\n"
"Report-Msgid-Bugs-To: \n"
"PO-Revision-Date: 2020-01-01 00:00+0000\n"
"Last-Translator: A <a@example.org>\n"
"Language-Team: B <b@example.org>\n"
"Language: \n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\n"

#. A note for translators.
#: main.c:1 main.c:2
#, c-format
#| msgid "I had %d dollars."
msgid "I have %d dollar."
msgid_plural "I have %d dollars."
msgstr[0] ""
msgstr[1] ""

msgctxt "menu \"file\""
msgid ""
"She said:\t\"I am old\"\n"
"and <b>went</b> home.\n"
msgstr ""

#, fuzzy
msgid "I am old."
msgstr "Ich war alt."

msgid "Good night."
msgstr "Gute Nacht."

#~ msgid "She sleeps."
#~ msgstr "Sie schläft."
"""
XLIFF = """<?xml version="1.0" encoding='utf-8'?>
<!-- A comment. -->
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="a.c" source-language='en' datatype="plaintext"><header><note>Hello.</note></header><body>
  <group id="g"><trans-unit id="1">
    <source>I am <g id="1">old</g> &amp; <x id='2'/><bpt id="3">&lt;b></bpt>tired<ept id="3">&lt;/b></ept>.</source>
    <alt-trans match-quality="80"><source>I am</source><target>Ich bin</target></alt-trans>
  </trans-unit></group>
  <trans-unit id="2" translate="no"><source>Hello.</source></trans-unit>
  <trans-unit id="3"><source>Good night.</source><target state="final">Gute Nacht.</target></trans-unit>
  <trans-unit id="4" xml:space="preserve"><source>Hello.
  She sleeps.</source><target/></trans-unit>
  <trans-unit id="5"><source>A. B.</source><seg-source><mrk mtype="seg">He runs.</mrk> <mrk mtype="seg" mid="1">\
<mrk mtype="protected">nmt</mrk> sleeps.</mrk></seg-source></trans-unit>
</body></file></xliff>
"""
XLIFF_2 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en-US" trgLang="de">
<file id="f"><unit id="u"><notes><note>Hello.</note></notes><originalData><data id="d">x</data></originalData>
<segment id="1"><source>I <pc id="1">am <sc id="2"/>old</pc> and<ec startRef="2"/> <ph id="3"/> sleep.</source>
</segment>
<ignorable><source> </source></ignorable>
<segment state="final"><source>Good night.</source><target>Gute Nacht.</target></segment></unit></file></xliff>
"""
HTML = """<!DOCTYPE html>
<HTML lang=en><head><meta charset="utf-8"><title>A page</title><style>p > a {}</style>
<script>if (a<b) "</b>"</script></head><body class='x'>
<p>The <B>old</B> woman&nbsp;<a href="x?a=1&b=2" title='a > b'>reads</a>.<!-- no --> <br/>
She sleeps &amp; <code>x &lt; y</code> eats.
<ul><li>one<li>two <img src=x alt="a"></ul><div translate=no>no <div>not</div></div>
<p>I &lt; <i>see</p><pre>x</pre> a < b
"""
MARKDOWN = """---
title: My page
---
# A *nice* heading #

She reads a **big
book** and `code` is [her *old*
link](http://x.de/a_b "T") here.\x20\x20
Next line\\
third line with <b>html</b> and 2 \\* 3, see [this].

> quoted text goes
> on here
> - item one
>   continued
1. [ ] todo thing
2. second[^1]

Setext title
============

| Name | Old *thing* |
|------|:-----------:|
| one  | two \\| three |

```python
code = "here"
```

    indented code

![picture](a.png) and <http://a.de> snake_case **b *i***

<div class="x">
<p>Some text.</p>
</div>

[this]: http://x.de "Title"
"""
JSON = """{
  "@@locale": "en",
  "hello" : "Hello,\\n\\tworld \\u00e9 \\/ <b>now<\\/b>!",
  "items": ["one book", 2, true, null, {"deep": "She sleeps."}],
  "count": "{n, plural, one {# book} other {# books}}", "empty": "",
  "@hello": {"description": "Not this."}
}
"""
YAML = """# A comment.
en: &top
  hello: Hello, world!   # behind it
  yes: true
  number: 12
  date: 2020-01-01
  single: 'It''s me'
  double: "She said \\"hi\\"\\nI am old."
  named: &a Good night
  alias: *a
  list:
    - one book
    - [flow one, 'flow two', {k: flow three}]
  literal: |
    First line.

      Second line.
  folded: >-
    This is a long
    sentence.

    Another one.
  empty: ""
  tagged: !!binary aGVsbG8=
  over two lines: this is
    folded
  ? complex
  : value
---
- another document
"""
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DOCUMENT = f"""<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:document xmlns:w="{WORD}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"
 xmlns:wp="urn:x-wp" xmlns:wps="urn:x-wps" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"><w:body>
<w:p w:rsidR="1"><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r w:rsidR="2"><w:t>A heading</w:t></w:r></w:p>
<w:p><w:r><w:t xml:space="preserve">She reads </w:t></w:r><w:proofErr w:type="spellStart"/><w:r w:rsidR="3"><w:t>the</w:t></w:r>\
<w:r><w:t xml:space="preserve"> </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>old</w:t></w:r><w:r><w:t xml:space="preserve"> book\
</w:t></w:r><w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:footnoteReference w:id="2"/></w:r><w:r>\
<w:t>.</w:t></w:r></w:p>
<w:p><w:r><w:t xml:space="preserve">See </w:t></w:r><w:hyperlink r:id="rId9"><w:r><w:rPr><w:i/></w:rPr><w:t>this page</w:t></w:r></w:hyperlink>\
<w:r><w:t xml:space="preserve"> on </w:t></w:r><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> PAGE </w:instrText>\
</w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>7</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>\
<w:r><w:t xml:space="preserve"> now</w:t></w:r></w:p>
<w:p><w:r><w:t>Name:</w:t><w:tab/><w:t>first</w:t><w:br/><w:t>second</w:t></w:r></w:p>
<w:p><w:r><w:t xml:space="preserve">I </w:t></w:r><w:ins w:id="1" w:author="A"><w:r><w:t xml:space="preserve">really </w:t></w:r></w:ins>\
<w:del w:id="2" w:author="A"><w:r><w:delText>never</w:delText></w:r></w:del><w:r><w:t>sleep</w:t></w:r></w:p>
<w:tbl><w:tblGrid><w:gridCol/><w:gridCol/></w:tblGrid><w:tr><w:tc><w:p><w:r><w:t>In a cell</w:t></w:r></w:p></w:tc><w:tc><w:p/></w:tc></w:tr></w:tbl>
<w:p><w:r><w:t xml:space="preserve">With a </w:t></w:r><w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:inline><wps:txbx>\
<w:txbxContent><w:p><w:r><w:t>In a box</w:t></w:r></w:p></w:txbxContent></wps:txbx></wp:inline></w:drawing></mc:Choice>\
</mc:AlternateContent></w:r><w:r><w:t>picture &amp; text</w:t></w:r></w:p>
<w:sectPr/></w:body></w:document>"""
FOOTNOTES = f"""<w:footnotes xmlns:w="{WORD}"><w:footnote w:id="2"><w:p><w:r><w:footnoteRef/></w:r><w:r>\
<w:t xml:space="preserve"> A note.</w:t></w:r></w:p></w:footnote></w:footnotes>"""
TYPES = """<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" \
ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>\
<Override PartName="/word/document.xml" \
ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"""
RELATIONS = """<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" \
Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/>\
</Relationships>"""
ODF = "urn:oasis:names:tc:opendocument:xmlns"
CONTENT = f"""<?xml version="1.0" encoding="UTF-8"?>
<office:document-content xmlns:office="{ODF}:office:1.0" xmlns:text="{ODF}:text:1.0" xmlns:draw="{ODF}:drawing:1.0"\
 xmlns:table="{ODF}:table:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/" office:version="1.2"><office:body><office:text>\
<text:tracked-changes><text:changed-region><text:deletion><text:p>Gone text</text:p></text:deletion></text:changed-region>\
</text:tracked-changes>
<text:h text:outline-level="1">A heading</text:h>
<text:p>She reads the <text:span text:style-name="T1">old</text:span> book<text:note text:note-class="footnote"><text:note-citation>\
1</text:note-citation><text:note-body><text:p>A note.</text:p></text:note-body></text:note>.</text:p>
<text:p>Name:<text:tab/>first<text:line-break/>second<text:s text:c="2"/>half<office:annotation><dc:creator>A</dc:creator>\
<text:p>A remark.</text:p></office:annotation></text:p>
<text:p>On page <text:page-number>7</text:page-number> <text:change text:change-id="c"/>now &amp; then</text:p>
<table:table><table:table-row><table:table-cell><text:p>In a cell</text:p></table:table-cell></table:table-row></table:table>
<text:p>With a <draw:frame><draw:text-box><text:p>In a box</text:p></draw:text-box></draw:frame>picture</text:p>
</office:text></office:body></office:document-content>"""
ODT_TYPE = "application/vnd.oasis.opendocument.text"
MANIFEST = f"""<manifest:manifest xmlns:manifest="{ODF}:manifest:1.0"><manifest:file-entry manifest:full-path="/" \
manifest:media-type="{ODT_TYPE}"/></manifest:manifest>"""


def make_archive(parts: dict[str, str | bytes], stored: str = "") -> bytes:
    """A ZIP archive of parts, of which one is not compressed."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content, zipfile.ZIP_STORED if name == stored else None)
    return written.getvalue()


def parts_of(content: bytes) -> dict[str, bytes]:
    """The parts of an archive, in order."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


DOCX_PARTS: dict[str, str | bytes] = {
    "[Content_Types].xml": TYPES,
    "_rels/.rels": RELATIONS,
    "word/document.xml": DOCUMENT,
    "word/footnotes.xml": FOOTNOTES,
    "word/media/a.png": b"\x89PNG\0",
}
ODT_PARTS: dict[str, str | bytes] = {
    "mimetype": ODT_TYPE,
    "content.xml": CONTENT,
    "META-INF/manifest.xml": MANIFEST,
    "Thumbnails/a.png": b"\x89PNG\0",
}
SAMPLES: dict[str, bytes] = {
    "srt": SRT.encode(),
    "vtt": VTT.encode(),
    "po": PO.encode(),
    "xliff": XLIFF.encode(),
    "xliff 2": XLIFF_2.encode(),
    "html": HTML.encode(),
    "md": MARKDOWN.encode(),
    "json": JSON.encode(),
    "yaml": YAML.encode(),
    "docx": make_archive(DOCX_PARTS),
    "odt": make_archive(ODT_PARTS, stored="mimetype"),
}
"""A file of each format, by the name of the format and a word that tells several apart."""


def format_of(sample: str) -> FileFormat:
    """The format of a sample."""
    return FILE_FORMATS[sample.split(maxsplit=1)[0]]


def read(
    sample: str, content: bytes | str | None = None, target: str = "de", *, retranslate: bool = False
) -> FileDocument:
    """A sample, or a content in its format, as a document."""
    content = SAMPLES[sample] if content is None else content
    encoded = content.encode() if isinstance(content, str) else content
    return format_of(sample).read(encoded, Task(f"a.{sample}", "en", target, retranslate))


def texts(document: FileDocument) -> list[str]:
    """What is translated."""
    return [segment.text for segment in document.segments]


def write(document: FileDocument, translate: Callable[[str], str]) -> bytes:
    """The file with translations that a function makes; words are linked in order."""
    rendered = [segment.render(Translation(translate(segment.text)), PROCESSOR) for segment in document.segments]
    return document.write(rendered)


def shout(document: FileDocument) -> str:
    """A text file with each word in capitals."""
    return write(document, str.upper).decode()


def same(text: str) -> str:
    """A translation that is the text."""
    return text


def changed_lines(before: str, after: str) -> list[str]:
    """The lines of a text that are not in another one."""
    there = before.splitlines()
    return [line for line in after.splitlines() if line not in there]
