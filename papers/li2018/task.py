"""Training encoders against a discriminator (Li and Cheng 2018): one task, three optimizers.

A step first lets the discriminator climb k times: θ_D moves up the log-likelihood of the sources of
the vectors of the batch, which stay as they are. Then the encoders descend once:

    θ_G moves down  γ1 translation + γ2 matching (query) + γ3 matching (translation)
                    + regularization + weight * log-likelihood of the right source.

With queries made of documents, later epochs move down matching (query) and regularization alone.
"""

from __future__ import annotations

import dataclasses

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import optimizer_variables, tf_variable, tf_weights
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.optimizers import make_optimizer
from tf_smoothclir.papers.li2018 import constraints
from tf_smoothclir.papers.li2018.constraints import SOURCES, discriminator
from tf_smoothclir.papers.li2018.helped_task import HelpedTask
from tf_smoothclir.papers.li2018.settings import AdversarialSettings
from tf_smoothclir.papers.li2018.towers import matrices
from tf_smoothclir.papers.li2018.triplets import TripletBatch
from tf_smoothclir.protocols.task import Batches
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.towers.word_table import WordTableTower
from tf_smoothclir.two_tower.model import TwoTower

_PARTS = ("translation_loss", "matching_loss", "monolingual_loss", "norms", "vector_length")
_GAME = ("log_likelihood", *(f"accuracy_{source}" for source in SOURCES))
_SEED_OF_DISCRIMINATOR = 1000  # apart from the seeds of the towers


class AdversarialTask(HelpedTask):
    """The `Task` of a `TwoTower`, a tower for translations, and perhaps a discriminator."""

    remedy = "Lower --learning_rate, --beta or --adversarial_weight"

    def __init__(
        self,
        model: TwoTower,
        settings: RunSettings,
        batches: Batches,
        encoders: Encoders,
        tokenized_set: TokenizedSet | None = None,
        *,
        training_queries: int = 1,
    ):
        adversarial = settings.of(AdversarialSettings)
        super().__init__(
            model,
            settings,
            batches,
            tokenized_set,
            helpers=encoders.borrower_weights,
            helper_state=encoders.borrower_state,
            parts=(*_PARTS, *_GAME * (adversarial.discriminator_steps > 0)),
        )
        self.encoders = encoders
        self._training_queries = training_queries
        self.discriminator: keras.Model | None = None
        if adversarial.discriminator_steps:
            seed = settings.training.seed + _SEED_OF_DISCRIMINATOR
            self.discriminator = discriminator(model.query_tower.dim, seed)
            self._discriminator_optimizer = make_optimizer("adam", adversarial.discriminator_rate)
            self._discriminator_optimizer.build(self.discriminator.trainable_variables)
            more = optimizer_variables(self._discriminator_optimizer)
            self.variables = dataclasses.replace(
                self.variables,
                optimizer=[*self.variables.optimizer, *more],
                helpers=[*self.variables.helpers, *tf_weights(self.discriminator)],
            )

    def batch_losses(self, batch):
        """Steps the discriminator, and returns the losses of the encoders against it."""
        vectors = self.encoders(batch)
        game = self._train_discriminator(vectors)
        parts = self.parts(vectors)
        return self.total(parts, vectors), {**parts, **game}

    def parts(self, vectors: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The losses of the encoders without their weights, and the mean of ‖z‖."""
        queries, translations, documents = (vectors[source] for source in SOURCES)
        lengths = [tf.reduce_mean(tf.norm(of, axis=1)) for of in (queries, translations, documents)]
        return {
            "translation_loss": constraints.translation_loss(queries, translations),
            "matching_loss": self._matching(queries, documents),
            "monolingual_loss": self._matching(translations, documents),
            "norms": constraints.norms(self.encoders.matrices),
            "vector_length": tf.stop_gradient(tf.add_n(lengths) / len(lengths)),
        }

    def total(self, parts: dict[str, tf.Tensor], vectors: dict[str, tf.Tensor]) -> tf.Tensor:
        """The loss of the encoders: their own, and what the discriminator adds to it."""
        adversarial, first = self._own, self._first_stage
        loss = constraints.encoder_loss(parts, adversarial, self._training_queries, first)
        if adversarial.adversarial_weight:
            likelihood = constraints.source_log_likelihood(self.logits(vectors))
            loss += first * adversarial.adversarial_weight * likelihood
        return loss

    def logits(self, vectors: dict[str, tf.Tensor]) -> list[tf.Tensor]:
        """What the discriminator says of the vectors of each source, `[vectors, 3]`."""
        return [self.discriminator(vectors[source]) for source in SOURCES]

    def _matching(self, queries, documents) -> tf.Tensor:
        relevant, others = (
            self.model.similarity([queries, of]) for of in tf.split(documents, 2, axis=0)
        )
        return constraints.matching_loss(relevant - others, self._own.beta)

    def _train_discriminator(self, vectors) -> dict[str, tf.Tensor]:
        """Steps the discriminator k times on fixed vectors."""
        if self.discriminator is None:
            return {}
        first = {}
        fixed = {source: tf.stop_gradient(of) for source, of in vectors.items()}
        trained = self.discriminator.trainable_variables
        for _ in range(self._own.discriminator_steps):
            with tf.GradientTape() as tape:
                logits = self.logits(fixed)
                likelihood = constraints.source_log_likelihood(logits)
                loss = -likelihood
            gradients = tape.gradient(loss, trained)
            measured = (likelihood, *constraints.source_accuracies(logits))
            first = first or dict(zip(_GAME, measured))
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
        texts = {
            "query": batch.query,
            "translation": batch.translation,
            "document": batch.documents,
        }
        return {name: tower(texts[name], training=True) for name, tower in self.towers.items()}
