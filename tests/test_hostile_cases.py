"""Damage to what the package reads: short runs; SECURITY.md has long ones."""

import itertools
import os
import shutil

import pytest

from tests.hostile_cases import INPUTS, TRAINED, Kept, add_index, drawn, every_byte, make_cases, run
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import train

CASES, SEED, EVERY = (
    int(os.environ.get(f"HOSTILE_{name}", default))
    for name, default in (("CASES", 200), ("SEED", 7), ("EVERY", 30))
)


@pytest.fixture(scope="module")
def cases(ranking_runs, ranking_exports, tmp_path_factory):
    """All inputs; the run, the export and the index are those of a hybrid that tests share."""
    Kept.whole, root = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("hostile")
    shutil.copytree(ranking_runs["hybrid"].path, Kept.whole / "run")
    shutil.copytree(ranking_exports["hybrid"], Kept.whole / "export")
    add_index(Kept.whole)
    return root, make_cases(root, (*INPUTS, *TRAINED))


def test_damage_is_an_error_in_words_or_changes_nothing(cases):
    root, made = cases
    counts, failures = run(root, drawn(made, CASES, SEED))
    assert failures == []
    assert sum(found.get("error", 0) for found in counts.values()) > CASES / 4


@pytest.mark.slow
def test_damage_to_what_a_re_ranker_has_is_an_error(tiny, tmp_path, no_child_process):
    Kept.whole, root = tmp_path / "whole", tmp_path / "hostile"
    root.mkdir()
    changes = {"retriever": "hybrid", "reranker": "late_interaction", "rerank_depth": 3}
    train(tiny(**changes, epochs=1), Kept.whole / "run")
    export_run(RunDirectory.load(Kept.whole / "run"), Kept.whole / "export", search_depth=3)
    add_index(Kept.whole)
    counts, failures = run(root, drawn(make_cases(root, TRAINED), 3 * CASES, SEED + 1))
    assert failures == []
    assert all(found.get("error", 0) > CASES / 2 for found in counts.values())


@pytest.mark.slow
def test_every_thirtieth_byte_of_small_files(cases):
    root, made = cases
    small = [case for case in made if not isinstance(case.input, TRAINED)]
    _, failures = run(root, itertools.islice(every_byte(small), 3 % EVERY, None, EVERY))
    assert failures == []


def test_a_silent_misread_and_a_crash_would_be_found(cases, monkeypatch):
    root, made = cases
    case = next(case for case in made if case.name == "WholeRun")
    path = root / "WholeRun" / "run" / "config.json"
    attempts = [(case, path, case.files[path].replace(b'"epsilon": 1.0', b'"epsilon": 2.0'))]
    monkeypatch.setattr("tf_smoothclir.training.run_directory.check_run", lambda *_, **__: None)
    assert "another answer" in run(root, attempts)[1][0]
    monkeypatch.setattr(case.input, "read", lambda: 1 / 0)
    assert "ZeroDivisionError" in run(root, attempts)[1][0]
