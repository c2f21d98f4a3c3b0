"""Training tasks: the interface between the trainer and a family of models.

A family of models brings a `Task` of its own. The trainer, its step loop, checkpoints, resume and
distributed training are written against this module alone.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import tensorflow as tf

from tf_smoothclir.protocols.scorer import Scorer

LOSS = "loss"  # the loss that every task has
PAIRS = "pairs"  # among the results of a step: how many pairs its batch has
TERMS = "terms"  # perhaps among them: of how many terms its losses are the means


@dataclasses.dataclass(frozen=True)
class Epoch:
    """The batches of one epoch.

    Attributes:
        steps: Number of batches.
        pairs: Number of pairs in all of them.
        batches: First step -> dataset of the batches from this step on, as the task takes them.
        rows: Step -> the pairs of its batch, for people: query id, document id, and what else
            belongs to a pair, such as its grade.
    """

    steps: int
    pairs: int
    batches: Callable[[int], tf.data.Dataset]
    rows: Callable[[int], list[tuple]]


class Batches:
    """Base of what gives the batches of each epoch.

    Attributes:
        variables: Name -> variable that decides about the batches of later epochs. It belongs in
            the checkpoints.
    """

    variables: Mapping[str, tf.Variable] = {}

    def epoch(self, number: int) -> Epoch:
        """Returns the batches of an epoch, from 0: a function of seed, number and `variables`."""
        raise NotImplementedError

    def after_epoch(self, completed: int, scorer: Scorer) -> dict:
        """Chooses what later epochs train on, such as hard negatives; the default changes nothing.

        Args:
            completed: Number of epochs completed.
            scorer: The scorer that was just validated.

        Returns:
            Entries for the history of the epoch, as JSON can hold them.
        """
        return {}

    def explaining_defects(self) -> contextlib.AbstractContextManager:
        """Returns a context in which a read error names its file; the default changes nothing."""
        return contextlib.nullcontext()


@dataclasses.dataclass(frozen=True)
class TaskVariables:
    """The variables that training changes, in an order that is the same in each process.

    Attributes:
        weights: The model. At the end of training it has the weights of the best epoch.
        optimizer: The state of all optimizers.
        helpers: Weights that are trained too, but are of no use after training, such as those of a
            discriminator.
        more: Name -> other variables that a checkpoint needs to continue exactly.
    """

    weights: Sequence[tf.Variable]
    optimizer: Sequence[tf.Variable]
    helpers: Sequence[tf.Variable] = ()
    more: Mapping[str, tf.Variable | Sequence[tf.Variable]] = dataclasses.field(
        default_factory=dict
    )

    @property
    def trained(self) -> list[tf.Variable]:
        """The weights and the helpers."""
        return [*self.weights, *self.helpers]


class Exchange(Protocol):
    """Makes the gradients of several workers those of their joint batch."""

    def __call__(
        self,
        gradients: Sequence[tf.Tensor | tf.IndexedSlices],
        losses: Sequence[tf.Tensor],
        pairs: tf.Tensor,
        weight: tf.Tensor,
    ) -> tuple[list[tf.Tensor | tf.IndexedSlices], list[tf.Tensor], tf.Tensor, tf.Tensor]:
        """Exchanges the gradients of one optimizer's step; in a graph, by all workers alike.

        Args:
            gradients: Of a mean over this worker's batch. Sparse ones name no row twice.
            losses: Means over this worker's batch, float32 scalars.
            pairs: Number of pairs in the batch, an int32 scalar.
            weight: The number of terms in these means, an int32 scalar.

        Returns:
            Gradients in the same form, losses, pairs, and weight, as of one joint batch.
        """


class Task(Protocol):
    """The losses, variables, optimizers, inputs and logged names of a training.

    Attributes:
        losses: Names of the losses that a step returns, `LOSS` first. Their means over the terms
            of an epoch go to the progress bar, the history and TensorBoard.
        checked: Names of the other numbers that a step returns. Like the losses, they must be
            finite.
        variables: What training changes.
        batches: What it trains on.
        remedy: What a user can do when training diverges; without a full stop.
    """

    losses: Sequence[str]
    checked: Sequence[str]
    variables: TaskVariables
    batches: Batches
    remedy: str

    def train_step(self, batch, exchange: Exchange | None) -> dict[str, tf.Tensor]:
        """Trains on one batch: steps every optimizer, in the order and as often as the task needs.

        Traced into a graph once, without AutoGraph.

        Args:
            batch: An element of the datasets of `batches`.
            exchange: With several workers, called for the gradients of each optimizer's step
                before they are applied; None in a single process.

        Returns:
            Name -> float32 scalar for each of `losses` and `checked`, and `PAIRS`, an int32
            scalar: the number of pairs in the batch. `TERMS`, int32, where the losses are no means
            over pairs. With several workers, of the joint batch.
        """

    def begin_epoch(self, epoch: int) -> None:
        """Prepares an epoch, from 0, or the rest of one: sets the learning rates."""

    def scorer(self) -> Scorer:
        """Returns a scorer with the present values of `variables.weights`, for validation."""
