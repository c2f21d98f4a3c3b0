"""`smoothclir-evaluate` of another set leaves the figures of the run's own set as they are."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.training.tiny_set import write_tiny_set

ROOT = Path(__file__).resolve().parents[2]


def evaluate(run, *flags):
    subprocess.run(
        [sys.executable, "-m", "trainers.evaluate", f"--run_dir={run}", *flags],
        cwd=ROOT,
        check=True,
        timeout=120,
    )


def test_figures_of_another_set_go_to_another_directory(tiny_run, tmp_path):
    run = shutil.copytree(tiny_run.path, tmp_path / "run")
    data = write_tiny_set(tmp_path / "other")
    with open(data / "wiki_fr.documents", "a") as documents:
        documents.write("999\tTitre\tmot1\n")
    (run / "evaluation").mkdir(exist_ok=True)
    (run / "evaluation" / "metrics.json").write_text("the run's own")
    evaluate(run, f"--data_dir={data}", f"--cache_dir={tmp_path}/cache")
    assert (run / "evaluation" / "metrics.json").read_text() == "the run's own"
    (other,) = (run / "evaluation").glob("on-other-en-*/metrics.json")
    assert '"test"' in other.read_text()
