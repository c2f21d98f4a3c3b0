"""The losses of Li and Cheng 2018, all of them means over a batch, and the discriminator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir.papers.li2018.settings import AdversarialSettings
from tf_smoothclir.two_tower.similarity import stable_norm

SOURCES = ("query", "translation", "document")
_UNITS = 128


def matching_loss(margins: tf.Tensor, beta: float) -> tf.Tensor:
    """The mean of CE[P, σ(β Δ)], Δ = r(q, d_+) - r(q, d_-) (section 3.2.2).

    CE[P, p] = -P log p - (1 - P) log(1 - p). Beside a document of grade 0, P = g_+ / (g_+ + g_-),
    the "rank prob" of Dehghani et al., "Neural Ranking Models with Weak Supervision", SIGIR 2017,
    which the paper names, is 1: this is the loss of S2Net, and the softmax cross-entropy of DSSM
    with one negative.

    Args:
        margins: `[batch]`, Δ.
    """
    logits = beta * margins
    ones = tf.ones_like(logits)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(ones, logits))


def translation_loss(queries: tf.Tensor, translations: tf.Tensor) -> tf.Tensor:
    """The mean of ‖z_s - z_t‖² (section 3.2.1), both `[batch, dim]`."""
    return tf.reduce_mean(tf.reduce_sum(tf.square(queries - translations), axis=1))


def source_log_likelihood(logits: Sequence[tf.Tensor]) -> tf.Tensor:
    """How well a discriminator names the source of vectors (section 3.3), at most 0.

    The mean over the sources of the mean of log D(z)[source]: each counts alike, though a batch has
    two documents for each query. It is -log 3 for a discriminator that finds three sources alike.

    Args:
        logits: Of each source in turn, `[vectors, sources]`.
    """
    means = [tf.reduce_mean(tf.nn.log_softmax(of)[:, n]) for n, of in enumerate(logits)]
    return tf.add_n(means) / len(means)


def source_accuracies(logits: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The share of the vectors of each source that a discriminator names right."""
    return [
        tf.reduce_mean(tf.cast(tf.equal(tf.argmax(of, axis=1), n), tf.float32))
        for n, of in enumerate(logits)
    ]


def encoder_loss(
    parts: Mapping[str, tf.Tensor],
    adversarial: AdversarialSettings,
    training_queries: int,
    first_stage: tf.Tensor,
) -> tf.Tensor:
    """What the encoders go down besides the likelihood (section 3.4), by means over a batch."""
    # The norms stand beside sums over all queries. `first_stage`: 1 where translations count too,
    # else 0.
    loss = adversarial.gamma2 * parts["matching_loss"]
    loss += adversarial.regularization / training_queries * parts["norms"]
    loss += first_stage * adversarial.gamma1 * parts["translation_loss"]
    return loss + first_stage * adversarial.gamma3 * parts["monolingual_loss"]


def norms(matrices: Sequence[tf.Variable]) -> tf.Tensor:
    """The sum of the Frobenius norms, not squared, of matrices (section 3.2.3); gradient 0 at 0."""
    of_each = [stable_norm(tf.reshape(matrix, [-1]))[0] for matrix in matrices]
    return tf.add_n(of_each) if of_each else tf.zeros([])


def discriminator(dim: int, seed: int = 0) -> keras.Model:
    """Three fully connected layers: logits `[batch, 3]` of the sources of vectors `[batch, dim]`.

    The paper (3.3) gives neither widths nor activations: 128 and 128 with ReLU here. The last layer
    begins with zeros, so that all sources are alike to it at first.
    """
    start, dense = keras.initializers.GlorotUniform, keras.layers.Dense
    model = keras.Sequential(
        [
            dense(_UNITS, "relu", kernel_initializer=start(seed=seed)),
            dense(_UNITS, "relu", kernel_initializer=start(seed=seed + 1)),
            dense(len(SOURCES), kernel_initializer="zeros"),
        ]
    )
    model.build((None, dim))
    return model
