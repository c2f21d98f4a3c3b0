"""The models that learn from pairs which say the same, of a query and its best document.

S2Net: a projection of vectors of terms. Yih, Toutanova, Platt and Meek, "Learning Discriminative
Projections for Text Similarity Measures", CoNLL 2011. One linear layer for either language
(--tower=linear --token_weights=idf) and the cosine of the projected vectors:

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

BAE: a bilingual autoencoder with correlated codes.

Chandar, Lauly, Larochelle, Khapra, Ravindran, Raykar and Saha, "An Autoencoder Approach to Learning
Bilingual Word Representations", NIPS 2014, in the variant that rebuilds bags of words; details as
in its first author's program. x and y are the binary bags of a query and its document, several
pairs merged into one ("merged bags"), W_x and W_y the tables of the towers (--tower=linear):

    a(x) = c + W_xᵀ x,  φ = σ(a),  rebuilt bags σ(W φ + b)
    L = l(x, y | a(x)) + l(x, y | a(y)) + l(x, y | a(x) + a(y)) - λ Σ_k cor(a(x)_k, a(y)_k)

with l the binary cross-entropy of both bags, summed over words, averaged over bags; the shared c
enters a sum of codes once. A text is ranked by the sum of the rows of its words, weighted by
--token_weights=idf.
"""

from __future__ import annotations

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import tf_variable, tf_weights
from tf_smoothclir.papers.li2018.helped_task import HelpedTask
from tf_smoothclir.text.tokens import Tokens
from tf_smoothclir.text.vocabulary import UNKNOWN_ID
from tf_smoothclir.two_tower.similarity import smooth_normalize

MERGED = 5  # pairs in a bag of the autoencoder
CORRELATION = 4.0  # λ of its program
_SMALLEST = 1e-8


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


class BaeTask(HelpedTask):
    """The `Task` of the bilingual autoencoder."""

    remedy = "Lower --learning_rate"
    parts = ("rebuilding_loss", "correlation")

    def made_helpers(self):
        query, document = self.model.query_tower, self.model.document_tower
        biases = keras.layers.Layer(name="biases")  # c and both b
        for size in (query.dim, query.vocabulary_size, document.vocabulary_size):
            biases.add_weight(name="bias", shape=(size,), initializer="zeros")
        self._biases = tf_weights(biases)
        return biases.trainable_weights, self._biases

    def batch_losses(self, batch):
        """Rebuilds both bags from either and from both."""
        towers = self.model.query_tower, self.model.document_tower
        tables = [tf.convert_to_tensor(tf_variable(tower.embeddings)) for tower in towers]
        relevant = first_texts(batch.documents, tf.shape(batch.grades)[0])
        bags = [
            merged_bags(tokens, tower.vocabulary_size)
            for tokens, tower in zip((batch.query, relevant), towers)
        ]
        code, *biases = map(tf.convert_to_tensor, self._biases)
        return bae_loss(bags, tables, code, biases)


def merged_bags(tokens, vocabulary_size: int, merged: int = MERGED) -> tf.Tensor:
    """`[bags, vocabulary_size]` float32, 1 for each known word that some texts have, else 0."""
    known = (tokens.ids > UNKNOWN_ID) & (tokens.ids < vocabulary_size)
    ids, texts = tf.boolean_mask(tokens.ids, known), tf.boolean_mask(tokens.texts, known)
    bags = (tf.size(tokens.lengths) + merged - 1) // merged
    places = tf.stack([texts // merged, ids], axis=1)
    ones = tf.ones([tf.size(ids)])
    return tf.minimum(tf.scatter_nd(places, ones, tf.stack([bags, vocabulary_size])), 1.0)


def first_texts(tokens, count: tf.Tensor):
    """The first texts of tokens, as `merged_bags` reads them."""
    end = tf.reduce_sum(tokens.lengths[:count])
    return Tokens(tokens.ids[:end], tokens.lengths[:count], tokens.texts[:end])


def bae_loss(bags, tables, code: tf.Tensor, biases) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """L, and its parts by name; both sides' bags `[bags, words]`, tables W, biases b, and c."""
    sums = [tf.matmul(bag, table) for bag, table in zip(bags, tables)]
    codes = [sums[0] + code, sums[1] + code, sums[0] + sums[1] + code]
    rebuilding = tf.add_n([_rebuilt(of_bags, bags, tables, biases) for of_bags in codes])
    correlated = correlation(codes[0], codes[1])
    parts = {"rebuilding_loss": rebuilding, "correlation": correlated}
    return rebuilding - CORRELATION * correlated, parts


def correlation(query: tf.Tensor, document: tf.Tensor) -> tf.Tensor:
    """The sum over columns of the correlation of two `[bags, dim]`."""
    query, document = (of - tf.reduce_mean(of, axis=0) for of in (query, document))
    products = tf.reduce_sum(query * document, axis=0)
    squares = [tf.reduce_sum(of**2, axis=0) for of in (query, document)]
    return tf.reduce_sum(products / tf.sqrt(squares[0] * squares[1] + _SMALLEST))


def _rebuilt(code: tf.Tensor, bags, tables, biases) -> tf.Tensor:
    loss = tf.zeros([])
    for bag, table, bias in zip(bags, tables, biases):
        logits = tf.matmul(tf.sigmoid(code), table, transpose_b=True) + bias
        losses = tf.nn.sigmoid_cross_entropy_with_logits(bag, logits)
        loss += tf.reduce_mean(tf.reduce_sum(losses, axis=1))
    return loss
