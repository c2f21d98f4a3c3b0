"""Exporting towers with all options beyond the paper: the same vectors from raw strings."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.published import EPSILON, NoVerifier, undesired_operations
from tests.training.tiny_set import tiny_settings, write_tiny_set
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.encoder import Encoder
from tf_smoothclir.evaluation.evaluate import evaluate_split
from tf_smoothclir.hybrid.fusion import Fusion
from tf_smoothclir.protocols.cut_points import read_cut_points
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.publishing.export_directory import load_part, load_tower
from tf_smoothclir.publishing.exported_models import load_exported_models
from tf_smoothclir.training.retrievers import load_models, load_scorer, with_fusion
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_report import calibrated_on
from tf_smoothclir.training.tasks import load_model
from tf_smoothclir.training.train import tokenized_set_of, train
from tf_smoothclir.two_tower.scorer import SetEncoder
from tf_smoothclir.utils.errors import InputError

pytestmark = pytest.mark.slow

OPTIONS = {
    "shared_vocabulary": True,
    "ngram_buckets": 50,
    "min_count": 4,  # rare words have n-grams alone
    "token_weights": "learned",
    "position_weights": "learned",
    "batching": "in_batch",
    "hard_negatives": 2,
    "mine_ranks": (2, 9),
    "average_weights": 0.5,
    "fresh_negatives": True,
    "matryoshka_dims": (2,),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("options")
    data = write_tiny_set(directory / "data")
    settings = tiny_settings(data, directory / "cache", epsilon=EPSILON, **OPTIONS)
    train(settings, directory / "run")
    return RunDirectory.load(directory / "run")


@pytest.fixture(scope="module")
def exported(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("export")
    export_run(run, path)
    return path


def texts_of(run, role):
    source = source_of(run.settings().data)
    return [text.text for text in (source.queries() if role == "query" else source.documents())]


@pytest.mark.parametrize("role", ROLES)
def test_raw_strings_give_the_vectors_of_evaluation_even_for_unseen_words(run, exported, role):
    settings = run.settings()
    tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, SPLITS)
    encoded = SetEncoder(load_model(run), tokenized_set)()
    expected = encoded.queries if role == "query" else encoded.documents
    found = load_tower(exported, role)[0](text=tf.constant(texts_of(run, role)))["vector"]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_unseen_word_gets_a_vector_from_its_spelling(exported):
    encode = load_tower(exported, "query")[0]
    unseen, other = encode(text=tf.constant(["xword1", "zzz"]))["vector"].numpy()
    assert np.abs(unseen).max() > 0
    assert np.abs(unseen - other).max() > 0.01


@pytest.mark.parametrize("role", ROLES)
def test_words_carry_the_vector_of_the_text(run, exported, role):
    model = tf.saved_model.load(str(exported / f"{role}_tower" / "1"))
    texts = texts_of(run, role)[:4]
    words = model.words(tf.constant(texts))
    parts = np.split(words["vectors"].numpy(), np.cumsum(words["lengths"])[:-1])
    pooled = np.array([np.tanh(part.mean(axis=0)) for part in parts])
    expected = pooled / (np.linalg.norm(pooled, axis=1, keepdims=True) + EPSILON)
    found = model.signatures["serving_default"](text=tf.constant(texts))["vector"]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("options", [{"table_type": "int8"}, {"dim": 2, "table_type": "int8"}])
def test_narrow_tables_are_measured_and_short_vectors_are_the_first_numbers(
    run, exported, tmp_path, options
):
    export_run(run, tmp_path, **options)
    dim = options.get("dim", run.settings().model.dim)
    expected = []
    for role in ROLES:
        texts = tf.constant(texts_of(run, role))
        encode, manifest = load_tower(tmp_path, role)
        vectors = encode(text=texts)["vector"].numpy()
        np.testing.assert_allclose(
            Encoder(tmp_path, role).encode(texts_of(run, role)), vectors, atol=1e-6
        )
        whole = load_tower(exported, role).encode(text=texts)["vector"].numpy()
        first = whole[:, :dim] / (1 - np.linalg.norm(whole, axis=1, keepdims=True))  # tanh / ε
        first *= EPSILON
        expected.append(first / (np.linalg.norm(first, axis=1, keepdims=True) + EPSILON))
        distances = np.linalg.norm(vectors - expected[-1], axis=1)
        assert manifest.dim == dim
        assert 0 < distances.max() <= manifest.tables.largest_distance + 1e-5
    assert manifest.tables.type == options["table_type"]
    assert set(manifest.tables.exact) == set(manifest.tables.narrow)
    cut = "dense" if dim == run.settings().model.dim else f"dense-{dim}"
    assert manifest.cut_points == read_cut_points(run.cut_points)[cut]
    assert manifest.pair_id != load_tower(exported, "query").manifest.pair_id
    # The search model reads the same tables: of words and of n-grams, of each tower.
    kinds, shapes = variables_of(tmp_path / "search" / "1")
    narrow = [name for name, kind in kinds.items() if kind == tf.as_dtype(options["table_type"])]
    assert len(narrow) == 4
    exact = {tuple(shapes[name]) for name, kind in kinds.items() if kind == tf.float32}
    assert exact.isdisjoint(tuple(shapes[name]) for name in narrow)


def variables_of(path):
    """Name -> type, and name -> shape, of the variables of a SavedModel."""
    found = tf.train.load_checkpoint(str(path / "variables" / "variables"))
    return found.get_variable_to_dtype_map(), found.get_variable_to_shape_map()


@pytest.mark.slow
def test_a_hybrid_that_is_cut_has_a_fusion_and_cut_points_of_its_own(tmp_path):
    data = write_tiny_set(tmp_path / "data")
    options = {"retriever": "hybrid", "dim": 8, "matryoshka_dims": (4,), "epochs": 1}
    settings = tiny_settings(data, tmp_path / "cache", **options)
    train(settings, tmp_path / "run")
    run = RunDirectory.load(tmp_path / "run")
    export_run(run, tmp_path / "export", dim=4, search_model=False, verifier=NoVerifier())
    found = load_exported_models(tmp_path / "export")
    assert found.manifest.dim == 4
    models = load_models(run, 4)
    tokenized_set = tokenized_set_of(source_of(settings.data), models.settings, run, SPLITS)
    models = with_fusion(models, tokenized_set)
    assert found.lexical.fusion == dataclasses.replace(models.fusion, seconds=0.0)
    # That of the shorter vectors, not of those that the run ranks by.
    assert models.fusion.dense_deviation != Fusion.load(run.fusion).dense_deviation
    retriever, negatives = models.retrievers(tokenized_set)["hybrid"], settings.training.negatives
    evaluation = evaluate_split(
        tokenized_set.retrieval_set, retriever, "validation", negatives=negatives
    )
    own = calibrated_on(tokenized_set, retriever, evaluation, negatives)
    assert found.manifest.cut_points == own
    assert load_scorer(run, tokenized_set, 4).cut_points is None


def test_lengths_that_were_not_trained_are_refused(run, tmp_path):
    with pytest.raises(InputError, match=r"--dim=3: .*matryoshka_dims"):
        export_run(run, tmp_path, dim=3)


def test_all_parts_have_core_operations_only(exported):
    for role in ("query", "document", "search"):
        assert not undesired_operations(load_part(exported, role)[0])
