"""A few texts in plain Python: ids and evidence of the readers in the graph."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_smoothclir.lexical.plain_reader import PlainReader
from tf_smoothclir.lexical.text_reader import DocumentReader, QueryReader
from tf_smoothclir.protocols.text_search import QueryReading
from tf_smoothclir.text.evidence_levels import NAMES
from tf_smoothclir.text.tokenizer import tokenize
from tf_smoothclir.text.vocabulary import write_vocabulary

LIMIT = 5
# Words of both vocabularies, of one, of none; punctuation that is in a vocabulary; other scripts.
PIECES = ["Red", "house", "1848", "HAUS", "css", "zebra", ",", "?", "_", " ", "中文", "Σ", "\u0301"]
TEXTS = st.lists(
    st.one_of(
        st.lists(st.sampled_from(PIECES), max_size=9).map(" ".join),
        st.lists(st.sampled_from(PIECES), max_size=4).map("".join),
        st.text(max_size=8),
    ),
    max_size=6,
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabularies")
    write_vocabulary(path / "query.txt", ["[PAD]", "[UNK]", "red", ",", "house", "1848", "中"])
    write_vocabulary(path / "document.txt", ["[PAD]", "[UNK]", "haus", "1848", "?", "css", "σ"])
    return path


@pytest.fixture(scope="module")
def readers(directory):
    """Name of a reader -> it in the graph, and in plain Python."""
    query, document = directory / "query.txt", directory / "document.txt"
    return {
        "query": (QueryReader(directory, LIMIT), PlainReader([query, document], LIMIT)),
        "document": (DocumentReader(directory, LIMIT), PlainReader([document], LIMIT)),
    }


@pytest.mark.parametrize("name", ["query", "document"])
@given(texts=TEXTS)
@settings(deadline=None, max_examples=60, derandomize=True)
def test_words_have_the_ids_of_the_graph(readers, name, texts):
    in_graph, plain = readers[name]
    expected, found = in_graph.batch(texts), plain.batch(texts)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.offsets, expected.offsets)
    assert (found.ids.dtype, found.offsets.dtype) == (expected.ids.dtype, expected.offsets.dtype)
    assert found.size == expected.size


@given(texts=TEXTS)
@settings(deadline=None, max_examples=60, derandomize=True)
def test_queries_have_the_evidence_of_the_graph(readers, texts):
    in_graph, plain = readers["query"]
    _, known = in_graph.read(tokenize(tf.constant(texts, tf.string), LIMIT))
    expected = [
        QueryReading(NAMES[level], tuple(unknown.decode().split()))
        for level, unknown in zip(known.levels.numpy(), known.unknown.numpy())
    ]
    words, found = plain.queries(texts)
    assert found == expected
    np.testing.assert_array_equal(words.ids, in_graph.batch(texts).ids)


def test_by_hand(readers):
    words, readings = readers["query"][1].queries(
        ["Red CSS, zebra", "haus?", "?,", "z red , , x y"]
    )
    # Query words are 2 to 6, those of documents 7 + 2 to 7 + 6; "y" is behind the limit.
    assert words.ids.tolist() == [2, 7 + 5, 3, 0, 7 + 2, 7 + 4, 7 + 4, 3, 0, 2, 3, 3, 0]
    assert words.offsets.tolist() == [0, 4, 6, 8, 13]
    assert readings == [
        QueryReading("words", ("zebra",)),
        QueryReading("spelling"),
        QueryReading("nothing"),  # punctuation says nothing, though both vocabularies have it
        QueryReading("words", ("z", "x")),
    ]


def test_a_text_that_no_encoding_has_is_read(readers):
    words, (reading,) = readers["query"][1].queries(["red\ud800house"])
    assert words.ids.tolist() == [2, 0, 4]
    assert reading == QueryReading("words")
