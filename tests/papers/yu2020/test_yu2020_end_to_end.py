"""The systems over a small toy world: every row is made, resumed, and free of leaks."""

import dataclasses

import numpy as np
import pytest

from tests.cases import cases
from tests.papers.laboratory.fakes import study_in
from tests.training.fixtures import tokenized_by
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.evaluation.trec import read_run
from tf_smoothclir.interaction import learning, reranker_learning
from tf_smoothclir.interaction.reranker_learning import learn_reranker
from tf_smoothclir.papers import yu2020 as yu2020  # registers the networks
from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.laboratory.cells import opened_set
from tf_smoothclir.papers.laboratory.reproduce import WRITERS, opened
from tf_smoothclir.papers.laboratory.tables import Page
from tf_smoothclir.papers.yu2020.experiments import OURS, PAPER, PRESET_SYSTEMS
from tf_smoothclir.papers.yu2020.matching_data import MatchingData
from tf_smoothclir.papers.yu2020.options import MatchingOptions
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import load_models
from tf_smoothclir.training.train import train

pytestmark = pytest.mark.slow

OPTIONS = MatchingOptions(matching_epochs=2, pyramid_epochs=1, pyramid_document_words=8)
COSTLY = ("MP-Hybrid", "MP-TbT-QT", "Late interaction (ours)")
ROWS = {system.name: system for system in (*PAPER, *OURS)}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    cache = str(tmp_path_factory.mktemp("cache"))
    changes = {"toy_entities": 300, "negatives": 6, "cache_dir": cache}
    settings, out = changed(RunSettings(), changes), tmp_path_factory.mktemp("study")
    return opened(study_in(out, settings, matching=OPTIONS))


def completed(study, name):
    cell = ROWS[name].cells(study)[0]
    if not cell.finished:
        cell.complete()
    return cell


def test_every_row_without_training_beats_chance_on_the_toy_world(study):
    names = dict.fromkeys(["Random order (ours)", *(n for n in ROWS if not ROWS[n].learns)])
    cells = [completed(study, name) for name in names]
    chance, *others = (cell.metrics()["test"]["MAP"] for cell in cells)
    assert min(others) > chance, others


@cases("name", "KNRM-Cosine", "DRMM-TbT-QT", *COSTLY)
def test_networks_learn(study, name):
    history = completed(study, name).metrics()["history"][0]
    assert np.isfinite(history["losses"]).all()
    assert len(history["losses"]) == (1 if name in COSTLY else OPTIONS.matching_epochs)
    if name not in COSTLY:
        assert max(history["history"][1:]) > history["history"][0]
        assert history["losses"][-1] < history["losses"][0]


def test_in_rotations_every_judged_query_is_tested(study):
    rotating = dataclasses.replace(study, matching=dataclasses.replace(OPTIONS, matching_folds=3))
    cell = completed(rotating, "BWE-Agg-IDF")
    assert len(read_run(cell.trec_files("test")[0])) == 300
    assert not [cell for row in PRESET_SYSTEMS for cell in row.cells(rotating)]


def test_what_can_change_the_figures_is_another_cell(study):
    """Else a table of few queries would show the figures of another."""

    def name_with(**changes):
        other = dataclasses.replace(study, settings=changed(study.settings, changes))
        return ROWS["BWE-Agg-Add"].cells(other)[0].name

    names = name_with(), name_with(max_queries=100), name_with(split_seed=14)
    assert name_with(epochs=99) == names[0]
    assert len({*names}) == 3


def test_nothing_of_validation_and_test_queries_is_in_the_vectors(study):
    """Other judgments of these queries change no vector; translations are one word each."""
    settings = study.settings
    data = MatchingData(opened_set(settings), settings, OPTIONS)
    retrieval_set = data.retrieval_set
    of_others = retrieval_set.splits[retrieval_set.query_rows] != SPLITS.index("train")
    shuffled = retrieval_set.document_rows.copy()
    shuffled[of_others] = np.random.default_rng(1).permutation(shuffled[of_others])
    changed_set = dataclasses.replace(retrieval_set, document_rows=shuffled)
    tokenized_set = tokenize_set(changed_set, settings.text, settings.data.cache_dir)
    after = MatchingData(tokenized_set, settings, OPTIONS)
    np.testing.assert_array_equal(after.vectors.queries, data.vectors.queries)
    np.testing.assert_array_equal(after.vectors.documents, data.vectors.documents)
    known = data.vectors.queries.any(axis=1)
    of_known = data.translation[: len(known)][known]
    assert (np.diff(of_known.indptr) == 1).all()
    assert (of_known.data == 1).all()
    assert (data.collection.occurrences[of_known.indices] > 0).all()


def written_by(name, study, directory):
    return WRITERS[name](Page(EXPERIMENTS[name], study, directory))


def test_table_3_shows_what_is_finished_and_tests_it_against_the_best(study, tmp_path):
    names = ("KNRM-Cosine", "BWE-Agg-Add", "BWE-Agg-IDF", "Random order (ours)")
    for name in names:
        completed(study, name)
    written = written_by("yu2020_table3", study, tmp_path)
    shown = {row[0] for row in written.tables[0].rows}
    assert {*names, "PSQ, --preset=lexical (ours)"} & shown == {*names}
    assert "BWE-Agg-IDF - BWE-Agg-Add" in {row[1] for row in written.tables[1].rows}


def test_figure_1_and_tables_1_and_2_need_no_match_pyramid(study, tmp_path):
    without = dataclasses.replace(study, matching=dataclasses.replace(OPTIONS, pyramid_epochs=0))
    assert not [c for row in EXPERIMENTS["yu2020_figure1"].rows for c in row.cells(without)]
    written = written_by("yu2020_figure1", without, tmp_path)
    assert all(plot.is_file() for plot in written.plots)
    _, by_eta = written.tables
    shares = [float(row[1].rstrip("%")) for row in by_eta.rows]
    assert shares == sorted(shares, reverse=True)
    nearest = written_by("yu2020_table1", study, tmp_path)
    assert {row[1] for row in nearest.tables[0].rows} == {"en", "fr"}
    rows = dict(written_by("yu2020_table2", study, tmp_path).tables[0].rows)
    assert rows["queries"] == rows["documents"] == "300"
    judged = float(rows["listed documents per query"]) - 6  # --negatives
    assert judged == pytest.approx(float(rows["relevant documents per query"]), abs=0.11)


@cases("network", "knrm", "drmm", "match_pyramid")
def test_every_network_can_re_rank_words_alone(tiny, tmp_path, network, monkeypatch):
    result = train(tiny(retriever="lexical", reranker=network), tmp_path / "run")
    assert result["reranker"]["network"] == network
    if network == "drmm":
        run = RunDirectory.load(tmp_path / "run")
        models, tokenized = load_models(run), tokenized_by(run)
        parts = models["reranked"].codes, tokenized, models.retrievers(tokenized)["lexical"]
        unchanged = learning.Learned(0, (0.0,), (), 0.0)
        monkeypatch.setattr(reranker_learning, "learn", lambda *_, **__: unchanged)
        # The seed determines the weights to begin with, whatever was drawn before.
        learned = [learn_reranker(network, *parts, depth=5, seed=seed) for seed in (1, 1, 2)]
        first, again, other = (np.asarray(one.network.gate) for one in learned)
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()
