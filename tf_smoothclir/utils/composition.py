"""Letters and the marks after them as one character: what Unicode composes (NFC), by a table.

`é` may be written as one character or as `e` and an accent. Both are the same letter, so texts are
composed before they are split into words: here, and in the same way in graphs
(`text.tokenizer.compose`). Only neighbours are composed, so a mark that stands in an unusual order
stays as it is.
"""

from __future__ import annotations

import functools
import re
import unicodedata

# Where characters are that have a composition of two others; Hangul is composed by arithmetic.
_RANGES = range(0xC0, 0x3100), range(0x11000, 0x11A00)
MOST_MARKS = 3  # that one character takes up, as Greek vowels do
LEADS, VOWELS, TAILS = (0x1100, 0x1113), (0x1161, 0x1176), (0x11A8, 0x11C3)  # of Hangul
SYLLABLES = (0xAC00, 0xD7A4)


@functools.cache
def pairs() -> dict[tuple[int, int], int]:
    """Two code points -> the one that they are composed to."""
    found = {}
    for code in (code for codes in _RANGES for code in codes):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            first, second = (int(part, 16) for part in parts)
            if unicodedata.normalize("NFC", chr(first) + chr(second)) == chr(code):
                found[first, second] = code
    return found


@functools.cache
def marks() -> str:
    """A class of characters, for regular expressions, that may be composed with one before them."""
    seconds = {second for _, second in pairs()}
    for begin, end in (VOWELS, TAILS):
        seconds.update(range(begin, end))
    return "".join(map(chr, sorted(seconds)))


@functools.cache
def _mark() -> re.Pattern:
    return re.compile(f"[{marks()}]")


def has_marks(text: str) -> bool:
    """Whether there may be something to compose."""
    return not text.isascii() and bool(_mark().search(text))


def compose(text: str) -> str:
    """A text whose letters are composed with the marks after them."""
    codes: list[int] = []
    for code in map(ord, text):
        both = _composed(codes[-1], code) if codes else 0
        if both:
            codes[-1] = both
        else:
            codes.append(code)
    return "".join(map(chr, codes))


def _composed(first: int, second: int) -> int:
    """The code point of two; 0 if there is none."""
    if LEADS[0] <= first < LEADS[1] and VOWELS[0] <= second < VOWELS[1]:
        number = (first - LEADS[0]) * (VOWELS[1] - VOWELS[0]) + second - VOWELS[0]
        return SYLLABLES[0] + number * (TAILS[1] - TAILS[0] + 1)
    is_open = (first - SYLLABLES[0]) % (TAILS[1] - TAILS[0] + 1) == 0
    if SYLLABLES[0] <= first < SYLLABLES[1] and is_open and TAILS[0] <= second < TAILS[1]:
        return first + second - TAILS[0] + 1
    return pairs().get((first, second), 0)
