"""Ranking metrics: of anybody's rankings, and as Keras metrics.

The functions take rankings of any system and judgments:

* rankings: query id -> document ids or search hits, best first; or query id -> document id ->
  score, or pairs of id and score, where equal scores are ordered by a hash of the document id,
  never in favour of a relevant document;
* judgments: as `train` takes them; a negative grade counts as 0, as in trec_eval.

Each returns the mean over the judged queries that have a relevant document (grade 1 or more); those
without a ranking count as 0. Gains are the grades themselves; the discount is log2(1 + rank).

The classes are Keras metrics of candidate lists, for a model whose output is `[lists, list_size]`
scores, or a `TwoTower` that is fitted on candidate lists ("list_lengths"), which then has no other
metrics: `model.compile(metrics=[sc.metrics.NDCG(5)])`. `y_true` are grades of the same shape, of
which a negative one is padding. Lists without a relevant document are left out. Of equal scores,
the lower grade counts as ranked first. Scores of another shape are a `ValueError`; a score that is
not a number makes the mean NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.lists import list_metric
from tf_smoothclir.api.given import Judgments, judgments_of, whole_number
from tf_smoothclir.evaluation.metrics import ranked_metric
from tf_smoothclir.evaluation.trec_files import MAX_GRADE, found_grades, missed_grades
from tf_smoothclir.losses.labels import (
    broadcast_weights,
    given_labels,
    keras_mask,
    weights_of_lists,
)
from tf_smoothclir.utils.errors import input_error

Rankings = Mapping[Any, Sequence[Any] | Mapping[Any, float]]
_REMEDY = 'Give a dictionary such as {"q1": ["d3", "d1"]} or {"q1": {"d3": 0.9, "d1": 0.2}}'


def ndcg(rankings: Rankings, judgments: Judgments, k: int = 10) -> float:
    """Returns the mean normalised discounted cumulative gain of the first `k` documents.

    Järvelin and Kekäläinen 2002, with gains linear in the grade.

    Args:
        rankings: Query id -> document ids, best first, or query id -> document id -> score.
        judgments: As for `train`, such as triples of query id, document id and grade.
        k: How many documents count from the top.

    Returns:
        From 0 to 1.

    Raises:
        InputError: An argument has the wrong type, or no query has a relevant document.
    """
    depth = whole_number(k, "k")
    found, missed = _graded(rankings, judgments)
    depth = min(depth, found.shape[1] + missed.shape[1])  # deeper, nothing changes
    # Missed documents are below the cut: they only enter the ideal ranking.
    below = np.pad(found, [(0, 0), (0, max(0, depth - found.shape[1]))])
    return _mean(ranked_metric("ndcg", np.hstack([below, missed]), depth))


def precision(rankings: Rankings, judgments: Judgments, k: int = 10) -> float:
    """Returns the mean share of relevant documents among the first `k` places, from 0 to 1.

    A ranking that is shorter than `k` counts as if documents that are not relevant followed. See
    `ndcg` for the arguments and errors.
    """
    depth = whole_number(k, "k")
    found, _ = _graded(rankings, judgments)
    return _mean(_relevant(found[:, :depth]) / depth)


def recall(rankings: Rankings, judgments: Judgments, k: int = 100) -> float:
    """Returns the mean share of the relevant documents that are among the first `k`, from 0 to 1.

    See `ndcg` for the arguments and errors.
    """
    depth = whole_number(k, "k")
    found, missed = _graded(rankings, judgments)
    return _mean(_relevant(found[:, :depth]) / (_relevant(found) + _relevant(missed)))


def mrr(rankings: Rankings, judgments: Judgments, k: int | None = None) -> float:
    """Returns the mean of 1 / rank of the first relevant document; 0 beyond rank `k`.

    See `ndcg` for the arguments and errors; `k` None is no limit.
    """
    depth = None if k is None else whole_number(k, "k")
    found, _ = _graded(rankings, judgments)
    return _mean(ranked_metric("reciprocal_rank", found, depth))


def mean_average_precision(rankings: Rankings, judgments: Judgments) -> float:
    """Returns the mean of the precision at the rank of each relevant document, from 0 to 1.

    A relevant document that is not ranked has precision 0. See `ndcg` for the arguments and errors.
    """
    found, missed = _graded(rankings, judgments)
    of_found = ranked_metric("average_precision", found)
    return _mean(of_found * _relevant(found) / (_relevant(found) + _relevant(missed)))


def _relevant(grades: np.ndarray) -> np.ndarray:
    return np.count_nonzero(grades > 0, axis=1)


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values, dtype=np.float64))


def _graded(rankings: Rankings, judgments: Judgments) -> tuple[np.ndarray, np.ndarray]:
    """The grades of what was found, best first, and of what was missed, `[queries, ...]` each."""
    if not isinstance(rankings, Mapping):
        raise input_error("rankings", f"it is a {type(rankings).__name__}", _REMEDY)
    judged: dict[str, dict[str, int]] = {}
    for query, document, grade in judgments_of(judgments):
        grade = max(grade, 0)
        other = judged.setdefault(query, {}).setdefault(document, grade)
        if grade > MAX_GRADE or other != grade:
            reason = f"{document!r} has grade {max(grade, other)} for query {query!r}"
            reason += f", beyond {MAX_GRADE}" if grade > MAX_GRADE else ", and another grade too"
            raise input_error("judgments", reason, "Give one grade such as 0, 1 or 2")
    scores = {_id("rankings", query): _scores(query, found) for query, found in rankings.items()}
    if len(scores) < len(rankings):
        raise input_error("rankings", "a query is there twice, such as 1 and '1'", "Rank it once")
    queries = [query for query, grades in judged.items() if max(grades.values()) > 0]
    if not queries:
        raise input_error("judgments", "no query has a relevant document", "Judge some with 1")
    ranked, grades = [scores.get(query, {}) for query in queries], [judged[q] for q in queries]
    return found_grades(ranked, grades, 1), missed_grades(ranked, grades)


def _scores(query: object, found: Any) -> dict[str, float]:
    """Document id -> score."""
    where = f"rankings[{query!r}]"
    if hasattr(found, "to_dict") and not hasattr(found, "columns"):  # a column of a data frame
        has_ids = found.dtype.kind == "f" and all(isinstance(id_, str) for id_ in found.index)
        found = found.to_dict() if has_ids else list(found)
    unordered = isinstance(found, (str, bytes, set, frozenset)) or hasattr(found, "columns")
    if unordered or not np.iterable(found):
        raise input_error(where, f"it is a {type(found).__name__}", _REMEDY)
    entries = list(found.items()) if isinstance(found, Mapping) else list(found)
    if isinstance(found, Mapping) or (entries and all(map(_is_pair, entries))):
        documents, scores = [one[0] for one in entries], [one[1] for one in entries]
    else:
        documents, scores = entries, list(range(0, -len(entries), -1))
    ids = [_id(where, document) for document in documents]
    if len(set(ids)) < len(ids):
        twice = next(id_ for id_ in ids if ids.count(id_) > 1)
        raise input_error(where, f"{twice!r} is there twice", "Rank it once")
    return {id_: _score(where, id_, score) for id_, score in zip(ids, scores)}


def _is_pair(entry: object) -> bool:
    """Whether an entry of a ranking is an id and a score."""
    kinds = (tuple, list, np.ndarray)
    return isinstance(entry, kinds) and len(entry) == 2 and not isinstance(entry[1], str)


def _id(where: str, document: Any) -> str:
    """The id of a document: its own, or that of a search hit; 3.0, as data frames have it, is 3."""
    document = getattr(document, "id", document)
    if isinstance(document, (float, np.floating)) and float(document).is_integer():
        return str(int(document))
    if isinstance(document, bool) or not isinstance(document, (str, int, np.integer)):
        raise input_error(where, f"an id is {document!r}, a {type(document).__name__}", _REMEDY)
    return str(document)


def _score(where: str, id_: str, score: Any) -> float:
    try:
        number = float(score)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number):
        raise input_error(where, f"the score of {id_!r} is {score!r}", "Give numbers")
    return number


class _ListMetric(keras.metrics.Metric):
    """Mean of a metric of candidate lists; see the module."""

    needs_lists = True  # so that a `TwoTower` gives it candidate lists as rows

    def __init__(self, k: int | None = None, name: str | None = None, **kwargs: Any):
        """Creates the metric."""
        self.k = None if k is None else whole_number(k, "k")
        default = type(self).__name__.lower() + ("" if k is None else f"_at_{k}")
        super().__init__(name=name or default, **kwargs)
        self.total = self.add_weight(name="total", initializer="zeros")
        self.lists = self.add_weight(name="lists", initializer="zeros")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds lists.

        Args:
            y_true: `[lists, list_size]` grades; a negative one is padding.
            y_pred: `[lists, list_size]` scores; what Keras's mask leaves out is padding.
            sample_weight: `[lists]`, the weight of each list in the mean; or `[lists, list_size]`,
                as of a mask: a document of weight 0 is padding, the others of a list have one.
        """
        scores = tf.cast(y_pred, tf.float64)  # in which no two scores become one
        if scores.shape.rank != 2:
            raise ValueError(
                f"{self.name}: y_pred has shape {scores.shape}, but the metric needs whole lists,"
                " [lists, list_size]. Compile it into a model that scores lists, or give a TwoTower"
                " batches of candidate lists, with list_lengths."
            )
        grades = given_labels(y_true, y_pred)
        if sample_weight is not None:
            is_masked = keras_mask(y_pred) is not None
            grades, sample_weight = weights_of_lists(grades, sample_weight, is_masked)
        grades = tf.cast(grades, tf.float32)
        ranked = _ranked(grades, scores)
        is_relevant = tf.reduce_any(ranked > 0, axis=1)
        relevant = tf.cast(is_relevant, tf.float32)
        weights = relevant
        if sample_weight is not None:
            weights *= broadcast_weights(sample_weight, relevant)
        unknown = tf.reduce_any(tf.math.is_nan(scores) & (grades >= 0), axis=1)
        values = tf.where(is_relevant, self._of_lists(ranked), 0)
        values = tf.where(unknown, math.nan, values)
        self.total.assign_add(tf.reduce_sum(weights * values))
        self.lists.assign_add(tf.reduce_sum(weights))

    def _of_lists(self, ranked: tf.Tensor) -> tf.Tensor:
        """The metric of each list, `[lists]`.

        Args:
            ranked: `[lists, list_size]` float32, grades, best score first; 0 for padding.
        """
        raise NotImplementedError

    def result(self) -> tf.Tensor:
        """The mean; 0 without lists."""
        return tf.math.divide_no_nan(
            tf.convert_to_tensor(self.total), tf.convert_to_tensor(self.lists)
        )

    def reset_state(self) -> None:
        """Forgets all lists."""
        self.total.assign(0.0)
        self.lists.assign(0.0)

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {**super().get_config(), "k": self.k}


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class NDCG(_ListMetric):
    """Normalised discounted cumulative gain, linear in the grade, as a Keras metric.

        NDCG = Σ_i g_i / log2(1 + rank_i) / ideal, where "ideal" is the same sum for the best order

    Args:
        k: How many documents count from the top; None for all.
        name: Name in the history; "ndcg_at_5" for k = 5.
        **kwargs: Of the Keras metric.

    Raises:
        InputError: `k` is no whole number from 1 on.
    """

    def _of_lists(self, ranked: tf.Tensor) -> tf.Tensor:
        """The NDCG of each list."""
        return _of_ranked("ndcg", ranked, self.k)


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class MRR(_ListMetric):
    """Reciprocal rank of the first relevant document (grade 1 or more), as a Keras metric.

    Args:
        k: Documents after this rank count as not found; None for no limit.
        name: Name in the history; "mrr_at_10" for k = 10.
        **kwargs: Of the Keras metric.

    Raises:
        InputError: `k` is no whole number from 1 on.
    """

    def _of_lists(self, ranked: tf.Tensor) -> tf.Tensor:
        """The reciprocal rank of each list."""
        return _of_ranked("reciprocal_rank", ranked, self.k)


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class Precision(_ListMetric):
    """Share of relevant documents (grade 1 or more) among the first `k`, as a Keras metric.

    Args:
        k: How many documents count from the top; None for all places of the list, padding included.
        name: Name in the history; "precision_at_5" for k = 5.
        **kwargs: Of the Keras metric.

    Raises:
        InputError: `k` is no whole number from 1 on.
    """

    def _of_lists(self, ranked: tf.Tensor) -> tf.Tensor:
        """The precision of each list."""
        depth = tf.shape(ranked)[1] if self.k is None else self.k
        counts = (ranked > 0) & (tf.range(1, tf.shape(ranked)[1] + 1) <= depth)
        return tf.reduce_sum(tf.cast(counts, tf.float32), axis=1) / tf.cast(depth, tf.float32)


def _of_ranked(name: str, ranked: tf.Tensor, k: int | None) -> tf.Tensor:
    """A metric of `_compat.lists` of grades that are in order, `[lists]`."""
    order = tf.zeros_like(ranked) - tf.range(tf.shape(ranked)[1], dtype=tf.float32)
    return list_metric(name, ranked, order, k)


def _ranked(grades: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    """Grades in the order of scores, `[lists, list_size]`; padding is last, as 0."""
    # Stable sorts, the least important key first: grade from below, score, padding.
    keys = (grades, -scores, tf.cast(grades < 0, tf.float32))
    order = tf.broadcast_to(tf.range(tf.shape(grades)[1]), tf.shape(grades))
    for key in keys:
        sorted_by_key = tf.argsort(tf.gather(key, order, batch_dims=1), stable=True)
        order = tf.gather(order, sorted_by_key, batch_dims=1)
    return tf.nn.relu(tf.gather(grades, order, batch_dims=1))
