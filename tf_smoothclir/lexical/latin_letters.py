"""Letters as they are compared in unknown words: without accents, and those of other scripts as
Latin ones.

Names are spelled alike in most scripts: `Минск` is `Minsk`, and `ქაბული` nearly `Kabul`. So each
letter of an alphabet has the Latin letter that it most often stands for in names. One letter stands
for one, so that `ш` is `s`: words are compared by trigrams, which do not need to be equal.
"""

import unicodedata

import numpy as np

MARKS = 0x300, 0x370  # code points that no word is compared by: accents, and silence
_NONE = "-"  # in the place of letters without a sound
_INDIC = (  # from the first sign of nine scripts of India on, which are in one order
    "nnn-a" + "aaiiuurleeeaoooo" + "kkggnccjjnttddnttddnnppbbmyrrlllvsssh" + "----"  # letters
    "aiiuurreeeaoooo" + "-----------" + "kkgzdrfy"  # vowel signs, and letters with a dot
)
# The first code point of letters in a row -> the Latin letter of each.
_LATIN = {
    ord("α"): "avgdezitiklmnxoprsstyfhpo",
    ord("а"): "abvgdezziiklmnoprstufhccss-y-eua" + "eedgeziijlnckiud",  # and of other languages
    ord("ґ"): "g",
    ord("ա"): "abgdezeetzilhtkhdgcmynsocpjrsvtrcupkof",
    ord("א"): "abgdhvzhtykklmmnnsappttkrst",
    ord("ء"): "-aaoiiabhttjhkddrzsssdtzag" + "------" + "fqklmnhoai",
    **dict(zip(map(ord, "ٹپچڈڑژکگںھہیے"), "tpcdrzkgnhhie")),  # Persian and Urdu
    ord("ა"): "abgdevztiklmnopzrstupkgksccdtchjh",
    **dict.fromkeys(range(0x900, 0xD80, 0x80), _INDIC),
}
# By sounds, vowels do not count, which Arabic and Hebrew leave out, nor do consonants that many
# languages do not tell apart.
_SOUNDS = dict(zip("aeiouyhcqzwf", "-------kksvp"))


def _letters() -> np.ndarray:
    """Code point -> that of the letter as it is compared; all after these stay as they are."""
    latin = {ord(letter): ord(plain) for letter, plain in zip("đłø", "dlo")}
    for first, letters in _LATIN.items():
        for code, letter in enumerate(letters, start=first):
            latin[code] = MARKS[0] if letter == _NONE else ord(letter)
    plain = [ord(unicodedata.normalize("NFD", chr(code))[0]) for code in range(0x2000)]
    # Two vowel signs are another one in some scripts, so a code has its own letter first.
    return np.array([latin.get(code, latin.get(one, one)) for code, one in enumerate(plain)])


LETTERS = _letters()
SOUNDS = LETTERS.copy()
for _letter, _sound in _SOUNDS.items():
    SOUNDS[ord(_letter) == LETTERS] = MARKS[0] if _sound == _NONE else ord(_sound)
