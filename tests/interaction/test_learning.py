"""Learning from pairs, with a network that can be followed by hand."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.interaction.toy_network import SameWords
from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.interaction.learning import HINGE, SOFTMAX, LearningSettings, learn, loss_of
from tf_smoothclir.interaction.networks.base import WordPair
from tf_smoothclir.interaction.reranker import ListScores, NetworkScorer
from tf_smoothclir.interaction.texts import InteractionTexts

# Word 2 decides: a document with it is relevant. Word 3 is in all documents.
TEXTS = InteractionTexts(
    queries=np.array([[2, 3], [3, 2], [2, 0]], np.int32),
    documents=np.array([[2, 3, 0], [3, 0, 0], [4, 3, 0], [2, 4, 3]], np.int32),
)
LISTS = CandidateLists(
    query_rows=np.array([0, 1, 2], np.int32),
    offsets=np.array([0, 3, 6, 7]),
    document_rows=np.array([1, 0, 2, 3, 1, 2, 0], np.int32),
    grades=np.array([0, 2, 0, 1, 0, 0, 2], np.int32),  # the last list has no negative
)
SETTINGS = LearningSettings(epochs=3, batch_size=2, negatives=2, learning_rate=0.1)


@pytest.mark.parametrize("features_once", [False, True])
@pytest.mark.parametrize("loss", [HINGE, SOFTMAX])
def test_the_word_that_decides_gets_weight(features_once, loss):
    network = SameWords(5, features_once)
    scores = ListScores(network, TEXTS, LISTS)
    settings = dataclasses.replace(SETTINGS, loss=loss)
    learned = learn(network, TEXTS, LISTS, lambda: scores()[1] - scores()[0], settings, seed=1)
    weight = np.asarray(network.weight)
    assert weight[2] > 0.2
    assert abs(weight[3]) < 0.01  # Adam makes steps of rounding errors
    assert weight[0] == weight[4] == 0
    assert learned.best_epoch == 3
    assert learned.losses[0] > learned.losses[-1]
    np.testing.assert_allclose(scores(), NetworkScorer(network, TEXTS).score(LISTS))


def test_the_weights_of_the_best_epoch_are_kept():
    network, measured, seen = SameWords(5, True), iter([0.0, 2.0, np.nan, 1.5]), []

    def validate():
        seen.append(np.array(network.weight))
        return next(measured)

    learned = learn(network, TEXTS, LISTS, validate, SETTINGS, seed=1)
    assert learned.best_epoch == 1
    np.testing.assert_array_equal(learned.history, [0.0, 2.0, np.nan, 1.5])
    np.testing.assert_array_equal(np.array(network.weight), seen[1])
    assert np.any(seen[1] != seen[3])


def test_learning_ends_early_without_a_better_epoch():
    network = SameWords(5, True)
    settings = dataclasses.replace(SETTINGS, epochs=9, patience=2)
    learned = learn(network, TEXTS, LISTS, lambda: 1.0, settings, seed=1)
    assert len(learned.losses) == 2
    assert learned.best_epoch == 0
    assert not np.any(network.weight)  # what it began with was as good


def test_nan_is_never_the_best_epoch_and_lists_without_a_negative_are_measured_once():
    measured = iter([np.nan, 1.0, np.nan, 0.5])
    learned = learn(SameWords(5, True), TEXTS, LISTS, lambda: next(measured), SETTINGS, seed=1)
    assert learned.best_epoch == 1
    last = CandidateLists(LISTS.query_rows[2:], np.array([0, 1]), np.zeros(1, int), np.array([2]))
    measured = iter([0.5])
    learned = learn(SameWords(5, True), TEXTS, last, lambda: next(measured), SETTINGS, seed=1)
    assert (learned.best_epoch, learned.history, learned.losses) == (0, (0.5,), ())


def test_losses_by_hand():
    scores = tf.constant([[2.0, 1.5, -1.0], [0.0, 0.0, 1.0]])
    # max(0, 1 - 2 + 1.5) = 0.5, 0; then 1, 2.
    assert loss_of(scores, LearningSettings(margin=1)).numpy() == pytest.approx(3.5 / 4)
    expected = np.mean([np.log(1 + np.exp(-0.5) + np.exp(-3)), np.log(1 + 1 + np.e)])
    assert loss_of(scores, LearningSettings(loss=SOFTMAX)).numpy() == pytest.approx(expected)


def test_explanations_name_the_best_match_of_each_word():
    network = SameWords(5, True)
    pairs = network.explain(np.array([3, 4, 2, 0]), np.array([2, 3, 0]))
    assert pairs == [WordPair(0, 1, 1.0, 1.0), WordPair(2, 0, 1.0, 1.0)]
    assert network.explain(np.zeros(0, int), np.array([2])) == []
