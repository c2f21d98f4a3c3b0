"""A small adversarial task: two optimizers that take turns, three losses, a helper."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import optimizer_variables
from tf_smoothclir.protocols.task import Batches, Epoch, TaskVariables

STEPS, PAIRS_IN_BATCH, DIM = 5, 4, 3
DISCRIMINATOR_STEPS = 2  # before each step of the model


class ToyScorer:
    """Scores that change with the weights, and that depend on nothing but rows and weights."""

    def __init__(self, weights):
        self._weights = weights

    def score(self, lists):
        angles = np.outer(lists.pair_query_rows + 1.0, self._weights)
        return np.sin(angles.sum(axis=1) + lists.document_rows).astype(np.float32)


class ToyBatches(Batches):
    """Random points; after each epoch, the scorer decides where the next ones lie."""

    def __init__(self):
        self._center = tf.Variable(0.0)
        self.variables = {"center": self._center}

    def epoch(self, number):
        random = np.random.default_rng(number)
        points = random.normal(self._center.numpy(), size=(STEPS, PAIRS_IN_BATCH, DIM))
        points = points.astype(np.float32)
        return Epoch(
            steps=STEPS,
            pairs=STEPS * PAIRS_IN_BATCH,
            batches=lambda start: tf.data.Dataset.from_tensor_slices(points[start:]),
            rows=lambda step: [(f"q{step}", f"d{pair}", "x") for pair in range(PAIRS_IN_BATCH)],
        )

    def after_epoch(self, completed, scorer):
        self._center.assign(float(scorer._weights.mean()) / completed)
        return {"center": float(self._center.numpy())}


class ToyTask:
    """The model fits the points to 1; a discriminator guesses what it says, which it avoids."""

    losses = ("loss", "fit_loss", "discriminator_loss")
    checked = ("gradient_norm", "discriminator_gradient_norm")
    remedy = "Play another game"

    def __init__(self):
        self.weights, self.discriminator = (
            tf.Variable(tf.fill([DIM], value)) for value in (0.1, -0.2)
        )
        self.optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
        self.discriminator_optimizer = keras.optimizers.Adam(0.01)
        self.batches = ToyBatches()
        state = []
        for optimizer, variable in self._steps():
            optimizer.build([variable])
            state += optimizer_variables(optimizer)
        self.variables = TaskVariables(
            weights=[self.weights],
            optimizer=state,
            helpers=[self.discriminator],
            more=self.batches.variables,
        )

    def _steps(self):
        yield self.optimizer, self.weights
        yield self.discriminator_optimizer, self.discriminator

    def train_step(self, batch, exchange=None):
        """Steps the discriminator `DISCRIMINATOR_STEPS` times, then the model."""
        for _ in range(DISCRIMINATOR_STEPS):
            with tf.GradientTape() as tape:
                guess = tf.linalg.matvec(batch, self.discriminator)
                guess_loss = tf.reduce_mean((guess - tf.linalg.matvec(batch, self.weights)) ** 2)
            guess_norm = self._stepped(1, tape, guess_loss)
        with tf.GradientTape() as tape:
            values = tf.linalg.matvec(batch, self.weights)
            fit = tf.reduce_mean((values - 1) ** 2)
            loss = fit + 0.1 * tf.reduce_mean(values * tf.linalg.matvec(batch, self.discriminator))
        norm = self._stepped(0, tape, loss)
        numbers = (loss, fit, guess_loss, norm, guess_norm, tf.shape(batch)[0])
        return dict(zip((*self.losses, *self.checked, "pairs"), numbers))

    def _stepped(self, number, tape, loss):
        optimizer, variable = tuple(self._steps())[number]
        gradients = tape.gradient(loss, [variable])
        optimizer.apply_gradients(zip(gradients, [variable]))
        return tf.linalg.global_norm(gradients)

    def begin_epoch(self, epoch):
        """Halves the learning rate of the model after each epoch."""
        self.optimizer.learning_rate = 0.1 * 0.5**epoch

    def scorer(self):
        return ToyScorer(self.weights.numpy())
