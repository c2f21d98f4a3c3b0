"""The training loop: epochs of steps, validation, best weights, exact continuation."""

import signal
import time
from collections.abc import Callable, Sequence

import tensorflow as tf
from absl import logging
from tensorflow import keras

from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.evaluation.evaluate import NEGATIVES_SEED
from tf_smoothclir.evaluation.metrics import list_metrics, mean_metrics
from tf_smoothclir.protocols.scorer import Scorer
from tf_smoothclir.protocols.task import Epoch, Task
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.storage.files import write_text
from tf_smoothclir.training.checkpoints import BestWeights, Checkpoints, Progress
from tf_smoothclir.training.processes import SINGLE_PROCESS, ProcessLost, SingleProcess
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.steps import Diverged, StepLoop, StepMonitor, StopRequest, are_finite
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.progress import progress_bar

# From what makes a scorer by what is trained, and whether training has yet to begin, to the name of
# what ranks alone without it, or "".
Look = Callable[[Callable[[], Scorer], bool], str]
# Steps in one call of the graph: each call costs Python a millisecond.
STEPS_PER_CALL = 16


class Interrupted(SystemExit):
    """A signal ended the run, which is saved. The exit code is 128 + the signal's number."""


class DivergedRun(InputError):
    """A loss, a gradient or a weight is no longer finite."""


def validation_of(
    retrieval_set: RetrievalSet, negatives: int
) -> Callable[[Scorer], dict[str, float]]:
    """What measures scorers on the validation queries of a set: the mean of each metric."""
    lists = candidate_lists(retrieval_set, "validation", negatives=negatives, seed=NEGATIVES_SEED)
    return lambda scorer: mean_metrics(list_metrics(retrieval_set, lists, scorer.score(lists)))


class Trainer:
    """Trains a task in a run directory, from the beginning or from where it stopped."""

    def __init__(
        self,
        task: Task,
        retrieval_set: RetrievalSet | None,
        settings: TrainingSettings,
        run: RunDirectory,
        processes: SingleProcess = SINGLE_PROCESS,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        look: Look | None = None,
    ):
        """Restores the last state of a run."""
        # `callbacks` of Keras are called at the beginning and the end of training and of each
        # epoch, not for batches: steps run many at a time inside a graph. `look` may end the
        # training early.
        self.task, self._look = task, look
        self.ranks_alone = ""  # what ranks without what is trained, once the look says so
        self._settings = settings
        self._run = run
        self._processes = processes
        if processes.is_chief:
            self._measured = validation_of(retrieval_set, settings.negatives)
            self._summaries = tf.summary.create_file_writer(str(run.logs))
        self._checkpoints = Checkpoints(run.checkpoints, task.variables)
        self._best = BestWeights(run.checkpoints, task.variables.weights)
        self._stop = StopRequest()
        model = getattr(task, "model", None)
        self._callbacks = keras.callbacks.CallbackList(list(callbacks), model=model)
        self.progress = self._restored_progress()
        if self.progress.pairs and processes.is_chief:
            logging.info(
                "Continuing after epoch %d, step %d", self.progress.epoch, self.progress.step
            )

    def train(self) -> Progress:
        """Trains to the end, and leaves the weights of the best epoch in the task."""
        # Only now: the checkpoint has been restored.
        steps = StepLoop(self.task, self._processes.exchange)
        with self._stop.listening():
            self._callbacks.on_train_begin()
            try:
                while not self._done():
                    self._train_and_save_epoch(steps)
            except ProcessLost:
                if self._stop.signal is None:
                    raise
                raise Interrupted(128 + self._stop.signal) from None
            self._callbacks.on_train_end()
        if self.ranks_alone:
            return self.progress
        self._processes.wait()  # until the chief has saved the best weights
        if self.progress.best_epoch != self.progress.epoch:
            self._best.restore()  # for a moment, the weights are in memory twice
        return self.progress

    def _restored_progress(self) -> Progress:
        """Restores the last state; several processes all begin with the chief's."""
        processes = self._processes
        progress = self._checkpoints.restore() if processes.is_chief else None
        if processes.size == 1:
            return progress or Progress()
        if processes.is_chief and progress is None:
            self._checkpoints.save(progress := Progress())
        processes.wait()
        if not processes.is_chief:
            progress = self._checkpoints.restore()
        variables = self.task.variables
        processes.check_alike(progress.to_json(), [*variables.trained, *variables.optimizer])
        return progress

    def _train_and_save_epoch(self, steps: StepLoop) -> None:
        stop = self._train_epoch(self.task.batches.epoch(self.progress.epoch), steps)
        self._check_weights()
        if stop is None:
            self._finish_epoch()
            stop = self._processes.agreed(self._stop.signal)
        self._save()
        if stop is not None:
            raise self._interrupted(stop)

    def _save_within_epoch(self) -> None:
        self._check_weights()
        self._save()

    def _save(self) -> None:
        if self._processes.is_chief:
            self._checkpoints.save(self.progress)

    def _check_weights(self) -> None:
        # The losses need not show it: tanh of an infinity is 1.
        if not are_finite(self.task.variables.trained):
            raise self._diverged(self.progress.step, "the weights are not finite")

    def _done(self) -> bool:
        if (self._callbacks.callbacks and self.task.model.stop_training) or self.ranks_alone:
            return True
        progress, patience = self.progress, self._settings.patience
        if patience and progress.epoch - progress.best_epoch >= patience and progress.epoch:
            return True
        return progress.epoch >= self._settings.epochs

    def _train_epoch(self, epoch: Epoch, steps: StepLoop) -> signal.Signals | None:
        """Trains the rest of an epoch, or until any process gets a signal, which it returns."""
        settings, progress, task = self._settings, self.progress, self.task
        title = f"Epoch {progress.epoch + 1}/{settings.epochs}"
        task.begin_epoch(progress.epoch)
        self._callbacks.on_epoch_begin(progress.epoch)
        with progress_bar(epoch.pairs, title, "pairs", initial=progress.epoch_pairs) as bar:
            monitor = StepMonitor(
                progress,
                losses=task.losses,
                checked=task.checked,
                bar=bar,
                save=self._save_within_epoch,
                seconds_between_saves=settings.checkpoint_minutes * 60,
            )
            try:
                with task.batches.explaining_defects():
                    batches = iter(epoch.batches(progress.step))
                    while True:
                        stop = self._processes.agreed(self._stop.signal)
                        number = min(STEPS_PER_CALL, epoch.steps - progress.step)
                        if stop is not None or not number:
                            return stop
                        with self._processes.noticing_lost_processes():
                            results = steps(batches, number)
                        monitor.after_steps(results)
            except Diverged as diverged:
                raise self._explain(diverged, epoch) from None

    def _finish_epoch(self) -> None:
        progress = self.progress
        begin = time.monotonic()
        epoch, losses = progress.epoch + 1, progress.mean_losses()
        record = self._processes.from_chief(self._validated)
        validation = record["validation"]
        select = self._settings.select_metric
        best = max((r["validation"][select] for r in progress.history), default=-1.0)
        progress.history.append({"epoch": epoch, **losses, **record})
        progress.begin_epoch(epoch)
        if validation[select] > best:
            progress.best_epoch = epoch
        logs = losses | {f"val_{name}": value for name, value in validation.items()}
        self._callbacks.on_epoch_end(epoch - 1, logs)
        if not self._processes.is_chief:
            return
        if progress.best_epoch == epoch and not self.ranks_alone:
            self._best.save()
        with self._summaries.as_default(step=epoch):
            for group, values in (("training", losses), ("validation", validation)):
                for name, value in values.items():
                    tf.summary.scalar(f"{group}/{name}", value)
        self._summaries.flush()
        logging.info(
            "Epoch %d/%d: %s, validation %s (%.1f s), %.0f pairs/s so far",
            epoch,
            self._settings.epochs,
            ", ".join(f"{name} {value:.5f}" for name, value in losses.items()),
            ", ".join(f"{name} {value:.4f}" for name, value in validation.items()),
            time.monotonic() - begin,
            progress.pairs / max(progress.seconds, 1e-9),
        )

    def _validated(self) -> dict:
        """The history of an epoch except its losses; chooses what is trained on next."""
        scorer = self.task.scorer()
        validation = self._measured(scorer)
        if self._look and self.progress.epoch + 1 < self._settings.epochs:
            self.ranks_alone = self._look(lambda: scorer, False)
        if self.ranks_alone:
            return {"validation": validation}
        chosen = self.task.batches.after_epoch(self.progress.epoch + 1, scorer)
        return {"validation": validation, **chosen}

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
        """Names the pairs of the batch in which training diverged, and writes them to a file."""
        rows = epoch.rows(diverged.step)
        query, document, *_ = rows[0]
        if self._processes.is_chief:
            lines = ("\t".join(map(str, row)) + "\n" for row in rows)
            write_text(self._run.diverged_batch, "".join(lines))
        return self._diverged(
            diverged.step + 1,
            f"the {diverged.what} is not finite; the {len(rows)} pairs of the batch (query"
            f" {query} with document {document}, ...) are in {self._run.diverged_batch}",
        )

    def _diverged(self, step: int, what: str) -> DivergedRun:
        """The error of a step of the epoch, from 1."""
        remedy = f"{self.task.remedy}; the last good checkpoint is kept"
        message = input_error(f"epoch {self.progress.epoch + 1}, step {step}", what, remedy)
        return DivergedRun(str(message))
