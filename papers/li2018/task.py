"""Training encoders against a discriminator (Li and Cheng 2018): one task, three optimizers.

A step first lets the discriminator climb k times: θ_D moves up the log-likelihood of the sources of
the vectors of the batch, which stay as they are. Then the encoders descend once:

    θ_G moves down  γ1 translation + γ2 matching (query) + γ3 matching (translation)
                    + regularization + weight * log-likelihood of the right source.

With queries made of documents, later epochs move down matching (query) and regularization alone.
All losses are means over a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import tf_variable, tf_weights
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.optimizers import make_optimizer
from tf_smoothclir.papers.li2018.helped_task import HelpedTask
from tf_smoothclir.papers.li2018.settings import AdversarialSettings
from tf_smoothclir.papers.li2018.towers import matrices
from tf_smoothclir.papers.li2018.triplets import TripletBatch
from tf_smoothclir.towers.word_table import WordTableTower
from tf_smoothclir.training.tasks import ObjectiveInputs
from tf_smoothclir.two_tower.model import TwoTower
from tf_smoothclir.two_tower.similarity import stable_norm

SOURCES = ("query", "translation", "document")
_GAME = ("log_likelihood", *(f"accuracy_{source}" for source in SOURCES))
_SEED_OF_DISCRIMINATOR = 1000  # apart from the seeds of the towers
_UNITS = 128


class AdversarialTask(HelpedTask):
    """The `Task` of a `TwoTower`, a tower for translations, and perhaps a discriminator."""

    remedy = "Lower --learning_rate, --beta or --adversarial_weight"
    parts = ("translation_loss", "matching_loss", "monolingual_loss", "norms", "vector_length")
    translates, best_only = True, False

    def __init__(self, inputs: ObjectiveInputs):
        super().__init__(inputs)
        self._training_queries = len(inputs.tokenized_set.retrieval_set.queries_in("train"))
        self.discriminator: keras.Model | None = None
        if self._own.discriminator_steps:
            self.losses += _GAME
            seed = self._settings.seed + _SEED_OF_DISCRIMINATOR
            self.discriminator = discriminator(self.model.query_tower.dim, seed)
            self._discriminator_optimizer = make_optimizer("adam", self._own.discriminator_rate)
            self._discriminator_optimizer.build(self.discriminator.trainable_variables)
            self._keep(self._discriminator_optimizer, tf_weights(self.discriminator))

    def made_helpers(self):
        self.encoders = Encoders(self.model, self._settings.seed + len(ROLES))
        return self.encoders.borrower_weights, self.encoders.borrower_state

    def batch_losses(self, batch):
        """Steps the discriminator, and returns the losses of the encoders against it."""
        vectors = self.encoders(batch)
        game = self._train_discriminator(vectors)
        queries, translations, documents = (vectors[source] for source in SOURCES)
        lengths = [tf.reduce_mean(tf.norm(of, axis=1)) for of in (queries, translations, documents)]
        beta = self._own.beta
        parts = {
            "translation_loss": translation_loss(queries, translations),
            "matching_loss": matching_loss(self.margins(queries, documents), beta),
            "monolingual_loss": matching_loss(self.margins(translations, documents), beta),
            "norms": norms(self.encoders.matrices),
            "vector_length": tf.stop_gradient(tf.add_n(lengths) / len(lengths)),
        }
        loss = encoder_loss(parts, self._own, self._training_queries, self._first_stage)
        if self._own.adversarial_weight:
            likelihood = source_log_likelihood(self.logits(vectors))
            loss += self._first_stage * self._own.adversarial_weight * likelihood
        return loss, {**parts, **game}

    def logits(self, vectors: dict[str, tf.Tensor]) -> list[tf.Tensor]:
        """What the discriminator says of the vectors of each source, `[vectors, 3]`."""
        return [self.discriminator(vectors[source]) for source in SOURCES]

    def _train_discriminator(self, vectors) -> dict[str, tf.Tensor]:
        """Steps the discriminator k times on fixed vectors."""
        first = {}
        fixed = {source: tf.stop_gradient(of) for source, of in vectors.items()}
        for _ in range(self._own.discriminator_steps):
            trained = self.discriminator.trainable_variables
            with tf.GradientTape() as tape:
                logits = self.logits(fixed)
                likelihood = source_log_likelihood(logits)
                loss = -likelihood
            gradients = tape.gradient(loss, trained)
            first = first or dict(zip(_GAME, (likelihood, *source_accuracies(logits))))
            self._discriminator_optimizer.apply_gradients(zip(gradients, trained))
        return first


class Encoders:
    """Three towers, one for each source. Queries and documents are what a trained model keeps."""

    # Translated queries share the table of words of documents, and begin with the same layers
    # after it: other random layers would make the same words strangers. `matrices` are those of
    # all layers; `borrower_weights`, the trained ones of the tower of translations, without its
    # tables.

    def __init__(self, model: TwoTower, seed: int):
        lender = model.document_tower
        config = {**lender.get_config(), "name": "translation_tower"}
        if "seed" in config:
            config["seed"] = seed
        borrower: WordTableTower = type(lender)(**config)
        for name in lender.tables():
            setattr(borrower, name, getattr(lender, name))
        borrower.build()
        borrower.start_like(lender)
        borrower.names_all_rows = lender.names_all_rows
        self.towers = {"query": model.query_tower, "translation": borrower, "document": lender}
        self.matrices = [m for tower in self.towers.values() for m in matrices(tower)]
        lent = {id(table) for table in lender.tables().values()}
        self.borrower_weights = [
            weight for weight in borrower.trainable_weights if id(tf_variable(weight)) not in lent
        ]
        self.borrower_state = lender.but_tables(borrower.weights)  # such as counters of dropout

    def __call__(self, batch: TripletBatch) -> dict[str, tf.Tensor]:
        """Source -> vectors; of both documents of all triplets in one pass."""
        texts = zip(SOURCES, (batch.query, batch.translation, batch.documents))
        return {source: self.towers[source](of, training=True) for source, of in texts}


def matching_loss(margins: tf.Tensor, beta: float) -> tf.Tensor:
    """The mean of CE[P, σ(β Δ)] over `[batch]` margins Δ = r(q, d_+) - r(q, d_-) (section 3.2.2).

    CE[P, p] = -P log p - (1 - P) log(1 - p). Beside a document of grade 0, P = g_+ / (g_+ + g_-),
    the "rank prob" of Dehghani et al., "Neural Ranking Models with Weak Supervision", SIGIR 2017,
    which the paper names, is 1: this is the loss of S2Net, and the softmax cross-entropy of DSSM
    with one negative.
    """
    ones = tf.ones_like(margins)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(ones, beta * margins))


def translation_loss(queries: tf.Tensor, translations: tf.Tensor) -> tf.Tensor:
    """The mean of ‖z_s - z_t‖² (section 3.2.1), both `[batch, dim]`."""
    return tf.reduce_mean(tf.reduce_sum(tf.square(queries - translations), axis=1))


def source_log_likelihood(logits: Sequence[tf.Tensor]) -> tf.Tensor:
    """How well the `[vectors, sources]` logits of each name their source (section 3.3), at most 0.

    The mean over the sources of the mean of log D(z)[source]: each counts alike, though a batch has
    two documents for each query. It is -log 3 for a discriminator that finds three sources alike.
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
