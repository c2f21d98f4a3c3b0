"""Learning a network from pairs: a relevant document must score above others of its query."""

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf
from absl import logging
from tensorflow import keras

from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.interaction.inputs import InteractionTexts
from tf_smoothclir.interaction.networks.base import InteractionNetwork
from tf_smoothclir.optimizers.sparse_rmsprop import SparseAdagrad
from tf_smoothclir.utils.progress import progress_bar

HINGE, SOFTMAX = "hinge", "softmax"
PAIRS_AT_ONCE = 2048  # as many as are scored in one step


@dataclasses.dataclass(frozen=True)
class LearningSettings:
    """Settings of learning a network; the defaults are those of Yu and Allan 2020, section 3."""

    # "hinge": the mean of max(0, margin - s(d+) + s(d-)) over pairs. "softmax": the cross entropy
    # of the relevant document among itself and its negatives.
    loss: str = HINGE
    margin: float = 1.0
    negatives: int = 5  # documents of grade 0 for each relevant one, drawn again in each epoch
    batch_size: int = 64
    learning_rate: float = 1e-3
    epochs: int = 50  # at most; the weights of the best one are kept
    # Epochs without a better one after which learning ends; 0 never ends it early.
    patience: int = 0
    least_grade: int = 1  # from which grade on a document counts as relevant
    # Learning rate of word vectors, of sparse Adagrad; 0 leaves them as they are.
    vector_rate: float = 0.0
    # Whether a re-ranker is also learned with documents of lower grades.
    tries_related: bool = False


@dataclasses.dataclass(frozen=True)
class Learned:
    """History of learning a network."""

    best_epoch: int  # from 1; 0 if the weights to begin with were best
    history: tuple[float, ...]  # what `validate` returned before the first epoch and after each
    losses: tuple[float, ...]
    seconds: float


def learn(
    network: InteractionNetwork,
    texts: InteractionTexts,
    lists: CandidateLists,
    validate: Callable[[], float],
    settings: LearningSettings,
    *,
    seed: int,
) -> Learned:
    """Trains the weights of a network, and leaves it with those of the best epoch."""
    begin = time.monotonic()
    triples = _Triples(lists, settings, seed)
    pairs, train_step = PairFeatures(network, texts, lists), _training_step(network, settings)
    changing = [*map(tf_variable, network.trainable_weights), *network.word_vectors]
    history, losses, best = [validate()], [], [variable.numpy() for variable in changing]
    epochs = settings.epochs if triples.steps else 0
    with progress_bar(triples.steps * epochs, "Train the re-ranker", "steps") as bar:
        for epoch in range(epochs):
            total = 0.0
            for chosen in triples.epoch(epoch):
                total += float(train_step(pairs.of(chosen)))
                bar.update(1)
            losses.append(total / triples.steps)
            history.append(validate())
            bar.note(f"loss {losses[-1]:.4f}, validation {history[-1]:.4f}")
            best_epoch = _best_epoch(history)
            if best_epoch == epoch + 1:
                best = [variable.numpy() for variable in changing]
            if settings.patience and epoch + 1 - best_epoch >= settings.patience:
                break
    for variable, value in zip(changing, best):
        variable.assign(value)
    seconds = round(time.monotonic() - begin, 3)
    learned = Learned(_best_epoch(history), tuple(history), tuple(losses), seconds)
    logging.info(
        "Re-ranker: best epoch %d of %d, validation %.4f (%.1f s)",
        learned.best_epoch,
        len(losses),
        history[learned.best_epoch],
        learned.seconds,
    )
    return learned


def _training_step(network: InteractionNetwork, settings: LearningSettings) -> Callable:
    """Step of learning, from the inputs of a batch to its loss; the optimizers are new."""
    weights = [tf_variable(weight) for weight in network.trainable_weights]
    vectors = network.word_vectors
    if vectors:
        of_vectors = SparseAdagrad(settings.vector_rate)
        of_vectors.build(vectors)
    optimizer = keras.optimizers.Adam(settings.learning_rate)
    optimizer.build(network.trainable_weights)

    @tf.function(reduce_retracing=True)
    def train_step(inputs):
        with tf.GradientTape() as tape:
            features = inputs if network.features_once else network.features(*inputs)
            scores = network.score(features, training=True)
            loss = loss_of(tf.reshape(scores, [-1, 1 + settings.negatives]), settings)
        gradients = tape.gradient(loss, weights + vectors)
        optimizer.apply_gradients(zip(gradients, network.trainable_weights))
        if vectors:
            of_vectors.apply_gradients(zip(gradients[len(weights) :], vectors))
        return loss

    return train_step


def _best_epoch(history: Sequence[float]) -> int:
    """The first place of the largest number, which NaN never is."""
    return int(np.argmax(np.where(np.isnan(history), -np.inf, history)))


def loss_of(scores: tf.Tensor, settings: LearningSettings) -> tf.Tensor:
    """The mean loss of `[batch, 1 + negatives]` scores, the relevant document's first."""
    if settings.loss == SOFTMAX:
        return -tf.reduce_mean(tf.nn.log_softmax(scores)[:, 0])
    return tf.reduce_mean(tf.nn.relu(settings.margin - scores[:, :1] + scores[:, 1:]))


class PairFeatures:
    """Inputs of a network for the pairs of lists: features, computed once, or ids of words."""

    def __init__(self, network: InteractionNetwork, texts: InteractionTexts, lists: CandidateLists):
        self._texts, self._features = texts, None
        self._rows = lists.pair_query_rows, lists.document_rows
        if network.features_once:
            features = tf.function(network.features, reduce_retracing=True)
            # Texts of one length together: little padding in a piece.
            order = texts.by_length(*self._rows)
            parts = [
                tf.nest.map_structure(lambda tensor: tensor.numpy(), features(*self._ids(piece)))
                for piece in np.split(order, range(PAIRS_AT_ONCE, len(order), PAIRS_AT_ONCE))
            ]
            places = np.argsort(order)  # back to the order of the lists
            self._features = tf.nest.map_structure(
                lambda *some: np.concatenate(some)[places], *parts
            )

    def of(self, pairs: np.ndarray):
        """Inputs of some pairs, by their places in the lists."""
        if self._features is None:
            return self._ids(pairs)
        return tf.nest.map_structure(lambda feature: tf.constant(feature[pairs]), self._features)

    def _ids(self, pairs) -> tuple[tf.Tensor, tf.Tensor]:
        queries, documents = (rows[pairs] for rows in self._rows)
        texts = self._texts.queries[queries], self._texts.documents[documents]
        return tuple(map(tf.constant, texts))


class _Triples:
    """Relevant documents and, drawn again in each epoch, negatives of the same lists."""

    def __init__(self, lists: CandidateLists, settings: LearningSettings, seed: int):
        list_of_pair = np.repeat(np.arange(len(lists.query_rows)), np.diff(lists.offsets))
        # Pairs list by list, those of grade 0 first: the negatives of a list are then a range.
        self._order = np.lexsort((lists.grades > 0, list_of_pair))
        negatives = np.bincount(list_of_pair[lists.grades == 0], minlength=len(lists.query_rows))
        # A relevant document without negatives teaches nothing.
        relevant = np.flatnonzero(lists.grades >= settings.least_grade)
        self._relevant = relevant[negatives[list_of_pair[relevant]] > 0]
        self._begins = lists.offsets[list_of_pair[self._relevant]]
        self._numbers = negatives[list_of_pair[self._relevant]]
        self._settings, self._seed = settings, seed

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return -(-len(self._relevant) // self._settings.batch_size)

    def epoch(self, epoch: int) -> Iterator[np.ndarray]:
        """Yields `[batch * (1 + negatives)]` places of pairs, each relevant one before its own."""
        # Seeded by the epoch, not carried over, so that a later epoch needs no earlier one.
        generator = np.random.default_rng([self._seed, epoch])
        wanted = self._settings.negatives
        # The n negatives of a list form a circle of `wanted` arcs, n // wanted long each, that
        # begins at a random place: `[relevant, 1]`.
        shifts = generator.random((len(self._relevant), 1)) * self._numbers[:, np.newaxis]
        strides = np.maximum(1, self._numbers[:, np.newaxis] // wanted)
        # One from each arc: all distinct if n >= wanted, without a loop over the lists.
        jitter = generator.integers(0, strides, (len(self._relevant), wanted))
        drawn = shifts.astype(np.int64) + strides * np.arange(wanted) + jitter
        drawn %= self._numbers[:, np.newaxis]
        # From places among the negatives of a list to places of pairs, `[relevant, wanted]`.
        negatives = self._order[self._begins[:, np.newaxis] + drawn]
        triples = np.column_stack([self._relevant, negatives])
        generator.shuffle(triples)  # whole rows
        size = self._settings.batch_size
        for begin in range(0, len(triples), size):
            yield triples[begin : begin + size].reshape(-1)
