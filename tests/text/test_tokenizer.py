"""Tokens of many scripts, hazards of bytes, and a plain-Python oracle over random texts."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_smoothclir.text.tokenizer import normalize, tokenize, tokenized_lines

SETTINGS = settings(deadline=None, max_examples=150, derandomize=True)


@tf.function(input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([], tf.int32)])
def tokens_in_graph(texts, max_tokens):
    return tokenize(texts, max_tokens)


def tokens(text, max_tokens=1_000_000) -> list[str]:
    ragged = tokens_in_graph(tf.constant([text], tf.string), max_tokens)
    return [token.decode("utf-8") for token in ragged.flat_values.numpy().tolist()]


SCRIPTS = {
    "english": ("The Cat's hat.", ["the", "cat", "'", "s", "hat", "."]),
    "german": ("Straße ÜBER Öl", ["straße", "über", "öl"]),
    "french": ("L'ÉTÉ à Nîmes", ["l", "'", "été", "à", "nîmes"]),
    "decomposed accents stay in the word": ("E\u0301te\u0301", ["e\u0301te\u0301"]),
    "turkish capital i": ("İI", ["i\u0307i"]),
    "cyrillic": ("Москва, РОССИЯ", ["москва", ",", "россия"]),
    "greek with the final sigma": ("ΟΔΟΣ Άγιος", ["οδος", "άγιος"]),
    "arabic": ("السَّلام، عليكم؟", ["السَّلام", "،", "عليكم", "؟"]),
    "hebrew with points": ("שָׁלוֹם עוֹלָם", ["שָׁלוֹם", "עוֹלָם"]),
    "devanagari with marks": ("नमस्ते दुनिया।", ["नमस्ते", "दुनिया", "।"]),
    "thai, one character with its marks": ("กำลังดี", ["ก", "ำ", "ลั", "ง", "ดี"]),
    "lao": ("ລາວ", ["ລ", "າ", "ວ"]),
    "han": ("東京タワー。", ["東", "京", "タ", "ワ", "ー", "。"]),
    "kana with a decomposed voice mark": ("か\u3099な", ["か\u3099", "な"]),
    "a joiner between a character and its mark": ("か\u200d\u3099な", ["か\u3099", "な"]),
    "a joiner behind punctuation": (",\u200d\u0301a", [",", "\u0301a"]),
    "a joiner before punctuation": ("a\u200d, b", ["a", ",", "b"]),
    "a zero-width space, not a mark, ends a word": ("ΑΣ\u200bΑ", ["ας", "α"]),
    "private use inside a word ends no sigma": ("ΑΣ\ue000Α", ["αςα"]),
    "han between letters": ("Tシャツabc漢x", ["t", "シ", "ャ", "ツ", "abc", "漢", "x"]),
    "hangul has spaces": ("한국어 위키", ["한국어", "위키"]),
    "emoji": ("ok👍🏽!", ["ok", "👍", "🏽", "!"]),
    "emoji joined into a family": ("👩\u200d👧", ["👩", "👧"]),
    "digits": ("3,14 and ٣ ²", ["3", ",", "14", "and", "٣", "²"]),
    "underscores": ("snake_case _x_", ["snake_case", "_x_"]),
    "punctuation runs": ("wait... (what?)", ["wait", ".", ".", ".", "(", "what", "?", ")"]),
}


@pytest.mark.parametrize(("text", "expected"), SCRIPTS.values(), ids=SCRIPTS.keys())
def test_scripts(text, expected):
    assert tokens(text) == expected


@pytest.mark.parametrize(
    "space", [" ", "\t", "\n", "\r\n", "\x85", "\xa0", "\u2003", "\u2028", "\u3000", "\u200b"]
)
def test_white_space_of_any_kind_separates(space):
    assert tokens(f"{space}a{space}{space}b{space}") == ["a", "b"]


@pytest.mark.parametrize("invisible", ["\u200c", "\u200d", "\xad", "\ufeff", "\u200f", "\u2060"])
def test_invisible_characters_vanish_and_join_what_they_stand_in(invisible):
    assert tokens(f"{invisible}a{invisible}b{invisible}") == ["ab"]


@pytest.mark.parametrize("text", ["", " ", "\t\n \u3000", "\0", "\ufeff", "\u200b\u200d"])
def test_a_text_without_a_visible_character_has_no_token(text):
    assert tokens(text) == []


def test_what_follows_a_nul_byte_is_kept():
    # tf.strings.lower alone would drop it.
    assert tokens("a\0B c\0") == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"a\xffb", ["a", "\ufffd", "b"]),
        (b"caf\xe9 au", ["caf", "\ufffd", "au"]),  # Latin-1
        (b"cut \xe6\x97", ["cut", "\ufffd"]),  # the first two bytes of three
        (b"\xff", ["\ufffd"]),
    ],
)
def test_invalid_utf8_becomes_a_token_and_never_an_error(raw, expected):
    assert tokens(raw) == expected


def test_encoded_surrogates_are_replaced():
    assert set(tokens(b"\xed\xa0\x80")) == {"\ufffd"}


def test_normalize_gives_single_spaced_valid_utf8():
    (found,) = normalize(tf.constant([b"\xffA\xa0\0B"])).numpy()
    assert found.decode("utf-8").split() == ["\ufffd", "a", "\ufffd", "b"]


def test_a_megabyte_of_text():
    assert tokens("Wörter " * 150_000, 7) == ["wörter"] * 7
    assert tokens("x" * (1 << 20)) == ["x" * (1 << 20)]  # one word
    assert len(tokens("漢" * 350_000)) == 350_000  # one run


@pytest.mark.parametrize("max_tokens", [1, 3, 4, 5], ids=["first", "cut", "equal", "longer"])
def test_max_tokens_cuts_each_text_by_itself(max_tokens):
    texts = ["a b c d", "", "e", " 漢字x ", ""]
    ragged = tokens_in_graph(tf.constant(texts), max_tokens)
    whole = [["a", "b", "c", "d"], [], ["e"], ["漢", "字", "x"], []]
    assert [[t.decode() for t in row] for row in ragged.to_list()] == [
        row[:max_tokens] for row in whole
    ]
    lengths = [min(len(row), max_tokens) for row in whole]
    assert ragged.row_lengths().numpy().tolist() == lengths
    assert ragged.value_rowids().numpy().tolist() == np.repeat(range(5), lengths).tolist()


def test_no_text_at_all():
    assert tokens_in_graph(tf.zeros([0], tf.string), 3).to_list() == []


# ---- properties over random texts -----------------------------------------------------------

# Characters that every Unicode version since 3.2 has, from blocks of one script each. Outside of
# them ICU, RE2 and Python may differ in version: newer characters, the ~40 code points that
# tf.strings.lower and str.lower treat differently, and characters shared by several scripts.
UNSPACED = "漢字日本語一ぁあんアカンกขคาลาວຍកខကခ"
WORD = "azAZäÄßéÉñŁłøжЖяЯёαΩλاالبשלक한국글09_²½٣"
MARKS = "\u0301\u0308\u05b8\u064e\u093f"
VISIBLE = ".,;:!?'\"()[]{}<>@#$%&*+-/=~^|«»„“…—、。،؟।€©→∑♥👍"
SPACES = " \t\n\r\0\x1f\x7f\x85\xa0\u1680\u2003\u2028\u2029\u3000\u200b"
INVISIBLE = "\xad\u200c\u200d\u200e\u2060\ufeff\ue000"
TEXTS = st.text(st.sampled_from(UNSPACED + WORD + MARKS + VISIBLE + SPACES + INVISIBLE))
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def plain_tokens(text: str) -> list[str]:
    """The definition in the module's docstring, character by character."""
    found, open_word = [], None  # open_word: None, "word", or "single" that may take marks
    for character in text.lower():
        category = unicodedata.category(character)
        if category[0] == "Z" or category == "Cc" or character == "\u200b":
            open_word = None
        elif category in ("Cf", "Co", "Cs"):
            continue
        elif category[0] == "M" and open_word == "single":
            found[-1] += character
        elif character in UNSPACED:
            found.append(character)
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
    return found


@SETTINGS
@given(TEXTS)
def test_agrees_with_the_plain_oracle(text):
    assert tokens(text) == plain_tokens(text)


@SETTINGS
@given(ANY_TEXT)
def test_no_token_is_empty_or_contains_white_space(text):
    for token in tokens(text):
        assert token.split() == [token]
        assert "\0" not in token


@SETTINGS
@given(ANY_TEXT)
def test_tokenising_the_joined_tokens_again_changes_nothing(text):
    once = tokens(text)
    assert tokens(" ".join(once)) == once


@SETTINGS
@given(st.binary())
def test_any_bytes_give_valid_utf8(raw):
    for token in tokens(raw):  # decodes
        assert token


def test_locale_of_the_process_changes_nothing():
    program = (
        "import tensorflow as tf; from tf_smoothclir.text.tokenizer import normalize;"
        "print(normalize(tf.constant(['TITLE \u0130 I'])).numpy()[0].hex())"
    )
    environment = {**os.environ, "LC_ALL": "tr_TR.UTF-8"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert bytes.fromhex(done.stdout).decode() == "title i\u0307 i"


def test_tokenized_lines_split_at_spaces_into_the_tokens():
    texts = [*(text for text, _ in SCRIPTS.values()), "", "two\nlines\u2028here", " \0 "]
    lines = list(tokenized_lines(iter(texts), max_tokens=3))
    assert [line.split(" ") if line else [] for line in lines] == [tokens(t, 3) for t in texts]
