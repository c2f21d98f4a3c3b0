"""The training loop: epochs of steps, validation, best weights, exact continuation."""

from __future__ import annotations

import signal
import time

import tensorflow as tf
from absl import logging

from tf_smoothclir._compat.keras_api import tf_weights
from tf_smoothclir.data.shards.reading import Shards
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.optimizers import LEARNING_RATES
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.training.averaging import WeightAverage
from tf_smoothclir.training.batches import Epoch, SampledBatches
from tf_smoothclir.training.checkpoints import Checkpoints, Progress
from tf_smoothclir.training.distributed.workers import ALONE, Alone, WorkerLost, digest_of
from tf_smoothclir.training.mining import HardNegatives
from tf_smoothclir.training.monitor import Diverged, StepMonitor, StopRequest
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.validation import Validation
from tf_smoothclir.two_tower.model import TwoTower
from tf_smoothclir.two_tower.scorer import SetEncoder
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.files import write_text
from tf_smoothclir.utils.progress import progress_bar

# Steps in one call of the graph: Python's part of a step costs a millisecond otherwise.
STEPS_PER_CALL = 16


class Interrupted(SystemExit):
    """A signal ended the run, which is saved; the exit code is 128 + signal number."""


class DivergedRun(InputError):
    """A loss, a gradient or a weight is not finite any more."""


class Trainer:
    """Trains a model in a run directory, from the beginning or from where it stopped."""

    def __init__(
        self,
        model: TwoTower,
        tokenized_set: TokenizedSet | None,
        settings: TrainingSettings,
        run: RunDirectory,
        shards: Shards | None = None,
        workers: Alone = ALONE,
    ):
        """Prepares a training run.

        Args:
            model: Compiled, with its initial weights; a checkpoint in `run` replaces them.
            tokenized_set: To train on and to validate with; only the chief of several workers
                needs it.
            settings: How to train.
            run: Gets checkpoints and logs, from the chief.
            shards: Where given, training reads these instead of the set.
            workers: Who trains together.

        Raises:
            InputError: There are more workers than shards, or they do not begin with the same
                state.
            WorkerLost: Another worker was lost.
        """
        self.model = model
        self._settings = settings
        self._run = run
        self._workers = workers
        self._steps = workers.steps_of(model)
        more, kept = {}, None
        self._average = self._hard_negatives = None
        if settings.average_weights:
            self._average = WeightAverage(model, settings.average_weights)
            kept = self._average.model
            more["averages"] = tf_weights(kept)
        if settings.hard_negatives:
            self._hard_negatives = HardNegatives(tokenized_set.retrieval_set, settings)
            more["hard_negatives"] = self._hard_negatives.documents
        if shards:
            self._batches = workers.batches_of(shards, settings)
        else:
            self._batches = SampledBatches(
                tokenized_set,
                settings,
                self._hard_negatives,
                both_at_once=model.encodes_both_at_once,
            )
        if workers.is_chief:
            encoder = SetEncoder(kept or model, tokenized_set)
            self._validation = Validation(encoder, tokenized_set.retrieval_set, settings.negatives)
            self._summaries = tf.summary.create_file_writer(str(run.logs))
        self._checkpoints = Checkpoints(run.checkpoints, self._steps.state, kept, **more)
        self._stop = StopRequest()
        self.progress = self._first_progress()
        if self.progress.pairs and workers.is_chief:
            logging.info(
                "Continuing after epoch %d, step %d", self.progress.epoch, self.progress.step
            )

    def train(self) -> Progress:
        """Trains to the end and leaves the weights of the best epoch in the model.

        Raises:
            Interrupted: SIGINT or SIGTERM came, to any worker; everything so far is saved.
            DivergedRun: The loss, the gradient or a weight became infinite or NaN.
            WorkerLost: Another worker was lost; what came after the last checkpoint is lost too.
        """
        self._steps.begin()
        with self._stop.listening():
            try:
                while not self._done():
                    self._train_and_save_epoch()
            except WorkerLost:
                if self._stop.signal is None:
                    raise
                raise Interrupted(128 + self._stop.signal) from None
        self._workers.wait()  # until the chief has saved the best weights
        self._checkpoints.restore_best()
        return self.progress

    def _first_progress(self) -> Progress:
        """Restores the last state; several workers all begin with that of the chief."""
        workers = self._workers
        progress = self._checkpoints.restore() if workers.is_chief else None
        if workers.size == 1:
            return progress or Progress()
        if workers.is_chief and progress is None:
            self._checkpoints.save(progress := Progress())
        workers.wait()
        if not workers.is_chief:
            progress = self._checkpoints.restore()
        state = self._steps.state
        workers.check_alike(digest_of(str(progress), [*state.weights, *state.optimizer]))
        return progress

    def _train_and_save_epoch(self) -> None:
        stop = self._train_epoch(self._batches.epoch(self.progress.epoch))
        self._check_weights()
        if stop is None:
            self._finish_epoch()
            stop = self._workers.agreed(self._stop.signal)
        self._save()
        if stop is not None:
            raise self._interrupted(stop)

    def _save_within_epoch(self) -> None:
        self._check_weights()
        self._save()

    def _save(self) -> None:
        if self._workers.is_chief:
            self._checkpoints.save(self.progress)

    def _check_weights(self) -> None:
        if not self._steps.are_finite():  # no loss need show it: tanh of an infinity is 1
            raise self._diverged(self.progress.step, "the weights are not finite")

    def _done(self) -> bool:
        progress, patience = self.progress, self._settings.patience
        if patience and progress.epoch - progress.best_epoch >= patience and progress.epoch:
            return True
        return progress.epoch >= self._settings.epochs

    def _train_epoch(self, epoch: Epoch) -> signal.Signals | None:
        """Trains the rest of an epoch, or until a signal comes to any worker, which it returns."""
        settings, progress = self._settings, self.progress
        title = f"Epoch {progress.epoch + 1}/{settings.epochs}"
        self.model.optimizer.learning_rate = learning_rate(settings, progress.epoch)
        with progress_bar(epoch.pairs, title, "pairs", initial=progress.epoch_pairs) as bar:
            monitor = StepMonitor(
                progress,
                bar=bar,
                save=self._save_within_epoch,
                seconds_between_saves=settings.checkpoint_minutes * 60,
            )
            try:
                with self._batches.explaining_defects():
                    batches = iter(epoch.batches(progress.step))
                    while True:
                        stop = self._workers.agreed(self._stop.signal)
                        number = min(STEPS_PER_CALL, epoch.steps - progress.step)
                        if stop is not None or not number:
                            return stop
                        with self._workers.noticing_losses():
                            done = self._steps(batches, tf.constant(number))
                        monitor.after_steps(*(figure.numpy() for figure in done))
            except Diverged as diverged:
                raise self._explain(diverged, epoch) from None

    def _finish_epoch(self) -> None:
        progress = self.progress
        begin = time.monotonic()
        if self._average:
            self._average.update(progress.epoch + 1)
        record = self._workers.from_chief(self._validated)
        validation = record["validation"]
        epoch, loss = progress.epoch + 1, progress.loss_sum / progress.epoch_pairs
        select = self._settings.select_metric
        best = max((r["validation"][select] for r in progress.history), default=-1.0)
        progress.history.append({"epoch": epoch, "loss": loss, **record})
        progress.begin_epoch(epoch)
        if validation[select] > best:
            progress.best_epoch = epoch
        if not self._workers.is_chief:
            return
        if progress.best_epoch == epoch:
            self._checkpoints.save_best()
        self._write_summaries(epoch, {"loss": loss, **validation})
        logging.info(
            "Epoch %d/%d: loss %.5f, validation %s (%.1f s), %.0f pairs/s so far",
            epoch,
            self._settings.epochs,
            loss,
            ", ".join(f"{name} {value:.4f}" for name, value in validation.items()),
            time.monotonic() - begin,
            progress.pairs / max(progress.seconds, 1e-9),
        )

    def _validated(self) -> dict:
        """Returns what the history says of an epoch beside its loss; mines where it is time to."""
        validation, scorer = self._validation()
        mined = self._hard_negatives and self._hard_negatives.mine_after(
            self.progress.epoch + 1, scorer
        )
        return {"validation": validation, **({"mining": mined} if mined else {})}

    def _write_summaries(self, epoch: int, values: dict[str, float]) -> None:
        with self._summaries.as_default(step=epoch):
            for name, value in values.items():
                group = "training" if name == "loss" else "validation"
                tf.summary.scalar(f"{group}/{name}", value)
        self._summaries.flush()

    def _interrupted(self, stop: signal.Signals) -> Interrupted:
        logging.warning(
            "%s: stopped after epoch %d, step %d, and saved in %s. Give the same command again to"
            " continue.",
            stop.name,
            self.progress.epoch,
            self.progress.step,
            self._run.path,
        )
        return Interrupted(128 + stop)

    def _explain(self, diverged: Diverged, epoch: Epoch) -> DivergedRun:
        """Names the pairs of the batch that made the model diverge, and lists them in a file."""
        rows = epoch.rows(diverged.step)
        query, document, _ = rows[0]
        if self._workers.is_chief:
            write_text(self._run.diverged_batch, "".join(f"{q}\t{d}\t{g}\n" for q, d, g in rows))
        return self._diverged(
            diverged.step + 1,
            f"the {diverged.what} is not finite; the {len(rows)} pairs of the batch (query"
            f" {query} with document {document}, ...) are in {self._run.diverged_batch}",
        )

    def _diverged(self, step: int, what: str) -> DivergedRun:
        """Returns the error; `step` is that of the epoch, from 1."""
        remedy = (
            "Lower --learning_rate, or use --epsilon above 0 and --clip_norm; the last good"
            " checkpoint is kept"
        )
        message = input_error(f"epoch {self.progress.epoch + 1}, step {step}", what, remedy)
        return DivergedRun(str(message))


def learning_rate(settings: TrainingSettings, epoch: int) -> float:
    """Returns the step size of an epoch, from 0."""
    first = settings.learning_rate or LEARNING_RATES[settings.optimizer]
    return first * settings.learning_rate_decay**epoch
