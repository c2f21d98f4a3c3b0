"""Which task a run trains.

So far one family of models is trained step by step, two towers. Another one is another branch in
each function here. Beside `retrievers`, this is the one place in this room that knows the families.
"""

from __future__ import annotations

from tf_smoothclir._compat.keras_api import tf_weights
from tf_smoothclir.data.shards.reading import Shards
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.batches import SampledBatches
from tf_smoothclir.training.checkpoints import BestWeights
from tf_smoothclir.training.distributed.shard_batches import ShardBatches
from tf_smoothclir.training.distributed.workers import SingleProcess
from tf_smoothclir.training.initial_run import initial_run
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.two_tower.builder import (
    build_model,
    configured_loss,
    cut_to,
    load_pretrained,
    start_bilingual,
    start_token_weights,
)
from tf_smoothclir.two_tower.model import TwoTower
from tf_smoothclir.two_tower.task import TwoTowerTask
from tf_smoothclir.utils.errors import input_error


def check_model(settings: RunSettings) -> None:
    """Checks what the model does not take, before anything is written.

    Raises:
        InputError: The loss cannot take its thresholds, cut points or temperature.
    """
    configured_loss(settings)


def make_task(
    settings: RunSettings,
    tokenized_set: TokenizedSet | None,
    run: RunDirectory,
    shards: Shards | None,
    workers: SingleProcess,
    training_set: TokenizedSet | None,
) -> TwoTowerTask:
    """Builds the task of a run.

    A run that has a checkpoint gets random weights, which the checkpoint will replace.

    Args:
        settings: All settings.
        tokenized_set: The set; None for workers other than the chief.
        run: The run directory.
        shards: What to train on instead of the set; None trains on the set.
        workers: The processes that train together.
        training_set: The set, perhaps with more training queries behind its own; None as above.

    Raises:
        InputError: The settings of the model cannot be used, or there are more workers than
            shards.
    """
    training = settings.training
    vocabularies = {role: (shards or tokenized_set).vocabulary(role) for role in ROLES}
    model = build_model(settings, vocabularies)
    if (initial := initial_run(settings)) is not None:
        if not run.begun:
            BestWeights(initial.checkpoints, tf_weights(model)).restore()
    elif workers.is_chief and not run.begun:
        load_pretrained(model, settings, vocabularies)
        start_bilingual(model, settings, training_set)
        start_token_weights(model, settings, tokenized_set)
    if shards:
        batches = ShardBatches(shards, training, worker=workers.number, num_workers=workers.size)
    else:
        batches = SampledBatches(
            training_set,
            training,
            mined=tokenized_set.retrieval_set,
            both_at_once=model.encodes_both_at_once,
        )
    return TwoTowerTask(model, training, batches, tokenized_set)


def check_weights(run: RunDirectory) -> None:
    """Checks that a run has weights to load, before its data are read.

    Raises:
        InputError: The run has not completed an epoch.
    """
    if not (run.vocabulary.is_dir() and BestWeights.exist(run.checkpoints)):
        raise run.incomplete("has not completed an epoch yet")


def check_dim(model: ModelSettings, dim: int) -> None:
    """Checks that vectors were trained to be cut to their first `dim` numbers; 0 keeps all.

    Raises:
        InputError: They were not.
    """
    possible = (*model.shorter_dims, model.dim)
    if dim and dim not in possible:
        raise input_error(
            f"--dim={dim}",
            f"the run trained vectors of {', '.join(map(str, possible))} numbers",
            "Choose one of these, or train with others in --matryoshka_dims",
        )


def load_model(run: RunDirectory, dim: int = 0) -> TwoTower:
    """Restores the model of a run with the weights of its best epoch.

    Args:
        run: The run directory.
        dim: Cuts the vectors to their first `dim` numbers; 0 keeps all.

    Raises:
        InputError: The run has not completed an epoch, or did not train vectors of this length.
    """
    check_weights(run)
    settings = run.settings()
    check_dim(settings.model, dim)
    model = build_model(settings, {role: run.vocabulary_tokens(role) for role in ROLES})
    BestWeights(run.checkpoints, tf_weights(model)).restore()
    return cut_to(model, dim) if dim not in (0, settings.model.dim) else model
