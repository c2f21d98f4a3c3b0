"""S2Net and XCNN.

S2Net: a projection of vectors of terms, learned from pairs that say the same.

Yih, Toutanova, Platt and Meek, "Learning Discriminative Projections for Text Similarity Measures",
CoNLL 2011. One linear layer for either language (--tower=linear --token_weights=idf) and the cosine
of the projected vectors:

    L = mean of log(1 + exp(-β (cos(q, d) - cos(q, d')))) over pairs (q, d) and the partners d' of
        the other pairs of a batch, and the same with the sides exchanged.

The paper's factor is 10. It takes L-BFGS, a start from another projection and all pairs as
negatives; here it is the optimizer of --optimizer, a random start and the pairs of a batch.

XCNN: ranking learned in one language, then carried over to the other.

Gupta, Banchs and Rosso, "Continuous Space Models for CLIR", Information Processing and Management
53(2), 2017, as its first author's programs have it (github.com/parthg/jDNN). A text is the sum of
tanh(w_t + b) over its words t (--tower=word_tanh). Both stages take the same loss,

    L = -mean(cos(A, B) - cos(A, N)).

First, in the language of the documents alone: A is the opening of a document, B what BM25 finds for
it, N another document (--opening_epochs). Then A is a query, B the vector of its document of the
highest grade, which stays as it is, N that of another document.
"""

from __future__ import annotations

import tensorflow as tf

from tf_smoothclir.papers.li2018.helped_task import HelpedTask
from tf_smoothclir.two_tower.similarity import smooth_normalize


def s2net_loss(similarities: tf.Tensor, beta: float) -> tf.Tensor:
    """The loss of `[pairs, pairs]`, every query with the document of every pair; 0 for one."""
    pairs = tf.shape(similarities)[0]
    matched = tf.linalg.diag_part(similarities)
    losses = tf.nn.softplus(-beta * (matched[:, tf.newaxis] - similarities))
    losses += tf.nn.softplus(-beta * (matched[tf.newaxis, :] - similarities))
    losses = tf.linalg.set_diag(losses, tf.zeros_like(matched))
    return tf.math.divide_no_nan(
        tf.reduce_sum(losses), tf.cast(2 * pairs * (pairs - 1), losses.dtype)
    )


class S2NetTask(HelpedTask):
    """The `Task` of S2Net."""

    def batch_losses(self, batch):
        """Compares each query with the documents of all pairs of the batch."""
        queries = self.model.query_tower(batch.query, training=True)
        documents = self.model.document_tower(batch.documents, training=True)
        relevant, _ = tf.split(documents, 2, axis=0)
        epsilon = self.model.similarity.epsilon
        queries, relevant = (smooth_normalize(of, epsilon) for of in (queries, relevant))
        similarities = tf.matmul(queries, relevant, transpose_b=True)
        return s2net_loss(similarities, self._own.beta), {}


class XcnnTask(HelpedTask):
    """The `Task` of XCNN."""

    remedy = "Lower --learning_rate"

    def batch_losses(self, batch):
        """The loss of the stage, which the other stage's does not enter."""
        queries = self.model.query_tower(batch.query, training=True)
        openings = self.model.document_tower(batch.translation, training=True)
        documents = self.model.document_tower(batch.documents, training=True)
        monolingual = -tf.reduce_mean(self.margins(openings, documents))
        transfer = -tf.reduce_mean(self.margins(queries, tf.stop_gradient(documents)))
        return self._first_stage * monolingual + (1 - self._first_stage) * transfer, {}
