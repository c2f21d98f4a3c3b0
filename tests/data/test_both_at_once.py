"""Queries and documents of a batch as one batch of texts, for a tower that they share."""

from __future__ import annotations

import numpy as np
import pytest

from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.pipeline import PIPELINES
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text.tokens import Tokens


@pytest.fixture(scope="module", params=[0, 1000], ids=["words", "ngrams"])
def shared_set(request, small_set, tmp_path_factory):
    settings = TextSettings(shared_vocabulary=True, ngram_buckets=request.param)
    return tokenize_set(small_set, settings, tmp_path_factory.mktemp("cache"))


def texts_of(tokens):
    """Returns the ids of each text, and the n-grams of each word, if there are any."""
    if isinstance(tokens, Tokens):
        return split(tokens), {}
    assert len(set(tokens.distinct)) == len(tokens.distinct)
    return split(tokens), dict(zip(tokens.distinct.tolist(), split(tokens.ngrams)))


def split(tokens):
    ids = np.asarray(tokens.ids)
    texts = [np.flatnonzero(tokens.texts == text) for text in range(len(tokens.lengths))]
    assert [len(text) for text in texts] == tokens.lengths.tolist()
    return [ids[text].tolist() for text in texts]


@pytest.mark.parametrize("name", PIPELINES)
def test_a_batch_has_all_queries_then_all_documents(name, shared_set, small_set):
    lists = candidate_lists(small_set, "train", negatives=2, seed=1)
    apart, together = (
        PIPELINES[name](shared_set, batch_size=5, seed=13, both_at_once=both).epoch(lists, 0)
        for both in (False, True)
    )
    batches = 0
    for (expected, grades), (found, same_grades) in zip(
        apart.as_numpy_iterator(), together.as_numpy_iterator()
    ):
        np.testing.assert_array_equal(same_grades, grades)
        queries, documents = map(texts_of, expected.texts)
        texts, ngrams = texts_of(found.texts.tokens)
        assert texts == [*queries[0], *documents[0]]
        assert ngrams == {**queries[1], **documents[1]}
        assert type(found) is type(expected)
        for rest, expected_rest in zip(found[1:], expected[1:]):  # what there is about lists
            np.testing.assert_array_equal(rest, expected_rest)
        batches += 1
    assert batches > 1
