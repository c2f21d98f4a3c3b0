"""Chunks of texts, looked up in arrays."""

import itertools
import pickle
from concurrent import futures

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import cases
from tests.encoder.test_encoder import DRAWN_TEXTS
from tf_smoothclir.encoder import chunk_table, tokenizer
from tf_smoothclir.encoder.chunk_table import MOST_BYTES, ChunkTable

TEXTS = st.lists(DRAWN_TEXTS | st.text(max_size=20).map(lambda text: f"a {text} b"), max_size=9)


class Lengths(dict):
    """Each word has the number of its characters as its id."""

    __missing__ = staticmethod(len)


def check(table, texts, pretokenized=False):
    """Compares with the tokens of each text alone."""
    read = [text.decode("utf-8", "replace") if isinstance(text, bytes) else text for text in texts]
    expected = [tokenizer.tokens_of(text, pretokenized) for text in read]
    tokens, ends = table.read(read)
    assert [table.words[number] for number in tokens] == [*itertools.chain(*expected)]
    assert ends.tolist() == [*itertools.accumulate(map(len, expected))]
    assert table.ids[tokens].tolist() == [len(word) for words in expected for word in words]


@given(st.lists(TEXTS, min_size=1, max_size=3), st.booleans())
@settings(max_examples=200)
def test_texts_have_their_tokens_whatever_was_read_before(batches, pretokenized):
    table = ChunkTable(Lengths(), pretokenized)
    for texts in batches * 2:
        check(table, texts, pretokenized)


@cases("slots", 2, 1 << 12)
def test_chunks_are_told_apart_where_they_share_a_slot(monkeypatch, slots):
    """Searches go on to the next slot, also from the last one to the first."""
    monkeypatch.setattr(chunk_table, "_LEAST_SLOTS", slots)
    monkeypatch.setattr(chunk_table, "_SLOTS_PER_CHUNK", 2)  # half of them are taken
    found = chunk_table.hashes_of
    monkeypatch.setattr(chunk_table, "hashes_of", lambda *texts: found(*texts) | np.uint64(0xFFF))
    table = ChunkTable(Lengths(), False)
    for begin in range(0, 60, 20):
        check(table, [f"word{i}, Word{i + 1}" for i in range(begin, begin + 20)] * 2)
    # Chunks, and their tokens: a word, a number, and half of them a comma.
    assert table.size == 120 + 2 * 120 + 60


def test_long_chunks_are_read_like_short_ones():
    texts = ["x" * length + end for length in range(MOST_BYTES - 2, MOST_BYTES + 3) for end in "ab"]
    hostile = ["", "  ", "漢" * 40 + " 漢", "a, " * 30, "a b\0 b a\0 \0", "end Endend"]
    check(ChunkTable(Lengths(), False), [*texts, " ".join(texts), *hostile])


def test_threads_share_a_table_and_a_copy_is_empty():
    table = ChunkTable(Lengths(), False)
    texts = [[f"word{i} word{i + part} x{i}," for i in range(400)] for part in range(8)]
    with futures.ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda of_thread: [check(table, [text]) for text in of_thread], texts))
    again = pickle.loads(pickle.dumps(table))
    assert table.size > 0 == again.size
    check(again, texts[0])
