"""Abbreviations of a language: which full stops end a sentence, and which belong to a word.

A full stop after an abbreviation may also end the sentence. The word behind it decides: a sentence begins with an
article, a pronoun or another frequent word; a name or a noun goes on with the sentence. The abbreviations and the
frequent words of a language are spaCy's; the short lists here are about distinctions that spaCy does not make.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nmt.text.languages import base_language
from nmt.text.tokenizers import blank_language

TITLES = {
    "de": "Dr. Fr. Frl. Hr. Hrn. Prof. St. bzw. ca. d.h. evtl. ggf. lt. sog. vgl. vs. z.B. Dipl. Ing.",
    "en": "Adm. Capt. Col. Dr. Fr. Gen. Gov. Hon. Lt. Messrs. Mr. Mrs. Ms. Mt. Prof. Rep. Rev. Sen. Sgt. vs. v.s. cf.",
    "es": "Dr. Dra. Prof. Profa. Sr. Sra. Srta. D. Ud. Uds. Vd. Vds. p.ej.",
    "fr": "Dr. M. MM. Mlle. Mme. Mr. Pr. St. Ste. cf.",
    "it": "Dott. Prof. Sig. ecc. dott. prof. sig.",
    "nl": "Dhr. Dr. Drs. Ir. Mevr. Mr. Prof. St. bijv. bv. d.w.z. dhr. dr. mevr.",
    "pt": "Dr. Dra. Prof. Profa. Sr. Sra. Srta. p.ex.",
}
"""Abbreviations that always have a word of their own sentence behind them, by `base_language`.

`St.` is not one in English: it is Saint, or Street, behind which a sentence may end.
"""
ENDINGS = {
    "de": "A.D. Co. Inc. Jh. Jr. a.D. e.V. jr. n.Chr. sen. usf. usw. u.s.w. uvm. u.v.m. "
    "v.Chr. G.m.b.H. MwSt. o.k. O.K.",
    "en": "A.D. B.C. Bros. Co. Corp. Inc. Jr. Ltd. Ph.D. Sr. a.m. co. p.m. A.M. P.M. D.C.",
    "es": "S.A. S.L. a.C. d.C. EE.UU.",
    "fr": "av. apr.",
    "it": "ecc. S.p.A. a.C. d.C.",
    "nl": "B.V. N.V. enz.",
    "pt": "S.A. Ltda. a.C. d.C.",
}
"""Abbreviations that mostly stand at the end of the name or phrase they belong to, by `base_language`."""
# Some are also words: "The answer is no. 5 people came." The number is then taken for that of the abbreviation, as
# careful writers begin no sentence with digits.
NUMBERED = {
    "de": "abb. abs. abschn. anm. bd. bde. jg. kap. nrn. rn. s. tab. ziff.",
    "en": "approx. apt. ca. ch. chap. est. ext. figs. no. nos. op. pt. rm. sec. vols.",
    "es": "arts. cap. núm. núms. pág. págs.",
    "fr": "chap. no. nos. tél.",
    "it": "artt. cap. pag. pagg.",
    "nl": "afb. blz. hfst. no. nrs.",
    "pt": "arts. cap. núm. pág. págs.",
}
"""Abbreviations behind which their sentence goes on if a number follows, by `base_language`, in small letters."""
LATIN_TITLES = ("e.g.", "i.e.")
LATIN_ENDINGS = ("etc.",)
LATIN_NUMBERED = ("art.", "fig.", "nr.", "p.", "pp.", "tel.", "vol.")
"""Abbreviations of the same three kinds in many languages."""
ORDINALS = ("cs", "da", "de", "et", "fi", "fo", "hr", "hu", "is", "lb", "lv", "nb", "nn", "no", "pl", "sk", "sl", "sr")
"""Languages that write an ordinal number with a full stop, by `base_language`."""
BEFORE_ORDINALS = {
    "de": "am beim bis das dem den der des die im jeden jeder jedes vom zum zur und",
}
"""Words in front of an ordinal number, by `base_language`; without a list, any word may stand there."""
HIGHEST = 31
"""The highest number that is taken for an ordinal: a day of a month. Above it, a number is mostly a year."""
_ACRONYM = re.compile(r"(?:[^\W\d_]\.){2,}")
_LETTER = re.compile(r"[^\W\d_]\.")
_NUMBER = re.compile(r"[0-9]{1,2}\.")
_DECORATION = "\"'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a([{\u00bf\u00a1\u2013\u2014-"
"""Characters in front of a word that do not belong to it."""


@dataclass(frozen=True)
class Abbreviations:
    """The abbreviations of a language. The exported page reads the same table.

    Attributes:
        known: All, each with its full stop.
        titles: Those behind which their sentence always goes on.
        endings: Those behind which a new sentence begins, if a word with a capital follows.
        numbered: Those behind which their sentence goes on if a number follows, in small letters.
        starters: Words in small letters that a sentence often begins with.
        has_ordinals: True if the language writes ordinal numbers with a full stop.
        before_ordinals: Words in front of such a number; empty if any word may stand there.
    """

    known: frozenset[str]
    titles: frozenset[str]
    endings: frozenset[str]
    numbered: frozenset[str]
    starters: frozenset[str]
    has_ordinals: bool
    before_ordinals: frozenset[str]

    def ends_sentence(self, before: str, word: str, following: str) -> bool:
        """True if a full stop ends a sentence.

        Args:
            before: The characters between the two spaces in front of the word; empty at the beginning of a line.
            word: The characters from the last space to the full stop.
            following: The word or number behind it, which has no small first letter; empty if none follows at once.
        """
        word = word.lstrip(_DECORATION)
        if word in self.titles:
            return False
        if word.lower() in self.numbered and following[:1].isdecimal():
            return False
        if word in self.endings or following.lower() in self.starters:
            return True
        if _LETTER.fullmatch(word):
            return not self._may_be_initial(before, word)
        if self.has_ordinals and _NUMBER.fullmatch(word):
            is_day = int(word[:-1]) <= HIGHEST
            is_counted = not self.before_ordinals or before.lower() in self.before_ordinals
            return not (is_day and is_counted)
        return not (word in self.known or _ACRONYM.fullmatch(word))

    def _may_be_initial(self, before: str, word: str) -> bool:
        """True if a letter may be one of a name or of an abbreviation in parts (`z. B.`), not a thing (`plan B`)."""
        before = before.lstrip(_DECORATION)
        return word.islower() or not before or before.endswith(".") or before[0].isupper()


def load_abbreviations(language: str) -> Abbreviations | None:
    """The abbreviations of a language; None if spaCy does not know it or is not installed."""
    try:
        defaults = blank_language(language).Defaults
    except ImportError:
        return None
    base = base_language(language)
    words = frozenset(word for word in defaults.tokenizer_exceptions if word.endswith(".") and " " not in word)
    titles = frozenset([*TITLES.get(base, "").split(), *LATIN_TITLES])
    endings = frozenset([*ENDINGS.get(base, "").split(), *LATIN_ENDINGS])
    numbered = frozenset([*NUMBERED.get(base, "").split(), *LATIN_NUMBERED])
    starters = frozenset(word.lower() for word in defaults.stop_words if word.isalpha())
    before = frozenset(BEFORE_ORDINALS.get(base, "").split())
    return Abbreviations(words | titles | endings, titles, endings, numbered, starters, base in ORDINALS, before)
