"""Which task a run trains.

All of them train two towers, for one objective or another. Beside `retrievers`, this is the one
place in this room that knows the families.
"""

from __future__ import annotations

from tf_smoothclir._compat.keras_api import tf_weights
from tf_smoothclir.adversarial.bae import BaeTask
from tf_smoothclir.adversarial.encoders import Encoders
from tf_smoothclir.adversarial.helped_task import HelpedTask
from tf_smoothclir.adversarial.opening_queries import OpeningQueries
from tf_smoothclir.adversarial.probe import SourceProbe
from tf_smoothclir.adversarial.s2net import S2NetTask
from tf_smoothclir.adversarial.task import AdversarialTask
from tf_smoothclir.adversarial.translations import (
    TokenRows,
    WordTranslations,
    translated_by_people,
    translated_by_table,
)
from tf_smoothclir.adversarial.triplets import TripletBatches
from tf_smoothclir.adversarial.xcnn import XcnnTask
from tf_smoothclir.data.shards.reading import Shards
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.lexical.text_reader import QueryReader
from tf_smoothclir.lexical.texts import LexicalTexts
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

_PAIR_TASKS = {"s2net": S2NetTask, "bae": BaeTask, "xcnn": XcnnTask}


def check_model(settings: RunSettings) -> None:
    """Checks what the model does not take, before anything is written."""
    configured_loss(settings)


def untrained_model(settings: RunSettings, tokenized_set: TokenizedSet) -> TwoTower:
    """The compiled model with random weights."""
    return build_model(settings, {role: tokenized_set.vocabulary(role) for role in ROLES})


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
    if settings.adversarial.objective == "adversarial":
        return _adversarial_task(model, settings, tokenized_set, run)
    if settings.adversarial.objective != "ranking":
        return _pair_task(model, settings, tokenized_set, run)
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


def _adversarial_task(
    model: TwoTower, settings: RunSettings, tokenized_set: TokenizedSet, run: RunDirectory
) -> AdversarialTask:
    """Builds the task of encoders and a discriminator; keeps their texts in the run."""
    training, own = settings.training, settings.adversarial
    _prepare_texts(settings, tokenized_set, run)
    translations = TokenRows.load(run.translations)
    openings = OpeningQueries.load(run.openings) if own.opening_epochs else None
    encoders = Encoders(model, training.seed + len(ROLES))
    batches = TripletBatches(
        tokenized_set,
        translations,
        training,
        openings=openings,
        opening_epochs=own.opening_epochs,
        graded=own.graded_triplets,
        after_epoch=SourceProbe(encoders, tokenized_set, translations),
    )
    return AdversarialTask(
        model,
        settings,
        batches,
        encoders,
        tokenized_set=tokenized_set,
        training_queries=len(tokenized_set.retrieval_set.queries_in("train")),
    )


def _pair_task(
    model: TwoTower, settings: RunSettings, tokenized_set: TokenizedSet, run: RunDirectory
) -> HelpedTask:
    """Builds the task of a model that learns from queries and their best documents."""
    own, openings = settings.adversarial, None
    if own.opening_epochs:
        _prepare_texts(settings, tokenized_set, run)
        openings = OpeningQueries.load(run.openings)
    batches = TripletBatches(
        tokenized_set,
        TokenRows.empty(len(tokenized_set.retrieval_set.query_ids)),
        settings.training,
        openings=openings,
        opening_epochs=own.opening_epochs,
        best_only=True,
    )
    return _PAIR_TASKS[own.objective](model, settings, batches, tokenized_set)


def _prepare_texts(settings: RunSettings, tokenized_set: TokenizedSet, run: RunDirectory) -> None:
    """Writes translated queries, and queries made of documents, unless the run has them."""
    own, most = settings.adversarial, settings.text.max_query_tokens
    by_people = own.translated_by == "human"
    translates = own.objective == "adversarial" and not run.translations.is_file()
    needs_words = translates and not by_people
    needs_openings = own.opening_epochs and not run.openings.is_file()
    if translates and by_people:
        with run.writing(run.translations) as path:
            translated_by_people(tokenized_set, most).save(path)
    if not (needs_words or needs_openings):
        return
    texts = LexicalTexts(tokenized_set, most)
    words = WordTranslations.learn(texts, settings.training.seed)
    if needs_words:
        reader = QueryReader(tokenized_set.vocabulary_dir, most)
        with run.writing(run.translations) as path:
            translated_by_table(words, texts, reader).save(path)
    if needs_openings:
        with run.writing(run.openings) as path:
            OpeningQueries.of(tokenized_set, texts, words, most).save(path)


def check_weights(run: RunDirectory) -> None:
    """Checks that a run has weights to load, before its data are read."""
    if not (run.vocabulary.is_dir() and BestWeights.exist(run.checkpoints)):
        raise run.incomplete("has not completed an epoch yet")


def check_dim(model: ModelSettings, dim: int) -> None:
    """Checks that vectors were trained to be cut to their first `dim` numbers; 0 keeps all."""
    possible = (*model.shorter_dims, model.dim)
    if dim and dim not in possible:
        raise input_error(
            f"--dim={dim}",
            f"the run trained vectors of {', '.join(map(str, possible))} numbers",
            "Choose one of these, or train with others in --matryoshka_dims",
        )


def load_model(run: RunDirectory, dim: int = 0) -> TwoTower:
    """Restores the model of a run with the weights of its best epoch."""
    check_weights(run)
    settings = run.settings()
    check_dim(settings.model, dim)
    model = build_model(settings, {role: run.vocabulary_tokens(role) for role in ROLES})
    BestWeights(run.checkpoints, tf_weights(model)).restore()
    return cut_to(model, dim) if dim not in (0, settings.model.dim) else model
