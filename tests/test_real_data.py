"""The paper's model on a real set does as well as an independent PyTorch implementation."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
# Its test metrics after three epochs on `mdn-en-de` (same settings, its own sampling).
PYTORCH = {"NDCG@5": 0.8175, "P_mr@1": 0.596, "MAP": 0.806, "MRR_mr": 0.742, "full/MRR@10": 0.203}
TOLERANCE = 0.01


@pytest.fixture(scope="module")
def run(real_data, tmp_path_factory):
    """A run and its metrics, by the command: a process of its own shows the memory."""
    directory = tmp_path_factory.mktemp("mdn")
    command = [sys.executable, "-m", "trainers.train", "--verbosity=-1", "--epochs=3"]
    command += ["--preset=fast"]
    command += [f"--data_dir={real_data('mdn-en-de')}", "--document_language=de"]
    command += [f"--cache_dir={directory}/cache", f"--output_dir={directory}/run"]
    subprocess.run(command, cwd=ROOT, check=True)
    return directory / "run", json.loads((directory / "run" / "metrics.json").read_text())


def test_three_epochs_reach_the_pytorch_implementation_in_two_gigabytes(run):
    _, result = run
    for metric, theirs in PYTORCH.items():
        assert result["test"][metric] >= theirs - TOLERANCE, metric
    assert result["training"]["peak_rss_mb"] < 2048
