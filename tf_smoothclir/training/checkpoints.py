"""Checkpoints: the state of a run, so that it continues as if it had never stopped."""

import contextlib
import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import tensorflow as tf
from absl import logging

from tf_smoothclir.protocols.task import LOSS, TaskVariables
from tf_smoothclir.training.saved_states import BEST, STATE, TRAIN_AGAIN, SavedStates
from tf_smoothclir.utils.errors import InputError, input_error


@dataclasses.dataclass
class Progress:
    """Progress of a run."""

    epoch: int = 0
    step: int = 0
    epoch_pairs: int = 0
    epoch_terms: int = 0  # number of terms that losses are means of, such as pairs or lists
    # Name of a loss -> its sum over these terms.
    loss_sums: dict[str, float] = dataclasses.field(default_factory=lambda: {LOSS: 0.0})
    pairs: int = 0
    seconds: float = 0.0
    best_epoch: int = 0  # epoch, from 1, whose weights are kept; 0 for none yet
    # For each epoch its number, losses, validation metrics, and what was mined.
    history: list[dict] = dataclasses.field(default_factory=list)

    def count_step(self, losses: Iterable[tuple[str, float]], pairs: int, terms: int) -> None:
        """Counts a step: names and values of its losses, the numbers of its pairs and terms."""
        self.step += 1
        self.pairs += pairs
        self.epoch_pairs += pairs
        self.epoch_terms += terms
        for name, loss in losses:
            self.loss_sums[name] = self.loss_sums.get(name, 0.0) + loss * terms

    def mean_losses(self) -> dict[str, float]:
        """The mean of each loss over the terms of the current epoch."""
        return {name: total / self.epoch_terms for name, total in self.loss_sums.items()}

    def begin_epoch(self, completed: int) -> None:
        """Moves to the first step after `completed` epochs."""
        self.epoch, self.step, self.epoch_pairs, self.epoch_terms = completed, 0, 0, 0
        self.loss_sums = {LOSS: 0.0}

    def to_json(self) -> str:
        """The text that a checkpoint holds."""
        return json.dumps(dataclasses.asdict(self))


class Checkpoints:
    """The last two states of a run."""

    def __init__(self, directory: Path, variables: TaskVariables):
        self._progress = tf.Variable("", dtype=tf.string)
        more = {**variables.more, **({"helpers": variables.helpers} if variables.helpers else {})}
        rest = {"optimizer": variables.optimizer, "progress": self._progress, **more}
        self._checkpoint = tf.train.Checkpoint(weights=variables.weights, **rest)
        self._weights = tf.train.Checkpoint(weights=variables.weights)
        self._rest = tf.train.Checkpoint(**rest)
        self._states, self._best = SavedStates(directory, STATE), SavedStates(directory, BEST)
        self._former = 0  # the state that this process has restored or saved

    def save(self, progress: Progress) -> None:
        """Saves the state, completely or not at all; the best weights so far must be saved."""
        # At the end of the best epoch, the weights are those of the file of the best weights, which
        # the state then needs: they are not written twice.
        self._progress.assign(progress.to_json())
        needs = self._best.latest() if progress.best_epoch else 0
        is_best = needs and not progress.step and progress.best_epoch == progress.epoch
        write = (self._rest if is_best else self._checkpoint).write
        self._former = self._states.save(write, former=self._former, needs=needs)

    def restore(self) -> Progress | None:
        """Restores the last state that is not damaged; returns None if there is none yet."""
        # Looked up in the directory: another worker may have saved it.
        damage = None
        for number in self._states.complete():
            try:
                if needs := self._states.checked(number)["needs"]:
                    self._best.checked(needs)
            except InputError as error:
                logging.warning("Passed over: %s", damage := error)
                continue
            if needs:  # best weights of epochs after this state will be made again
                self._best.discard(lambda number, last=needs: number > last)
            self._former = number
            return self._restored(self._states.prefix(number), needs)
        if damage is not None:
            raise damage
        return None

    def _restored(self, prefix: str, needs: int) -> Progress:
        with _readable(prefix):
            # A state without weights has them in the file of the best ones.
            saved = tf.train.load_checkpoint(prefix).get_variable_to_shape_map()
            if any(name.startswith("weights/") for name in saved):
                self._checkpoint.read(prefix).assert_consumed()
            else:
                self._rest.read(prefix).assert_consumed()
                self._weights.read(self._best.prefix(needs)).assert_consumed()
            return Progress(**json.loads(self._progress.numpy()))


class BestWeights:
    """The weights of the best epoch of a run."""

    def __init__(self, directory: Path, weights: Sequence[tf.Variable]):
        self._weights = tf.train.Checkpoint(weights=weights)
        self._directory = directory

    @staticmethod
    def prefix(directory: Path) -> str | None:
        """The path of the best weights in a directory, as TensorFlow takes it; None without any."""
        states = SavedStates(directory, BEST)
        return states.prefix(number) if (number := states.latest()) else None

    def save(self) -> None:
        """Saves the present values, completely or not at all."""
        SavedStates(self._directory, BEST).save(self._weights.write)

    def restore(self) -> None:
        """Restores the values of the best epoch."""
        prefix = self.prefix(self._directory)
        with _readable(prefix):
            self._weights.read(prefix).assert_consumed()


@contextlib.contextmanager
def _readable(prefix: str) -> Iterator[None]:
    """Turns TensorFlow's errors about damaged files into input errors."""
    try:
        yield
    except (tf.errors.OpError, IndexError, RuntimeError, ValueError) as error:
        reason = f"the files are damaged ({str(error).splitlines()[0]})"
        raise input_error(prefix, reason, TRAIN_AGAIN) from error
