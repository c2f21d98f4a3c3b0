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

from tf_smoothclir._compat.keras_api import optimizer_variables, tf_weights
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.losses.sosl import SmoothOrdinalSearchLoss
from tf_smoothclir.optimizers import make_optimizer
from tf_smoothclir.papers.li2018 import constraints
from tf_smoothclir.papers.li2018.discriminator import SOURCES, Discriminator
from tf_smoothclir.papers.li2018.encoders import Encoders
from tf_smoothclir.papers.li2018.helped_task import HelpedTask
from tf_smoothclir.papers.li2018.settings import AdversarialSettings
from tf_smoothclir.protocols.task import Batches
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.two_tower.model import TwoTower
from tf_smoothclir.two_tower.similarity import smooth_normalize

_PARTS = ("translation_loss", "matching_loss", "monolingual_loss", "norms", "vector_length")
_GAME = ("log_likelihood", *(f"accuracy_{source}" for source in SOURCES))
_SEED_OF_DISCRIMINATOR = 1000  # apart from the seeds of the towers


class AdversarialTask(HelpedTask):
    """The `Task` of a `TwoTower` and its adversary.

    Attributes:
        encoders: The towers of the model, and one for translations.
        discriminator: None where --discriminator_steps is 0.
    """

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
        own = settings.of(AdversarialSettings)
        super().__init__(
            model,
            settings,
            batches,
            tokenized_set,
            helpers=encoders.borrower_weights,
            helper_state=encoders.borrower_state,
            parts=(*_PARTS, *_GAME * (own.discriminator_steps > 0)),
        )
        self.encoders = encoders
        self._norm_weight = own.regularization / training_queries
        self._sosl = SmoothOrdinalSearchLoss(settings.model.thresholds)
        self.discriminator: Discriminator | None = None
        if own.discriminator_steps:
            seed = settings.training.seed + _SEED_OF_DISCRIMINATOR
            self.discriminator = Discriminator(model.query_tower.dim, seed)
            self.discriminator.build()
            self._discriminator_optimizer = make_optimizer("adam", own.discriminator_rate)
            self._discriminator_optimizer.build(self.discriminator.trainable_variables)
            more = optimizer_variables(self._discriminator_optimizer)
            self.variables = dataclasses.replace(
                self.variables,
                optimizer=[*self.variables.optimizer, *more],
                helpers=[*self.variables.helpers, *tf_weights(self.discriminator)],
            )

    def batch_losses(self, batch, tape, exchange):
        """Steps the discriminator, and returns the losses of the encoders against it."""
        vectors = self.encoders(batch)
        with tape.stop_recording():
            game = self._train_discriminator(vectors, tf.shape(batch.grades)[0], exchange)
        parts = self.parts(vectors, batch.grades)
        return self.total(parts, vectors), {**parts, **game}

    def parts(self, vectors: dict[str, tf.Tensor], grades: tf.Tensor) -> dict[str, tf.Tensor]:
        """The losses of the encoders without their weights, and the mean of ‖z‖.

        Args:
            grades: `[batch, 2]` int32.
        """
        queries, translations, documents = (vectors[source] for source in SOURCES)
        lengths = [tf.reduce_mean(tf.norm(of, axis=1)) for of in (queries, translations, documents)]
        return {
            "translation_loss": constraints.translation_loss(queries, translations),
            "matching_loss": self._matching(queries, documents, grades),
            "monolingual_loss": self._matching(translations, documents, grades),
            "norms": constraints.norms(self.encoders.matrices),
            "vector_length": tf.stop_gradient(tf.add_n(lengths) / len(lengths)),
        }

    def total(self, parts: dict[str, tf.Tensor], vectors: dict[str, tf.Tensor]) -> tf.Tensor:
        """The loss of the encoders: their own, and what the discriminator adds to it."""
        own, first = self._own, self._first_stage
        loss = own.gamma2 * parts["matching_loss"] + self._norm_weight * parts["norms"]
        loss += first * own.gamma1 * parts["translation_loss"]
        loss += first * own.gamma3 * parts["monolingual_loss"]
        if own.adversarial_weight:
            loss += first * own.adversarial_weight * self._adversarial_loss(vectors)
        return loss

    def logits(self, vectors: dict[str, tf.Tensor]) -> list[tf.Tensor]:
        """What the discriminator says of the vectors of each source, `[vectors, 3]`."""
        found = [vectors[source] for source in SOURCES]
        if self._own.discriminator_input == "normalised":
            found = [smooth_normalize(of, self.model.similarity.epsilon) for of in found]
        return [self.discriminator(of) for of in found]

    def _matching(self, queries, documents, grades) -> tf.Tensor:
        relevant, others = (
            self.model.similarity([queries, of]) for of in tf.split(documents, 2, axis=0)
        )
        if self._own.matching_loss == "sosl":
            return self._sosl(tf.transpose(grades), tf.stack([relevant, others]))
        preferred = constraints.preferences(grades)
        return constraints.matching_loss(preferred, relevant - others, self._own.beta)

    def _adversarial_loss(self, vectors: dict[str, tf.Tensor]) -> tf.Tensor:
        logits = self.logits(vectors)
        if self._own.adversarial_loss == "uniform":
            return constraints.confusion_loss(logits)
        return constraints.source_log_likelihood(logits)

    def _train_discriminator(self, vectors, pairs, exchange) -> dict[str, tf.Tensor]:
        """Steps the discriminator k times on fixed vectors."""
        if self.discriminator is None:
            return {}
        found = {}
        fixed = {source: tf.stop_gradient(of) for source, of in vectors.items()}
        trained = self.discriminator.trainable_variables
        for _ in range(self._own.discriminator_steps):
            with tf.GradientTape() as tape:
                logits = self.logits(fixed)
                likelihood = constraints.source_log_likelihood(logits)
                loss = -likelihood
            gradients = tape.gradient(loss, trained)
            measured = (likelihood, *constraints.source_accuracies(logits))
            found = found or dict(zip(_GAME, measured))
            if exchange:
                gradients, *_ = exchange(gradients, [loss], pairs, pairs)
            self._discriminator_optimizer.apply_gradients(zip(gradients, trained))
        return found
