"""A short run of `tests.hostile_cases`; SECURITY.md has the long ones."""

import itertools
import shutil

import pytest

from tests import hostile_inputs
from tests.hostile_cases import INPUTS, drawn, every_byte, make_cases, run
from tests.hostile_inputs import TRAINED


@pytest.fixture(scope="module")
def cases(ranking_runs, ranking_exports, tmp_path_factory):
    """All inputs; the run, the export and the index are those of a hybrid that tests share."""
    whole, root = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("hostile")
    shutil.copytree(ranking_runs["hybrid"].path, whole / "run")
    shutil.copytree(ranking_exports["hybrid"], whole / "export")
    hostile_inputs.indexed(whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hostile_inputs, "_trained", lambda: whole)
        return root, make_cases(root, (*INPUTS, *TRAINED))


@pytest.mark.slow
def test_damage_to_a_whole_run_its_export_and_its_index_is_an_error(tmp_path):
    made = make_cases(tmp_path, TRAINED)
    counts, failures = run(tmp_path, drawn(made, 600, seed=8))
    assert failures == []
    assert all(found.get("error", 0) > 100 for found in counts.values())


def test_damage_is_an_error_in_words_or_changes_nothing(cases):
    root, made = cases
    counts, failures = run(root, drawn(made, 200, seed=7))
    assert failures == []
    assert sum(found.get("error", 0) for found in counts.values()) > 50


@pytest.mark.slow
def test_every_tenth_byte_of_small_files(cases):
    root, made = cases
    small = [case for case in made if not isinstance(case.input, TRAINED)]
    _, failures = run(root, itertools.islice(every_byte(small), 3, None, 10))
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
