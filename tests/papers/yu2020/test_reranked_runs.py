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


@pytest.mark.parametrize("network", ["knrm", "drmm", "match_pyramid", "conv_knrm"])
def test_every_network_can_re_rank_words_alone(tiny, tmp_path, network, without_plots, monkeypatch):
    result = train(tiny(retriever="lexical", reranker=network), tmp_path / "run")
    assert result["reranker"]["network"] == network
    assert list(result["components"]) == ["lexical"]
    if network == "drmm":
        run = RunDirectory.load(tmp_path / "run")
        models, settings = load_models(run), run.settings()
        tokenized = tokenized_set_of(source_of(settings.data), settings, run, SPLITS)
        parts = models.reranker.codes, tokenized, models.retrievers(tokenized)["lexical"]
        unchanged = Learned(0, (0.0,), (), 0.0)
        monkeypatch.setattr(reranker_learning, "learn", lambda *_, **__: unchanged)
        # The seed determines the weights to begin with, whatever was drawn before.
        learned = [learn_reranker(network, *parts, depth=5, seed=seed) for seed in (1, 1, 2)]
        first, again, other = (np.asarray(one.network.gate) for one in learned)
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()
