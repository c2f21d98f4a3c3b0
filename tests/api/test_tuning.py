"""`sc.tune` and `sc.HyperModel`: what they train is what `sc.train` trains."""

import keras_tuner
import numpy as np
import pytest

import tf_smoothclir as sc
from tests.api.test_train import keywords_of, parts_of
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

pytestmark = pytest.mark.usefixtures("without_plots")


@pytest.fixture(scope="module")
def parts(tiny_dir):
    return parts_of(source_of(DataSettings(data_dir=str(tiny_dir))))


@pytest.fixture(scope="module")
def keywords(tmp_path_factory):
    return keywords_of(tmp_path_factory.mktemp("cache"), select_metric="MAP")


def test_a_search_continues_and_its_best_keywords_train_its_best_trial(parts, keywords, tmp_path):
    search = {"tune": ["loss", "thresholds"], "search": "random", "output_dir": tmp_path / "out"}
    first = sc.tune(**parts, **search, max_trials=1, **keywords)
    found = sc.tune(**parts, **search, max_trials=2, **keywords)
    assert len(found.trials) == 2
    assert first.trials[0] in found.trials
    assert found.score == found.trials[0].metrics["MAP"]
    assert str(found).count("\n") == 2 + 2
    model = sc.train(**parts, **found.best)
    assert model.history[-1]["validation"] == found.trials[0].metrics


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tune": "epsilon"}, r"tune='epsilon': it is a string. Give a list: tune=\['epsilon'\]"),
        ({"tune": ["epsilom"]}, "'epsilom' cannot be searched"),
        ({"search": "guess"}, "--search must be one of grid, random, bayesian, hyperband"),
        ({"max_trials": 0}, "--max_trials must be at least 1"),
        ({"max_trail": 5}, "max_trail: there is no such setting. Did you mean max_trials"),
        ({"data_dir": "x"}, "tune: data_dir: queries, documents and judgments, or data, are given"),
    ],
)
def test_a_mistake_is_an_error(parts, keywords, changes, message, tmp_path):
    with pytest.raises(InputError, match=message):
        sc.tune(**parts, output_dir=tmp_path / "out", **{**keywords, **changes})
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_keras_tuner_searches_the_hypermodel_and_loads_its_best_model(parts, keywords, tmp_path):
    hypermodel = sc.HyperModel(**parts, tune=["epsilon"], **keywords)
    tuner = keras_tuner.RandomSearch(
        hypermodel,
        objective=keras_tuner.Objective("MAP", "max"),
        max_trials=2,
        seed=3,
        directory=tmp_path,
    )
    tuner.search(verbose=0)
    best, other = tuner.oracle.get_best_trials(2)
    assert best.score >= other.score
    epsilon = best.hyperparameters["epsilon"]
    model = sc.train(**parts, **keywords, epsilon=epsilon)
    assert best.score == pytest.approx(model.history[-1]["validation"]["MAP"])
    (towers,) = tuner.get_best_models()
    assert towers.similarity.epsilon == epsilon
    trained = hypermodel.build(best.hyperparameters)
    metrics = hypermodel.fit(best.hyperparameters, trained)
    assert metrics["MAP"] == best.score
    for weight, again in zip(towers.get_weights(), trained.get_weights()):
        np.testing.assert_array_equal(weight, again)


def test_a_lexical_model_is_no_hypermodel(parts, keywords):
    with pytest.raises(InputError, match=r"a lexical model is no Keras model\. Use sc\.tune"):
        sc.HyperModel(**parts, tune=["psq_beta"], retriever="lexical", **keywords)
