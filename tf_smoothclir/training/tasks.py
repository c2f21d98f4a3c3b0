"""The task of a run: its towers as they start, and what they are trained for."""

import dataclasses

from tensorflow import keras

from tf_smoothclir._compat.keras_api import tf_weights
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.plugins import OBJECTIVES, family
from tf_smoothclir.protocols.task import Batches, Task
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.batches import SampledBatches
from tf_smoothclir.training.checkpoints import BestWeights
from tf_smoothclir.training.initial_run import initial_run
from tf_smoothclir.training.processes import SingleProcess
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import ModelsOverSet
from tf_smoothclir.two_tower import builder
from tf_smoothclir.two_tower.model import TwoTower
from tf_smoothclir.two_tower.scorer import TwoTowerTask
from tf_smoothclir.utils.memory import give_back_memory


@dataclasses.dataclass(frozen=True)
class ObjectiveInputs:
    """Inputs of an objective, from which it makes a task."""

    model: TwoTower  # with initial weights, which a checkpoint may replace
    settings: RunSettings
    tokenized_set: TokenizedSet | None  # the set; None for processes other than the chief
    training_set: TokenizedSet | None  # the set, perhaps with more training queries after its own
    run: RunDirectory
    batches: Batches | None = None  # batches to train on; None draws them from the training set


def check_model(settings: RunSettings) -> None:
    """Checks what the model does not take, before anything is written."""
    builder.configured_loss(settings)


def objective_inputs(
    over: ModelsOverSet, run: RunDirectory, processes: SingleProcess
) -> ObjectiveInputs:
    """Builds the model of a run; weights that a checkpoint will replace are random."""
    settings, tokenized_set = over.settings, over.tokenized_set
    give_back_memory()  # of what was learned before
    keras.utils.set_random_seed(settings.training.seed)
    training_set = tokenized_set  # None where another process is the chief
    if processes.is_chief:
        training_set = family(settings.retrieval.with_task).training_set(run, over)
    vocabularies = processes.vocabularies() or {
        role: tokenized_set.vocabulary(role) for role in ROLES
    }
    model = builder.build_model(settings, vocabularies)
    if processes.is_chief and not run.begun:
        builder.load_pretrained(model, settings, vocabularies)
        builder.start_bilingual(model, settings, training_set)
        builder.start_token_weights(model, settings, tokenized_set)
        if (initial := initial_run(settings)) is not None:
            builder.start_like(model, load_model(initial), training_set)
    batches = processes.batches(settings.training)
    give_back_memory()  # of what built the model
    return ObjectiveInputs(model, settings, tokenized_set, training_set, run, batches)


def make_task(inputs: ObjectiveInputs) -> Task:
    """The task of a run."""
    # Only now, because the slots take as much memory as the weights.
    inputs.model.optimizer.build(inputs.model.trainable_variables)
    return OBJECTIVES[inputs.settings.training.objective](inputs)


def ranking_task(inputs: ObjectiveInputs) -> TwoTowerTask:
    """The task of `--loss` over judged pairs or candidate lists."""
    model, training = inputs.model, inputs.settings.training
    batches = inputs.batches or SampledBatches(
        inputs.training_set,
        training,
        mined=inputs.tokenized_set.retrieval_set,
        both_at_once=model.encodes_both_at_once,
    )
    return TwoTowerTask(model, training, batches, inputs.tokenized_set)


def check_weights(run: RunDirectory) -> None:
    """Checks that a run has weights to load, before its data are read."""
    if not run.vocabulary.is_dir() or BestWeights.prefix(run.checkpoints) is None:
        raise run.incomplete("has not completed an epoch yet")


def load_model(run: RunDirectory, dim: int = 0) -> TwoTower:
    """Restores the model of a run with the weights of its best epoch."""
    check_weights(run)
    settings = run.settings()
    model = builder.build_model(settings, {role: run.vocabulary_tokens(role) for role in ROLES})
    BestWeights(run.checkpoints, tf_weights(model)).restore()
    return builder.cut_to(model, dim) if dim not in (0, settings.model.dim) else model
