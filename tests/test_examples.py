"""The examples run as they are: the notebook cell by cell, the script as a reader starts it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NOTEBOOK = EXAMPLES / "own_data.ipynb"


def code_cells():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names: dict = {}
    for number, cell in enumerate(code_cells(), start=1):
        exec(compile(cell, f"cell {number}", "exec"), names)
    assert names["scores"].shape == (100, len(names["documents"]))
    assert len(names["hits"]) == 3
    assert (tmp_path / "runs" / "notebook" / "report.md").is_file()


def test_the_notebook_is_committed_without_output():
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)


@pytest.mark.slow
def test_the_serving_example_asks_its_server(export_dir, tmp_path):
    # The models of a tiny run, so that nothing is trained here.
    command = [sys.executable, EXAMPLES / "serving.py"]
    done = subprocess.run(
        [*command, f"--export_dir={export_dir}", "--query=word1 word4"],
        cwd=tmp_path,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ways = ("By the client", "By plain HTTP")
    first, second = (re.search(rf"^{way}: (.*)$", done.stdout, re.MULTILINE)[1] for way in ways)
    assert first.split()[0] == second.split()[0]
    assert "A vector: (1, " in done.stdout
