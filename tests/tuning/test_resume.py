"""smoothclir-tune after a kill."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.local_server import wait_for

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
TRIALS = 5


def start(data_dir, work_dir, output_dir):
    flags = ["--search=random", "--dim=4", "--negatives=3", "--batch_size=8", "--epochs=1"]
    flags.append("--preset=fast")
    flags += ["--learning_rate=0.1", f"--max_trials={TRIALS}", f"--output_dir={output_dir}"]
    flags += [f"--data_dir={data_dir}", f"--cache_dir={work_dir / 'cache'}"]
    return subprocess.Popen(
        [sys.executable, "-m", "trainers.tune", *flags],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process):
    _, err = process.communicate(timeout=150)
    assert process.returncode == 0, err


def trials(output_dir):
    """The trials of a finished search: trial -> all columns but the time."""
    with open(output_dir / "trials.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        del row["seconds"]
    return {row["trial"]: row for row in rows}


def test_a_dead_search_loses_no_trials(tiny_dir, tmp_path):
    whole, output_dir = tmp_path / "whole", tmp_path / "killed"
    finish(start(tiny_dir, tmp_path, whole))
    process = start(tiny_dir, tmp_path, output_dir)
    wait_for(lambda: len(list((output_dir / "trials").glob("*/config.json"))) >= 2, seconds=100)
    process.kill()
    process.communicate()

    finish(start(tiny_dir, tmp_path, output_dir))
    found = trials(output_dir)
    assert len({row["thresholds"] for row in found.values()}) == len(found) == TRIALS
    assert found == trials(whole)
    best, expected = (json.loads((p / "best.json").read_text()) for p in (output_dir, whole))
    assert (best["trial"], best["metrics"]) == (expected["trial"], expected["metrics"])
    assert (output_dir / "best.flags").read_text() == (whole / "best.flags").read_text()
    models = [path.parent.name for path in (output_dir / "trials").glob("*/checkpoints")]
    assert models == [best["trial"]]
