"""The base of the objectives: tasks that train two towers, and weights that only training needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import tensorflow as tf

from tf_smoothclir._compat.keras_api import optimizer_variables
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.optimizers import learning_rate, make_optimizer
from tf_smoothclir.optimizers.gradients import clipped, each_row_once
from tf_smoothclir.papers.li2018.settings import AdversarialSettings
from tf_smoothclir.papers.li2018.translations import OpeningQueries, WordTranslations
from tf_smoothclir.papers.li2018.triplets import TripletBatch, TripletBatches
from tf_smoothclir.protocols.task import LOSS, PAIRS, Exchange
from tf_smoothclir.training.tasks import ObjectiveInputs
from tf_smoothclir.two_tower.scorer import TwoTowerTask

_GRADIENT_NORM = "gradient_norm"


class HelpedTask(TwoTowerTask):
    """Trains the towers of a model, and helpers, by one loss; a subclass has it in `batch_losses`.

    Helpers, such as a tower for translated queries, take the same steps as the towers, by an
    optimizer of their own: the model's has the towers' weights alone, as an export has.
    """

    remedy = "Lower --learning_rate or --beta"
    parts: Sequence[str] = ()  # what else `batch_losses` gives, by name
    # What the batches have: translations of the set's queries; documents of the highest grade alone
    translates, best_only = False, True

    def __init__(self, inputs: ObjectiveInputs):
        """Translates texts, and makes queries of documents, as far as it needs them."""
        # The seed determines what is made of the texts, so a run that goes on has the same.
        training, tokenized_set = inputs.settings.training, inputs.tokenized_set
        self._own = inputs.settings.of(AdversarialSettings)
        translations = openings = None
        if self.translates or self._own.opening_epochs:
            texts = LexicalTexts(tokenized_set, inputs.settings.text.max_query_tokens)
            words = WordTranslations.learn(texts, training.seed)
            translations = words.queries(texts) if self.translates else None
            if self._own.opening_epochs:
                openings = OpeningQueries.of(tokenized_set, texts, words)
        batches = TripletBatches(
            tokenized_set,
            translations,
            training,
            openings=openings,
            opening_epochs=self._own.opening_epochs,
            best_only=self.best_only,
        )
        super().__init__(inputs.model, training, batches, tokenized_set)
        self.losses = (LOSS, *self.parts)
        self._helpers, kept = self.made_helpers()
        self._helper_optimizer = make_optimizer(training.optimizer, training.learning_rate)
        self._helper_optimizer.build(self._helpers)
        # 1 in the epochs of queries made of documents, and where there are none; else 0.
        self._first_stage = tf.Variable(1.0, trainable=False)
        self._keep(self._helper_optimizer, kept)

    def made_helpers(self) -> tuple[list[tf.Variable], list[tf.Variable]]:
        """The trained weights of the helpers, and all of them; none, unless a subclass has some."""
        return [], []

    def _keep(self, optimizer, helpers: Sequence[tf.Variable]) -> None:
        """Has checkpoints keep more: an optimizer, and weights that only training needs."""
        self.variables = dataclasses.replace(
            self.variables,
            optimizer=[*self.variables.optimizer, *optimizer_variables(optimizer)],
            helpers=[*self.variables.helpers, *helpers],
        )

    def batch_losses(self, batch: TripletBatch) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """The loss of a batch, and name -> the other numbers to log."""
        raise NotImplementedError

    def margins(self, queries: tf.Tensor, documents: tf.Tensor) -> tf.Tensor:
        """`[batch]`, how much closer queries are to their relevant document than to the other."""
        relevant, others = (
            self.model.similarity([queries, of]) for of in tf.split(documents, 2, axis=0)
        )
        return relevant - others

    def train_step(self, batch: TripletBatch, exchange: Exchange | None = None):
        """Steps towers and helpers once."""
        del exchange  # the rules of the settings allow one process alone
        trained = [*self.model.trainable_variables, *self._helpers]
        with tf.GradientTape() as tape:
            loss, parts = self.batch_losses(batch)
        gradients = tape.gradient(loss, trained, unconnected_gradients="zero")
        gradients = [each_row_once(gradient) for gradient in gradients]
        norm = tf.linalg.global_norm(gradients)
        if self._settings.clip_norm:
            gradients = clipped(gradients, norm, self._settings.clip_norm)
        of_towers = len(self.model.trainable_variables)
        for optimizer, part in (
            (self.model.optimizer, slice(of_towers)),
            (self._helper_optimizer, slice(of_towers, None)),
        ):
            if trained[part]:
                optimizer.apply_gradients(zip(gradients[part], trained[part]))
        return {LOSS: loss, **parts, _GRADIENT_NORM: norm, PAIRS: tf.shape(batch.grades)[0]}

    def begin_epoch(self, epoch: int) -> None:
        """Sets the learning rates of an epoch, from 0, and which stage it belongs to."""
        super().begin_epoch(epoch)
        self._helper_optimizer.learning_rate = learning_rate(self._settings, epoch)
        staged = self._own.opening_epochs > 0
        self._first_stage.assign(float(not staged or epoch < self._own.opening_epochs))
