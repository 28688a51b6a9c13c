"""Plural forms of languages, as the headers of PO files state them (GNU gettext manual, 11.2.6)."""

from nmt.text.languages import base_language

_SLAVIC = "(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<12 || n%100>14) ? 1 : 2)"
_RULES = {
    "0": (1, "ja ko zh yue wuu gan hsn hak nan lzh vi th id ms lo my km jv"),
    "(n > 1)": (2, "fr oc br tr uz wo ln mg ti am fil tl mi"),
    _SLAVIC: (3, "ru uk be sr hr bs sh"),
    "(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<12 || n%100>14) ? 1 : 2)": (3, "pl"),
    "(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2": (3, "cs sk"),
    "(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2)": (3, "lt"),
    "(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2)": (3, "lv"),
    "(n==1 ? 0 : (n==0 || (n%100>0 && n%100<20)) ? 1 : 2)": (3, "ro"),
    "(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3)": (4, "sl"),
    "(n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4)": (5, "ga"),
    "(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5)": (6, "ar"),
    "(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n==3 ? 3 : n==6 ? 4 : 5)": (6, "cy"),
}
_BY_LANGUAGE = {code: (number, rule) for rule, (number, codes) in _RULES.items() for code in codes.split()}


def plural_forms(language: str) -> tuple[int, str]:
    """The number of plural forms of a language, and the value of the field Plural-Forms.

    Args:
        language: Its code; a language that is not listed has two forms, as English.
    """
    is_brazilian = language.lower().replace("_", "-") == "pt-br"
    number, rule = _BY_LANGUAGE.get("fr" if is_brazilian else base_language(language), (2, "(n != 1)"))
    return number, f"nplurals={number}; plural={rule};"
