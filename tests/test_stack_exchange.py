"""Runs and towers that one stack has made, read on the other; both ways.

$OTHER_STACK_PYTHON names a Python of the other stack, whose environment has the package installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.stack_exchange import RUNS, UNFINISHED

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
HERE, THERE = "here", "there"


@pytest.fixture(scope="module")
def pythons():
    """Of this stack and of the other one."""
    other = os.environ.get("OTHER_STACK_PYTHON")
    if not other:
        pytest.skip("OTHER_STACK_PYTHON names no Python of the other stack")
    question = "from tf_smoothclir._compat import ON_KERAS_3; print(ON_KERAS_3)"
    answers = {run(python, "-c", question) for python in (sys.executable, other)}
    assert len(answers) == 2, f"{other} is of the same stack as {sys.executable}"
    return {HERE: sys.executable, THERE: other}


def run(python, *arguments):
    done = subprocess.run(
        [python, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=[HERE, THERE])
def numbers(request, pythons, tmp_path_factory):
    """Of the same runs: those of the stack that made them, and what the other one reads."""
    work_dir = tmp_path_factory.mktemp("exchange")
    maker = request.param
    (reader,) = {HERE, THERE} - {maker}
    found = []
    for name, action in ((maker, "make"), (reader, "read")):
        path = work_dir / f"{action}.json"
        run(pythons[name], "-m", "tests.stack_exchange", action, work_dir, path)
        found.append(json.loads(path.read_text()))
    return found


@pytest.mark.parametrize("name", RUNS)
def test_a_run_has_the_same_metrics_on_both(numbers, name):
    made, read = (found[f"{name}: metrics"] for found in numbers)
    assert read == pytest.approx(made, abs=1e-6)
    assert any(made.values())


def test_towers_of_one_stack_answer_alike_on_the_other_and_exported_by_the_other(numbers):
    made, read = numbers
    expected = made["exported"]
    assert np.abs(expected["query"]).max() > 0.01
    for answers in (read["exported"], read["exported again"]):
        for part in ("query", "document", "scores"):
            np.testing.assert_allclose(answers[part], expected[part], atol=1e-6, err_msg=part)
        # The weights are the same to the last bit, so the parts of both exports belong together.
        assert answers["query belongs to"] == expected["document belongs to"]


@pytest.mark.parametrize("optimizer", UNFINISHED)
def test_an_unfinished_run_continues_on_the_other_stack(numbers, optimizer):
    made, read = (found[f"unfinished {optimizer}"] for found in numbers)
    assert len(made) == 3
    assert made[0] != pytest.approx(made[2], rel=1e-2)  # it learns
    np.testing.assert_allclose(made, read, rtol=1e-4)
