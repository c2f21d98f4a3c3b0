"""Networks that read query and document together: a toy one, how all learn, late interaction."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import cases
from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.interaction.inputs import InteractionTexts
from tf_smoothclir.interaction.learning import HINGE, SOFTMAX, LearningSettings, learn, loss_of
from tf_smoothclir.interaction.networks.base import InteractionNetwork, WordPair, WordTables
from tf_smoothclir.interaction.networks.late_interaction import LateInteraction
from tf_smoothclir.interaction.reranker import list_scores
from tf_smoothclir.towers.average_pooling import part_of_position

WORDS, DIM = 12, 5
QUERIES = [[2, 3, 4], [5], [7, 6, 2, 9], [], [1, 1], [3, 1, 4], [7], [11, 40, 3]]
# The third has 70 words, behind the parts and distances that begin differently.
DOCUMENTS = [[4, 2, 3, 8], [5, 5], [*range(2, 12)] * 7, [3], [2, 3], [9, 1, 40, 4, 3], [2], []]
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


class SameWords(InteractionNetwork):
    """Adds the weight of each query word that the document has."""

    def __init__(self, size: int, features_once: bool):
        super().__init__()
        self.features_once = features_once
        self.weight = self.add_weight(name="weight", shape=(size,), initializer="zeros")

    def features(self, query_ids, document_ids):
        found = tf.reduce_max(self.similarities(query_ids, document_ids), axis=2)
        return {"ids": query_ids, "found": found}

    def score(self, features, training=False):
        weights = tf.gather(tf_variable(self.weight), features["ids"])
        return tf.reduce_sum(weights * features["found"], axis=1)

    def similarities(self, query_ids, document_ids):
        same = tf.equal(query_ids[:, :, tf.newaxis], document_ids[:, tf.newaxis])
        return tf.cast(same & (query_ids > 0)[:, :, tf.newaxis], tf.float32)


@cases("features_once", False, True)
@cases("loss", HINGE, SOFTMAX)
def test_the_word_that_decides_gets_weight(features_once, loss):
    network = SameWords(5, features_once)
    scores = list_scores(network, TEXTS, LISTS)
    settings = dataclasses.replace(SETTINGS, loss=loss)
    learned = learn(network, TEXTS, LISTS, lambda: scores()[1] - scores()[0], settings, seed=1)
    weight = np.asarray(network.weight)
    assert weight[2] > 0.2
    assert abs(weight[3]) < 0.01  # Adam makes steps of rounding errors
    assert weight[0] == weight[4] == 0
    assert learned.best_epoch == 3
    assert learned.losses[0] > learned.losses[-1]
    in_order = network((TEXTS.queries[LISTS.pair_query_rows], TEXTS.documents[LISTS.document_rows]))
    np.testing.assert_allclose(scores(), in_order)


def test_the_weights_of_the_best_epoch_are_kept_and_nan_is_never_the_best():
    network, measured, seen = SameWords(5, True), iter([np.nan, 2.0, np.nan, 1.5]), []

    def validate():
        seen.append(np.array(network.weight))
        return next(measured)

    learned = learn(network, TEXTS, LISTS, validate, SETTINGS, seed=1)
    assert learned.best_epoch == 1
    np.testing.assert_array_equal(learned.history, [np.nan, 2.0, np.nan, 1.5])
    np.testing.assert_array_equal(np.array(network.weight), seen[1])
    assert np.any(seen[1] != seen[3])
    network = SameWords(5, True)
    settings = dataclasses.replace(SETTINGS, epochs=9, patience=2)
    learned = learn(network, TEXTS, LISTS, lambda: 1.0, settings, seed=1)
    assert len(learned.losses) == 2
    assert learned.best_epoch == 0
    assert not np.any(network.weight)  # what it began with was as good


def test_lists_without_a_negative_are_measured_once():
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


@pytest.fixture(scope="module")
def network():
    generator = np.random.default_rng(3)
    queries, documents = generator.normal(size=(2, WORDS, DIM))
    queries[7] = 0  # no vector
    built = LateInteraction(WordTables(queries, documents), generator.uniform(0.5, 2, WORDS))
    for weight in built.trainable_weights:  # so that no two positions or kinds count alike
        variable = tf_variable(weight)
        variable.assign_add(generator.normal(scale=0.3, size=variable.shape).astype(np.float32))
    return built


def score_by_loops(network, query, document):
    """The score as the docstring of the module says it, word by word."""
    tables = network.tables.queries.numpy(), network.tables.documents.numpy()
    weights, early, in_place, counts = (
        np.exp(tf_variable(one).numpy())
        for one in (network.word_weights, network.early, network.in_place, network.counts)
    )

    def similar(i, j):
        inside = 1 < query[i] < WORDS and 1 < document[j] < WORDS
        return max(0, tables[0][query[i]] @ tables[1][document[j]]) if inside else 0

    parts = part_of_position(200)
    places = range(len(document))
    total = added = 0
    for i, word in enumerate(query):
        if not 1 < word < WORDS or not tables[0][word].any():
            continue
        total += weights[word]
        pairs = [0, 0]  # of the word before and this one, and of this one and the next
        for side, first in enumerate((i - 1, i)):
            if 0 <= first < len(query) - 1:
                for j in places[:-1]:
                    both = min(similar(first, j), similar(first + 1, j + 1))
                    pairs[side] = max(pairs[side], both * early[parts[j]])
        near = [in_place[np.clip(j - i, -32, 32) + 32] for j in places]
        found = [(similar(i, j), early[parts[j]], near[j]) for j in places]
        kinds = [
            max((same for same, _, _ in found), default=0),
            max((same * of_part for same, of_part, _ in found), default=0),
            max((same * of_distance for same, _, of_distance in found), default=0),
            sum(pairs) / 2,
        ]
        added += weights[word] * np.dot(counts, kinds)
    return added / total if total else 0


def padded(texts, length):
    return np.array([text + [0] * (length - len(text)) for text in texts], np.int32)


@cases("extra", 0, 5)
def test_scores_are_those_of_loops_with_any_padding(network, extra):
    expected = [score_by_loops(network, q, d) for q, d in zip(QUERIES, DOCUMENTS)]
    assert sum(value > 0 for value in expected) == 3
    found = network((padded(QUERIES, 4 + extra), padded(DOCUMENTS, 70 + extra)))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@cases("query", *QUERIES)
def test_numpy_and_graph_agree_whatever_else_is_in_the_list(network, query):
    documents = padded(DOCUMENTS, 75)
    together = network.list_scorer()(np.array(query, np.int32), documents)
    queries = np.tile(padded([query], 5), (len(documents), 1))
    np.testing.assert_allclose(together, network((queries, documents)), rtol=1e-5, atol=1e-6)
    alone = network.list_scorer()(np.array([*query, 0, 0], np.int32), documents[2:3, :70])
    np.testing.assert_allclose(alone, together[2:3], rtol=1e-5, atol=1e-6)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(network((padded(QUERIES, 4), padded(DOCUMENTS, 70))))
    for gradient in tape.gradient(loss, [tf_variable(w) for w in network.trainable_weights]):
        assert np.isfinite(tf.convert_to_tensor(gradient)).all()


def test_explanations_add_up_to_the_score(network):
    query, document = np.array([2, 3, 4, 7]), np.array([4, 2, 3, 8, 0])
    pairs = network.explain(query, document)
    assert {pair.query_position for pair in pairs} <= {0, 1, 2}  # 7 has no vector
    for pair in pairs:
        words = query[pair.query_position], document[pair.document_position]
        vectors = network.tables.queries[words[0]], network.tables.documents[words[1]]
        assert pair.similarity == pytest.approx(np.dot(*vectors), rel=1e-5)
    score = score_by_loops(network, query.tolist(), document.tolist())
    assert sum(pair.weight for pair in pairs) == pytest.approx(score, rel=1e-5)
    assert network.explain(np.array([7, 1]), document) == []
    assert network.explain(query, np.zeros(0, int)) == []


def test_word_vectors_learn_what_words_translate_and_no_word_gets_one():
    vectors = np.eye(6, 8, dtype=np.float32) + np.float32(0.05)
    vectors[4] = 0
    network = LateInteraction(WordTables(vectors, vectors, trained=True), np.ones(6))
    (table,), pairs = network.word_vectors, (np.array([[2]]), np.array([[3, 5]]))
    before = network.similarities(*pairs).numpy()[0, 0]
    texts = InteractionTexts(np.array([[2, 4]], np.int32), np.array([[3, 4], [5, 1]], np.int32))
    lists = CandidateLists(np.zeros(1, int), np.array([0, 2]), np.arange(2), np.array([2, 0]))
    settings = LearningSettings(SOFTMAX, negatives=1, epochs=5, vector_rate=0.1)
    epochs = iter(range(6))
    learn(network, texts, lists, lambda: next(epochs), settings, seed=1)
    learned = network.similarities(*pairs).numpy()[0, 0]
    assert learned[0] > before[0] + 0.1  # the word of the relevant document
    assert learned[1] < before[1]
    np.testing.assert_array_equal(table.numpy()[[0, 1, 4]], 0)
