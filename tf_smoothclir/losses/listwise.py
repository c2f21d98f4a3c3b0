"""Listwise losses: what counts is the order of the documents in a candidate list.

They compare the scores of one list with each other and know no thresholds. Another one is a class
of few lines, whose `call` may be the formula of another library.
"""

import abc

import tensorflow as tf

from tf_smoothclir.losses.base import RankingLoss, check_temperature, register
from tf_smoothclir.losses.labels import checked_labels


class ListwiseLoss(RankingLoss):
    """A loss of candidate lists `[lists, list_size]` by scores s = r / T for similarities r.

    The loss of a batch is the mean over its lists; a list of padding alone does not count.
    Padding, the other lists of the batch and the order of the documents do not change the loss of a
    list, and nothing is random. A list of one document has gradient 0. Computed in float32.
    Sample weights are those of lists. In weights `[lists, list_size]`, as Keras makes them of a
    mask, a document of weight 0 is padding, and the others of a list have one weight.

    Args:
        temperature: T > 0 in units of the similarity. Similarities lie in (-1, 1), where a softmax
            is nearly flat; the default is 0.1.
        **kwargs: `reduction` and `name` of `RankingLoss`.
    """

    settings = ("temperature",)
    needs_lists = True

    def __init__(self, temperature: float = 0.1, **kwargs):
        super().__init__(**kwargs)
        self.temperature = check_temperature(temperature, usual=0.1)

    @abc.abstractmethod
    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each list, `[lists]` float32.

        Args:
            y_true: Grades, `[lists, list_size]` float32; negative at padding.
            y_pred: Scores divided by T, the same shape, float32. The lowest of each list is 0, and
                so is padding.
        """
        raise NotImplementedError

    def masked_losses(self, labels, scores):
        if scores.shape.rank not in (None, 2):
            raise ValueError(
                f"y_pred has shape {scores.shape}, but {type(self).__name__} compares the documents"
                " of a list: give [lists, list_size], with label -1 at padding"
            )
        labels = tf.cast(labels, tf.float32)
        real = labels >= 0
        scores = _from_zero(tf.cast(scores, tf.float32) / self.temperature, real)
        return self.call(labels, scores), tf.logical_not(tf.reduce_any(real, axis=1))

    def laid_out(self, grades, scores, list_lengths):
        """Returns a flat batch as padded lists, `[lists, longest]` twice.

        Raises:
            ValueError: The batch has no list lengths.
        """
        if list_lengths is None:
            raise ValueError(
                f"{type(self).__name__} compares the documents of a list, but the batch has no "
                "list_lengths: give the model batches of candidate lists"
            )
        return padded_lists(grades, scores, list_lengths)

    def num_terms(self, labels):
        """Returns the number of lists."""
        return tf.math.count_nonzero(tf.reduce_any(labels >= 0, axis=1), dtype=tf.int32)

    def get_config(self):
        return {**super().get_config(), "temperature": self.temperature}


@register
class SoftmaxLoss(ListwiseLoss):
    """Softmax cross-entropy of a list, weighted by grade (ListNet, Cao et al. 2007).

        softmax(s, g) = -Σ_i g_i log(exp(s_i) / Σ_j exp(s_j)),  s = r / T

    Cao et al., "Learning to Rank: From Pairwise Approach to Listwise Approach", ICML 2007. Value
    and gradient are 0 for a list without a grade above 0.

        >>> loss = SoftmaxLoss(temperature=0.1)
        >>> value = loss([[0, 2, -1]], [[0.2, 0.1, 0.9]])  # s = 2, 1; the third is padding
        >>> print(f"{value:.4f}")  # 2 log(1 + exp(2 - 1))
        2.6265

    Args:
        temperature: T > 0 in units of the similarity.
        **kwargs: `reduction` and `name` of `RankingLoss`.
    """

    def call(self, y_true, y_pred):
        real_scores = tf.where(y_true >= 0, y_pred, y_pred.dtype.min)
        return -tf.reduce_sum(tf.nn.relu(y_true) * tf.nn.log_softmax(real_scores), axis=1)


@register
class OrdinalSoftmaxLoss(ListwiseLoss):
    """Softmax cross-entropy of each relevant document among the documents of lower grades.

        ordinal_softmax(s, g) = Σ_i w^(max g - g_i) log(1 + Σ_j exp(s_j - s_i)),  s = r / T

    over the documents i with g_i > 0, and for each over the documents j with g_j < g_i. With
    grades 0 and 1, and one relevant document, it is the contrastive loss with in-batch negatives
    (van den Oord et al. 2018, "Representation Learning with Contrastive Predictive Coding"). With
    more grades, `SoftmaxLoss` makes relevant documents rivals of each other, and many of a lower
    grade outweigh the best one. Here no document is pushed below one of its own or a lower grade.

    Value and gradient are 0 for a list of equal grades, or without a grade above 0.

        >>> loss = OrdinalSoftmaxLoss(temperature=0.1)
        >>> value = loss([[0, 2, -1]], [[0.2, 0.1, 0.9]])  # s = 2, 1; the third is padding
        >>> print(f"{value:.4f}")  # log(1 + exp(2 - 1))
        1.3133

    Args:
        temperature: T > 0 in units of the similarity.
        lower_grade_weight: w in [0, 1], the weight of a document relative to one of the next higher
            grade. The highest grade of a list counts 1.
        **kwargs: `reduction` and `name` of `RankingLoss`.
    """

    settings = ("temperature", "lower_grade_weight")

    def __init__(self, temperature: float = 0.1, lower_grade_weight: float = 0.1, **kwargs):
        super().__init__(temperature, **kwargs)
        if not 0 <= lower_grade_weight <= 1:
            raise ValueError(
                f"lower_grade_weight must be in [0, 1], got {lower_grade_weight!r}: use 0.1"
            )
        self.lower_grade_weight = float(lower_grade_weight)

    def call(self, y_true, y_pred):
        real = (y_true >= 0)[:, tf.newaxis]
        grades = tf.maximum(tf.cast(y_true, tf.int32), 0)  # a fractional grade is rounded down
        levels = tf.range(1 + tf.maximum(tf.reduce_max(grades), 0))[:, tf.newaxis]
        # [lists, levels]: how likely the documents below each grade are. None is below grade 0, so
        # documents of grade 0, and padding, have no loss.
        is_lower = real & (grades[:, tf.newaxis] < levels)
        lower = tf.where(is_lower, y_pred[:, tf.newaxis], y_pred.dtype.min)
        lower = tf.gather(tf.reduce_logsumexp(lower, axis=2), grades, axis=1, batch_dims=1)
        powers = tf.pow(self.lower_grade_weight, tf.cast(levels[:, 0], y_pred.dtype))
        weights = tf.gather(powers, tf.reduce_max(grades, axis=1, keepdims=True) - grades)
        return tf.reduce_sum(weights * tf.nn.softplus(lower - y_pred), axis=1)

    def get_config(self):
        return {**super().get_config(), "lower_grade_weight": self.lower_grade_weight}


def padded_lists(
    grades: tf.Tensor, scores: tf.Tensor, list_lengths: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns a flat batch as rows, `[lists, longest]` each; padding has grade -1 and score 0.

    Args:
        grades: `[documents]`, those of all lists, one list after the other.
        scores: `[documents]` in the same order.
        list_lengths: `[lists]` int.
    """
    grades = tf.cast(checked_labels(grades), tf.float32)
    return padded_rows(grades, list_lengths, -1), padded_rows(scores, list_lengths, 0)


def padded_rows(values: tf.Tensor, list_lengths: tf.Tensor, padding: int) -> tf.Tensor:
    """`[lists, longest]`, the values of each list and then padding."""
    real = tf.sequence_mask(list_lengths)
    empty = tf.fill(tf.shape(real), tf.constant(padding, values.dtype))
    return tf.tensor_scatter_nd_update(empty, tf.where(real), tf.reshape(values, [-1]))


def _from_zero(scores: tf.Tensor, real: tf.Tensor) -> tf.Tensor:
    """Moves the lowest real score of each list to 0, which changes no loss.

    A loss of another library may give padding the score log(1e-10), as tensorflow-ranking does, not
    minus infinity. Below every real score it has no weight.
    """
    lowest = tf.reduce_min(tf.where(real, scores, scores.dtype.max), axis=1, keepdims=True)
    return tf.where(real, scores - tf.stop_gradient(lowest), tf.zeros_like(scores))
