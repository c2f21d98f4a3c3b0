"""What readers see runs as it is: blocks of the pages, the notebook, the script, the quickstart."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import cases
from tf_smoothclir.training import train

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
# They need files or a server that a reader has; tests of their own run them.
ELSEWHERE = {
    "langchain.md": "tests/extras/test_langchain.py",
    "requests.md": "tests/server/test_rest.py",
    "word_vectors.md": "tests/text/test_embeddings.py",
}


def blocks(page):
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


HERE = [page for page in PAGES if blocks(page) and page.name not in ELSEWHERE]


def executed(parts, monkeypatch, directory):
    """The names that parts of code leave, one after the other in a directory.

    Small sets are measured in three folds, not in five: each takes as long as the training.
    """
    folds = train.folds_of_small_set
    monkeypatch.setattr(train, "folds_of_small_set", lambda *given: min(3, folds(*given)))
    monkeypatch.chdir(directory)
    monkeypatch.setenv("XDG_CACHE_HOME", str(directory / "cache"))
    names = {"__name__": "__main__"}
    for number, part in enumerate(parts, start=1):
        exec(compile(part, f"part {number}", "exec"), names)
    return names


@pytest.mark.slow
@pytest.mark.usefixtures("no_child_process", "built_in_alone")  # pages register plug-ins
@cases("page", *HERE, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run_from_top_to_bottom(page, monkeypatch, tmp_path):
    executed(blocks(page), monkeypatch, tmp_path)


def test_other_blocks_are_run_elsewhere():
    for page, test in ELSEWHERE.items():
        assert blocks(ROOT / "docs" / page)
        assert page in (ROOT / test).read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(monkeypatch, tmp_path):
    notebook = json.loads((EXAMPLES / "own_data.ipynb").read_text(encoding="utf-8"))
    cells = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names = executed(map("".join, cells), monkeypatch, tmp_path)
    assert names["scores"].shape == (100, len(names["documents"]))
    assert len(names["hits"]) == 3
    assert (tmp_path / "runs" / "notebook" / "report.md").is_file()
    pyplot = sys.modules["matplotlib.pyplot"]
    assert pyplot.get_fignums()  # it draws, and a notebook shows what is open
    pyplot.close("all")


@pytest.mark.slow
def test_the_serving_example_asks_its_server(export_dir, tmp_path):
    command = [sys.executable, EXAMPLES / "serving.py", f"--export_dir={export_dir}"]
    options = {"cwd": tmp_path, "env": {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}}
    options |= {"capture_output": True, "text": True, "timeout": 240, "check": False}
    done = subprocess.run([*command, "--query=wordb worde"], **options)
    assert done.returncode == 0, done.stderr
    ways = ("By the client", "By plain HTTP")
    first, second = (re.search(rf"^{way}: (.*)$", done.stdout, re.MULTILINE)[1] for way in ways)
    assert first.split()[0] == second.split()[0]
    assert "A vector: (1, " in done.stdout


@pytest.mark.slow
def test_quickstart_with_overwrite_searches_by_the_new_towers(commands, tmp_path):
    outputs = []
    for seed, *overwrite in ((13,), (13,), (14, "--overwrite")):
        flags = [seed, f"--output_dir={tmp_path / 'run'}", *overwrite]
        done = commands.run("tests.small_quickstart", *flags, check=True)
        assert "| NDCG@5 | " in done.stdout
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1] != outputs[2]
    assert (tmp_path / "run" / "query_tower" / "2").is_dir()
