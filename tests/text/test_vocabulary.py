"""Counting words, the vocabulary file, and ids in the graph and in a SavedModel."""

from __future__ import annotations

import collections
import shutil

import numpy as np
import pytest
import tensorflow as tf

from tests.text.test_tokenizer import SCRIPTS, plain_tokens
from tf_smoothclir.text.token_counter import TokenCounter
from tf_smoothclir.text.vocabulary import (
    PADDING,
    PADDING_ID,
    UNKNOWN,
    UNKNOWN_ID,
    read_vocabulary,
    write_vocabulary,
)
from tf_smoothclir.text.word_encoder import TextEncoder
from tf_smoothclir.utils.errors import InputError

VOCABULARY = [PADDING, UNKNOWN, "haus", "ü", "漢", "the", "\ufffd", "#", "b"]
TEXTS = ["Haus ü 漢漢", "", "the unheard-of", " \0 ", b"\xff # cut off here", "a\0b"]


def count(*batches, max_tokens=9):
    counter = TokenCounter()
    for texts in batches:
        counter.add(counter.split(texts, max_tokens))
    return counter


@pytest.fixture(scope="module")
def counter():
    # a 3, b 3, c 1, ü 1; é 1, z 1
    return count(["b a a ü", "c b a B THIS_IS_CUT"], ["é z"], max_tokens=4)


@pytest.fixture(scope="module")
def vocabulary_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "document.txt"
    write_vocabulary(path, VOCABULARY)
    return path


@pytest.fixture(scope="module")
def encoder(vocabulary_path):
    return TextEncoder(vocabulary_path, max_tokens=3)


def encode(encoder, texts):
    found = encoder(tf.constant(texts, tf.string))
    return np.split(found.ids.numpy(), np.cumsum(found.lengths.numpy())[:-1])


# ---- counting -------------------------------------------------------------------------------


def test_order_is_by_count_then_by_bytes(counter):
    found = counter.vocabulary(max_size=100, min_count=1, role="query")
    # Bytes, not letters: c and z are one byte, é is c3 a9, ü is c3 bc.
    assert found == [PADDING, UNKNOWN, "a", "b", "c", "z", "é", "ü"]


def test_the_same_texts_in_another_order_give_the_same_vocabulary():
    texts = ["x y", "y z", "w"]
    found = [
        count(ordered).vocabulary(max_size=9, min_count=1, role="query")
        for ordered in (texts, texts[::-1])
    ]
    assert found[0] == found[1] == [PADDING, UNKNOWN, "y", "w", "x", "z"]


def test_min_count(counter):
    found = counter.vocabulary(max_size=100, min_count=3, role="query")
    assert found == [PADDING, UNKNOWN, "a", "b"]


@pytest.mark.parametrize(("size", "last"), [(3, "a"), (4, "b"), (6, "z")])
def test_max_size_counts_padding_and_unknown(counter, size, last):
    found = counter.vocabulary(max_size=size, min_count=1, role="query")
    assert (len(found), found[-1]) == (size, last)


def test_no_token_left_is_an_error_that_says_what_to_do(counter):
    with pytest.raises(InputError) as error:
        counter.vocabulary(max_size=9, min_count=4, role="document")
    assert str(error.value) == (
        "document vocabulary: no token occurs at least 4 time(s) in the document texts"
        " (6 distinct tokens seen). Lower --min_count, or check that the right column holds the"
        " text."
    )


def test_blank_texts_give_no_vocabulary():
    counter = count(["", " ", "\0"])
    with pytest.raises(InputError, match=r"query vocabulary: .*0 distinct tokens seen"):
        counter.vocabulary(max_size=9, min_count=1, role="query")


def test_a_text_cannot_write_the_special_entries():
    found = count([f"{PADDING} {UNKNOWN}"]).vocabulary(max_size=99, min_count=1, role="query")
    assert found == [PADDING, UNKNOWN, "[", "]", "pad", "unk"]


def test_a_token_that_only_uncounted_texts_have_is_numbered_and_unknown():
    counter = TokenCounter()
    numbers = counter.add(
        counter.split(["a", "b a c", "", "c"], 9), np.array([True, False, True, True])
    )
    assert numbers.tolist() == [0, 1, 0, 2, 2]
    found = counter.vocabulary(max_size=9, min_count=1, role="query")
    assert found == [PADDING, UNKNOWN, "a", "c"]
    assert counter.ids(found)[numbers].tolist() == [2, UNKNOWN_ID, 2, 3, 3]
    with pytest.raises(InputError, match=r"at least 2 time\(s\) .*\(2 distinct tokens seen\)"):
        counter.vocabulary(max_size=9, min_count=2, role="query")


def zipf_texts():
    generator = np.random.default_rng(5)
    words = np.array([*"abcdefgh", "Ü", "ü", "ß", "漢字", "x!", "snake_case", "\u200b", "لا"])
    return [" ".join(words[generator.zipf(1.3, 7) % len(words)]) for _ in range(400)]


@pytest.mark.parametrize(("max_size", "min_count"), [(100, 1), (100, 60), (9, 1), (3, 1)])
def test_counts_equal_a_plain_counter(max_size, min_count):
    texts, counted = zipf_texts(), np.arange(400) % 3 > 0
    plain = collections.Counter()
    for text, counts in zip(texts, counted):
        plain.update(plain_tokens(text)[:5] if counts else [])
    kept = sorted((-n, word.encode()) for word, n in plain.items() if n >= min_count)
    counter = TokenCounter()
    for begin in range(0, 400, 33):
        part = slice(begin, begin + 33)
        counter.add(counter.split(texts[part], 5), counted[part])
    found = counter.vocabulary(max_size=max_size, min_count=min_count, role="query")
    assert found[2:] == [word.decode() for _, word in kept][: max_size - 2]


def test_more_distinct_tokens_than_the_first_buffer_holds():
    batches = [[str(token) for token in range(begin, begin + 50_000)] for begin in (0, 40_000)]
    counter = count(*batches, ["7"])
    found = counter.vocabulary(max_size=10_003, min_count=2, role="document")
    assert set(found[2:]) == {"7", *map(str, range(40_000, 50_000))}


# ---- the file -------------------------------------------------------------------------------


def test_write_then_read(vocabulary_path):
    assert read_vocabulary(vocabulary_path) == VOCABULARY
    assert vocabulary_path.read_bytes().startswith(b"[PAD]\n[UNK]\nhaus\n\xc3\xbc\n")


@pytest.mark.parametrize("content", ["", "haus\n", "[UNK]\n[PAD]\nhaus\n", "[PAD]\nhaus\n"])
def test_a_file_without_the_special_entries_is_refused(tmp_path, content):
    path = tmp_path / "words.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_vocabulary(path)
    assert str(error.value).startswith(f"{path}: a vocabulary begins with the lines [PAD] and")
    assert str(error.value).endswith("Use the file that training wrote.")


# ---- ids ------------------------------------------------------------------------------------


def test_ids_equal_a_plain_lookup(encoder):
    words = ["haus", "nie_gehört", "ü", "漢", "the", "#", "b", "hau", "hauss"]
    rows = {token: row for row, token in enumerate(VOCABULARY)}
    for word, ids in zip(words, encode(encoder, words)):
        assert ids.tolist() == [rows.get(word, UNKNOWN_ID)]


def test_ids_of_any_text(encoder):
    found = [ids.tolist() for ids in encode(encoder, TEXTS)]
    assert found == [
        [2, 3, 4],  # cut at three tokens
        [],
        [5, UNKNOWN_ID, UNKNOWN_ID],
        [],
        [6, 7, UNKNOWN_ID],
        [UNKNOWN_ID, 8],  # what follows a NUL byte counts, also in a list of Python strings
    ]


@pytest.mark.parametrize("max_size", [1000, 20])
def test_numbers_become_the_ids_of_the_encoder(tmp_path, max_size):
    texts = [*(text for text, _ in SCRIPTS.values()), *TEXTS, *zipf_texts()]
    counter = TokenCounter()
    split = [counter.split(texts[begin : begin + 29], 6) for begin in range(0, len(texts), 29)]
    numbers = np.concatenate([counter.add(part) for part in split])
    found = counter.vocabulary(max_size=max_size, min_count=1, role="document")
    write_vocabulary(tmp_path / "document.txt", found)
    expected = TextEncoder(tmp_path / "document.txt", max_tokens=6)(tf.constant(texts))
    ids = counter.ids(found)[numbers]
    np.testing.assert_array_equal(ids, expected.ids)
    np.testing.assert_array_equal(
        np.concatenate([part.lengths for part in split]), expected.lengths
    )
    assert ids.dtype == np.int32
    assert (UNKNOWN_ID in ids) == (max_size == 20)


def test_no_text_has_the_padding_id(encoder):
    assert PADDING_ID not in np.concatenate(encode(encoder, [PADDING, UNKNOWN, "[", "0", ""]))


def test_no_text_at_all(encoder):
    found = encoder(tf.zeros([0], tf.string))
    assert (found.ids.shape, found.lengths.shape) == ((0,), (0,))
    assert found.ids.dtype == found.lengths.dtype == tf.int32


def test_ids_survive_a_saved_model_whose_directory_moves(tmp_path):
    vocabulary = tmp_path / "vocabulary" / "document.txt"
    vocabulary.parent.mkdir()
    write_vocabulary(vocabulary, VOCABULARY)
    encoder = TextEncoder(vocabulary, max_tokens=3)
    expected = encode(encoder, TEXTS)
    tf.saved_model.save(encoder, str(tmp_path / "saved"))
    shutil.rmtree(vocabulary.parent)
    shutil.move(str(tmp_path / "saved"), str(tmp_path / "moved"))
    loaded = tf.saved_model.load(str(tmp_path / "moved"))
    for found, wanted in zip(encode(loaded, TEXTS), expected):
        np.testing.assert_array_equal(found, wanted)


def test_an_overwritten_vocabulary_is_read_again(tmp_path):
    # TensorFlow by itself finds the table of the same path again, with the old words.
    path = tmp_path / "query.txt"
    write_vocabulary(path, [PADDING, UNKNOWN, "a", "b"])
    old = TextEncoder(path, max_tokens=9)
    assert encode(old, ["a b"])[0].tolist() == [2, 3]
    write_vocabulary(path, [PADDING, UNKNOWN, "b", "a"])
    assert encode(TextEncoder(path, max_tokens=9), ["a b"])[0].tolist() == [3, 2]
    assert encode(old, ["a b"])[0].tolist() == [2, 3]
