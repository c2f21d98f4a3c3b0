"""Matryoshka vectors: their first numbers are trained to rank by themselves, and can be cut off."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tests.oracles import maths
from tests.training.fixtures import run_of, tokenized_by
from tests.two_tower.small_model import FORMS, apart, make_model, tensors
from tf_smoothclir import LazyAdam, SmoothOrdinalSearchLoss, TwoTower
from tf_smoothclir.losses.listwise import SoftmaxLoss
from tf_smoothclir.protocols.text_search import read_cut_points
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import load_cut_points, load_models, load_retriever
from tf_smoothclir.two_tower.builder import cut_to
from tf_smoothclir.two_tower.model import CUT_WEIGHT
from tf_smoothclir.two_tower.scorer import DenseRetriever
from tf_smoothclir.utils.errors import InputError

DIMS = (1, 3)  # of vectors of 4 numbers
SOSL, SOFTMAX = SmoothOrdinalSearchLoss((0.2, 0.7)), SoftmaxLoss()


def matryoshka(form, loss, **kwargs):
    model = make_model(in_batch=form == "in_batch", **kwargs)
    model.matryoshka_dims = DIMS
    model.compile(LazyAdam(0.1), loss)
    return model


@pytest.mark.parametrize(
    ("form", "loss"), [("pairs", SOSL), ("lists", SOSL), ("in_batch", SOSL), ("in_batch", SOFTMAX)]
)
def test_the_loss_is_the_weighted_mean_of_those_of_the_models_with_cut_vectors(form, loss):
    grades, inputs = FORMS[form]
    batch = inputs(apart()), tf.constant(grades)
    model = matryoshka(form, loss)
    apart_losses = [
        float(cut.compute_loss(*batch, cut(batch[0])))
        for cut in (cut_to(model, dim) for dim in (4, *DIMS))
    ]
    expected = np.average(apart_losses, weights=[1, CUT_WEIGHT, CUT_WEIGHT])
    assert float(model.logged_step(batch)["batch_loss"]) == pytest.approx(expected, rel=1e-5)
    assert max(apart_losses) > min(apart_losses)


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
@pytest.mark.parametrize("shared", [False, True])
def test_cut_vectors_are_the_first_numbers_of_the_towers_normalised_anew(shared, epsilon):
    model = matryoshka("lists", SOSL, shared=shared, epsilon=epsilon)
    cut = cut_to(model, 3)
    assert cut.is_shared == shared
    assert cut.matryoshka_dims == (1,)
    assert TwoTower.from_config(model.get_config()).matryoshka_dims == DIMS
    whole = [model.vectors(role, tokens).numpy() for role, tokens in tensors().items()]
    retriever = DenseRetriever(*whole, np.arange(4)).cut_to(3, epsilon)
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
    components = load_models(run).retrievers(tokenized_set)
    for dim, name in ((0, "dense"), (4, "dense-4"), (8, "dense-8"), (16, "dense")):
        models = load_models(run, dim)
        assert models.settings.model.dim == models["dense"].query_tower.dim == (dim or 16)
        assert load_cut_points(run, models)["dense"] == cut_points[name]
        retriever, of_grades = load_retriever(run, tokenized_set, dim)
        assert of_grades == cut_points[name]
        kept = models.retrievers(tokenized_set)["dense"]
        np.testing.assert_array_equal(retriever.queries, kept.queries)
        np.testing.assert_allclose(components[name].documents, kept.documents, atol=1e-6)


def test_other_lengths_are_refused_and_without_vectors_nothing_can_be_cut(run, tmp_path):
    with pytest.raises(InputError, match=r"--dim=32: .* vectors of 4, 8, 16 .*--matryoshka_dims"):
        load_models(run, 32)
    lexical = changed(run.settings(), {"retriever": "lexical"})
    with pytest.raises(InputError, match="the run ranks by --retriever=lexical, and has no vect"):
        load_models(RunDirectory.create(tmp_path / "lexical", lexical), 8)
