"""The scorer of two towers: vectors of a set, ranking by brute force; vectors cut short."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import cases
from tests.oracles import maths
from tests.small_world import random_set, vectors_with_ties
from tests.training.fixtures import run_of, tokenized_by
from tests.two_tower.small_model import FORMS, apart, make_model, tensors
from tf_smoothclir import LazyAdam, SmoothOrdinalSearchLoss
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.losses.listwise import SoftmaxLoss
from tf_smoothclir.ops import top_k
from tf_smoothclir.protocols.scorer import Ranking
from tf_smoothclir.protocols.text_search import read_cut_points
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.towers.average_pooling import AveragePoolingTower
from tf_smoothclir.training import run_directory, run_models
from tf_smoothclir.two_tower import builder, scorer, similarity
from tf_smoothclir.two_tower import scorer as scorer_module
from tf_smoothclir.two_tower.model import CUT_WEIGHT, TwoTower
from tf_smoothclir.utils.errors import InputError

EPSILON = 0.5
DIMS = (1, 3)  # of vectors of 4 numbers
SOSL, SOFTMAX = SmoothOrdinalSearchLoss((0.2, 0.7)), SoftmaxLoss()


def check(found, model, tokenized_set):
    for role, vectors in (("query", found.queries), ("document", found.documents)):
        assert vectors.dtype == np.float32
        table = getattr(model, f"{role}_tower").embeddings.numpy().astype(np.float64)
        texts = tokenized_set.tokens(role)
        means = [table[text].mean(axis=0) if len(text) else np.zeros(3) for text in texts]
        expected = [maths.smooth_normalize(np.tanh(mean), EPSILON) for mean in means]
        np.testing.assert_allclose(vectors, expected, rtol=1e-5, atol=1e-7)


@cases("texts_per_batch", 5, 1000)
def test_rows_are_vectors_by_the_current_weights(texts_per_batch, tokenized_set, monkeypatch):
    towers = [AveragePoolingTower(len(tokenized_set.vocabulary(role)), 3) for role in ROLES]
    model = TwoTower(*towers, similarity.SmoothCosineSimilarity(EPSILON))
    model.build()
    monkeypatch.setattr(scorer_module, "_TEXTS_PER_BATCH", texts_per_batch)
    encoder = scorer.SetEncoder(model, tokenized_set)
    before = encoder()
    check(before, model, tokenized_set)
    assert before.tie_order is tokenized_set.retrieval_set.tie_order
    assert not before.queries[5].any()  # without a token
    assert np.flatnonzero(~before.documents.any(axis=1)).tolist() == [0, 11]
    for tower in towers:
        tower.embeddings.assign(tower.embeddings * -2)
    after = encoder()
    assert (before.queries[0] * after.queries[0] < 0).all()
    check(after, model, tokenized_set)


@cases("numbers_per_chunk", 1 << 22, 7 * 4, 1)
def test_scores_are_inner_products(small_set, monkeypatch, numbers_per_chunk):
    monkeypatch.setattr(scorer_module, "_NUMBERS_PER_CHUNK", numbers_per_chunk)
    retriever = vectors_with_ties(small_set, seed=1)
    lists = candidate_lists(small_set, "train", negatives=6, seed=1)
    pairs = zip(lists.pair_query_rows, lists.document_rows)
    found = retriever.score(lists)
    assert found.dtype == np.float32
    assert found.tolist() == [retriever.queries[q] @ retriever.documents[d] for q, d in pairs]


@cases("depth", 1, 5, 70, 100)
@cases(
    "documents_at_once, scores_at_once", (1 << 17, 1 << 25), (70, 281), (16, 70), (7, 28), (1, 4)
)
def test_ranking_is_brute_force(monkeypatch, depth, documents_at_once, scores_at_once):
    monkeypatch.setattr(top_k, "DOCUMENTS_PER_CHUNK", documents_at_once)
    monkeypatch.setattr(scorer_module, "DOCUMENTS_PER_CHUNK", documents_at_once)
    monkeypatch.setattr(scorer_module, "_SCORES_PER_CHUNK", scores_at_once)
    retriever = vectors_with_ties(random_set(17, 70, seed=1), seed=2)
    retriever.queries[5] = 0  # all documents have the same score: their order is that of the hashes
    queries = np.array([16, 3, 4, 5, 0, 11, 12, 13])
    chunks = list(retriever.rank(queries, depth))
    assert len(chunks) == (1 if scores_at_once > 70 * 8 else 2)
    top = Ranking.joined(chunks)
    assert top.document_rows.shape == top.scores.shape == (8, min(depth, 70))
    np.testing.assert_array_equal(top.query_rows, queries)
    for i, query in enumerate(queries):
        scores = retriever.documents @ retriever.queries[query]  # of eighths: exact
        rows = sorted(range(70), key=lambda row: (-scores[row], retriever.tie_order[row]))[:depth]
        assert top.document_rows[i].tolist() == rows
        np.testing.assert_array_equal(top.scores[i], scores[rows])


def matryoshka(form, loss, **kwargs):
    model = make_model(in_batch=form == "in_batch", **kwargs)
    model.matryoshka_dims = DIMS
    model.compile(LazyAdam(0.1), loss)
    return model


@cases("form, loss", ("pairs", SOSL), ("lists", SOSL), ("in_batch", SOSL), ("in_batch", SOFTMAX))
def test_the_loss_is_the_weighted_mean_of_those_of_the_models_with_cut_vectors(form, loss):
    grades, inputs = FORMS[form]
    batch = inputs(apart()), tf.constant(grades)
    model = matryoshka(form, loss)
    cuts = [builder.cut_to(model, dim) for dim in (4, *DIMS)]
    apart_losses = [float(cut.compute_loss(*batch, cut(batch[0]))) for cut in cuts]
    expected = np.average(apart_losses, weights=[1, CUT_WEIGHT, CUT_WEIGHT])
    assert float(model.logged_step(batch)["batch_loss"]) == pytest.approx(expected, rel=1e-5)
    assert max(apart_losses) > min(apart_losses)


@cases("epsilon", 0.0, 0.5)
@cases("shared", False, True)
def test_cut_vectors_are_the_first_numbers_of_the_towers_normalised_anew(shared, epsilon):
    model = matryoshka("lists", SOSL, shared=shared, epsilon=epsilon)
    cut = builder.cut_to(model, 3)
    assert cut.is_shared == shared
    assert cut.matryoshka_dims == (1,)
    assert TwoTower.from_config(model.get_config()).matryoshka_dims == DIMS
    whole = [model.vectors(role, tokens).numpy() for role, tokens in tensors().items()]
    retriever = scorer.DenseRetriever(*whole, np.arange(4)).cut_to(3, epsilon)
    for role, of_set in (("query", retriever.queries), ("document", retriever.documents)):
        first = getattr(model, f"{role}_tower")(tensors()[role]).numpy()[:, :3]
        expected = [maths.smooth_normalize(vector, epsilon) for vector in first]
        np.testing.assert_allclose(cut.vectors(role, tensors()[role]), expected, atol=1e-6)
        np.testing.assert_allclose(of_set, expected, atol=1e-6)


@pytest.fixture(scope="module")
def run(tiny, tmp_path_factory):
    settings = tiny(dim=16, matryoshka_dims=(4, 8, 16))
    return run_of(settings, tmp_path_factory.mktemp("matryoshka") / "run")


def test_a_run_evaluates_every_length_and_loads_with_any(run):
    tokenized_set = tokenized_by(run, splits=["test"])
    result, cut_points = json.loads(run.metrics.read_text()), read_cut_points(run.cut_points)
    assert list(result["components"]) == ["dense-4", "dense-8"]
    assert result["components"]["dense-4"]["test"].keys() == result["test"].keys()
    assert set(cut_points) == {"dense", "dense-4", "dense-8"}
    assert "dense-8" in run.report.read_text()
    components = run_models.load_models(run).retrievers(tokenized_set)
    for dim, name in ((0, "dense"), (4, "dense-4"), (8, "dense-8"), (16, "dense")):
        models = run_models.load_models(run, dim)
        assert models.settings.model.dim == models["dense"].query_tower.dim == (dim or 16)
        assert run_models.load_cut_points(run, models)["dense"] == cut_points[name]
        retriever, of_grades = run_models.load_retriever(run, tokenized_set, dim)
        assert of_grades == cut_points[name]
        kept = models.retrievers(tokenized_set)["dense"]
        np.testing.assert_array_equal(retriever.queries, kept.queries)
        np.testing.assert_allclose(components[name].documents, kept.documents, atol=1e-6)


def test_other_lengths_are_refused_and_without_vectors_nothing_can_be_cut(run, tmp_path):
    with pytest.raises(InputError, match=r"--dim=32: .* vectors of 4, 8, 16 .*--matryoshka_dims"):
        run_models.load_models(run, 32)
    lexical = changed(run.settings(), {"retriever": "lexical"})
    with pytest.raises(InputError, match="the run ranks by --retriever=lexical, and has no vect"):
        run_models.load_models(run_directory.RunDirectory.create(tmp_path / "lexical", lexical), 8)
