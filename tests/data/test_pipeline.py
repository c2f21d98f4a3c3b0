"""Batches of pairs: every pair once, a reproducible order, the tokens of the store."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir.data import pipeline as pipelines
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.model_inputs import PairInputs, SeparateTexts
from tf_smoothclir.data.pipeline import BucketedPairPipeline, PairPipeline, token_batches
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.text.tokens import Tokens

BATCH = 5


@pytest.fixture(scope="module")
def lists(small_set):
    return candidate_lists(small_set, "train", negatives=6, seed=1)  # 6 judged and 18 sampled pairs


@pytest.fixture(scope="module", params=[PairPipeline, BucketedPairPipeline])
def pipeline(tokenized_set, request):
    return request.param(tokenized_set, batch_size=BATCH, seed=13)


def rows_of(tokens):
    return [
        part.tolist() for part in np.split(tokens.ids, np.cumsum(tokens.lengths))[:-1]
    ]  # what is behind the last row is empty


def batches(dataset):
    """Each batch as [(query ids, document ids, grade)]."""
    return [
        list(zip(*map(rows_of, inputs.texts), grades.tolist()))
        for inputs, grades in dataset.as_numpy_iterator()
    ]


def expected_pairs(tokenized_set, lists, positions):
    queries, documents = tokenized_set.tokens("query"), tokenized_set.tokens("document")
    return [
        (
            queries[lists.pair_query_rows[i]].tolist(),
            documents[lists.document_rows[i]].tolist(),
            int(lists.grades[i]),
        )
        for i in positions
    ]


def test_last_batch_is_smaller(pipeline, lists):
    assert len(lists.grades) == 24
    assert len(pipeline.pair_ends(lists, 0)) == 5
    sizes = [len(pipeline.batch_pairs(lists, 0, step)) for step in range(5)]
    assert sizes == [5, 5, 5, 5, 4]


def test_every_pair_exactly_once_an_epoch(pipeline, lists):
    for epoch in range(3):
        positions = np.concatenate([pipeline.batch_pairs(lists, epoch, s) for s in range(5)])
        assert sorted(positions) == list(range(24))


def test_order_depends_on_seed_and_epoch_only(pipeline, tokenized_set, lists):
    def order(pipeline, epoch):
        return np.concatenate([pipeline.batch_pairs(lists, epoch, step) for step in range(5)])

    first = order(pipeline, 0)
    assert not np.array_equal(first, np.arange(24))  # shuffled
    assert not np.array_equal(order(pipeline, 1), first)
    np.testing.assert_array_equal(order(pipeline, 0), first)
    other = type(pipeline)(tokenized_set, batch_size=BATCH, seed=14)
    assert not np.array_equal(order(other, 0), first)


def test_the_order_of_pairs_does_not_depend_on_the_size_of_batches(tokenized_set, lists):
    first, other = (PairPipeline(tokenized_set, batch_size=size, seed=13) for size in (BATCH, 24))
    order = np.concatenate([first.batch_pairs(lists, 0, step) for step in range(5)])
    np.testing.assert_array_equal(other.batch_pairs(lists, 0, 0), order)


def test_documents_of_a_bucketed_batch_are_about_as_long(tokenized_set, lists, monkeypatch):
    # Two batches of 5 are sorted together: the first ten pairs in shuffled order, and so on.
    monkeypatch.setattr(pipelines, "_BATCHES_SORTED", 2)
    bucketed = BucketedPairPipeline(tokenized_set, batch_size=BATCH, seed=13)
    shuffled = PairPipeline(tokenized_set, batch_size=BATCH, seed=13)
    lengths = tokenized_set.tokens("document").lengths[lists.document_rows]
    for step in (0, 2):
        pairs = np.concatenate([shuffled.batch_pairs(lists, 1, s) for s in (step, step + 1)])
        found = [bucketed.batch_pairs(lists, 1, s) for s in (step, step + 1)]
        assert sorted(np.concatenate(found)) == sorted(pairs)
        short, long = sorted(found, key=lambda batch: lengths[batch].sum())
        assert lengths[short].max() <= lengths[long].min()


def test_tokens_and_grades_are_those_of_the_pairs_empty_and_last_rows_included(
    pipeline, tokenized_set, lists
):
    assert {0, 11} <= set(lists.document_rows.tolist())  # first and last, both without a token
    found = batches(pipeline.epoch(lists, 2))
    for step, batch in enumerate(found):
        positions = pipeline.batch_pairs(lists, 2, step)
        assert batch == expected_pairs(tokenized_set, lists, positions)
    assert len(found) == 5


@pytest.mark.parametrize("start", [1, 4, 5])
def test_epoch_from_a_step_on_is_the_tail_of_the_whole(pipeline, lists, start):
    whole = list(pipeline.epoch(lists, 1).as_numpy_iterator())
    tail = list(pipeline.epoch(lists, 1, start_step=start).as_numpy_iterator())
    assert len(tail) == 5 - start
    for (inputs, grades), (expected_inputs, expected_grades) in zip(tail, whole[start:]):
        np.testing.assert_array_equal(grades, expected_grades)
        for found, expected in zip(tf.nest.flatten(inputs), tf.nest.flatten(expected_inputs)):
            assert (found.dtype, found.tobytes()) == (expected.dtype, expected.tobytes())


def test_types_are_those_that_the_model_takes(pipeline, lists):
    inputs, grades = pipeline.epoch(lists, 0).element_spec
    assert grades.dtype.name == "int32"
    assert {spec.dtype.name for spec in tf.nest.flatten(inputs)} == {"int32"}
    tokens = Tokens(*[tf.TensorSpec([None], tf.int32)] * 3)
    assert inputs == PairInputs(SeparateTexts(tokens, tokens))


def test_texts_of_the_tokens_follow_from_the_lengths(pipeline, lists):
    for inputs, _ in pipeline.epoch(lists, 0).as_numpy_iterator():
        for tokens in inputs.texts:
            texts = np.repeat(np.arange(len(tokens.lengths)), tokens.lengths)
            np.testing.assert_array_equal(tokens.texts, texts)


def test_autotuning_is_off(pipeline, tokenized_set, lists):
    for dataset in (pipeline.epoch(lists, 0), token_batches(tokenized_set, "query", 3)):
        assert dataset.options().autotune.enabled is False


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("size", [3, 12])
def test_token_batches_are_in_row_order(tokenized_set, role, size):
    store = tokenized_set.tokens(role)
    found = [
        rows_of(batch) for batch in token_batches(tokenized_set, role, size).as_numpy_iterator()
    ]
    assert [row for batch in found for row in batch] == [
        store[i].tolist() for i in range(len(store))
    ]
    assert [len(batch) for batch in found[:-1]] == [size] * (len(found) - 1)
