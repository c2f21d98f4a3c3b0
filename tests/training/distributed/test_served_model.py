"""Tables on parameter servers: the steps of one process, over whole shards, and what is refused."""

import numpy as np
import pytest
import tensorflow as tf

from tests.training.distributed.test_exchange import PARTS, WORDS, batch
from tests.training.tiny_set import SHARDS
from tf_smoothclir._compat.keras_api import tf_weights
from tf_smoothclir.data.shards.pipeline import list_batches
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.distributed.served_batches import ServedBatches
from tf_smoothclir.training.distributed.served_model import (
    ServedSteps,
    build_served_model,
    check_served,
)
from tf_smoothclir.two_tower.builder import build_model
from tf_smoothclir.utils.errors import InputError

VOCABULARIES = {role: ["", "?", *map(str, range(2, WORDS))] for role in ROLES}
SAME_WORDS = [([4, 5], [([5, 4, 4], 2), ([3], 0)])]  # on both sides
CASES = {
    "defaults": {},
    "clipped": {"clip_norm": 1e-3},
    "loss of lists": {"loss": "softmax"},
    "one table": {"shared_vocabulary": True},
}


def whole_table(rows, dim, initial):
    return tf.Variable(initial((rows, dim), 0))


def table_in_parts(rows, dim, initial):
    """As two parameter servers have it, without the servers."""
    first = -(-rows // 2)
    parts = [initial((first, dim), 0), initial((rows - first, dim), first)]
    return tf.__internal__.distribute.ShardedVariable(list(map(tf.Variable, parts)))


def values(table):
    return np.concatenate([part.numpy() for part in getattr(table, "variables", [table])])


@pytest.mark.parametrize("make_table", [whole_table, table_in_parts], ids=["whole", "two parts"])
@pytest.mark.parametrize("case", CASES)
def test_step_is_that_of_one_process(case, make_table):
    changes = {"batching": "lists", "dim": 4, "optimizer": "adagrad", **CASES[case]}
    settings = changed(RunSettings(), changes)
    expected = build_model(settings, VOCABULARIES)
    found = build_served_model(settings, VOCABULARIES, make_table)
    steps = ServedSteps(found, make_table, results=None)
    for table, weight in zip(steps.state.weights, tf_weights(expected)):
        table.assign(weight)
    own_step, rate = tf.function(steps._step), found.optimizer.learning_rate.numpy()
    for part in (*PARTS, SAME_WORDS):
        inputs, grades = batch(part)
        logs = tf.function(expected.train_step)((inputs, grades))
        loss, norm = own_step(inputs, grades, tf.constant(rate))
        np.testing.assert_allclose(loss, logs["batch_loss"], rtol=1e-6)
        np.testing.assert_allclose(norm, logs["gradient_norm"], rtol=1e-5)
    assert len(steps.state.weights) == len(tf_weights(expected))
    for table, weight in zip(steps.state.weights, tf_weights(expected)):
        np.testing.assert_allclose(values(table), weight.numpy(), rtol=1e-5, atol=1e-6)
    sums = [values(table) for table in steps.state.optimizer]
    for own, other in zip(sums, expected.optimizer._accumulators):
        np.testing.assert_allclose(own, other.numpy(), rtol=1e-5, atol=1e-12)
        assert own.any()


def test_tables_differ_and_so_do_their_parts():
    settings = changed(RunSettings(), {"dim": 4})
    model = build_served_model(settings, VOCABULARIES, table_in_parts)
    parts = [
        part.numpy()
        for tower in (model.query_tower, model.document_tower)
        for part in tower.embeddings.variables
    ]
    for number, part in enumerate(parts):
        assert 0.5 < part.std() < 1.5
        for other in parts[:number]:
            assert not np.isin(part, other).any()


def lists_of(rounds):
    """How many batches a round has, and all grades of its shards."""
    batches = [[list(list_batches(order)) for order in shards] for shards in rounds]
    steps = [sum(map(len, each)) for each in batches]
    rows = [
        inputs["document"]["lengths"].shape[0] for each in batches for b in each for inputs, _ in b
    ]
    return steps, sum(rows)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_rounds_have_each_shard_once(shards, tiny, workers):
    batches = ServedBatches(shards, tiny(batch_size=8).training, workers)
    epoch = batches.epoch(0)
    rounds = list(epoch.batches(0))
    files = [order.paths[0] for each in rounds for order in each]
    assert sorted(files) == sorted(shards.path(s["file"]) for s in shards.manifest["shards"])
    assert [len(each) for each in rounds][:-1] == [workers] * (len(rounds) - 1)
    steps, pairs = lists_of(rounds)
    assert (sum(steps), pairs) == (epoch.steps, epoch.pairs) == (epoch.steps, 60)
    others = [
        [order.paths[0] for each in batches.epoch(number).batches(0) for order in each]
        for number in range(5)
    ]
    assert all(sorted(other) == sorted(files) for other in others)
    assert any(other != files for other in others)


def test_epoch_goes_on_with_the_shard_of_a_step(shards, tiny):
    epoch = ServedBatches(shards, tiny(batch_size=8).training, 1).epoch(0)
    rounds = list(epoch.batches(0))
    steps, _ = lists_of(rounds)
    assert min(steps) > 1
    for number in range(SHARDS + 1):
        rest = list(epoch.batches(sum(steps[:number])))
        assert [r[0].paths[0] for r in rest] == [r[0].paths[0] for r in rounds[number:]]


def test_rows_are_those_of_the_steps(shards, tiny):
    epoch = ServedBatches(shards, tiny(batch_size=8).training, 2).epoch(0)
    grades = [
        grades.numpy().tolist()
        for shards_of_round in epoch.batches(0)
        for order in shards_of_round
        for _, grades in list_batches(order)
    ]
    found = [[grade for _, _, grade in epoch.rows(step)] for step in range(epoch.steps)]
    assert found == grades


def test_more_workers_than_shards_are_refused(shards, tiny):
    with pytest.raises(InputError, match="5 workers cannot share 4 shards"):
        ServedBatches(shards, tiny().training, SHARDS + 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"optimizer": "rmsprop"}, "--optimizer=rmsprop: .*only .* adagrad.* Give --optimizer"),
        ({"optimizer": "lazy_adam"}, "--optimizer=lazy_adam: .*adagrad"),
        ({"tower": "cnn"}, "--tower=cnn: parameter servers hold tables of word vectors and nothin"),
        ({"token_weights": "idf"}, "--token_weights=idf: .*nothing else. Leave it out"),
        ({"learn_thresholds": True}, "--learn_thresholds: .*nothing else. Leave it out"),
        ({"average_weights": 0.5}, "--average_weights=0.5: .*nothing else. Leave it out"),
        ({"ngram_buckets": 10}, "--ngram_buckets=10: .*nothing else. Leave it out"),
        ({"initial_vectors": "bilingual"}, "--initial_vectors=bilingual: .*begin with random"),
        ({"query_embeddings": "a.vec"}, "--query_embeddings=a.vec: .*begin with random numbers"),
        ({"document_embeddings": "a.vec"}, "--document_embeddings=a.vec: .*begin with random"),
        ({"train_query_embeddings": False}, "--notrain_query_embeddings: .*begin with random"),
    ],
)
def test_what_has_no_place_on_parameter_servers_is_refused(changes, message):
    settings = {"optimizer": "adagrad", "distribution": "parameter_server", **changes}
    with pytest.raises(InputError, match=f"^--distribution=parameter_server {message}"):
        check_served(changed(RunSettings(), settings))


def test_the_paper_with_adagrad_is_not_refused():
    check_served(changed(RunSettings(), {"optimizer": "adagrad"}))
