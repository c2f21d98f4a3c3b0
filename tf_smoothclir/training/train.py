"""A training run from settings to report: prepare, train, evaluate."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path

from absl import logging
from tensorflow import keras

from tf_smoothclir.data.open_source import source_of
from tf_smoothclir.data.prepared import ROLES, PreparedSet, prepare
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.shards import Shards
from tf_smoothclir.data.source import SPLITS, Source
from tf_smoothclir.errors import InputError, input_error
from tf_smoothclir.evaluation.encoding import Encoder
from tf_smoothclir.evaluation.evaluate import Evaluation, evaluate_split, rules
from tf_smoothclir.evaluation.report import write_report
from tf_smoothclir.files import new_directory, read_json, write_json
from tf_smoothclir.settings import RunSettings
from tf_smoothclir.text.vocabulary import write_vocabulary
from tf_smoothclir.training.checkpoints import Checkpoints, Progress, state_of
from tf_smoothclir.training.connect import connect, has_served
from tf_smoothclir.training.model import (
    build_model,
    configured_loss,
    load_pretrained,
    start_bilingual,
    start_token_weights,
)
from tf_smoothclir.training.peak_memory import peak_memory
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.shard_batches import check_set, check_workers, open_shards
from tf_smoothclir.training.threads import choose_threads
from tf_smoothclir.training.trainer import Trainer
from tf_smoothclir.training.workers import ALONE, Alone
from tf_smoothclir.two_tower import TwoTower

EVALUATED_SPLITS = ("test", "validation")


def train(settings: RunSettings, output_dir: str | Path, *, overwrite: bool = False) -> dict | None:
    """Trains a model, evaluates it, and writes the run directory.

    Given again for an unfinished run, it continues; for a finished one, it returns its figures.
    With another `--distribution` than none, the processes that TF_CONFIG names call it together,
    each before it has done anything else with TensorFlow.

    Args:
        settings: All settings.
        output_dir: The run directory, which several workers share.
        overwrite: Deletes the run that is there.

    Returns:
        The content of `metrics.json`; None to others than the chief.

    Raises:
        InputError: The data, the settings or the directory cannot be used.
        WorkerLost: Another worker was lost; a new process with the same arguments, but without
            `overwrite`, joins the others again.
    """

    def is_finished() -> bool:
        return RunDirectory(Path(output_dir)).finished and not overwrite

    if is_finished():
        run = RunDirectory.create(output_dir, settings)
        logging.info("The run in %s is finished; give --overwrite to do it again", run.path)
        return read_json(run.metrics)
    if has_served(settings, is_finished):
        return None
    # What is wrong with these shows before others are waited for, or anything is written.
    shards = open_shards(settings)
    workers = connect(settings.training, is_finished)
    run = prepared = None
    with workers.together():
        configured_loss(settings)
        if workers.is_chief:
            run, prepared = _begin(settings, shards, output_dir, overwrite, workers.size)
    with workers.together():
        if not workers.is_chief:
            run = RunDirectory.load(output_dir)
            run.check_joins(settings, shards.fingerprint())
    result = None
    with workers.noticing_losses():
        trainer = trainer_of(settings, prepared, run, shards, workers)
        progress = trainer.train()
        if workers.is_chief:
            result = _evaluate_and_report(settings, run, trainer.model, prepared, progress)
    workers.wait()  # one that is gone would look like one that was lost
    return result


def _begin(
    settings: RunSettings,
    shards: Shards | None,
    output_dir: str | Path,
    overwrite: bool,
    num_workers: int,
) -> tuple[RunDirectory, PreparedSet]:
    """Opens the set and makes the run directory, or finds the run that is to be continued."""
    source = source_of(settings.data)
    if shards:
        check_set(shards, source.name)
        check_workers(shards, num_workers)
    run = RunDirectory.create(output_dir, settings, overwrite=overwrite)
    if shards and not run.vocabulary.is_dir():
        _keep_vocabularies(shards, run)
    prepared = prepared_set(source, settings, run, SPLITS)
    run.remember_data(  # now that the set is known to have no defect
        source.name, source.fingerprint(), shards.fingerprint() if shards else None, num_workers
    )
    return run, prepared


def trainer_of(
    settings: RunSettings,
    prepared: PreparedSet | None,
    run: RunDirectory,
    shards: Shards | None = None,
    workers: Alone = ALONE,
) -> Trainer:
    """Returns the trainer of a new model, or of the one whose checkpoint is in `run`.

    Args:
        settings: All settings.
        prepared: The set; only the chief of several workers needs it.
        run: The run directory.
        shards: Where given, what training reads instead of the set.
        workers: Who trains together.
    """
    choose_threads(settings)
    keras.utils.set_random_seed(settings.training.seed)
    vocabularies = {role: (shards or prepared).vocabulary(role) for role in ROLES}
    model = workers.model_of(settings, vocabularies)
    if workers.is_chief and not run.begun:
        load_pretrained(model, settings, vocabularies)
        start_bilingual(model, settings, prepared)
        start_token_weights(model, settings, prepared)
    return Trainer(model, prepared, settings.training, run, shards, workers)


def retrieval_set_of(source: Source, settings: RunSettings, splits: Sequence[str]) -> RetrievalSet:
    """Loads a set and checks it.

    Raises:
        InputError: The set has a defect, or one of the `splits` has no judged query.
    """
    retrieval_set = RetrievalSet.load(
        source, num_grades=len(settings.model.thresholds) + 1, seed=settings.data.split_seed
    )
    for split in splits:
        retrieval_set.queries_in(split)
    return retrieval_set


def prepared_set(
    source: Source, settings: RunSettings, run: RunDirectory, splits: Sequence[str]
) -> PreparedSet:
    """Loads and tokenises a set by the vocabularies of the run, which are counted if new.

    Raises:
        InputError: The set has a defect, or one of the `splits` has no judged query.
    """
    retrieval_set = retrieval_set_of(source, settings, splits)
    known = run.vocabulary if run.vocabulary.is_dir() else None
    prepared = prepare(retrieval_set, settings.text, settings.data.cache_dir, known)
    if known is None:
        with new_directory(run.vocabulary) as temporary:
            for role in ROLES:
                shutil.copy(prepared.vocabulary_dir / f"{role}.txt", temporary)
    return dataclasses.replace(prepared, vocabulary_dir=run.vocabulary)


def _keep_vocabularies(shards: Shards, run: RunDirectory) -> None:
    """Makes the vocabularies of shards, by which their ids were looked up, those of the run."""
    with new_directory(run.vocabulary) as temporary:
        for role in ROLES:
            write_vocabulary(temporary / f"{role}.txt", shards.vocabulary(role))


def load_model(run: RunDirectory) -> TwoTower:
    """Restores the model of a run with the weights of its best epoch.

    Raises:
        InputError: The run has not completed an epoch.
    """
    settings = run.settings()
    if not run.vocabulary.is_dir():
        raise _no_weights(run)
    model = build_model(settings, {role: run.vocabulary_tokens(role) for role in ROLES})
    checkpoints = Checkpoints(run.checkpoints, state_of(model))
    if not checkpoints.has_best:
        raise _no_weights(run)
    checkpoints.restore_best()
    return model


def _no_weights(run: RunDirectory) -> InputError:
    return input_error(
        f"--run_dir={run.path}",
        "the run has not completed an epoch yet",
        f"Continue it: smoothclir-train --flagfile={run.flags} --output_dir={run.path}",
    )


def evaluate_model(
    model: TwoTower, prepared: PreparedSet, negatives: int, splits: Sequence[str], trec_dir: Path
) -> dict[str, Evaluation]:
    """Evaluates splits; their TREC files go to `trec_dir/<split>/`."""
    encoded = Encoder(model, prepared)()
    return {
        split: evaluate_split(
            prepared.retrieval_set,
            encoded,
            split,
            negatives=negatives,
            predict_grade=getattr(model.loss, "predict_grade", None),
            trec_dir=trec_dir / split,
        )
        for split in splits
    }


def figures(evaluations: dict[str, Evaluation], negatives: int) -> dict:
    """Returns what `metrics.json` says of evaluations: means, intervals, counts, rules."""
    return {
        **{split: e.metrics for split, e in evaluations.items()},
        "intervals": {split: e.intervals for split, e in evaluations.items()},
        "counts": {split: e.counts for split, e in evaluations.items()},
        "confusion": {
            split: e.confusion.tolist()
            for split, e in evaluations.items()
            if e.confusion is not None
        },
        "rules": rules(negatives),
    }


def _evaluate_and_report(
    settings: RunSettings,
    run: RunDirectory,
    model: TwoTower,
    prepared: PreparedSet,
    progress: Progress,
) -> dict:
    negatives = settings.training.negatives
    evaluations = evaluate_model(model, prepared, negatives, EVALUATED_SPLITS, run.evaluation)
    result = figures(evaluations, negatives)
    result["training"] = {
        "pairs_per_second": round(progress.pairs / max(progress.seconds, 1e-9), 1),
        "seconds": round(progress.seconds, 3),
        "pairs": progress.pairs,
        "epochs": progress.epoch,
        "best_epoch": progress.best_epoch,
        "peak_rss_mb": round(peak_memory() / 2**20, 1),
    }
    result["history"] = progress.history
    result["thresholds"] = list(thresholds_of(settings, model))
    captions = _draw(run, result["thresholds"], progress, evaluations["test"])
    _report(run, settings, prepared, evaluations, result, captions)
    write_json(run.metrics, result)
    return result


def thresholds_of(settings: RunSettings, model: TwoTower) -> Sequence[float]:
    """Returns the thresholds of a trained model: those of its loss, which may have learned them.

    A loss without any has those of the settings.
    """
    return getattr(model.loss, "thresholds", settings.model.thresholds)


def _draw(run, thresholds, progress, test: Evaluation) -> dict[str, str]:
    """Draws the plots and returns caption -> path relative to the run."""
    from tf_smoothclir.evaluation import plots  # only here: matplotlib takes half a second

    run.plots.mkdir(exist_ok=True)
    drawn = {"Learning curves": run.plots / "learning_curves.png"}
    plots.learning_curves(drawn["Learning curves"], progress.history)
    drawn["Scores by grade, test"] = run.plots / "scores_by_grade.png"
    plots.score_density(drawn["Scores by grade, test"], test.scores_by_grade, thresholds)
    if test.confusion is not None:
        drawn["Predicted grades, test"] = run.plots / "grades.png"
        plots.confusion(drawn["Predicted grades, test"], test.confusion)
    return {caption: str(path.relative_to(run.path)) for caption, path in drawn.items()}


def _report(run, settings, prepared, evaluations, result, captions) -> None:
    data, model, training = settings.data, settings.model, result["training"]
    retrieval_set = prepared.retrieval_set
    write_report(
        run.report,
        title=f"{retrieval_set.source.name}: {model.loss}, {model.tower}, ε = {model.epsilon:g}",
        facts={
            "queries": f"{len(retrieval_set.query_ids):,} ({data.query_language})",
            "documents": f"{len(retrieval_set.document_ids):,}"
            f" ({retrieval_set.source.document_language})",
            "vocabularies": " and ".join(f"{len(prepared.vocabulary(r)):,}" for r in ROLES),
            "thresholds": ", ".join(f"{value:.4g}" for value in result["thresholds"]),
            "epochs": f"{training['epochs']}, best {training['best_epoch']} by validation"
            f" {settings.training.select_metric}",
            "training": f"{training['pairs']:,} pairs in {training['seconds']:.0f} s,"
            f" {training['pairs_per_second']:,.0f} pairs/s",
            "peak memory": f"{training['peak_rss_mb']:,.0f} MB",
        },
        evaluations=evaluations,
        rules=result["rules"],
        plots=captions,
        commands=[
            f"smoothclir-evaluate --run_dir={run.path}",
            f"smoothclir-export --run_dir={run.path}",
            f"smoothclir-search --export_dir={run.path} --query='...'",
        ],
        flags=settings.flag_lines(),
    )
