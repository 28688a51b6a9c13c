"""Files with markup and every oddity of their formats, and translations without a model."""

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
SAMPLES: dict[str, bytes] = {
    "srt": SRT.encode(),
    "vtt": VTT.encode(),
    "po": PO.encode(),
    "xliff": XLIFF.encode(),
    "xliff 2": XLIFF_2.encode(),
    "html": HTML.encode(),
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
