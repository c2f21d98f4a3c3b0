"""A model whose tables lie on parameter servers, and the steps that workers train it with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import tensorflow as tf

from tf_smoothclir.data.shards.pipeline import ListOrder, list_batches
from tf_smoothclir.losses.lists import ListLoss
from tf_smoothclir.ops.kernels import RowAdagradInPlace
from tf_smoothclir.optimizers.sparse import clipped, each_row_once, make_optimizer
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.checkpoints import State
from tf_smoothclir.two_tower.builder import configured_loss, unbuilt_model
from tf_smoothclir.two_tower.model import TwoTower
from tf_smoothclir.utils.errors import input_error

# Group and setting -> the value that it must have, why, and what to do.
_NO_PLACE = "parameter servers hold tables of word vectors and nothing else", "Leave it out"
_RANDOM = "word vectors on parameter servers begin with random numbers", "Leave it out"
_REQUIRED = {
    ("training", "optimizer"): (
        "adagrad",
        "workers take their steps at the same time, and only the sums of adagrad allow that",
        "Give --optimizer=adagrad",
    ),
    ("training", "average_weights"): (0.0, *_NO_PLACE),
    ("model", "tower"): ("average_pooling", *_NO_PLACE),
    ("model", "token_weights"): ("none", *_NO_PLACE),
    ("model", "learn_thresholds"): (False, *_NO_PLACE),
    ("text", "ngram_buckets"): (0, *_NO_PLACE),
    ("model", "initial_vectors"): ("random", *_RANDOM),
    ("model", "query_embeddings"): ("", *_RANDOM),
    ("model", "document_embeddings"): ("", *_RANDOM),
    ("model", "train_query_embeddings"): (True, *_RANDOM),
    ("model", "train_document_embeddings"): (True, *_RANDOM),
}


def check_served(settings: RunSettings) -> None:
    """Checks that a model of these settings can lie on parameter servers.

    Raises:
        InputError: It cannot; the message names the flag and the remedy.
    """
    for (group, name), (value, reason, remedy) in _REQUIRED.items():
        given = getattr(getattr(settings, group), name)
        if given != value:
            flag = f"--{name}={given}"
            if isinstance(given, bool):
                flag = f"--{name}" if given else f"--no{name}"
            raise input_error(f"--distribution=parameter_server {flag}", reason, remedy)


def build_served_model(
    settings: RunSettings, vocabularies: Mapping[str, list[str]], make_table: Callable
) -> TwoTower:
    """Returns the model with random word vectors, of the same scale as those of `build_model`.

    Its optimizer only knows the step size; the sums of `ServedSteps` are its slots.

    Args:
        settings: As `check_served` allows.
        vocabularies: Role -> tokens.
        make_table: `ParameterServers.table`.
    """
    seed = settings.training.seed
    model = unbuilt_model(settings, vocabularies)
    for index, tower in enumerate(_towers(model)):

        def initial(shape, first_row, index=index, stddev=tower.initial_stddev):
            return tf.random.stateless_normal(shape, seed=[seed + index, first_row], stddev=stddev)

        tower.use_table(make_table(tower.vocabulary_size, tower.dim, initial))
    model.build()
    model.compile(
        optimizer=make_optimizer("adagrad", settings.training.learning_rate),
        loss=configured_loss(settings),
    )
    return model


class ServedSteps:
    """Steps of Adagrad on tables of parameter servers, asynchronous among workers.

    Each worker reads the rows of its batch from the servers, and sends their gradients back; others
    may have changed these rows meanwhile (Dean et al. 2012, Large Scale Distributed Deep Networks,
    section 4.1, which combines this with Adagrad as well).

    Attributes:
        state: The tables, and the sums of squares of each.
    """

    def __init__(self, model: TwoTower, make_table: Callable, results: Callable):
        """Makes the sums, which are zeros at first.

        Args:
            model: Of `build_served_model`.
            make_table: `ParameterServers.table`.
            results: `ParameterServers.results`.
        """
        self._model = model
        self._results = results
        tables = [tower.embeddings for tower in _towers(model)]
        sums = [make_table(*table.shape, lambda shape, _: tf.zeros(shape)) for table in tables]
        self.state = State(tables, sums)
        self._parts = [part for table in tables for part in _parts(table)]
        self._updates = [
            RowAdagradInPlace(part, part_of_sums, use_locking=True)
            for table, sums_of_it in zip(tables, sums)
            for part, part_of_sums in zip(_parts(table), _parts(sums_of_it))
        ]
        self._train_shard = tf.function(
            self._train,
            input_signature=[
                tf.TensorSpec([None], tf.string),
                tf.TensorSpec([None], tf.int64),
                tf.TensorSpec([None], tf.int64),
                tf.TensorSpec([], tf.int64),
                tf.TensorSpec([], tf.float32),
            ],
        )

    def begin(self) -> None:
        """Does nothing: the variables are elsewhere."""

    def are_finite(self) -> bool:
        """Returns True: fetching the tables to look at them would cost more than it is worth."""
        return True

    def __call__(self, batches: Iterator[list[ListOrder]], number: tf.Tensor) -> list[tf.Tensor]:
        """Lets the workers train on a round of shards, however many steps that are.

        Returns:
            Losses, gradient norms and pairs of the batches, each `[steps]`.

        Raises:
            tf.errors.OpError: A shard cannot be read, or a parameter server was lost.
        """
        del number
        rate = tf.constant(self._model.optimizer.learning_rate.numpy(), tf.float32)
        done = self._results(
            self._train_shard, [(*map(tf.constant, order), rate) for order in next(batches)]
        )
        return [tf.concat(figures, axis=0) for figures in zip(*done)]

    def _train(self, paths, queries, places, lists_in_batch, rate):
        """Trains on all batches of an order, on a worker."""
        losses = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        norms = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        pairs = tf.TensorArray(tf.int32, 0, dynamic_size=True)
        for inputs, grades in list_batches(ListOrder(paths, queries, places, lists_in_batch)):
            step = losses.size()
            loss, norm = self._step(inputs, grades, rate)
            losses = losses.write(step, loss)
            norms = norms.write(step, norm)
            pairs = pairs.write(step, tf.size(grades))
        return losses.stack(), norms.stack(), pairs.stack()

    @tf.autograph.experimental.do_not_convert
    def _step(self, inputs, grades, rate):
        """Does what `TwoTower.train_step` does, on parts of tables."""
        model = self._model
        with tf.GradientTape() as tape:
            scores = model(inputs, training=True)
            if isinstance(model.loss, ListLoss):
                loss = model.loss(scores, grades, inputs["list_lengths"])
            else:
                loss = model.loss(grades, scores)
        gradients = tape.gradient(loss, self._parts)
        if model.is_shared:  # both uses of the table have named its rows
            gradients = [each_row_once(gradient) for gradient in gradients]
        norm = tf.linalg.global_norm(gradients)
        if model.clip_norm:
            gradients = clipped(gradients, norm, model.clip_norm)
        for update, gradient in zip(self._updates, gradients):
            update(gradient, rate, model.optimizer.epsilon)
        return loss, norm


def _towers(model: TwoTower) -> list:
    """Returns the towers of a model, a shared one once."""
    return list(dict.fromkeys([model.query_tower, model.document_tower]))


def _parts(table) -> list[tf.Variable]:
    """Returns the variables of a table, one on each server."""
    return list(getattr(table, "variables", [table]))
