"""Language codes: one code for each language, however a corpus names it, and English names."""

import re

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
vi Vietnamese, wo Wolof, xh Xhosa, yi Yiddish, yo Yoruba, zh Chinese, zu Zulu, gan Gan Chinese, hak Hakka Chinese,
hsn Xiang Chinese, lzh Literary Chinese, nan Min Nan Chinese, wuu Wu Chinese, yue Cantonese
"""
_CODES = """
aa aar, ab abk, ae ave, af afr, ak aka fat, am amh, an arg, ar ara arb, as asm, av ava, ay aym ayr, az aze azj, ba bak,
be bel, bg bul, bi bis, bm bam, bn ben, bo bod tib, br bre, bs bos, ca cat, ce che, ch cha, co cos, cr cre,
cs ces cze, cu chu, cv chv, cy cym wel, da dan, de deu ger, dv div, dz dzo, ee ewe, el ell gre, en eng, eo epo, es spa,
et est ekk, eu eus baq, fa fas per pes, ff ful, fi fin, fj fij, fo fao, fr fra fre, fy fry, ga gle, gd gla, gl glg,
gn grn gug, gu guj, gv glv, ha hau, he heb iw, hi hin, ho hmo, hr hrv, ht hat, hu hun, hy hye arm, hz her, ia ina,
id ind in, ie ile, ig ibo, ii iii, ik ipk, io ido, is isl ice, it ita, iu iku ike, ja jpn, jv jav jw, ka kat geo,
kg kon, ki kik, kj kua, kk kaz, kl kal, km khm, kn kan, ko kor, kr kau, ks kas, ku kur kmr, kv kom, kw cor, ky kir,
la lat, lb ltz, lg lug, li lim, ln lin, lo lao, lt lit, lu lub, lv lav lvs, mg mlg plt, mh mah, mi mri mao,
mk mkd mac, ml mal, mn mon khk, mr mar, ms msa may zsm, mt mlt, my mya bur, na nau, nb nob, nd nde, ne nep npi, ng ndo,
nl nld dut, nn nno, no nor, nr nbl, nv nav, ny nya, oc oci, oj oji, om orm gaz, or ori ory, os oss, pa pan, pi pli,
pl pol, ps pus pbt, pt por, qu que quy quz, rm roh, rn run, ro ron rum mo mol, ru rus, rw kin, sa san, sc srd, sd snd,
se sme, sg sag, sh hbs, si sin, sk slk slo, sl slv, sm smo, sn sna, so som, sq sqi alb als, sr srp, ss ssw, st sot,
su sun, sv swe, sw swa swh, ta tam, te tel, tg tgk, th tha, ti tir, tk tuk, tl tgl fil, tn tsn, to ton, tr tur, ts tso,
tt tat, tw twi, ty tah, ug uig, uk ukr, ur urd, uz uzb uzn, ve ven, vi vie, vo vol, wa wln, wo wol, xh xho,
yi yid ydd ji, yo yor, za zha, zh zho chi cmn, zu zul
"""
"""ISO 639-1 codes, and the others of the same language: those of ISO 639-3 and 639-2/B, that of the individual language
by which a macrolanguage is known in corpora (`cmn` for `zh`), and withdrawn ones (`iw`)."""
_BASES = {code: codes[0] for codes in map(str.split, _CODES.split(",")) for code in codes}
CHINESE = ("zh", "yue", "wuu", "gan", "hsn", "hak", "nan", "lzh")
"""Chinese languages, by `base_language`."""
UNSPACED_SENTENCES = (*CHINESE, "ja")
"""Languages without spaces between sentences, by `base_language`."""

NAMES = dict(entry.strip().split(" ", 1) for entry in _NAMES.replace("\n", " ").split(","))

_FREQUENT = """
cs je se na to že jsem není, da jeg det er ikke og på, de der die das und ist nicht ich, en the is to and of you it, es
el los es una no por que, fi on ja ei se hän minä että, fr le la les est je pas une, hu a az nem és hogy egy van, it il
di è che non un sono, nl het een is niet ik dat van, pl nie się to na jest że i, pt o não é um uma eu que, ru я не в что
он и это, sv jag är det inte och att på, tr bir ve bu ben değil çok ne, uk я не що це він і та
"""
FREQUENT = {code: words for code, *words in map(str.split, _FREQUENT.split(","))}
"""Frequent words of languages, in lower case."""


def split_code(code: str) -> tuple[str, str]:
    """The base language of a code, and its script, region or variant in lower case: `zho_Hans` is zh and hans."""
    base, *variants = re.split("[-_]", code.lower())
    return _BASES.get(base, base), "-".join(variants)


def base_language(code: str) -> str:
    """One code for a language: that of ISO 639-1, if there is one, without script and region.

    `zh`, `zh-Hans`, `zho_Hant`, `chi` and `cmn` are all `zh`; `yue`, which has no code in ISO 639-1, is `yue`.

    Args:
        code: A code of ISO 639-1, 639-2 or 639-3, perhaps with subtags (BCP 47), in any case.
    """
    return split_code(code)[0]


def is_language(code: str, wanted: str) -> bool:
    """True if a code names the wanted language, in any script and region unless `wanted` names them."""
    base, variant = split_code(code)
    wanted_base, wanted_variant = split_code(wanted)
    return base == wanted_base and wanted_variant in ("", variant)


def language_name(code: str) -> str:
    """The English name of a language, or its code if it is not listed; `pt-BR` is Portuguese (BR)."""
    name = NAMES.get(base_language(code))
    if name is None:
        return code
    variant = re.split("[-_]", code, maxsplit=1)[1:]
    return f"{name} ({variant[0]})" if variant else name
