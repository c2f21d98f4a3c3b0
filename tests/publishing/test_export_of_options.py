"""Exporting towers with all options beyond the paper: the same vectors from raw strings."""

import dataclasses

import numpy as np
import pytest

from tests.published import EPSILON, NoVerifier, encode, undesired_operations
from tests.training.fixtures import run_of, tokenized_by
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.encoder import Encoder
from tf_smoothclir.evaluation.calibration import calibrated
from tf_smoothclir.evaluation.evaluate import evaluate_split
from tf_smoothclir.hybrid.fusion import Fusion
from tf_smoothclir.protocols.text_search import read_cut_points
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.publishing.export_directory import load_part
from tf_smoothclir.publishing.exported_models import load_exported_models
from tf_smoothclir.training.run_models import ModelsOverSet, load_models, load_retriever
from tf_smoothclir.training.run_report import hits_of_short_queries
from tf_smoothclir.training.tasks import load_model
from tf_smoothclir.two_tower.scorer import SetEncoder

pytestmark = pytest.mark.slow

OPTIONS = {
    "shared_vocabulary": True,
    "ngram_buckets": 50,
    "min_count": 4,  # rare words have n-grams alone
    "token_weights": "learned",
    "position_weights": "learned",
    "batching": "in_batch",
    "hard_negatives": 2,
    "fresh_negatives": True,
    "matryoshka_dims": (2,),
}


@pytest.fixture(scope="module")
def run(tiny, tmp_path_factory):
    path = tmp_path_factory.mktemp("options") / "run"
    return run_of(tiny(epsilon=EPSILON, **OPTIONS), path)


@pytest.fixture(scope="module")
def exported(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("export")
    export_run(run, path)
    for role in ("query", "document", "search"):
        assert not undesired_operations(load_part(path, role)[0])
    return path


def texts_of(run, role):
    source = source_of(run.settings().data)
    return [text.text for text in (source.queries() if role == "query" else source.documents())]


@pytest.mark.parametrize("role", ROLES)
def test_raw_strings_give_the_vectors_of_evaluation(run, exported, role):
    encoded = SetEncoder(load_model(run), tokenized_by(run))()
    expected = encoded.queries if role == "query" else encoded.documents
    model, _ = load_part(exported, role)
    texts = texts_of(run, role)
    found = encode(model.signatures["serving_default"], texts)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    # Words that no text had have vectors from their spelling.
    unseen, other = encode(model.signatures["serving_default"], ["xword1", "zzz"])
    assert np.abs(unseen).max() > 0
    assert np.abs(unseen - other).max() > 0.01


def test_short_vectors_are_the_first_numbers(run, exported, tmp_path):
    dim = 2
    export_run(run, tmp_path, dim=dim, verifier=NoVerifier())
    for role in ROLES:
        texts = texts_of(run, role)
        tower, manifest = load_part(tmp_path, role)
        vectors = encode(tower, texts)
        np.testing.assert_allclose(Encoder(tmp_path, role).encode(texts), vectors, atol=1e-6)
        whole = encode(load_part(exported, role).model, texts)
        first = whole[:, :dim] / (1 - np.linalg.norm(whole, axis=1, keepdims=True))  # tanh / ε
        first *= EPSILON
        expected = first / (np.linalg.norm(first, axis=1, keepdims=True) + EPSILON)
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
        assert manifest.dim == dim
    assert manifest.cut_points == read_cut_points(run.cut_points)[f"dense-{dim}"]
    assert manifest.pair_id != load_part(exported, "query").manifest.pair_id


def test_a_hybrid_that_is_cut_has_a_fusion_and_cut_points_of_its_own(tiny, tmp_path):
    settings = tiny(retriever="hybrid", dim=8, matryoshka_dims=(4,), epochs=1)
    run = run_of(settings, tmp_path / "run")
    export_run(run, tmp_path / "export", dim=4, search_model=False, verifier=NoVerifier())
    found = load_exported_models(tmp_path / "export")
    assert found.manifest.dim == 4
    models = load_models(run, 4)
    tokenized_set = tokenized_by(run, models.settings)
    over = ModelsOverSet(models.settings, tokenized_set, models)
    fusion, negatives = over.models["hybrid"], settings.training.negatives
    assert found["hybrid"].fusion == dataclasses.replace(fusion, seconds=0.0)
    # That of the shorter vectors, not of those that the run ranks by.
    assert fusion.dense_deviation != Fusion.load(run.fusion).dense_deviation
    hybrid = over.retrievers["hybrid"]
    evaluation = evaluate_split(over.retrieval_set, hybrid, "validation", negatives=negatives)
    own = calibrated(evaluation, hits_of_short_queries(over)["hybrid"])
    assert found.manifest.cut_points == own
    assert load_retriever(run, tokenized_set, 4)[1] is None
