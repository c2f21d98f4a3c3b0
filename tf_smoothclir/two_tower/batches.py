"""Batches as a two-tower model takes them, and as Keras wants them."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import given_metrics, metrics_with_loss, tf_weights
from tf_smoothclir.data.model_inputs import InBatchInputs, ListInputs, ModelInputs, PairInputs
from tf_smoothclir.losses.base import ranking_loss
from tf_smoothclir.losses.listwise import padded_lists, padded_rows
from tf_smoothclir.optimizers.sparse_optimizer import check_replicas
from tf_smoothclir.towers.text_tower import TextTower
from tf_smoothclir.utils.errors import input_error


def list_lengths(inputs: ModelInputs | None) -> tf.Tensor | None:
    """The number of documents in each list, None for a batch without lists."""
    return inputs.list_lengths if isinstance(inputs, (ListInputs, InBatchInputs)) else None


def listed_pairs(inputs: ModelInputs, grades: tf.Tensor) -> tf.Tensor:
    """The number of listed pairs in a batch; in-batch negatives do not count."""
    if isinstance(inputs, PairInputs):
        return tf.size(grades)
    return tf.reduce_sum(inputs.list_lengths)


class BatchModel(keras.Model):
    """A Keras model that takes batches in more forms than Keras.

    Texts and grades may also be lists, NumPy's strings, and columns of data frames. Metrics that
    declare `needs_lists` get candidate lists as rows.
    """

    @property
    def metrics(self):
        """Keras's list of metrics, with the mean loss."""
        return metrics_with_loss(self, super().metrics)

    def compile(self, *args, **kwargs):
        """Compiles as Keras does, and refuses what such a model cannot be trained with."""
        if kwargs.get("jit_compile") is True:
            raise ValueError(
                "jit_compile=True: XLA needs fixed shapes, and texts have any length. Leave it out."
            )
        super().compile(*args, **kwargs)
        check_replicas(self.optimizer)

    def check_trainable(self) -> None:
        """Raises ValueError if no weight is trained."""
        if self.built and not self.trainable_variables:
            raise ValueError(  # an error of our own would be another one after AutoGraph
                "all weights of the model are frozen (trainable is False), so there is nothing to"
                " train: unfreeze a tower before compile, or only evaluate"
            )

    def fit(self, x=None, y=None, *args, **kwargs):
        """Trains as Keras does."""
        self.check_trainable()
        if isinstance(kwargs.get("validation_data"), (tuple, list)):
            kwargs["validation_data"] = tuple(map(_as_tensors, kwargs["validation_data"]))
        self._build_optimizer()
        return super().fit(*map(_as_tensors, (x, y)), *args, **_with_weights(kwargs))

    def _build_optimizer(self) -> None:
        """Creates the optimizer's variables: in its first step, the step would be traced twice."""
        optimizer = getattr(self, "optimizer", None)  # None: not compiled, which Keras says
        if self.built and hasattr(optimizer, "build"):
            with self.distribute_strategy.scope():
                optimizer.build(self.trainable_variables)

    def evaluate(self, x=None, y=None, *args, **kwargs):
        """Evaluates as Keras does."""
        return super().evaluate(*map(_as_tensors, (x, y)), *args, **_with_weights(kwargs))

    def predict(self, x, *args, **kwargs):
        """Predicts as Keras does."""
        return super().predict(_as_tensors(x), *args, **kwargs)

    def train_on_batch(self, x, y=None, *args, **kwargs):
        """Trains on a batch as Keras does."""
        return super().train_on_batch(*map(_as_tensors, (x, y)), *args, **_with_weights(kwargs))

    def test_on_batch(self, x, y=None, *args, **kwargs):
        """Evaluates a batch as Keras does."""
        return super().test_on_batch(*map(_as_tensors, (x, y)), *args, **_with_weights(kwargs))

    def predict_on_batch(self, x):
        """Predicts a batch as Keras does."""
        return super().predict_on_batch(_as_tensors(x))

    def save(self, *args, **kwargs):
        """Saves as Keras does, with weights."""
        self.check_built()
        return super().save(*args, **kwargs)

    def save_weights(self, *args, **kwargs):
        """Saves the weights as Keras does."""
        self.check_built()
        return super().save_weights(*args, **kwargs)

    def check_built(self) -> None:
        """Raises an error if there are no weights yet."""
        if not self.built:
            reason = "it has no weights yet, which it gets by build() or from the first batch"
            raise input_error("model", reason, "Call model.build(), or fit it, before you save it")

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
        """Keras's `compute_loss`, for a flat batch or, with `in_batch`, a matrix of scores."""
        # The loss says how it takes a batch, by `RankingLoss.laid_out`. A listwise loss takes
        # sample weights `[lists]`; with `in_batch`, its lists hold all documents of the batch. A
        # loss of single scores is then divided by the number of listed pairs: the other pairs add
        # to the loss, but do not make the gradients of the listed pairs smaller.
        inputs, lists = self._typed(x), ranking_loss(self.loss)
        if not self.in_batch:
            y, y_pred = lists.laid_out(y, y_pred, list_lengths(inputs))
        loss = super().compute_loss(x, y, y_pred, sample_weight)
        if not self.in_batch or lists.needs_lists:
            return loss
        terms, listed = lists.num_terms(y), listed_pairs(inputs, y)
        return tf.math.divide_no_nan(loss * tf.cast(terms, loss.dtype), tf.cast(listed, loss.dtype))

    def num_terms(self, inputs: ModelInputs, grades: tf.Tensor) -> tf.Tensor:
        """By what the mean loss of a batch was divided: its weight in the mean of an epoch."""
        lists = ranking_loss(self.loss)
        if not self.in_batch:
            grades, _ = lists.laid_out(grades, grades, list_lengths(inputs))
        elif not lists.needs_lists:
            return listed_pairs(inputs, grades)
        return lists.num_terms(grades)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Keras's `compute_metrics`, of typed inputs."""
        ranks_lists = any(getattr(one, "needs_lists", False) for one in given_metrics(self))
        if ranks_lists and isinstance(x, ListInputs):
            y, y_pred = padded_lists(y, y_pred, x.list_lengths)
            if sample_weight is not None and not ranking_loss(self.loss).needs_lists:
                sample_weight = padded_rows(sample_weight, x.list_lengths, 0)
        elif not ranks_lists and not isinstance(x, InBatchInputs):
            y, y_pred = tf.reshape(y, [-1, 1]), tf.reshape(y_pred, [-1, 1])  # as Keras has pairs
        return super().compute_metrics(x, y, y_pred, sample_weight)


def _as_tensors(given: Any) -> Any:
    """Lists, NumPy's strings and columns of data frames as tensors or arrays."""
    if isinstance(given, Mapping):
        return {name: _as_tensors(values) for name, values in given.items()}
    if hasattr(given, "to_numpy") and not hasattr(given, "columns"):
        given = given.to_numpy()
    if isinstance(given, list):
        has_texts = bool(given) and isinstance(given[0], (str, bytes))
        return tf.constant(given, tf.string) if has_texts else np.asarray(given)
    if isinstance(given, np.ndarray) and given.dtype.kind in "USO":
        if given.dtype.kind == "O" and not isinstance(next(iter(given.flat), None), (str, bytes)):
            return given
        return tf.constant(given.astype(object), tf.string)
    return given


def _with_weights(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments of Keras, whose sample weights may be a list."""
    return {k: _as_tensors(v) if k == "sample_weight" else v for k, v in kwargs.items()}


class ScoringModel(tf.Module):
    """Scores pairs of texts; holds the weights and vocabularies of a model, but nothing of Keras.

    Its function `serve`, which is the signature `serving_default` too, takes `query` and
    `document`, and returns `score`, `[batch]` float32.
    """

    def __init__(self, model: keras.Model):
        super().__init__(name="scoring_model")
        towers = {"query": model.query_tower, "document": model.document_tower}
        signature = [_signature(tower, name) for name, tower in towers.items()]
        model.check_built()
        self.weights = tf_weights(model)
        self.encoders = [t.encoder for t in towers.values() if isinstance(t, TextTower)]

        def serve(query, document):
            inputs = {"query": query, "document": document}
            return {"score": model(inputs, training=False)}

        self.serve = tf.function(serve, autograph=False, input_signature=signature)

    def save(self, path: str | os.PathLike) -> None:
        """Writes the SavedModel."""
        tf.saved_model.save(self, os.fspath(path), signatures=self.serve)


def _signature(tower: keras.layers.Layer, name: str) -> tf.TensorSpec:
    if isinstance(tower, TextTower):
        return tf.TensorSpec([None], tf.string, name)
    if getattr(tower, "ngram_buckets", 0):
        raise ValueError(
            f"{name} tower: it needs n-grams, which ids alone do not have. Wrap it in a TextTower,"
            " whose export takes strings."
        )
    return tf.TensorSpec([None, None], tf.int32, name)
