"""Dictionaries of a user as typed inputs of a model."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir.data.model_inputs import (
    InBatchInputs,
    ListInputs,
    PairInputs,
    SeparateTexts,
    model_inputs,
)

TEXTS = {"query": [[2], [3]], "document": [[4], [5], [6]]}


def test_a_dictionary_without_lengths_of_lists_is_pairs():
    expected = PairInputs(SeparateTexts(TEXTS["query"], TEXTS["document"]))
    assert model_inputs(TEXTS, in_batch=False) == expected
    assert model_inputs(TEXTS, in_batch=True) == expected


def test_a_dictionary_with_lengths_of_lists_knows_the_list_of_each_document():
    found = model_inputs({**TEXTS, "list_lengths": [2, 1]}, in_batch=False)
    assert isinstance(found, ListInputs)
    assert found.texts == SeparateTexts(TEXTS["query"], TEXTS["document"])
    np.testing.assert_array_equal(found.list_lengths, [2, 1])
    np.testing.assert_array_equal(found.lists, [0, 0, 1])


def test_for_in_batch_negatives_the_lengths_alone_count():
    found = model_inputs({**TEXTS, "list_lengths": [2, 1]}, in_batch=True)
    assert isinstance(found, InBatchInputs)
    np.testing.assert_array_equal(found.list_lengths, [2, 1])


def test_typed_inputs_stay_as_they_are():
    inputs = PairInputs(SeparateTexts(tf.zeros([1, 1]), tf.zeros([1, 1])))
    assert model_inputs(inputs, in_batch=False) is inputs


@pytest.mark.parametrize(
    "given", [{"query": [[2]]}, {"both": [[2]]}, {**TEXTS, "lists": [0]}], ids=str
)
def test_a_dictionary_with_other_keys_is_refused(given):
    with pytest.raises(ValueError, match=r"^inputs: a dictionary must have the keys 'query' and"):
        model_inputs(given, in_batch=False)
