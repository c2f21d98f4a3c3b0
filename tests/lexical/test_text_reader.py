"""Raw texts to the words of the lexical models."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir.lexical.text_reader import DocumentReader, QueryReader
from tf_smoothclir.lexical.words import NO_WORD, document_words
from tf_smoothclir.text.vocabulary import write_vocabulary


@pytest.fixture
def vocabularies(tmp_path):
    write_vocabulary(tmp_path / "query.txt", ["[PAD]", "[UNK]", "red", "house", "1848"])
    write_vocabulary(tmp_path / "document.txt", ["[PAD]", "[UNK]", "haus", "1848", "css", "rot"])
    return tmp_path


def texts_of(words):
    return [words.ids[a:b].tolist() for a, b in zip(words.offsets[:-1], words.offsets[1:])]


def test_documents_have_the_ids_of_their_vocabulary(vocabularies):
    found = DocumentReader(vocabularies, 9).words(["Rot, CSS", "", "red"])
    assert texts_of(found) == [[5, NO_WORD, 4], [], [NO_WORD]]
    assert found.size == 6


def test_a_query_word_that_only_documents_have_is_found_as_it_is_spelled(vocabularies):
    found = QueryReader(vocabularies, 9).words(["red CSS house", "1848 nowhere haus"])
    assert texts_of(found) == [[2, 5 + 4, 3], [4, NO_WORD, 5 + 2]]
    assert found.size == 5 + 6


@pytest.mark.parametrize("marker", ["[PAD]", "[UNK]"])
@pytest.mark.parametrize("reader", [DocumentReader, QueryReader])
def test_no_text_has_the_words_for_padding_and_unknown(vocabularies, reader, marker):
    assert set(reader(vocabularies, 9).words([marker]).ids.tolist()) == {NO_WORD}


@pytest.mark.parametrize("reader", [DocumentReader, QueryReader])
def test_texts_are_cut(vocabularies, reader):
    assert len(reader(vocabularies, 2).words(["a b c d"]).ids) == 2


@pytest.mark.parametrize("reader", [DocumentReader, QueryReader])
def test_any_bytes_have_words(vocabularies, reader):
    found = reader(vocabularies, 3)(tf.constant([b"", b" ", b"\xff\x00", b"red " * 100_000]))
    assert found.lengths.numpy().tolist() == [0, 0, 1, 3]
    assert len(found.ids) == len(found.texts) == 4


@pytest.mark.parametrize("reader", [DocumentReader, QueryReader])
def test_a_batch_has_the_words_of_a_stream(vocabularies, reader):
    found = reader(vocabularies, 2)
    texts = ("red css rot", "", "haus")
    assert texts_of(found.batch(texts)) == texts_of(found.words(iter(texts)))


@pytest.mark.parametrize("reader", [DocumentReader, QueryReader])
def test_no_texts_have_no_words(vocabularies, reader):
    found = reader(vocabularies, 9).words([])
    assert (found.ids.size, found.offsets.tolist()) == (0, [0])
    assert found.matrix().shape == (0, found.size)


def test_documents_of_a_set_have_the_words_that_models_learn_from(tokenized_set):
    texts = (text.text for text in tokenized_set.retrieval_set.source.documents())
    found = DocumentReader(tokenized_set.vocabulary_dir, 200).words(texts)
    expected = document_words(tokenized_set)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.offsets, expected.offsets)
    assert found.size == expected.size


def test_queries_of_a_set_have_the_words_that_towers_know(tokenized_set):
    texts = [text.text for text in tokenized_set.retrieval_set.source.queries()]
    found = texts_of(QueryReader(tokenized_set.vocabulary_dir, 200).words(texts))
    store, size = tokenized_set.tokens("query"), len(tokenized_set.vocabulary("query"))
    for row, words in enumerate(found):
        expected = [word if word > 1 else NO_WORD for word in store[row].tolist()]
        assert [word if word < size else NO_WORD for word in words] == expected
