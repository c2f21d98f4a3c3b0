"""Batches of whole candidate lists: the same results as for single pairs, each query once."""

from __future__ import annotations

import types

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.pipeline import InBatchPipeline, ListPipeline, stored_tokens
from tf_smoothclir.data.ragged_tensors import mapped_tensors
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.towers.average_pooling import AveragePoolingTower
from tf_smoothclir.two_tower.model import TwoTower


@pytest.fixture(scope="module")
def lists(small_set):
    return candidate_lists(small_set, "train", negatives=6, seed=1)


# 24 pairs in 3 lists: one list a batch, two (and one in the last), all in one.
@pytest.fixture(scope="module", params=[8, 16, 1000])
def pipeline(request, tokenized_set):
    return ListPipeline(tokenized_set, batch_size=request.param, seed=13)


def positions(pipeline, lists, epoch):
    steps = range(len(pipeline.pair_ends(lists, epoch)))
    return [pipeline.batch_pairs(lists, epoch, step) for step in steps]


def test_an_epoch_has_every_pair_once_and_batches_have_whole_lists(pipeline, lists):
    for epoch in range(3):
        found = positions(pipeline, lists, epoch)
        assert sorted(np.concatenate(found)) == list(range(len(lists.grades)))
        for batch in found:
            queries = set(lists.pair_query_rows[batch])
            assert len(batch) == np.isin(lists.pair_query_rows, list(queries)).sum()


def test_pair_ends_count_the_pairs_of_the_steps(pipeline, lists):
    sizes = [len(batch) for batch in positions(pipeline, lists, 1)]
    np.testing.assert_array_equal(pipeline.pair_ends(lists, 1), np.cumsum(sizes))


def test_batches_have_the_wanted_number_of_pairs_on_average(tokenized_set):
    lengths = np.array([5, 5, 5, 3, 30, 2, 6, 5])  # of 61 pairs; one list is longer than a batch
    count = len(lengths)
    lists = types.SimpleNamespace(
        query_rows=np.arange(count), offsets=np.append(0, np.cumsum(lengths))
    )
    ends = ListPipeline(tokenized_set, batch_size=10, seed=13).pair_ends(lists, 0)
    assert ends[-1] == 61
    steps_of_ten = (ends - 1) // 10
    assert len(set(steps_of_ten)) == len(ends)  # the k-th ten pairs end in one batch at most
    assert all(np.diff(np.append(0, ends)) > 0)


def test_lists_have_another_order_in_each_epoch(tokenized_set, lists):
    pipeline = ListPipeline(tokenized_set, batch_size=8, seed=13)
    orders = {tuple(np.concatenate(positions(pipeline, lists, epoch))) for epoch in range(9)}
    assert len(orders) > 1
    assert orders <= {tuple(np.concatenate(positions(pipeline, lists, e))) for e in range(9)}


def test_scores_and_grades_equal_those_of_single_pairs(pipeline, tokenized_set, lists):
    sizes = {role: len(tokenized_set.vocabulary(role)) for role in ROLES}
    model = TwoTower(*(AveragePoolingTower(sizes[role], 4) for role in ROLES))
    for step, (inputs, grades) in enumerate(pipeline.epoch(lists, 2)):
        batch = pipeline.batch_pairs(lists, 2, step)
        np.testing.assert_array_equal(grades, lists.grades[batch])
        assert len(inputs.texts.query.lengths) == len(set(lists.pair_query_rows[batch]))
        rows = {"query": lists.pair_query_rows[batch], "document": lists.document_rows[batch]}
        one_by_one = {
            role: stored_tokens(
                *mapped_tensors(tokenized_set.tokens(role)), tf.constant(rows[role])
            )
            for role in ROLES
        }
        np.testing.assert_allclose(model(inputs), model(one_by_one), atol=1e-6)


def test_epoch_from_a_step_on_is_the_tail_of_the_whole(pipeline, lists):
    whole = list(pipeline.epoch(lists, 1).as_numpy_iterator())
    for start in range(1, len(whole) + 1):
        tail = list(pipeline.epoch(lists, 1, start).as_numpy_iterator())
        assert len(tail) == len(whole) - start
        for found, expected in zip(tail, whole[start:]):
            tf.nest.map_structure(np.testing.assert_array_equal, found, expected)


@pytest.mark.parametrize("batch_size", [8, 1000])
def test_in_batch_inputs_have_each_document_once_and_each_grade_in_place(
    tokenized_set, lists, batch_size
):
    pipeline = InBatchPipeline(tokenized_set, batch_size=batch_size, seed=13)
    judged = {
        (query, document): grade
        for query, document, grade in zip(
            lists.pair_query_rows, lists.document_rows, lists.grades.tolist()
        )
    }
    for step, (inputs, grades) in enumerate(pipeline.epoch(lists, 1)):
        batch = pipeline.batch_pairs(lists, 1, step)
        queries = list(dict.fromkeys(lists.pair_query_rows[batch]))
        documents = list(dict.fromkeys(lists.document_rows[batch]))
        expected = [[judged.get((query, one), 0) for one in documents] for query in queries]
        np.testing.assert_array_equal(grades, expected)
        for role, rows in (("query", queries), ("document", documents)):
            store = tokenized_set.tokens(role)
            tokens = getattr(inputs.texts, role)
            np.testing.assert_array_equal(tokens.lengths, store.lengths[rows])
            ids = np.concatenate([store[row] for row in rows])
            np.testing.assert_array_equal(tokens.ids, ids)
