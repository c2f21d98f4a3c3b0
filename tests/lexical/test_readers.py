"""Raw texts to words: a reader in the graph and one in plain Python, which read the same."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lexical.helpers import words
from tf_smoothclir.lexical.plain_reader import PlainReader
from tf_smoothclir.lexical.positions import FLAT, PositionProfile
from tf_smoothclir.lexical.text_reader import DocumentReader, QueryReader
from tf_smoothclir.lexical.words import NO_WORD, document_words, same_spelling
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
both = pytest.mark.parametrize("name", ["query", "document"])


@pytest.fixture(scope="module")
def readers(tmp_path_factory):
    """Name of a reader -> it in the graph, and in plain Python."""
    directory = tmp_path_factory.mktemp("vocabularies")
    query, document = directory / "query.txt", directory / "document.txt"
    write_vocabulary(query, ["[PAD]", "[UNK]", "red", ",", "house", "1848", "中"])
    write_vocabulary(document, ["[PAD]", "[UNK]", "haus", "1848", "?", "css", "σ"])
    return {
        "query": (QueryReader(directory, LIMIT), PlainReader([query, document], LIMIT)),
        "document": (DocumentReader(directory, LIMIT), PlainReader([document], LIMIT)),
    }


def texts_of(found):
    return [found.ids[a:b].tolist() for a, b in zip(found.offsets[:-1], found.offsets[1:])]


@both
@given(texts=TEXTS)
@settings(deadline=None, max_examples=60, derandomize=True)
def test_plain_words_and_evidence_are_those_of_the_graph(readers, name, texts):
    in_graph, plain = readers[name]
    expected, found = in_graph.batch(texts), plain.batch(texts)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.offsets, expected.offsets)
    assert (found.ids.dtype, found.offsets.dtype) == (expected.ids.dtype, expected.offsets.dtype)
    assert found.size == expected.size
    if name == "query":
        _, known = in_graph.read(tokenize(tf.constant(texts, tf.string), LIMIT))
        own, readings = plain.queries(texts)
        np.testing.assert_array_equal(own.ids, expected.ids)
        assert readings == [
            QueryReading(NAMES[level], tuple(unknown.decode().split()))
            for level, unknown in zip(known.levels.numpy(), known.unknown.numpy())
        ]


def test_by_hand(readers):
    # Query words are 2 to 6, those of documents 7 + 2 to 7 + 6; "y" is behind the limit.
    texts = ["Red CSS, zebra", "haus?", "?,", "z red , , x y", ""]
    ids = [[2, 7 + 5, 3, 0], [7 + 2, 7 + 4], [7 + 4, 3], [0, 2, 3, 3, 0], []]
    _, plain = readers["query"]
    found, readings = plain.queries(texts)
    assert texts_of(found) == ids
    assert readings == [
        QueryReading("words", ("zebra",)),
        QueryReading("spelling"),
        QueryReading("nothing"),  # punctuation says nothing, though both vocabularies have it
        QueryReading("words", ("z", "x")),
        QueryReading("nothing"),
    ]
    for reader in readers["query"]:
        assert (texts_of(reader.batch(texts)), reader.batch(texts).size) == (ids, 7 + 7)
    for reader in readers["document"]:
        found = reader.batch(["Haus, CSS", "", "red"])
        assert (texts_of(found), found.size) == ([[2, NO_WORD, 5], [], [NO_WORD]], 7)


@both
def test_no_text_has_the_words_for_padding_and_unknown(readers, name):
    for reader in readers[name]:
        assert set(reader.batch(["[PAD]", "[UNK]"]).ids.tolist()) == {NO_WORD}


@both
def test_any_bytes_have_words(readers, name):
    reader, _ = readers[name]
    found = reader(tf.constant([b"", b" ", b"\xff\x00", b"red " * 100_000]))
    assert found.lengths.numpy().tolist() == [0, 0, 1, LIMIT]
    assert len(found.ids) == len(found.texts) == 1 + LIMIT


def test_a_text_that_no_encoding_has_is_read(readers):
    found, (reading,) = readers["query"][1].queries(["red\ud800house"])
    assert found.ids.tolist() == [2, 0, 4]
    assert reading == QueryReading("words")


@both
def test_a_stream_has_the_words_of_a_batch_and_may_be_empty(readers, name):
    reader, texts = readers[name][0], ("red css rot", "", "haus")
    assert texts_of(reader.batch(texts)) == texts_of(reader.words(iter(texts)))
    found = reader.words([])
    assert (found.ids.size, found.offsets.tolist()) == (0, [0])
    assert found.matrix().shape == (0, found.size)


@pytest.mark.parametrize("role", ["query", "document"])
def test_texts_of_a_set_have_the_words_that_models_learn_from(tokenized_set, role):
    kind = {"query": QueryReader, "document": DocumentReader}[role]
    source, store = tokenized_set.retrieval_set.source, tokenized_set.tokens(role)
    texts = source.queries() if role == "query" else source.documents()
    found = kind(tokenized_set.vocabulary_dir, 200).words(text.text for text in texts)
    size = len(tokenized_set.vocabulary(role))
    for row, own in enumerate(texts_of(found)):
        expected = [word if word > 1 else NO_WORD for word in store[row].tolist()]
        assert [word if word < size else NO_WORD for word in own] == expected
    if role == "document":
        assert found.size == size
        assert texts_of(document_words(tokenized_set)) == texts_of(found)


def test_counts_and_shares_by_hand():
    found = words([2, 3, 2, 0], [], size=4)
    assert found.matrix().toarray().tolist() == [[0, 0, 2, 1], [0] * 4]
    # A word without an id is part of the text.
    assert found.matrix(FLAT).toarray().tolist() == [[0, 0, 2 / 4, 1 / 4], [0] * 4]
    profile = PositionProfile(height=1.0, decay=1 / np.log(2))  # 1 + 1/2^position: 2, 1.5, 1.25
    found = words([3, 2, 3], size=4).matrix(profile).toarray()
    assert found[0] == pytest.approx([0, 0, 1.5 / 4.75, (2 + 1.25) / 4.75])


def test_chosen_texts_are_cut():
    found = words([1, 2, 3], [], [4, 5], size=6).of(np.array([2, 0, 1]), most=2)
    assert texts_of(found) == [[4, 5], [1, 2], []]
    assert found.positions().tolist() == [0, 1, 0, 1]


def test_spelling_names_one_query_word_for_each_document_word():
    found = same_spelling(["[PAD]", "[UNK]", "red", "css"], ["[PAD]", "[UNK]", "css", "rot"])
    assert list(zip(*found.nonzero())) == [(2, 3), (3, 4 + 3)]
