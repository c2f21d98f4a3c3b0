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

ROOT = Path(__file__).resolve().parents[1]
HERE = "here"


@pytest.fixture(scope="module")
def pythons():
    """Of this stack and of the other one."""
    other = os.environ.get("OTHER_STACK_PYTHON")
    if not other:
        pytest.skip("OTHER_STACK_PYTHON names no Python of the other stack")
    question = "from tf_smoothclir._compat import ON_KERAS_3; print(ON_KERAS_3)"
    answers = {run(python, "-c", question) for python in (sys.executable, other)}
    assert len(answers) == 2, f"{other} is of the same stack as {sys.executable}"
    return {HERE: sys.executable, "there": other}


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


@pytest.fixture(scope="module", params=[HERE, "there"])
def numbers(request, pythons, tmp_path_factory):
    """Of the same runs, made by one of the stacks: what each stack reads."""
    work_dir = tmp_path_factory.mktemp("exchange")
    run(pythons[request.param], "-m", "tests.stack_exchange", "make", work_dir)
    result = {}
    for name, python in pythons.items():
        path = work_dir / f"{name}.json"
        run(python, "-m", "tests.stack_exchange", "read", work_dir, path)
        result[name] = json.loads(path.read_text())
    return result


@pytest.mark.parametrize("name", RUNS)
def test_a_run_has_the_same_metrics_on_both(numbers, name):
    for found in numbers.values():
        metrics = found[f"{name}: metrics"]
        assert metrics == pytest.approx(found[f"{name}: metrics when trained"], abs=1e-6)
        assert any(metrics.values())


def test_towers_of_one_stack_answer_alike_on_the_other_and_exported_by_the_other(numbers):
    kinds = ("exported", "exported here")
    answers = [found[kind] for found in numbers.values() for kind in kinds]
    assert np.abs(answers[0]["query"]).max() > 0.01
    for other in answers[1:]:
        for part in ("query", "document", "scores"):
            np.testing.assert_allclose(other[part], answers[0][part], atol=1e-6, err_msg=part)
        # The weights are the same to the last bit, so the parts of both exports belong together.
        assert other["query belongs to"] == answers[0]["document belongs to"]


@pytest.mark.parametrize("optimizer", UNFINISHED)
def test_an_unfinished_run_continues_on_the_other_stack(numbers, optimizer):
    here, there = (found[f"unfinished {optimizer}"] for found in numbers.values())
    assert len(here) == 3
    assert here[0] != pytest.approx(here[2], rel=1e-2)  # it learns
    np.testing.assert_allclose(here, there, rtol=1e-4)
