"""Tokens of many scripts by hand, hazards of bytes, and what holds for any text."""

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
from tf_smoothclir.text.tokenizer import tokenize

SPACES = " \t\n\r\0\x1f\x7f\x85\xa0\u1680\u2003\u2028\u2029\u3000\u200b"
INVISIBLE = "\u0640\u064e\u05b8\xad\u200c\u200d\u200e\u2060\ufeff\ue000\ufdd0\uffff\U0010fffe"


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
    "full width": ("ＡＢ１２！ Ｉ\u3000カ", ["ab", "12", "！", "i", "カ"]),
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
    "thai vowels one after another, or with a tone": ("เเก จะ รั่ว", ["เเก", "จะ", "รั่ว"]),
    "thai am in two characters": ("น้ำ น\u0e49\u0e4d\u0e32 น\u0e4d\u0e49\u0e32", ["น้ำ"] * 3),
    "lao": ("ພາສາລາວ ຄົນ", ["ພາ", "ພາສາ", "ສາ", "ສາລາ", "ລາ", "ລາວ", "ວ", "ຄົນ"]),
    "lao vowels before and after": ("ເວລາ ວັນ", ["ເວ", "ເວລາ", "ລາ", "ວັນ"]),
    "khmer, consonants below others": ("ខ្មែរ", ["ខ្មែ", "ខ្មែរ", "រ"]),
    "myanmar, consonants that end a syllable": (
        "ကောင်းကင် အင်္ဂလိပ်",
        ["ကောင်း", "ကောင်းကင်", "ကင်", "အင်္ဂ", "အင်္ဂလိပ်", "လိပ်"],
    ),
    "myanmar, a tone before the sign that ends a syllable": ("ခွင့်", ["ခွင့်"]),
    "myanmar, signs that end sentences": ("ကို။", ["ကို", "။"]),
    "telugu, consonants without a vowel": ("ప్రకట్టి", ["ప్ర", "ప్రకట్", "కట్", "కట్టి", "టి"]),
    "telugu, three consonants without a vowel between": ("స్త్రీ", ["స్త్రీ"]),
    "kannada": ("ಕನ್ನಡ", ["ಕನ್", "ಕನ್ನ", "ನ", "ನಡ", "ಡ"]),
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
    "digits": ("3,14 10kg a٣ ²", ["3", ",", "14", "10", "kg", "a", "3", "²"]),
    "underscores": ("snake_case _x", ["snake", "case", "x"]),
}


@cases("read", tokens, tokens_of)
@cases("text, expected", *SCRIPTS.values(), ids=SCRIPTS.keys())
def test_all_readers_have_one_table_of_scripts(text, expected, read):
    assert read(text) == expected
    assert read(unicodedata.normalize("NFC", text)) == expected
    assert read(unicodedata.normalize("NFD", text)) == expected


def test_changed_tokens_are_not_taken_from_the_cache_of_before():
    of_scripts = [[text, *tokens_of(text)] for text, _ in SCRIPTS.values()]
    digest = hashlib.sha256(json.dumps(of_scripts).encode()).hexdigest()[:8]
    assert (token_cache._FORMAT, digest) == (9, "0854aa0b"), "other tokens, or texts, need another"


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


@settings(max_examples=150)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_token_contains_white_space_and_the_joined_tokens_are_the_same_again(text):
    once = [token for token in tokens(text) if not is_pair(token)]
    assert tokens(" ".join(once)) == once
    for token in once:
        assert token.split() == [token]
        assert "\0" not in token
