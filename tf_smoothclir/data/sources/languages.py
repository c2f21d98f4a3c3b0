"""Language codes, and whether texts look like what they are said to be."""

import collections
import itertools
import re
import unicodedata
from collections.abc import Collection, Iterable

from absl import logging

from tf_smoothclir.utils.errors import input_error

ALL = "all"  # in the place of codes
# Language -> folder in the published archive of WikiCLIR.
PUBLISHED_FOLDERS = {
    **{"ar": "arabic", "ca": "catalan", "cs": "czech", "de": "german", "es": "spanish"},
    **{"fi": "finnish", "fr": "french", "it": "italian", "ja": "japanese", "ko": "korean"},
    **{"nl": "dutch", "nn": "norwegian_(nynorsk)", "no": "norwegian_(bokmal)", "pl": "polish"},
    **{"pt": "portuguese", "ro": "romanian", "ru": "russian", "simple": "simple_english"},
    **{"sv": "swedish", "sw": "swahili", "tl": "tagalog", "tr": "turkish", "uk": "ukrainian"},
    **{"vi": "vietnamese", "zh": "chinese"},
}
NAMES = {folder.partition("_(")[0]: code for code, folder in PUBLISHED_FOLDERS.items()}
NAMES["english"] = "en"
TEXTS_SAMPLED = 200  # of each language, whose alphabet is looked at
_CODE = re.compile(r"([a-z]{2,3})(-[a-z0-9]+)*|simple")
# Codes of two letters; there are thousands of three.
_ISO_639_1 = """
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy
    da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu
    hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb
    lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om
    or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss st su sv
    sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""
_CHARACTERS = 200  # of each of these texts
_MARKUP = re.compile(r"</[a-z][a-z0-9]*>|<[bh]r\s*/?>|&(?:nbsp|amp|quot|[lg]t|#x?[0-9a-f]+);", re.I)
_MOST_MARKED = 0.2  # of the texts that are looked at
_LEAST_SHARE = 0.5  # of the letters, that are of an alphabet of the language
# Alphabet, as Unicode names its letters -> languages that are written in it, and in few others.
_LANGUAGES = {
    "Arabic": ("ar", "fa", "ur"),
    "Armenian": ("hy",),
    "Bengali": ("bn",),
    "CJK": ("zh", "ja"),
    "Cyrillic": ("ru", "uk", "bg", "be", "mk"),
    "Devanagari": ("hi", "mr", "ne"),
    "Georgian": ("ka",),
    "Greek": ("el",),
    "Hangul": ("ko",),
    "Hebrew": ("he",),
    "Hiragana": ("ja",),
    "Katakana": ("ja",),
    "Latin": (
        *("ca", "cs", "da", "de", "en", "es", "et", "eu", "fi", "fr", "hr", "hu", "id", "is"),
        *("it", "la", "lt", "lv", "nl", "nn", "no", "pl", "pt", "ro", "simple", "sk", "sl"),
        *("sv", "sw", "tl", "tr", "vi", "zu"),
    ),
    "Tamil": ("ta",),
    "Telugu": ("te",),
    "Thai": ("th",),
}


def plain_code(language: str) -> str:
    """A code as it is compared: `zh_Hans` is `zh-hans`."""
    return language.strip().lower().replace("_", "-")


def is_code(language: str) -> bool:
    """Whether a language is given as a code of `plain_code`: of ISO 639, perhaps with a script."""
    match = _CODE.fullmatch(language)
    return match is not None and (len(match[1] or "") != 2 or match[1] in _ISO_639_1.split())


def codes_of(flag: str, given: str) -> tuple[str, ...]:
    """The codes that a flag gives, sorted; none for "" and "all"."""
    codes = set(map(plain_code, given.split(","))) - {""}
    if codes == {ALL}:
        return ()
    for code in sorted(codes):
        if not is_code(code):
            known = NAMES.get(code)
            remedy = f"Give --{flag}={known}" if known else "Give one of two letters, such as de"
            raise input_error(f"--{flag}={given}", f"{code} is not an ISO 639 code", remedy)
    return tuple(sorted(codes))


def check_among(flag: str, wanted: Iterable[str], there: Collection[str], where: object) -> None:
    """Checks that languages are among those of a set."""
    if missing := [code for code in wanted if code not in there]:
        present = sorted(filter(None, there))
        raise input_error(
            f"--{flag}={','.join(wanted)}",
            f"{where} has no {'documents' if flag[0] == 'd' else 'queries'} in"
            f" {', '.join(missing)}; available: {', '.join(present) or 'none'}",
            f"Give --{flag}={present[0]} or several, or leave it out for all"
            if present
            else "Choose another directory",
        )


def warn_of_texts(source: str, stream: str, language: str, texts: Collection[str]) -> None:
    """Warns where texts are not in an alphabet of their language, or HTML."""
    marked = [found[0] for found in map(_MARKUP.search, texts) if found]
    if len(marked) > _MOST_MARKED * len(texts):
        logging.warning(
            f"{source}: of the first {len(texts)} {stream}, {len(marked)} have HTML such as"
            f" {marked[0]}, whose letters are read as words. Give texts without it."
        )
    if other := other_alphabet(texts, language):
        side, others = "query" if stream == "queries" else "document", ", ".join(_LANGUAGES[other])
        logging.warning(
            f"{source}: --{side}_language is {language}, but most letters of the {stream} are"
            f" {other} (languages: {others}). If the texts are right, give their language."
        )


def other_alphabet(texts: Iterable[str], language: str) -> str:
    """The alphabet of texts if it is known, and not one of their known language; else ""."""
    primary = language.partition("-")[0]
    expected = {alphabet for alphabet, languages in _LANGUAGES.items() if primary in languages}
    letters = itertools.chain.from_iterable(text[:_CHARACTERS] for text in texts)
    counts = collections.Counter(map(_alphabet, filter(str.isalpha, letters)))
    if not expected or not counts:
        return ""
    if sum(counts[alphabet] for alphabet in expected) >= _LEAST_SHARE * sum(counts.values()):
        return ""
    ((most, _),) = counts.most_common(1)
    return most if most in _LANGUAGES else ""


def _alphabet(letter: str) -> str:
    first = unicodedata.name(letter, "").partition(" ")[0]
    return "CJK" if first == "CJK" else first.capitalize()
