"""Smooth Cosine Similarity (SCS) and smooth-normalised vectors, whose inner product it is.

Source: Liu et al., "Cross-Lingual Document Retrieval with Smooth Learning", 2020, section 3.3.
"""

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir.losses.base import is_finite
from tf_smoothclir.losses.labels import after, floating


def stable_norm(vectors: tf.Tensor) -> tf.Tensor:
    """The Euclidean norm over the last axis, `[..., dim]` to `[..., 1]`, in either precision."""
    # The gradient is x / ‖x‖ and, at the zero vector, 0; that of `tf.norm` is NaN there. Entries
    # are first divided by the largest one, so that no square overflows or underflows.
    scale = tf.stop_gradient(tf.reduce_max(tf.abs(vectors), axis=-1, keepdims=True))
    # For a zero vector the division returns 0 forward and backward, whatever the root's gradient.
    scaled = tf.math.divide_no_nan(vectors, scale)
    return scale * tf.sqrt(tf.reduce_sum(tf.square(scaled), axis=-1, keepdims=True))


def smooth_normalize(vectors: tf.Tensor, epsilon: float) -> tf.Tensor:
    """Returns x / (‖x‖ + ε) over the last axis; the inner product of two of these is their SCS.

    Value and gradient are finite everywhere for ε > 0, the zero vector included. For ε = 0 a zero
    vector stays zero, and the gradient grows without bound towards it. Half precision is computed
    in float32.

    Args:
        vectors: `[..., dim]`, any floating dtype; other numbers are read as float32.
        epsilon: The smoothness factor ε, a finite number >= 0.

    Returns:
        The shape and floating dtype of `vectors`; norms below 1 for ε > 0.

    Raises:
        ValueError: `epsilon` is negative or not finite.
    """
    epsilon = _check_epsilon(epsilon)
    vectors = floating(vectors)
    wide = _widen(vectors)
    normalized = tf.math.divide_no_nan(wide, stable_norm(wide) + epsilon)
    return tf.cast(normalized, vectors.dtype)


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class SmoothCosineSimilarity(keras.layers.Layer):
    """Scores documents against queries by Smooth Cosine Similarity (Liu et al., 2020, eq. 1).

        r_ε(q, d) = f_q · f_d / ((‖f_q‖ + ε) (‖f_d‖ + ε))

    Scores lie strictly inside (-1, 1) for ε > 0, up to rounding, and the gradient has a bound that
    cosine similarity lacks: ‖∂r/∂f_q‖ <= ‖v_d‖ / (‖f_q‖ + ε) < 1/ε, where v_d = f_d / (‖f_d‖ + ε)
    (Lemma 2 states the looser 2/ε). Call it on `[query_vectors, document_vectors]`:

        `[batch, dim]` and `[batch, dim]`        give `[batch]`, one document per query;
        `[batch, dim]` and `[batch, list, dim]`  give `[batch, list]`, one list per query.

    Args:
        epsilon: The smoothness factor ε, a finite number >= 0. 1.0 is the paper's; 0 is the plain
            cosine, for comparison only.
        **kwargs: `name` and `dtype`, as in any Keras layer.

    Raises:
        ValueError: `epsilon` is negative or not finite, or the shapes do not fit together.
    """

    def __init__(self, epsilon: float = 1.0, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = _check_epsilon(epsilon)
        self.supports_masking = True

    def call(self, inputs):
        """Scores documents; see the class."""
        if not isinstance(inputs, (list, tuple)) or len(inputs) != 2:
            raise ValueError(
                f"inputs must be the list [query_vectors, document_vectors], but are {inputs!r}."
                " Call the layer on both in one list."
            )
        queries, documents = map(floating, inputs)
        _score_shape(queries.shape, documents.shape)
        numbers = tf.shape(queries)[0], tf.shape(documents)[0]  # one would be that of all
        message = "give as many query_vectors as document_vectors, or lists of them"
        queries = after(tf.debugging.assert_equal(*numbers, message), queries)
        dtype = documents.dtype
        queries, documents = _widen(queries), _widen(documents)
        # Only the queries are normalised. Dividing their inner products with the documents, which
        # ‖f_d‖ bounds, saves a tensor of the size of the documents each way.
        queries = smooth_normalize(queries, self.epsilon)
        if documents.shape.rank == 3:
            products = tf.linalg.matvec(documents, queries)
        else:
            products = tf.reduce_sum(queries * documents, axis=-1)
        norms = tf.squeeze(stable_norm(documents), axis=-1)
        return tf.cast(tf.math.divide_no_nan(products, norms + self.epsilon), dtype)

    def compute_mask(self, inputs, mask=None):
        """Returns the mask of documents `[batch, list, dim]`, if Keras has one of each document."""
        of_documents = mask[1] if isinstance(mask, (list, tuple)) else None
        if of_documents is None or not len(of_documents.shape) + 1 == len(inputs[1].shape) == 3:
            return None
        return of_documents

    def compute_output_shape(self, input_shape):
        """Returns the static shape of the scores."""
        return _score_shape(*(tf.TensorShape(shape) for shape in input_shape))

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "epsilon": self.epsilon}


def _widen(vectors: tf.Tensor) -> tf.Tensor:
    """Casts half precision to float32, whose range the norm needs."""
    is_half = vectors.dtype in (tf.float16, tf.bfloat16)
    return tf.cast(vectors, tf.float32) if is_half else vectors


def _check_epsilon(epsilon: float) -> float:
    if not (is_finite(epsilon) and epsilon >= 0):
        raise ValueError(
            f"epsilon must be a finite number >= 0, but is {epsilon!r}. Use 1.0, as in the paper,"
            " or 0 for the plain cosine."
        )
    return float(epsilon)


def _score_shape(queries: tf.TensorShape, documents: tf.TensorShape) -> tuple:
    """The static shape of the scores, or raises ValueError if the two do not fit."""
    fits = (
        queries.rank == 2
        and documents.rank in (2, 3)
        and queries[1:].is_compatible_with(documents[-1:])
        and queries[:1].is_compatible_with(documents[:1])
    )
    if not fits:
        raise ValueError(
            f"query_vectors {queries} and document_vectors {documents} do not fit together."
            " Give [batch, dim] with [batch, dim] or with [batch, list, dim]."
        )
    return tuple(documents)[:-1]
