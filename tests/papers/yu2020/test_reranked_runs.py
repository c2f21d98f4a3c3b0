"""Runs that re-rank by a network of Yu and Allan 2020."""

import numpy as np
import pytest

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.interaction import reranker_learning
from tf_smoothclir.interaction.learning import Learned
from tf_smoothclir.interaction.reranker_learning import learn_reranker
from tf_smoothclir.papers import yu2020 as yu2020  # registers the networks
from tf_smoothclir.training.retrievers import load_models
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import tokenized_set_of, train

pytestmark = pytest.mark.slow

NETWORKS = ("knrm", "drmm", "match_pyramid", "conv_knrm")


def test_the_seed_determines_the_weights_to_begin_with(tiny, tmp_path, monkeypatch, without_plots):
    """Whatever was drawn before: a run that was killed goes on as it would have."""
    train(tiny(retriever="lexical", reranker="knrm", rerank_depth=5), tmp_path / "run")
    run = RunDirectory.load(tmp_path / "run")
    assert run.settings().to_dict()["plugins"] == ["tf_smoothclir.papers.yu2020"]
    models, settings = load_models(run), run.settings()
    tokenized = tokenized_set_of(source_of(settings.data), settings, run, SPLITS)
    unchanged = Learned(0, (0.0,), (), 0.0)
    monkeypatch.setattr(reranker_learning, "learn", lambda *_, **__: unchanged)
    parts = models.reranker.codes, tokenized, models.retrievers(tokenized)["lexical"]
    first, again, other = (
        np.asarray(learn_reranker("drmm", *parts, depth=5, seed=seed).network.gate)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("network", NETWORKS)
def test_every_network_can_re_rank_words_alone(tiny, tmp_path, network, without_plots):
    result = train(tiny(retriever="lexical", reranker=network), tmp_path / "run")
    assert result["reranker"]["network"] == network
    assert list(result["components"]) == ["lexical"]
