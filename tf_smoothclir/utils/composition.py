"""One form of characters that Unicode has several of, and what is one character of a script.

`é` may be written as one character or as `e` and an accent, `A` and `カ` in full or half width,
`fi` and Arabic letters as they look in print, `7` as ٧ or ७. These are the same letters and
numbers, so texts are composed before they are split into words: here, and in the same way in
graphs (`text.tokenizer.compose`). Russian words may have a stress mark, which nobody types.
"""

import functools
import re
import unicodedata

# Where characters are that have a composition of two others; Hangul is composed by arithmetic.
_RANGES = range(0xC0, 0x3100), range(0x11000, 0x11A00)
# Forms for print and for other encodings: CJK, Latin, Hebrew, Arabic, full and half width.
_FORMS = range(0xF900, 0xFFF0), range(0x2F800, 0x2FA20)
# Decimal digits of other scripts; every Unicode since 2010 has the same ones there.
_DIGITS = range(0x660, 0xAC00)
# Dictionaries, encyclopaedias and books for learners mark the stress of Cyrillic words.
_CYRILLIC, _STRESSES = range(0x400, 0x530), (0x300, 0x301)
# Malayalam consonants without a vowel, which older texts write in two characters.
_CHILLU = dict(zip("\u0d7a\u0d7b\u0d7c\u0d7d\u0d7e\u0d7f", "\u0d23\u0d28\u0d30\u0d32\u0d33\u0d15"))
# What is one letter, whatever the locale of the process and the letters around it.
FOLDED = (("Iİı", "i"), ("Σς", "σ"), ("ßẞ", "ss"))
# Letters that Arabic and Persian keyboards and habits have in several forms: alef with or without
# hamza, yeh with or without dots, kaf. Lucene's normalizers of both languages do the same.
ARABIC = (("\u0622\u0623\u0625\u0671", "\u0627"), ("\u0649\u06cc", "\u064a"), ("\u06a9", "\u0643"))
# Thai and Lao `am` in two characters, between which a tone mark may stand.
AM = (
    ("\u0e4d([\u0e48-\u0e4b]?)\u0e32", "\\1\u0e33"),
    ("\u0ecd([\u0ec8-\u0ecb]?)\u0eb2", "\\1\u0eb3"),
)
DOTTED = (
    "([i\uff29\uff49])\u0307+"  # an `i` has its dot; lower-casing may have given it another one
)
_FOLDED = str.maketrans({character: to for group, to in FOLDED for character in group})
LEADS, VOWELS, TAILS = (0x1100, 0x1113), (0x1161, 0x1176), (0x11A8, 0x11C3)  # of Hangul
SYLLABLES = (0xAC00, 0xD7A4)


@functools.cache
def pairs() -> dict[tuple[int, int], int]:
    """Two code points -> the one that they are composed to."""
    composed = {}
    for code in (code for codes in _RANGES for code in codes):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            first, second = (chr(int(part, 16)) for part in parts)
            if unicodedata.normalize("NFC", first + second) != chr(code):
                continue
            composed[ord(first), ord(second)] = code
            letter, *accents = unicodedata.normalize("NFD", chr(code))
            if len(accents) == 2:  # some keyboards give them in the other order
                swapped = unicodedata.normalize("NFC", letter + accents[1])
                if unicodedata.normalize("NFC", swapped + accents[0]) == chr(code) != swapped:
                    composed[ord(swapped[0]), ord(accents[0])] = code
    for (small, mark), code in list(composed.items()):
        capital = chr(small).upper()  # of which Unicode has none with that mark
        if len(capital) == 1 and chr(code).lower() == chr(code) != chr(code).upper():
            composed.setdefault((ord(capital), mark), code)
    for code in _CYRILLIC:
        for stress in _STRESSES:
            composed.setdefault((code, stress), code)
    return composed


@functools.cache
def forms() -> dict[int, str]:
    """A code point -> the characters that stand for it: NFC of letters, NFKC of forms for print."""
    # Punctuation stays as it is, which every Chinese text has in full width: it says nothing.
    digits = {code: unicodedata.decimal(chr(code), None) for code in _DIGITS}
    plain = {code: str(digit) for code, digit in digits.items() if digit is not None}
    plain.update({ord(chillu): f"{letter}\u0d4d" for chillu, letter in _CHILLU.items()})
    for kind, ranges in (("NFC", _RANGES), ("NFKC", _FORMS)):
        for character in (chr(code) for codes in ranges for code in codes):
            text = unicodedata.normalize(kind, character).lower()
            says_something = any(unicodedata.category(c)[0] in "LMN" for c in text)
            if text != character.lower() and says_something and " " not in text:
                plain[ord(character)] = text
    return plain


@functools.cache
def marks() -> str:
    """A class of characters, for regular expressions, that `compose` may change."""
    seconds = {second for _, second in pairs()} | forms().keys()
    for begin, end in (VOWELS, TAILS):
        seconds.update(range(begin, end))
    return "".join(map(chr, sorted(seconds)))


@functools.cache
def _mark() -> re.Pattern:
    # Sets of higher characters are slow, but for ranges.
    low = "".join(character for character in marks() if character < "\U00010000")
    return re.compile(f"[{low}]|[\U00011000-\U00011a00\U0002f800-\U0002fa1f]")


def has_marks(text: str) -> bool:
    """Whether `compose` may change a text."""
    return not text.isascii() and bool(_mark().search(text))


def compose(text: str) -> str:
    """A text without forms for print, whose letters are composed with the marks after them."""
    plain = re.sub(DOTTED, r"\1", text.translate(_FOLDED)).translate(forms())
    return _marked().sub(_composed_in, plain)


@functools.cache
def _marked() -> re.Pattern:
    return re.compile(f".?(?:{_mark().pattern})+", re.DOTALL)


def _composed_in(marked: re.Match) -> str:
    """A character with the marks after it, as few of them as there can be."""
    codes: list[int] = []
    for code in map(ord, marked[0]):
        both = _composed(codes[-1], code) if codes else 0
        if both:
            codes[-1] = both
        else:
            codes.append(code)
    return "".join(map(chr, codes))


def _composed(first: int, second: int) -> int:
    """The code point of two; 0 if there is none."""
    if LEADS[0] <= first < LEADS[1] and VOWELS[0] <= second < VOWELS[1]:
        syllable = (first - LEADS[0]) * (VOWELS[1] - VOWELS[0]) + second - VOWELS[0]
        return SYLLABLES[0] + syllable * (TAILS[1] - TAILS[0] + 1)
    is_open = (first - SYLLABLES[0]) % (TAILS[1] - TAILS[0] + 1) == 0
    if SYLLABLES[0] <= first < SYLLABLES[1] and is_open and TAILS[0] <= second < TAILS[1]:
        return first + second - TAILS[0] + 1
    return pairs().get((first, second), 0)


def cluster(character: str, mark: str, ignored: str = "") -> str:
    """A regular expression for what is one character to readers of scripts without spaces."""
    # Arguments are regular expressions for a character of such a script, a mark, and any number of
    # characters that may stand anywhere.
    mark = f"{mark}{ignored}"
    # Thai and Lao write some vowels before the consonant and others after it, and some always have
    # a second consonant after them.
    lao = "\u0e81\u0e82\u0e84\u0e86-\u0e8a\u0e8c-\u0ea3\u0ea5\u0ea7-\u0eae\u0edc-\u0edf"
    consonant = f"[\u0e01-\u0e2e{lao}]"
    before = f"[\u0e40-\u0e44\u0ec0-\u0ec4]{ignored}"
    after = f"[\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3]{ignored}"
    closed = (
        f"[\u0e31\u0e37\u0eb1\u0ebb]{ignored}(?:[\u0e48-\u0e4b\u0ec8-\u0ecb]{ignored})?"
        f"{consonant}{ignored}"
    )
    thai = f"(?:{before})*{consonant}{ignored}(?:{closed}|{after}|{mark})*"
    # Others have signs for a consonant without a vowel. It belongs to the consonant after it where
    # a syllable begins, in Khmer and Myanmar also elsewhere, and to the syllable that it ends.
    silent, stacked = "\u0bcd\u0c4d\u0ccd\u0d4d", "\u1039\u17d2"
    begins = f"[{silent}{stacked}]{ignored}{character}{ignored}"
    below = f"[{stacked}]{ignored}{character}{ignored}"
    final = f"{character}{ignored}(?:\u1037{ignored})?[{silent}\u103a]{ignored}"
    return f"(?:{thai}|{character}{ignored}(?:{begins})*(?:{below}|{final}|{mark})*)"
