"""A short run of `tests.hostile_cases`; SECURITY.md has the long ones."""

import itertools

import pytest

from tests import hostile_cases, hostile_inputs
from tests.published import NoVerifier
from tf_smoothclir.publishing import version_writer


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    root = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(version_writer, "Verifier", NoVerifier)
        yield root, hostile_cases.make_cases(root)


@pytest.mark.slow
def test_damage_to_a_whole_run_its_export_and_its_index_is_an_error(tmp_path):
    made = hostile_cases.make_cases(tmp_path, hostile_inputs.TRAINED)
    counts, failures = hostile_cases.run(tmp_path, hostile_cases.drawn(made, 300, seed=8))
    assert failures == []
    assert all(found.get("error", 0) > 50 for found in counts.values())


def test_damage_is_an_error_in_words_or_changes_nothing(cases):
    root, made = cases
    counts, failures = hostile_cases.run(root, hostile_cases.drawn(made, 200, seed=7))
    assert failures == []
    assert sum(found.get("error", 0) for found in counts.values()) > 50


@pytest.mark.slow
def test_every_tenth_byte_of_small_files(cases):
    root, made = cases
    some = itertools.islice(hostile_cases.every_byte(made), 3, None, 10)
    _, failures = hostile_cases.run(root, some)
    assert failures == []


def test_a_silent_misread_and_a_crash_would_be_found(cases, monkeypatch):
    root, made = cases
    run = next(case for case in made if case.name == "Run")
    path = root / "Run" / "run" / "config.json"
    attempts = [(run, path, run.files[path].replace(b'"epsilon": 1.0', b'"epsilon": 2.0'))]
    monkeypatch.setattr("tf_smoothclir.training.run_directory.check_run", lambda *_, **__: None)
    assert "another answer" in hostile_cases.run(root, attempts)[1][0]
    monkeypatch.setattr(run.input, "read", lambda: 1 / 0)
    assert "ZeroDivisionError" in hostile_cases.run(root, attempts)[1][0]
