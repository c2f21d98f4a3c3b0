"""The model builder: from settings to a compiled two-tower model, and what it starts with."""

import functools
from collections.abc import Mapping

import numpy as np
import tensorflow as tf
from absl import logging
from tensorflow import keras

from tf_smoothclir._compat.keras_api import tf_variable, tf_weights
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.data.word_places import (
    inverse_document_frequency,
    occurrences,
    occurrences_beside,
    vectors_of,
)
from tf_smoothclir.losses.base import RankingLoss, check_thresholds, ranking_loss
from tf_smoothclir.optimizers import make_optimizer
from tf_smoothclir.plugins import LOSSES, TOWERS
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.text.embeddings import FIRST_WORD, load_embeddings
from tf_smoothclir.towers.sequence_tower import SequenceTower
from tf_smoothclir.two_tower.model import TwoTower
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity
from tf_smoothclir.utils.errors import InputError, input_error

# Initial length of n-gram vectors relative to word vectors: they should support the words, not
# drown them. Chosen on validation queries of mdn-en-de.
_SHARE_OF_NGRAMS = 0.3
_DIMS_AT_ONCE = 32  # whole tables would need their memory twice


def configured_loss(settings: RunSettings) -> RankingLoss:
    """The loss that the settings name."""
    model = settings.model
    kind = LOSSES[model.loss]
    try:
        loss = kind.from_settings(settings.values())
        _check_batches(loss, settings)
        if not kind.needs_lists:
            _check_grades(loss, model)
    except ValueError as error:
        names = kind.settings if kind.needs_lists else ("thresholds", *kind.settings)
        flags = ", ".join(f"--{name}" for name in dict.fromkeys(("loss", *names)))
        raise InputError(f"{flags}: {error}.") from error
    return loss


def _check_grades(loss: RankingLoss, model: ModelSettings) -> None:
    """Checks that the loss has as many grades as the thresholds make."""
    grades = len(check_thresholds("thresholds", model.thresholds)) + 1
    of_loss = ranking_loss(loss).num_grades
    if of_loss not in (grades, None):
        if model.loss == "given":
            remedy = f"give the loss {grades - 1} thresholds" if loss.thresholds else "use another"
            reason = f"the loss is for {of_loss} grades, but the set has {grades}"
            raise ValueError(f"{reason}: {remedy}")
        raise ValueError(
            f"{model.loss} is for {of_loss} grades, and thresholds {model.thresholds} make"
            f" {grades}: give {of_loss - 1} thresholds, or use another loss"
        )


def _check_batches(loss: RankingLoss, settings: RunSettings) -> None:
    """Checks that a loss that Python gave gets whole lists, if it needs them."""
    if ranking_loss(loss).needs_lists and settings.training.batching in ("pairs", "bucketed"):
        raise ValueError(
            "it compares the documents of a list: give --batching=lists or --batching=in_batch"
        )


def build_model(settings: RunSettings, vocabularies: Mapping[str, list[str]]) -> TwoTower:
    """The compiled model with its initial weights, whose optimizer has no slots yet."""
    training = settings.training
    two_tower = _unbuilt_model(settings, vocabularies)
    two_tower.build()
    two_tower.check_trainable()
    two_tower.compile(
        optimizer=make_optimizer(training.optimizer, training.learning_rate),
        loss=configured_loss(settings),
    )
    return two_tower


def _unbuilt_model(settings: RunSettings, vocabularies: Mapping[str, list[str]]) -> TwoTower:
    """The model that the settings describe, without variables."""
    model, training = settings.model, settings.training
    if settings.text.shared_vocabulary:
        towers = dict.fromkeys(ROLES, _tower(settings, "query", vocabularies, training.seed))
    else:
        towers = {
            role: _tower(settings, role, vocabularies, training.seed + index)
            for index, role in enumerate(ROLES)
        }
    return TwoTower(
        towers["query"],
        towers["document"],
        SmoothCosineSimilarity(epsilon=model.epsilon),
        clip_norm=training.clip_norm,
        in_batch=training.batching == "in_batch",
        matryoshka_dims=model.shorter_dims,
    )


def cut_to(model: TwoTower, dim: int) -> TwoTower:
    """A model with the first `dim` numbers of another one's word vectors, else the same."""
    config = model.get_config()
    for role in ROLES:
        if config[f"{role}_tower"] is not None:  # None: the same as the other one
            zeros = {f"{kind}_initializer": "zeros" for kind in ("embeddings", "ngram")}
            config[f"{role}_tower"]["config"] |= {"dim": dim, **zeros}
    config["matryoshka_dims"] = [shorter for shorter in model.matryoshka_dims if shorter < dim]
    cut = TwoTower.from_config(config)
    cut.compile(loss=type(model.loss).from_config(model.loss.get_config()))
    for part, whole in zip(tf_weights(cut), tf_weights(model)):
        part.assign(whole if part.shape == whole.shape else whole[:, :dim])
    return cut


def load_pretrained(
    model: TwoTower, settings: RunSettings, vocabularies: Mapping[str, list[str]]
) -> None:
    """Loads the pre-trained word vectors that the settings name into the towers."""
    # The n-grams of such a tower start with zero vectors, so that its words start with exactly the
    # given ones.
    for index, role in enumerate(ROLES):
        path = getattr(settings.model, f"{role}_embeddings")
        if not path:
            continue
        vectors = load_embeddings(
            path, vocabularies[role], dim=settings.model.dim, seed=settings.training.seed + index
        )
        tower = getattr(model, f"{role}_tower")
        tower.embeddings.assign(vectors.matrix)
        if tower.ngram_buckets:  # random n-grams would drown the given vectors
            tower.ngram_embeddings.assign(tf.zeros_like(tower.ngram_embeddings))
        logging.info(
            "%s vectors: %d of %d words (%.1f%%) found in %s",
            role.capitalize(),
            vectors.found,
            vectors.total,
            100 * vectors.found / vectors.total,
            path,
        )


def start_bilingual(model: TwoTower, settings: RunSettings, tokenized_set: TokenizedSet) -> None:
    """Starts words and their n-grams with bilingual vectors, if the settings ask for that."""
    # Words that occur in the same training pairs, in either language, start close to each other.
    # Words that occur in no training pair start with zero vectors, so their n-grams alone count.
    # Layers after the word vectors start alike in both towers; else they would take the words
    # apart.
    if settings.model.initial_vectors != "bilingual":
        return
    shared = settings.text.shared_vocabulary
    for roles in [ROLES] if shared else [(role,) for role in ROLES]:
        tower = getattr(model, f"{roles[0]}_tower")
        occurring = occurrences(
            tokenized_set,
            roles,
            size=tower.vocabulary_size,
            dim=tower.dim,
            seed=settings.training.seed,
        )
        of_ngrams = None
        if tower.ngram_buckets:
            ngrams = tokenized_set.ngrams(roles[0])
            of_ngrams = occurring.of_ngrams(ngrams, tower.ngram_buckets)
        share = tower.bilingual_scale * _SHARE_OF_NGRAMS
        for begin in range(0, tower.dim, _DIMS_AT_ONCE):
            dims = slice(begin, begin + _DIMS_AT_ONCE)
            sums = occurring.sums(dims)
            vectors = vectors_of(sums, occurring.counts)
            _set_columns(tower.embeddings, dims, tower.bilingual_scale * vectors)
            if of_ngrams:
                vectors = vectors_of(of_ngrams.sums(sums), of_ngrams.counts)
                _set_columns(tower.ngram_embeddings, dims, share * vectors)
        logging.info(
            "%s vectors: %d of %d words occur in a training pair",
            " and ".join(roles).capitalize(),
            np.count_nonzero(occurring.counts),
            len(occurring.counts) - FIRST_WORD,
        )
    if isinstance(model.document_tower, SequenceTower) and not shared:
        model.document_tower.start_like(model.query_tower)


def start_like(model: TwoTower, former: TwoTower, tokenized_set: TokenizedSet) -> None:
    """Starts with the weights of a trained model whose vocabularies begin those of this one."""
    # A new word starts between the words beside which it stands in training pairs, one without a
    # pair with a zero vector.
    weights, of_former = tf_weights(model), tf_weights(former)
    if [weight.shape[1:] for weight in weights] != [given.shape[1:] for given in of_former]:
        raise input_error("--init_from", "its loss has other weights", "Leave --loss out")
    for weight, given in zip(weights, of_former):
        grows = weight.shape != given.shape
        weight.assign(tf.concat([given, weight[given.shape[0] :]], axis=0) if grows else given)
    shared = model.query_tower is model.document_tower
    tables = {
        roles: getattr(former, f"{roles[0]}_tower").tables()["embeddings"].numpy()
        for roles in ([ROLES] if shared else [(role,) for role in ROLES])
    }
    for roles, known in tables.items():
        tower = getattr(model, f"{roles[0]}_tower")
        beside = occurrences_beside(tokenized_set, roles, size=tower.vocabulary_size, tables=tables)
        vectors = beside.sums() / np.maximum(beside.counts, 1)[:, np.newaxis]
        in_pairs = beside.counts > 0
        scale = _length(known[in_pairs[: len(known)]]) / _length(vectors[in_pairs])
        _set_rows(tower.embeddings, len(known), scale * vectors[len(known) :])


def _length(vectors: np.ndarray) -> float:
    """The root of the mean square of the lengths of vectors, above 0."""
    return max(1e-6, float(np.sqrt(np.square(vectors).sum() / max(1, len(vectors)))))


def _set_rows(table, begin: int, values: np.ndarray) -> None:
    """Sets rows of a table from `begin` on where they lie: `assign` would leave a second table."""
    rows = np.arange(begin, begin + len(values), dtype=np.int32)
    tf_variable(table).scatter_update(tf.IndexedSlices(values, rows))


def _set_columns(table, dims: slice, values: np.ndarray) -> None:
    """Sets columns of a table where they lie: `table[:, dims].assign` would copy all of it."""
    begin, end = (0, dims.start), (len(values), dims.start + values.shape[1])
    tf.raw_ops.ResourceStridedSliceAssign(
        ref=tf_variable(table).handle, begin=begin, end=end, strides=(1, 1), value=values
    )


def start_token_weights(
    model: TwoTower, settings: RunSettings, tokenized_set: TokenizedSet
) -> None:
    """Sets token weights to inverse document frequencies, if the settings ask for that."""
    if settings.model.token_weights != "idf":
        return
    shared = settings.text.shared_vocabulary
    for role in ROLES[:1] if shared else ROLES:
        tower = getattr(model, f"{role}_tower")
        roles = ROLES if shared else (role,)
        tower.start_token_weights(
            inverse_document_frequency(tokenized_set, roles, tower.vocabulary_size)
        )


def _tower(settings: RunSettings, role: str, vocabularies: Mapping[str, list[str]], seed: int):
    model = settings.model
    kind = TOWERS[model.tower]
    start = functools.partial(keras.initializers.RandomNormal, stddev=kind.initial_stddev)
    if model.initial_vectors == "bilingual":
        # `start_bilingual` sets all rows, and random ones would need three times their memory.
        start = _zeros
    return kind.from_settings(
        settings.values(),
        len(vocabularies[role]),
        seed=seed,
        embeddings_initializer=start(seed=seed),
        train_embeddings=getattr(model, f"train_{role}_embeddings"),
        ngram_buckets=settings.text.ngram_rows(len(vocabularies[role])),
        ngram_initializer=start(seed=seed + len(ROLES)),
        name=f"{role}_tower",
    )


def _zeros(seed: int) -> keras.initializers.Initializer:
    return keras.initializers.Zeros()
