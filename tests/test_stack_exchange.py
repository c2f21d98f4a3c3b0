"""Runs and towers that one stack has made, read on the other; both ways.

$OTHER_STACK_PYTHON names a Python of the other stack, whose environment has the package installed.
"""

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
    if not (other := os.environ.get("OTHER_STACK_PYTHON")):
        pytest.skip("OTHER_STACK_PYTHON names no Python of the other stack")
    question = "from tf_smoothclir._compat import ON_KERAS_3; print(ON_KERAS_3)"
    answers = {run(python, "-c", question) for python in (sys.executable, other)}
    assert len(answers) == 2, f"{other} is of the same stack as {sys.executable}"
    return {HERE: sys.executable, THERE: other}


def run(python, *arguments):
    command, environment = [python, *map(str, arguments)], {**os.environ, "PYTHONPATH": str(ROOT)}
    options = {"cwd": ROOT, "env": environment, "capture_output": True, "timeout": 900}
    done = subprocess.run(command, **options, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=[HERE, THERE])
def numbers(request, pythons, tmp_path_factory):
    """Of the same runs: those of the stack that made them, and what the other one reads."""
    work_dir = tmp_path_factory.mktemp("exchange")
    (reader,) = {HERE, THERE} - {request.param}
    found = []
    for name, action in ((request.param, "make"), (reader, "read")):
        path = work_dir / f"{action}.json"
        run(pythons[name], "-m", "tests.stack_exchange", action, work_dir, path)
        found.append(json.loads(path.read_text()))
    return found


def test_a_run_has_the_same_metrics_on_both(numbers):
    for name in RUNS:
        made, read = (found[f"{name}: metrics"] for found in numbers)
        assert read == pytest.approx(made, abs=1e-6), name
        assert any(made.values()), name


def test_towers_of_one_stack_answer_alike_on_the_other_and_exported_by_the_other(numbers):
    made, read = numbers
    expected = made["exported"]
    assert np.abs(expected["query"]).max() > 0.01
    for answers in (read["exported"], read["exported again"]):
        for part in ("query", "document", "scores"):
            np.testing.assert_allclose(answers[part], expected[part], atol=1e-6, err_msg=part)
        # The weights are the same to the last bit, so the parts of both exports belong together.
        assert answers["query belongs to"] == expected["document belongs to"]


def test_an_unfinished_run_continues_on_the_other_stack(numbers):
    for optimizer in UNFINISHED:
        made, read = (found[f"unfinished {optimizer}"] for found in numbers)
        assert len(made) == 3
        assert made[0] != pytest.approx(made[2], rel=1e-2)  # it learns
        np.testing.assert_allclose(made, read, rtol=1e-4, err_msg=optimizer)
