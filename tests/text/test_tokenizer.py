"""Tokens of many scripts, hazards of bytes, and a plain-Python oracle over random texts."""

import functools
import hashlib
import json
import unicodedata

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import cases
from tf_smoothclir.data import token_cache
from tf_smoothclir.encoder.tokenizer import is_pair, tokens_of
from tf_smoothclir.text.tokenizer import tokenize, tokenized_lines

SETTINGS = settings(deadline=None, max_examples=150, derandomize=True)
SPACES = " \t\n\r\0\x1f\x7f\x85\xa0\u1680\u2003\u2028\u2029\u3000\u200b"
INVISIBLE = "\u0640\u064e\u05b8\xad\u200c\u200d\u200e\u2060\ufeff\ue000\ufdd0\uffff\U0010fffe"
# Characters that every Unicode version since 3.2 has, from blocks of one script each. Outside of
# them ICU, RE2 and Python may differ in version: newer characters, the ~40 code points that
# tf.strings.lower and str.lower treat differently, and characters shared by several scripts.
UNSPACED = "漢字日本語一ぁあんアカン한국글"
CLUSTERED = "กคาำะเโลວາເកខကခငకరகനൻአ"
SILENT, STACKED = "\u0bcd\u0c4d\u0d4d", "\u1039\u17d2"
THAI_MARKS, LAO_MARKS = "\u0e31\u0e48\u0e4d", "\u0eb1\u0ec8\u0ecd"
CLUSTER_MARKS = f"{THAI_MARKS}{LAO_MARKS}\u1037\u103a\u102c\u17c6\u0c3f{SILENT}{STACKED}"
WORD = "azAZäÄßéÉñŁłøжЖяЯёαΩλاالبשלक09_²½٣"
MARKS = "\u0301\u0308\u093f"
VISIBLE = ".,;:!?'\"()[]{}<>@#$%&*+-/=~^|«»„“…—、。،؟।€©→∑♥👍"
TEXTS = st.one_of(
    st.text(st.sampled_from(UNSPACED + WORD + MARKS + VISIBLE + SPACES + INVISIBLE)),
    st.text(st.sampled_from(CLUSTERED + CLUSTER_MARKS * 2 + "\u200d \u0301,a漢")),
)


@tf.function(input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([], tf.int32)])
def tokens_in_graph(texts, max_tokens):
    return tokenize(texts, max_tokens)


def tokens(text, max_tokens=1_000_000) -> list[str]:
    ragged = tokens_in_graph(tf.constant([text], tf.string), max_tokens)
    return [token.decode("utf-8") for token in ragged.flat_values.numpy().tolist()]


SCRIPTS = {
    "english": ("The Cat's hat.", ["the", "cat", "'", "s", "hat", "."]),
    "german": ("Straße STRASSE STRAẞE ÜBER", ["strasse"] * 3 + ["über"]),
    "decomposed accents are those of letters": ("E\u0301te\u0301", ["été"]),
    "several accents": ("vie\u0323\u0302t ỆE\u0323\u0302 α\u0313\u0300\u0345", ["việt", "ệệ", "ᾂ"]),
    "several accents in another order": ("ê\u0323 Ê\u0323 α\u0345\u0301", ["ệ", "ệ", "\u1fb4"]),
    "accents that no letter has stay in the word": ("x\u0301e\u0301", ["x\u0301é"]),
    "decomposed hangul": ("\u1112\u1161\u11ab\u1100\u116e", ["한", "한구", "구"]),
    "a variation selector": ("\u2764\ufe0f a\ufe00b 葛\U000e0100", ["\u2764", "ab", "葛"]),
    "full width": ("ＡＢ１２！ Ｉ\u3000カ", ["ab12", "！", "i", "カ"]),
    "half width": ("ｶﾞｲﾄﾞ ﾡￂ", ["ガ", "ガイ", "イ", "イド", "ド", "가"]),
    "ligatures": ("ﬁn ﬀ ﬆ ﬓ", ["fin", "ff", "st", "մն"]),
    "digits of other scripts": ("٢٠٢٤ ۱۲ १२३ ๗ป 7", ["2024", "12", "123", "7", "ป", "7"]),
    "characters like others": ("Ωm K \u1f71 \uf900 \u0958", ["ωm", "k", "ά", "豈", "\u0915\u093c"]),
    "turkish": ("İI ısı İ\u0301 i\u0307\u0307\u0301", ["ii", "isi", "í", "í"]),
    "greek": ("ΟΔΟΣ οδος Άγιος", ["οδοσ", "οδοσ", "άγιοσ"]),
    "capitals that have no form with their accents": (
        "ΤΑΪ\u0301ΖΩ ταΐζω ΠΟΛΥ\u0308\u0301 Α\u0342 J\u030c",
        ["ταΐζω", "ταΐζω", "πολΰ", "ᾶ", "ǰ"],
    ),
    "arabic": ("السَّلام، عليكم؟ ســـلام", ["السلام", "،", "عليكم", "؟", "سلام"]),
    "arabic in print": ("ﺳﻼﻡ ﷲ", ["سلام", "الله"]),
    "arabic, alef with and without hamza": ("ا\u064e\u0654 \u0623 \u0622 \u0625", ["ا"] * 4),
    "yeh and kaf of arabic and persian": ("علی على علي کتاب كتاب", ["علي"] * 3 + ["كتاب"] * 2),
    "russian, with stress marks": ("Росси\u0301я й и\u0306 ѓ", ["россия", "й", "й", "ѓ"]),
    "hebrew": ("שָׁלוֹם עוֹלָם \ufb2a", ["שלום", "עולם", "ש"]),
    "zero widths": ("Do\xadnau da\u200dm\ufeffpf\u200bschiff", ["donau", "dampf", "schiff"]),
    "devanagari with marks": ("नमस्ते दुनिया।", ["नमस्ते", "दुनिया", "।"]),
    "thai, consonants with their vowels and tones": (
        "กำลังดี",
        ["กำ", "กำลัง", "ลัง", "ลังดี", "ดี"],  # after `ั`, a consonant ends the syllable
    ),
    "thai vowels of two parts": ("เขาเรือ แ", ["เขา", "เขาเรือ", "เรือ", "แ"]),
    "thai am in two characters": ("น้ำ น\u0e49\u0e4d\u0e32 น\u0e4d\u0e49\u0e32", ["น้ำ"] * 3),
    "lao": ("ພາສາລາວ ຄົນ", ["ພາ", "ພາສາ", "ສາ", "ສາລາ", "ລາ", "ລາວ", "ວ", "ຄົນ"]),
    "khmer, consonants below others": ("ខ្មែរ", ["ខ្មែ", "ខ្មែរ", "រ"]),
    "myanmar, consonants that end a syllable": (
        "ကောင်းကင် အင်္ဂလိပ်",
        ["ကောင်း", "ကောင်းကင်", "ကင်", "အင်္ဂ", "အင်္ဂလိပ်", "လိပ်"],
    ),
    "myanmar, signs that end sentences": ("ကို။", ["ကို", "။"]),
    "telugu, consonants without a vowel": ("ప్రకట్టి", ["ప్ర", "ప్రకట్", "కట్", "కట్టి", "టి"]),
    "tamil": ("அவன்", ["அ", "அவன்", "வன்"]),
    "malayalam, consonants in one or two characters": (
        "അവൻ അവന\u0d4d\u200d",
        ["അ", "അവന\u0d4d", "വന\u0d4d"] * 2,
    ),
    "ethiopic": ("ከመ፡እኔ።", ["ከ", "ከመ", "መ", "፡", "እ", "እኔ", "ኔ", "።"]),
    "han": ("東京タワー。", ["東", "東京", "京", "京タ", "タ", "タワ", "ワ", "ワー", "ー", "。"]),
    "han, spaces, marks": ("東 京、都\u200b市　区", ["東", "京", "、", "都", "市", "区"]),
    "kana with a decomposed voice mark": ("か\u3099な", ["が", "がな", "な"]),
    "a joiner between a character and its mark": ("か\u200d\u3099な", ["が", "がな", "な"]),
    "a joiner behind punctuation": (",\u200d\u0301a", [",", "\u0301a"]),
    "a joiner before punctuation": ("a\u200d, b", ["a", ",", "b"]),
    "a zero-width space, not a mark, ends a word": ("ΑΣ\u200bΑ", ["ασ", "α"]),
    "han in letters": ("Tシャツabc漢x", ["t", "シ", "シャ", "ャ", "ャツ", "ツ", "abc", "漢", "x"]),
    "hangul, by syllables": ("한국어 위키", ["한", "한국", "국", "국어", "어", "위", "위키", "키"]),
    "emoji": ("ok👍🏽!", ["ok", "👍", "🏽", "!"]),
    "emoji joined into a family": ("👩\u200d👧", ["👩", "👧"]),
    "digits and underscores": ("3,14 and ٣ ² _x_", ["3", ",", "14", "and", "3", "²", "_x_"]),
}


def lines(text):
    return next(tokenized_lines([text], 1_000_000)).split()


@cases("read", tokens, tokens_of, lines)
@cases("text, expected", *SCRIPTS.values(), ids=SCRIPTS.keys())
def test_all_readers_have_one_table_of_scripts(text, expected, read):
    assert read(text) == expected
    assert read(unicodedata.normalize("NFC", text)) == expected
    assert read(unicodedata.normalize("NFD", text)) == expected


def test_changed_tokens_are_not_taken_from_the_cache_of_before():
    of_scripts = [[text, *tokens_of(text)] for text, _ in SCRIPTS.values()]
    digest = hashlib.sha256(json.dumps(of_scripts).encode()).hexdigest()[:8]
    assert (token_cache._FORMAT, digest) == (8, "48fb9cb9"), "other tokens, or texts, need another"


def test_white_space_separates_and_invisible_characters_vanish():
    for space in (*SPACES, "\r\n"):
        assert tokens(f"{space}a{space}{space}b{space}") == ["a", "b"]
    for invisible in INVISIBLE:
        assert tokens(f"{invisible}a{invisible}b{invisible}") == ["ab"]
    for text in ("", "\t\n \u3000", "\0", "\ufeff", "\u200b\u200d"):
        assert tokens(text) == []
    assert tokens("a\0B c\0") == ["a", "b", "c"]  # tf.strings.lower alone would drop the rest


@cases(
    "raw, expected",
    (b"caf\xe9 au", ["caf", "\ufffd", "au"]),  # Latin-1
    (b"cut \xe6\x97", ["cut", "\ufffd"]),  # the first two bytes of three
    (b"\xed\xa0\x80", ["\ufffd"] * 3),  # an encoded surrogate
    (b"\xffA\xa0\0B", ["\ufffd", "a", "\ufffd", "b"]),
)
def test_invalid_utf8_becomes_a_token_and_never_an_error(raw, expected):
    assert tokens(raw) == expected


def test_a_megabyte_of_text():
    assert tokens("Wörter " * 150_000, 7) == ["wörter"] * 7
    assert tokens("x" * (1 << 20)) == ["x" * (1 << 20)]  # one word
    assert len(tokens("漢" * 350_000)) == 350_000 + 349_999  # one run, and its neighbours


@cases("max_tokens", 1, 3, 4, 5)
def test_max_tokens_cuts_each_text_by_itself(max_tokens):
    ragged = tokens_in_graph(tf.constant(["a b c d", "", "e", " 漢字x ", ""]), max_tokens)
    whole = [["a", "b", "c", "d"], [], ["e"], ["漢", "漢字", "字", "x"], []]
    found = [[t.decode() for t in row] for row in ragged.to_list()]
    assert found == [row[:max_tokens] for row in whole]
    lengths = [min(len(row), max_tokens) for row in whole]
    assert ragged.row_lengths().numpy().tolist() == lengths
    assert ragged.value_rowids().numpy().tolist() == np.repeat(range(5), lengths).tolist()
    assert tokens_in_graph(tf.zeros([0], tf.string), max_tokens).to_list() == []


def with_next(letters, mark):
    """Letters and one more character, which becomes one with the last where Unicode has one."""
    both = unicodedata.normalize("NFC", "".join(letters[-1:]) + mark)
    return [*letters[:-1], both] if letters and len(both) == 1 else [*letters, mark]


def end_of_cluster(text: str, begin: int) -> int:
    """Where a character of an unspaced script ends, with what is written together with it."""

    def has(place, *characters):
        return place < len(text) and text[place] in "".join(characters)

    def has_one(place):
        return has(place, UNSPACED, CLUSTERED, CLUSTER_MARKS)

    def is_mark(place):
        return place < len(text) and unicodedata.category(text[place])[0] == "M"

    end = begin
    while has(end, "เโ", "ເ"):
        end += 1
    is_thai = has(end, "กคล", "ວ")
    end = end + 1 if is_thai else begin + 1
    while not is_thai and has(end, SILENT, STACKED) and has_one(end + 1):
        end += 2
    while end < len(text):
        closing = end + 1 + has(end + 1, "\u0e48", "\u0ec8")
        final = end + 1 + has(end + 1, "\u1037")
        if is_thai and has(end, "\u0e31", "\u0eb1") and has(closing, "กคล", "ວ"):
            end = closing + 1
        elif not is_thai and has(end, STACKED) and has_one(end + 1):
            end += 2
        elif not is_thai and has_one(end) and has(final, SILENT, "\u103a"):
            end = final + 1
        elif is_mark(end) or (is_thai and has(end, "าำะ", "າ")):
            end += 1
        else:
            break
    return end


def plain_tokens(text: str) -> list[str]:
    """The definition in the module's docstring, character by character."""
    found, open_word = [], None  # open_word: None, "word", or "single" that a neighbour may follow
    after = []  # places of characters that stand directly after another one
    text = "".join(c for c in text if c not in INVISIBLE)
    text = "".join(functools.reduce(with_next, text, []))
    text = text.lower().replace("ß", "ss").replace("٣", "3").replace("ൻ", "ന\u0d4d")
    end = 0
    while (begin := end) < len(text):
        character, end = text[begin], begin + 1
        category = unicodedata.category(character)
        if category[0] == "Z" or category == "Cc" or character == "\u200b":
            open_word = None
        elif character in UNSPACED + CLUSTERED + CLUSTER_MARKS:
            if open_word == "single":
                after.append(len(found))
            end = end_of_cluster(text, begin)
            found.append(text[begin:end])
            for am in ("\u0e4d\u0e32", "\u0e4d\u0e48\u0e32", "\u0ecd\u0eb2", "\u0ecd\u0ec8\u0eb2"):
                one = am[1:-1] + {"\u0e32": "\u0e33", "\u0eb2": "\u0eb3"}[am[-1]]
                found[-1] = found[-1].replace(am, one)
            open_word = "single"
        elif category[0] in "LMN" or character == "_":
            if open_word == "word":
                found[-1] += character
            else:
                found.append(character)
            open_word = "word"
        else:
            found.append(character)
            open_word = None
    for place in reversed(after):
        found.insert(place, found[place - 1] + found[place])
    return found


@SETTINGS
@given(TEXTS)
def test_agrees_with_the_plain_oracle(text):
    assert tokens(text) == plain_tokens(text)


@SETTINGS
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_token_contains_white_space_and_the_joined_tokens_are_the_same_again(text):
    once = [token for token in tokens(text) if not is_pair(token)]
    assert tokens(" ".join(once)) == once
    for token in once:
        assert token.split() == [token]
        assert "\0" not in token
