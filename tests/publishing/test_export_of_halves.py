"""One half of a hybrid, exported alone: the same model as that half of the whole export."""

import numpy as np
import pytest
import tensorflow as tf

from tests.published import DEPTH, NoVerifier
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.protocols.scorer import Ranking
from tf_smoothclir.publishing import version_writer
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.publishing.export_directory import load_part
from tf_smoothclir.publishing.model_card import model_card_path
from tf_smoothclir.training.retrievers import load_cut_points, load_models, load_scorer
from tf_smoothclir.training.train import tokenized_set_of
from tf_smoothclir.utils.errors import InputError
from tf_smoothclir.utils.files import names_in

OF_TOWERS = {"query_tower", "document_tower"}


@pytest.fixture(params=["dense", "lexical"])
def half(request, ranking_runs, tmp_path, monkeypatch):
    """The name of a half, the hybrid run, and the directory of its export."""
    monkeypatch.setattr(version_writer, "Verifier", NoVerifier)
    export_run(ranking_runs["hybrid"], tmp_path, search_depth=DEPTH, retriever=request.param)
    return request.param, ranking_runs["hybrid"], tmp_path


def test_it_has_the_parts_of_that_half_and_its_grades(half):
    name, run, path = half
    parts = {one for one in names_in(path) if (path / one / "1").is_dir()}
    assert parts == {"search", *(OF_TOWERS if name == "dense" else {"lexical_model"})}
    expected = load_cut_points(run, load_models(run))[name]
    assert load_part(path, "search").manifest.cut_points == expected
    assert "a part of the run" in model_card_path(path, 1).read_text("utf-8")


def test_its_search_ranks_as_that_half_is_evaluated(half):
    name, run, path = half
    settings = run.settings()
    tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, SPLITS)
    rows = tokenized_set.retrieval_set.queries_in("test")
    expected = Ranking.joined(
        load_scorer(run, tokenized_set, retriever=name).scorer.rank(rows, DEPTH)
    )
    texts = [text.text for text in source_of(settings.data).queries()]
    search = load_part(path, "search").model.signatures["serving_default"]
    found = search(text=tf.constant([texts[row] for row in expected.query_rows]))
    np.testing.assert_allclose(found["scores"][:, :DEPTH], expected.scores, rtol=1e-5, atol=1e-5)


def test_a_half_that_a_run_does_not_have_is_refused(ranking_runs, tmp_path):
    with pytest.raises(InputError, match="--retriever=dense: the run was trained with"):
        export_run(ranking_runs["lexical"], tmp_path, retriever="dense")
    with pytest.raises(InputError, match="--retriever=reranked: the run was trained without a re-"):
        export_run(ranking_runs["hybrid"], tmp_path, retriever="reranked")
    assert names_in(tmp_path) == set()
