"""Experiments and their cells; validation alone decides about thresholds, in grids that grow."""

import dataclasses
import shutil
import types

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import cases
from tests.papers.laboratory.fakes import finish, study_in
from tests.training.tiny_set import tiny_settings, write_tiny_set
from tf_smoothclir.papers.laboratory import cells as module
from tf_smoothclir.papers.laboratory import code_version, reproduce
from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.laboratory.cells import TrainingCell
from tf_smoothclir.papers.laboratory.systems import (
    beyond_edge,
    highest_score,
    reachable,
    threshold_grids,
)
from tf_smoothclir.papers.liu2020.paper_numbers import paper_tables
from tf_smoothclir.papers.yu2020.options import MatchingOptions
from tf_smoothclir.settings.presets import PAPER_TOWERS, changed, preset_settings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity
from tf_smoothclir.utils.errors import InputError

GRID = ((0.0, 0.5), (0.2, 0.7), (0.4, 0.75))
CUTS = ((0.0, 0.4, 0.7), (0.2, 0.55, 0.9))
GRIDS = {"thresholds": GRID, "cut_points": CUTS}
SOSL, THREE_PART = EXPERIMENTS["table2"].rows[:2]
PAIRS = tuple((low, high) for low in (0.0, 0.2, 0.4) for high in (0.5, 0.7, 0.9))


def candidates(study, system=SOSL):
    """Thresholds or cut points -> tuning cell."""
    return {cell.segments: cell for cell in system.tuning_cells(study)}


@cases(
    "system, validation, test, chosen",
    (SOSL, (0.1, 0.3, 0.2), (0.9, 0.1, 0.8), GRID[1]),
    (SOSL, (0.5, 0.5, 0.5), (0.1, 0.2, 0.3), GRID[0]),  # of equally good ones the first
    (SOSL, (None, None, 0.01), (0.9, 0.9, 0.0), GRID[2]),  # the others have failed
    (SOSL, (None, None, None), (0.9, 0.9, 0.9), None),
    (THREE_PART, (0.4, 0.1), (0.5, 0.5), CUTS[0]),
)
def test_segments_are_the_best_on_validation_alone(tmp_path, system, validation, test, chosen):
    study = study_in(tmp_path, seeds=(13, 14), grids=GRIDS, tune_epochs=2)
    cells = candidates(study, system).values()
    assert {cell.settings.training.epochs for cell in cells} == {2}
    for cell, of_validation, of_test in zip(cells, validation, test):
        if of_validation is not None:
            finish(cell, validation=of_validation, test=of_test)
    assert system.chosen(study) == chosen
    full = [(cell.segments, cell.settings.training) for cell in system.cells(study)]
    found = [(segments, training.seed, training.epochs) for segments, training in full]
    assert found == [(chosen, seed, RunSettings().training.epochs) for seed in (13, 14) if chosen]


def test_tables_and_figures_share_cells(tmp_path):
    study = study_in(tmp_path)
    assert candidates(study) == {}  # without grids, all have the thresholds of the settings
    assert SOSL.chosen(study) == study.settings.model.thresholds
    tables, figures = (
        {cell.name for row in EXPERIMENTS[name].rows for cell in row.cells(study)}
        for name in ("table2", "figure3")
    )
    assert figures == tables


def test_where_the_best_lies_at_an_edge_more_are_tried_until_it_does_not(tmp_path):
    grids = {"thresholds": ((0.0, 0.5), (0.0, 0.6), (0.2, 0.5), (0.2, 0.6)), "cut_points": CUTS}
    study = study_in(tmp_path, grids=grids, tune_epochs=2)
    first, *_ = candidates(study).values()
    finish(first, validation=0.9, test=0.9)
    assert tuple(candidates(study)) == grids["thresholds"]  # half finished: nothing to go by
    shutil.rmtree(first.path)
    for _ in range(9):
        new = {t: cell for t, cell in candidates(study).items() if not cell.finished}
        for (low, high), cell in new.items():  # best at (0.2, 0.4)
            finish(cell, validation=1 - (low - 0.2) ** 2 - (high - 0.4) ** 2, test=0.0)
    assert not new
    assert SOSL.chosen(study) == pytest.approx((0.2, 0.4), abs=0.06)


def test_cells_with_possibly_different_results_have_different_names():
    alike = ({"data_dir": "elsewhere"}, {"cache_dir": "elsewhere"}, {"checkpoint_minutes": 1.0})
    others = ({"epsilon": 0.5}, {"seed": 14}, {"max_document_tokens": 50})
    settings = [changed(RunSettings(), changes) for changes in ({}, *alike, *others)]
    study, other = study_in("."), study_in(".", fingerprint="other")
    names = [TrainingCell(study, one).name for one in settings]
    assert names[:4] == names[:1] * 4
    # Others have a short run, and one with other data.
    more = TrainingCell(study, settings[0], True).name, TrainingCell(other, settings[0]).name
    assert len({*names, *more}) == 1 + len(others) + 2


def test_a_cell_that_other_code_made_is_another_one(tmp_path, monkeypatch):
    study = study_in(tmp_path)
    (before,), (other,) = (system.cells(study) for system in (SOSL, THREE_PART))
    finish(before, validation=0.5, test=0.5)
    monkeypatch.setattr(module, "sources_digest", lambda: "0123456789ab")
    (after,) = SOSL.cells(study)
    states = [(cell.finished, cell.is_of_other_code) for cell in (before, other, after)]
    assert states == [(True, False), (False, False), (False, True)]


def test_the_digest_of_the_code_follows_every_source(tmp_path, monkeypatch):
    package = types.SimpleNamespace(__name__="papers", __file__=str(tmp_path / "__init__.py"))
    for name in ("papers", "tf_smoothclir"):
        monkeypatch.setattr(code_version, name, package)
    digests = set()
    for name, text in (("__init__.py", ""), ("__init__.py", "1"), ("a.py", "1"), ("b/a.toml", "1")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        digests.add(code_version.sources_digest.__wrapped__())
    assert len(digests) == 4
    note = code_version.code_note()
    assert note.startswith("Code: tf_smoothclir 0")
    assert "commit" not in note  # no checkout


def test_grids_have_only_rising_values_and_those_of_the_authors():
    grids = threshold_grids((0.0, 0.6), (0.5, 0.7))
    assert grids["thresholds"] == ((0.0, 0.5), (0.0, 0.7), (0.6, 0.7))
    assert RunSettings().model.cut_points in grids["cut_points"]
    assert all(sorted(cuts) == list(cuts) for cuts in grids["cut_points"])
    for lower, upper in (((0.5,), (0.5,)), ((0.1,), (1.0,)), ((), (0.5,))):
        with pytest.raises(InputError, match="--theta_1"):
            threshold_grids(lower, upper)


def test_highest_score_by_hand_and_that_of_saturated_vectors():
    for dim, epsilon, expected in ((64, 0, 1), (64, 1.5, (8 / 9.5) ** 2), (4, 1, 4 / 9)):
        assert highest_score(dim, epsilon) == pytest.approx(expected)
        vectors = tf.constant(np.tanh(np.full((1, dim), 9.0)))
        score = float(SmoothCosineSimilarity(epsilon)([vectors, vectors])[0])
        assert -1e-6 <= highest_score(dim, epsilon) - score < 1e-5


def test_only_reachable_thresholds_are_tried():
    assert reachable(PAIRS, 1.0) == PAIRS
    assert reachable(PAIRS, 0.71) == tuple(pair for pair in PAIRS if pair[1] < 0.9)
    assert reachable(PAIRS, 0.5) == tuple((low / 2, high / 2) for low, high in PAIRS)


def test_beyond_an_edge_a_step_or_half_the_way_to_the_limit():
    assert beyond_edge((0.2, 0.7), PAIRS, 1.0) == []  # inside
    # 1.1 is above the limit: half the way from 0.9 to 1. All together would pass it too.
    assert beyond_edge((0.2, 0.9), PAIRS, 1.0) == [(0.2, 0.95)]
    assert beyond_edge((0.0, 0.7), PAIRS, 1.0) == [(-0.2, 0.7), (-0.2, 0.5)]
    # 0.6 would pass 0.5 and 0.3 would pass 0.4: half the way is 0.45 for both.
    assert beyond_edge((0.4, 0.5), PAIRS, 1.0) == [(0.45, 0.5), (0.4, 0.45), (0.6, 0.7), (0.2, 0.3)]
    alone = beyond_edge((0.2, 0.768), [(0.2, 0.768)], 1.0)  # in its row: a step of 0.2
    assert f"{alone[1][0]:g}" == "0"  # without a sign
    triples = [(0.0, 0.55, 0.9), (0.2, 0.55, 0.9)]
    found = beyond_edge(triples[0], triples, 1.0)
    assert {(-0.2, 0.55, 0.9), (0.0, 0.55, 0.95), (0.0, 0.75, 0.9)} <= set(found)


def test_the_search_ends_although_it_always_finds_better_ones():
    tried = [*reachable(PAIRS, 0.79)]
    for _ in range(30):
        more = beyond_edge(max(tried), tried, 0.79)  # the higher, the better
        tried += more
    assert not more
    assert max(tried) == (0.65, 0.7)  # from (0.4, 0.7) a step of 0.2, then half the way to 0.7
    assert all(-1 < low < high < 0.79 for low, high in tried)


def test_every_table_and_figure_of_the_papers_is_there():
    names = "table1 table2 table3 figure1 figure2 figure3 figure4 figure5 yu2020_table1"
    names += " yu2020_table2 yu2020_table3 yu2020_figure1 li2018_table1 li2018_table2 li2018_table3"
    assert list(EXPERIMENTS) == [*names.split(), "li2018_pooled"]


@cases("name", *(name for name, one in EXPERIMENTS.items() if one.rows))
def test_rows_differ_and_have_valid_settings(name, tmp_path):
    study, rows = study_in(tmp_path), EXPERIMENTS[name].rows
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        row.check(study.settings, 1)
    assert len({cell.name for row in rows for cell in row.cells(study)}) == len(rows)
    if name in ("table2", "table3"):
        theirs = dict.fromkeys(row[1] for row in paper_tables(name, comparable=False)[0].rows)
        assert [row.name for row in rows if row.name in theirs] == list(theirs)


def test_towers_of_table_3_are_those_of_the_papers_preset():
    for system in EXPERIMENTS["table3"].rows[1:]:
        tower = system.changes["tower"]
        paper = preset_settings("paper", {"tower": tower}).values()
        assert system.changes.items() <= {**paper, "loss": "sosl"}.items(), tower
        assert PAPER_TOWERS[tower].items() <= system.changes.items()


def test_a_set_in_the_layout_of_wikiclir_is_not_the_papers_and_has_a_query_for_each_fold(tmp_path):
    study = study_in(tmp_path, tiny_settings(write_tiny_set(tmp_path / "tiny"), tmp_path / "cache"))
    found = reproduce.opened(study)
    assert (found.name, found.is_published) == ("tiny-en-fr", False)
    assert found.fingerprint != study.fingerprint
    with pytest.raises(InputError, match="--matching_folds=99: the judged queries have 18 "):
        reproduce.opened(dataclasses.replace(study, matching=MatchingOptions(matching_folds=99)))
    judgments = tmp_path / "tiny/en2fr.rel"
    judgments.write_text(judgments.read_text().replace("\t2\n", "\t3\n", 1))
    with pytest.raises(InputError, match=r"its grades go up to 3, .* Map the grades of"):
        reproduce.opened(study)
