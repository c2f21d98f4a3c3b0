"""Language codes, and whether texts are in an alphabet that their language is written in."""

from __future__ import annotations

import collections
import itertools
import re
import unicodedata
from collections.abc import Iterable

from absl import logging

from tf_smoothclir.data.sources.source import Source
from tf_smoothclir.utils.errors import input_error

_CODE = re.compile(r"[a-z]{2,3}([-_][A-Za-z0-9]+)*|simple")
_TEXTS, _CHARACTERS = 200, 200  # that are looked at, and of each of them
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


def check_code(flag: str, language: str, codes: dict[str, str]) -> None:
    """Checks that a language is given as a code."""
    if _CODE.fullmatch(language):
        return
    known = codes.get(language.lower())
    remedy = f"Give --{flag}={known}" if known else "Give one of two letters, such as de for German"
    raise input_error(f"--{flag}={language}", "this is not an ISO 639-1 code", remedy)


def warn_of_alphabets(source: Source) -> None:
    """Warns where the first queries or documents are not in an alphabet of their language."""
    for stream, language in (
        ("queries", source.query_language),
        ("documents", source.document_language),
    ):
        texts = (text.text for text in itertools.islice(getattr(source, stream)(), _TEXTS))
        if other := other_alphabet(texts, language):
            flag = "query_language" if stream == "queries" else "document_language"
            logging.warning(
                "%s: --%s is %s, but most letters of the %s are %s (languages: %s). If the texts"
                " are right, give their language.",
                source.name,
                flag,
                language,
                stream,
                other,
                ", ".join(_LANGUAGES[other]),
            )


def other_alphabet(texts: Iterable[str], language: str) -> str:
    """The alphabet of texts if it is known, and not one of their known language; else ""."""
    own = {alphabet for alphabet, languages in _LANGUAGES.items() if language in languages}
    letters = itertools.chain.from_iterable(text[:_CHARACTERS] for text in texts)
    counts = collections.Counter(map(_alphabet, filter(str.isalpha, letters)))
    if not own or not counts:
        return ""
    if sum(counts[alphabet] for alphabet in own) >= _LEAST_SHARE * sum(counts.values()):
        return ""
    ((most, _),) = counts.most_common(1)
    return most if most in _LANGUAGES else ""


def _alphabet(letter: str) -> str:
    first = unicodedata.name(letter, "").partition(" ")[0]
    return "CJK" if first == "CJK" else first.capitalize()
