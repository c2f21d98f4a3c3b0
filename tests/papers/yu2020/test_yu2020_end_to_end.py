"""The systems over a small toy world: every row is made, resumed, and free of leaks."""

import dataclasses

import numpy as np
import pytest

from tests.training.fixtures import tokenized_by
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.evaluation.trec_files import read_run
from tf_smoothclir.interaction import reranker_learning
from tf_smoothclir.interaction.learning import Learned
from tf_smoothclir.interaction.reranker_learning import learn_reranker
from tf_smoothclir.papers import yu2020 as yu2020  # registers the networks
from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.laboratory.plan import Study
from tf_smoothclir.papers.laboratory.sets import open_sets
from tf_smoothclir.papers.yu2020 import cells as module
from tf_smoothclir.papers.yu2020 import systems
from tf_smoothclir.papers.yu2020.figure1 import write_figure1
from tf_smoothclir.papers.yu2020.matching_data import MatchingData
from tf_smoothclir.papers.yu2020.options import GIVEN, MAPPED, MatchingOptions
from tf_smoothclir.papers.yu2020.outputs import write_table1, write_table2, write_table3
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.storage.files import read_json
from tf_smoothclir.training.run_data import retrieval_set_of
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import load_models
from tf_smoothclir.training.train import train
from tf_smoothclir.utils.errors import InputError

pytestmark = pytest.mark.slow

OPTIONS = MatchingOptions(epochs=2, pyramid_epochs=1, pyramid_document_words=8)
COSTLY = ("MP-Hybrid", "MP-TbT-QT", "Late interaction (ours)")
ROWS = {system.name: system for system in (*systems.PAPER, *systems.OURS)}


@pytest.fixture(scope="module")
def study_set(tmp_path_factory):
    cache = str(tmp_path_factory.mktemp("cache"))
    changes = {"toy_entities": 300, "negatives": 6, "cache_dir": cache}
    settings = changed(RunSettings(), changes)
    return open_sets(settings, [settings.data])[0]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return Study(tmp_path_factory.mktemp("study"), (13,), {}, 0, OPTIONS)


def completed(study_set, study, name):
    cell = study.matching_cells(study_set, ROWS[name])[0]
    if not cell.finished:
        cell.complete()
    return cell


def data_of(settings, directory, options=OPTIONS):
    retrieval_set = retrieval_set_of(source_of(settings.data), settings, SPLITS)
    tokenized_set = tokenize_set(retrieval_set, settings.text, settings.data.cache_dir)
    return MatchingData(tokenized_set, settings, options, directory)


def test_every_row_without_training_beats_chance_on_the_toy_world(study_set, study):
    names = dict.fromkeys(["Random order (ours)", *(n for n in ROWS if not ROWS[n].learns)])
    cells = [completed(study_set, study, name) for name in names]
    chance, *others = (cell.metrics().splits["test"]["MAP"] for cell in cells)
    assert min(others) > chance, others


@pytest.mark.parametrize("name", ["KNRM-Cosine", "DRMM-TbT-QT", *COSTLY])
def test_networks_learn(study_set, study, name):
    history = read_json(completed(study_set, study, name).run.metrics)["history"][0]
    assert np.isfinite(history["losses"]).all()
    assert len(history["losses"]) == (1 if name in COSTLY else OPTIONS.epochs)
    if name not in COSTLY:
        assert max(history["validation"][1:]) > history["validation"][0]
        assert history["losses"][-1] < history["losses"][0]


def test_a_finished_rotation_is_not_computed_again(study_set, study, monkeypatch):
    cell = completed(study_set, study, "BWE-Agg-Add")
    cell.run.metrics.unlink()
    monkeypatch.setattr(module, "scorer_of", None)
    cell.complete()
    assert read_json(cell.run.metrics)["test"] == pytest.approx(cell.metrics().splits["test"])


def test_in_rotations_every_judged_query_is_tested(study_set, study):
    rotating = dataclasses.replace(study, matching=dataclasses.replace(OPTIONS, folds=3))
    cell = completed(study_set, rotating, "BWE-Agg-IDF")
    assert len(read_run(cell.trec_files("test")[0])) == 300
    assert not rotating.trained_systems(EXPERIMENTS["yu2020_table3"])


def test_what_can_change_the_figures_is_another_cell(study_set, study):
    """Else a table of few queries would show the figures of another."""

    def name_with(**changes):
        other = dataclasses.replace(study_set, settings=changed(study_set.settings, changes))
        return study.matching_cells(other, ROWS["BWE-Agg-Add"])[0].cell.name

    assert name_with(epochs=99) == name_with() != name_with(max_queries=100)


def test_nothing_of_validation_and_test_queries_is_in_the_vectors(study_set, tmp_path):
    """Other judgments of these queries change no vector; translations are one word each."""
    settings = study_set.settings
    data = data_of(settings, tmp_path / "before")
    retrieval_set = data.retrieval_set
    of_others = retrieval_set.splits[retrieval_set.query_rows] != SPLITS.index("train")
    shuffled = retrieval_set.document_rows.copy()
    shuffled[of_others] = np.random.default_rng(1).permutation(shuffled[of_others])
    changed_set = dataclasses.replace(retrieval_set, document_rows=shuffled)
    tokenized_set = tokenize_set(changed_set, settings.text, settings.data.cache_dir)
    after = MatchingData(tokenized_set, settings, OPTIONS, tmp_path / "after")
    np.testing.assert_array_equal(after.vectors.queries, data.vectors.queries)
    np.testing.assert_array_equal(after.vectors.documents, data.vectors.documents)
    known = data.vectors.queries.any(axis=1)
    of_known = data.translation[: len(known)][known]
    assert (np.diff(of_known.indptr) == 1).all()
    assert (of_known.data == 1).all()
    assert (data.collection.occurrences[of_known.indices] > 0).all()
    for kind in (GIVEN, MAPPED):
        with pytest.raises(InputError, match=f"--word_vectors={kind}: there are no vectors"):
            data_of(settings, tmp_path, MatchingOptions(kind))


def test_table_3_shows_what_is_finished_and_tests_it_against_the_best(study_set, study, tmp_path):
    names = ("KNRM-Cosine", "BWE-Agg-Add", "BWE-Agg-IDF", "Random order (ours)")
    for name in names:
        completed(study_set, study, name)
    written = write_table3(EXPERIMENTS["yu2020_table3"], study_set, study, tmp_path)
    shown = {row[0] for row in written.tables[0].rows}
    assert {*names, "PSQ, --preset=lexical (ours)"} & shown == {*names}
    assert "BWE-Agg-IDF - BWE-Agg-Add" in {row[1] for row in written.tables[1].rows}


def test_figure_1_and_tables_1_and_2_need_no_match_pyramid(study_set, study, tmp_path):
    without = dataclasses.replace(study, matching=dataclasses.replace(OPTIONS, pyramid_epochs=0))
    experiment = EXPERIMENTS["yu2020_figure1"]
    assert not without.final_cells(study_set, [experiment])
    written = write_figure1(experiment, study_set, without, tmp_path)
    assert all(plot.is_file() for plot in written.plots)
    _, by_eta = written.tables
    shares = [float(row[1].rstrip("%")) for row in by_eta.rows]
    assert shares == sorted(shares, reverse=True)
    nearest = write_table1(EXPERIMENTS["yu2020_table1"], study_set, study, tmp_path)
    assert {row[1] for row in nearest.tables[0].rows} == {"en", "fr"}
    counts = write_table2(EXPERIMENTS["yu2020_table2"], study_set, study, tmp_path)
    rows = dict(counts.tables[0].rows)
    assert rows["queries"] == rows["documents"] == "300"
    judged = float(rows["listed documents per query"]) - 6  # --negatives
    assert judged == pytest.approx(float(rows["relevant documents per query"]), abs=0.11)


@pytest.mark.parametrize("network", ["knrm", "drmm", "match_pyramid", "conv_knrm"])
def test_every_network_can_re_rank_words_alone(tiny, tmp_path, network, without_plots, monkeypatch):
    result = train(tiny(retriever="lexical", reranker=network), tmp_path / "run")
    assert result["reranker"]["network"] == network
    if network == "drmm":
        run = RunDirectory.load(tmp_path / "run")
        models, tokenized = load_models(run), tokenized_by(run)
        parts = models["reranked"].codes, tokenized, models.retrievers(tokenized)["lexical"]
        unchanged = Learned(0, (0.0,), (), 0.0)
        monkeypatch.setattr(reranker_learning, "learn", lambda *_, **__: unchanged)
        # The seed determines the weights to begin with, whatever was drawn before.
        learned = [learn_reranker(network, *parts, depth=5, seed=seed) for seed in (1, 1, 2)]
        first, again, other = (np.asarray(one.network.gate) for one in learned)
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()
