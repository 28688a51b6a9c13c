"""English names of languages by their ISO 639-1 codes."""

_NAMES = """
af Afrikaans, am Amharic, ar Arabic, az Azerbaijani, be Belarusian, bg Bulgarian, bn Bengali, br Breton, bs Bosnian,
ca Catalan, cs Czech, cy Welsh, da Danish, de German, el Greek, en English, eo Esperanto, es Spanish, et Estonian,
eu Basque, fa Persian, fi Finnish, fo Faroese, fr French, fy Western Frisian, ga Irish, gd Scottish Gaelic,
gl Galician, gu Gujarati, ha Hausa, he Hebrew, hi Hindi, hr Croatian, ht Haitian Creole, hu Hungarian, hy Armenian,
ia Interlingua, id Indonesian, ig Igbo, is Icelandic, it Italian, ja Japanese, jv Javanese, ka Georgian, kk Kazakh,
km Khmer, kn Kannada, ko Korean, ku Kurdish, ky Kyrgyz, la Latin, lb Luxembourgish, lo Lao, lt Lithuanian, lv Latvian,
mg Malagasy, mi Maori, mk Macedonian, ml Malayalam, mn Mongolian, mr Marathi, ms Malay, mt Maltese, my Burmese,
nb Norwegian Bokmål, ne Nepali, nl Dutch, nn Norwegian Nynorsk, no Norwegian, oc Occitan, pa Punjabi, pl Polish,
ps Pashto, pt Portuguese, ro Romanian, ru Russian, rw Kinyarwanda, sa Sanskrit, si Sinhala, sk Slovak, sl Slovenian,
sn Shona, so Somali, sq Albanian, sr Serbian, sv Swedish, sw Swahili, ta Tamil, te Telugu, tg Tajik, th Thai,
ti Tigrinya, tk Turkmen, tl Tagalog, tn Tswana, tr Turkish, tt Tatar, ug Uyghur, uk Ukrainian, ur Urdu, uz Uzbek,
vi Vietnamese, wo Wolof, xh Xhosa, yi Yiddish, yo Yoruba, zh Chinese, zu Zulu
"""
NAMES = dict(entry.strip().split(" ", 1) for entry in _NAMES.replace("\n", " ").split(","))

_FREQUENT = """
cs je se na to že jsem není, da jeg det er ikke og på, de der die das und ist nicht ich, en the is to and of you it, es
el los es una no por que, fi on ja ei se hän minä että, fr le la les est je pas une, hu a az nem és hogy egy van, it il
di è che non un sono, nl het een is niet ik dat van, pl nie się to na jest że i, pt o não é um uma eu que, ru я не в что
он и это, sv jag är det inte och att på, tr bir ve bu ben değil çok ne, uk я не що це він і та
"""
FREQUENT = {code: words for code, *words in map(str.split, _FREQUENT.split(","))}
"""Frequent words of languages, in lower case."""


_THREE_LETTERS = """
ara ar, bul bg, cat ca, ces cs, cmn zh, cym cy, cze cs, dan da, deu de, dut nl, ell el, eng en, epo eo, est et, eus eu,
fas fa, fin fi, fra fr, fre fr, ger de, gle ga, gre el, heb he, hin hi, hrv hr, hun hu, ind id, isl is, ita it, jpn ja,
kat ka, kor ko, lat la, lav lv, lit lt, mkd mk, nld nl, nno nn, nob nb, nor no, pes fa, pol pl, por pt, ron ro, rum ro,
rus ru, slk sk, slv sl, spa es, sqi sq, srp sr, swa sw, swe sv, tam ta, tel te, tha th, tur tr, ukr uk, urd ur, vie vi,
zho zh
"""
_TWO_LETTERS = dict(entry.split() for entry in _THREE_LETTERS.replace("\n", " ").split(","))


def base_language(code: str) -> str:
    """The language of a code without script and region, in two letters where it has such: `deu` and `de-AT` are de."""
    language = code.replace("_", "-").partition("-")[0].lower()
    return _TWO_LETTERS.get(language, language)


def language_name(code: str) -> str:
    """The English name of a language, or its code if it is not listed; `pt-BR` is Portuguese (BR)."""
    language, _, variant = code.replace("_", "-").partition("-")
    name = NAMES.get(language, code)
    return f"{name} ({variant})" if variant and name != code else name
