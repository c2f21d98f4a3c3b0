"""Checkpoints: the state of a run, so that it continues as if it had never stopped."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import tensorflow as tf

from tf_smoothclir.protocols.task import LOSS, TaskVariables
from tf_smoothclir.training.histograms import bin_of

_BEST = "best"


@dataclasses.dataclass
class Progress:
    """How far a run has come.

    Attributes:
        epoch: Epochs completed, validation included.
        step: Steps completed in the current epoch.
        epoch_pairs: Pairs of these steps.
        loss_sums: Name of a loss -> its sum over these pairs.
        pairs: Pairs trained on in total.
        seconds: Time spent on them.
        best_epoch: Epoch, from 1, whose weights are kept; 0 for none yet.
        history: For each epoch its number, losses, validation metrics, and what was mined; and
            "<name>_counts", the histogram of a checked number, such as "gradient_norm".
        counts: Name of a checked number -> bin of `histograms.bin_of`, as text -> its steps in the
            current epoch.
    """

    epoch: int = 0
    step: int = 0
    epoch_pairs: int = 0
    loss_sums: dict[str, float] = dataclasses.field(default_factory=lambda: {LOSS: 0.0})
    pairs: int = 0
    seconds: float = 0.0
    best_epoch: int = 0
    history: list[dict] = dataclasses.field(default_factory=list)
    counts: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)

    def count_step(self, losses: Iterable[tuple[str, float]], pairs: int) -> None:
        """Counts a step, by names and values of its losses and the number of its pairs."""
        self.step += 1
        self.pairs += pairs
        self.epoch_pairs += pairs
        for name, loss in losses:
            self.loss_sums[name] = self.loss_sums.get(name, 0.0) + loss * pairs

    def count_checked(self, numbers: Iterable[tuple[str, float]]) -> None:
        """Counts names and values of the checked numbers of a step."""
        for name, value in numbers:
            of_name, bin_ = self.counts.setdefault(name, {}), str(bin_of(value))
            of_name[bin_] = of_name.get(bin_, 0) + 1

    def mean_losses(self) -> dict[str, float]:
        """Returns the mean of each loss over the pairs of the current epoch."""
        return {name: total / self.epoch_pairs for name, total in self.loss_sums.items()}

    def begin_epoch(self, completed: int) -> None:
        """Moves to the first step after `completed` epochs."""
        self.epoch, self.step, self.epoch_pairs, self.loss_sums = completed, 0, 0, {LOSS: 0.0}
        self.counts = {}

    def to_json(self) -> str:
        """Returns the text that a checkpoint holds."""
        values = dataclasses.asdict(self)
        sums = values.pop("loss_sums")
        values["loss_sum"] = sums.pop(LOSS)
        if not values["counts"]:
            del values["counts"]
        return json.dumps({**values, **({"other_loss_sums": sums} if sums else {})})

    @classmethod
    def from_json(cls, text: str | bytes) -> Progress:
        """Restores what `to_json` returned."""
        values = json.loads(text)
        sums = {LOSS: values.pop("loss_sum"), **values.pop("other_loss_sums", {})}
        return cls(**values, loss_sums=sums)


class Checkpoints:
    """The last two states of a run."""

    def __init__(self, directory: Path, variables: TaskVariables):
        """Saves the variables of a task to files in `directory`, and restores them."""
        self._progress = tf.Variable("", dtype=tf.string)
        more = {**variables.more, **({"helpers": variables.helpers} if variables.helpers else {})}
        state = tf.train.Checkpoint(
            weights=variables.weights,
            optimizer=variables.optimizer,
            progress=self._progress,
            **more,
        )
        self._manager = tf.train.CheckpointManager(
            state, str(directory), max_to_keep=2, checkpoint_name="state"
        )

    def save(self, progress: Progress) -> None:
        """Saves the state. A file that a crash leaves incomplete is never restored."""
        self._progress.assign(progress.to_json())
        self._manager.save()

    def restore(self) -> Progress | None:
        """Restores the last state; returns None if there is none yet."""
        # Looked up in the directory: another worker may have saved it.
        latest = tf.train.latest_checkpoint(self._manager.directory)
        if not latest:
            return None
        self._manager.checkpoint.restore(latest).assert_consumed()
        return Progress.from_json(self._progress.numpy())


class BestWeights:
    """The weights of the best epoch of a run."""

    def __init__(
        self,
        directory: Path,
        weights: Sequence[tf.Variable],
        kept: Sequence[tf.Variable] | None = None,
    ):
        """Saves variables to a file in `directory`, and restores them.

        Args:
            directory: The checkpoints of the run.
            weights: The variables that are restored.
            kept: The variables that are saved, one for each of `weights`; these by default.
        """
        self._weights = tf.train.Checkpoint(weights=weights)
        self._kept = tf.train.Checkpoint(weights=kept if kept is not None else weights)
        self._path = str(directory / _BEST)

    @staticmethod
    def exist(directory: Path) -> bool:
        """Returns whether an epoch has been completed in a run with these checkpoints."""
        return tf.io.gfile.exists(f"{directory / _BEST}.index")

    def save(self) -> None:
        """Saves the present values."""
        self._kept.write(self._path)

    def restore(self) -> None:
        """Restores the values of the best epoch."""
        self._weights.read(self._path).assert_consumed()
