"""Inverse document frequency against a count by hand."""

import math

import numpy as np
import pytest

from tf_smoothclir.data import token_frequency
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.data.token_frequency import inverse_document_frequency
from tf_smoothclir.settings.text import TextSettings


def texts_of(tokenized_set, role):
    """The counted texts, as sets of ids."""
    store = tokenized_set.tokens(role)
    train = tokenized_set.retrieval_set.splits == SPLITS.index("train")
    rows = np.flatnonzero(train) if role == "query" else range(len(store))
    return [set(store[row].tolist()) for row in rows]


def idf_by_hand(texts, size):
    counts = [max(1, sum(token in text for text in texts)) for token in range(size)]
    counts[1] = 1  # unknown
    return [math.log(1 + len(texts) / count) for count in counts]


@pytest.mark.parametrize("role", ["query", "document"])
def test_documents_and_training_queries_are_counted(tokenized_set, role, monkeypatch):
    monkeypatch.setattr(token_frequency, "_TEXTS_PER_CHUNK", 5)
    size = len(tokenized_set.vocabulary(role))
    found = inverse_document_frequency(tokenized_set, [role], size)
    np.testing.assert_allclose(found, idf_by_hand(texts_of(tokenized_set, role), size), rtol=1e-12)
    assert len(set(found)) > 1
    assert found[1] == found.max()


def test_a_shared_vocabulary_is_counted_on_both_sides(small_set, tmp_path):
    tokenized_set = tokenize_set(small_set, TextSettings(shared_vocabulary=True), tmp_path)
    size = len(tokenized_set.vocabulary("query"))
    texts = texts_of(tokenized_set, "query") + texts_of(tokenized_set, "document")
    found = inverse_document_frequency(tokenized_set, ["query", "document"], size)
    np.testing.assert_allclose(found, idf_by_hand(texts, size), rtol=1e-12)
