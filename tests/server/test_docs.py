"""docs/serving.md: its curl lines run, and their answers have the shape that the page shows."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.server.local_server import local_server

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "serving.md"
ADDRESS = "localhost:8501"
ANYTHING = "..."


TWO_REQUESTS = "## 8. Search with a re-ranker"  # tests/server/test_rerank_requests.py runs them


def console_lines(text=None):
    """`(command, answer on the page)` of each `$` line before the part about re-rankers."""
    text = text or PAGE.read_text(encoding="utf-8").partition(TWO_REQUESTS)[0]
    for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for part in block.split("$ ")[1:]:
            command, _, answer = part.rstrip("\n").rpartition("\n")
            yield command, answer


@pytest.fixture(scope="module")
def server(export):
    with local_server(export) as address:
        yield address


def parsed(answer):
    """The JSON of the page; `...` stands for more of the same."""
    shown = answer.replace(", ...]", "]").replace("{...}", f'"{ANYTHING}"')
    return json.loads(shown)


def has_shape(found, shown):
    """Whether an answer has the names, types and nesting of what the page shows."""
    if shown == ANYTHING:
        return bool(found)
    if isinstance(shown, dict):
        return (
            isinstance(found, dict)
            and found.keys() == shown.keys()
            and all(has_shape(found[key], value) for key, value in shown.items())
        )
    if isinstance(shown, list):
        return (
            isinstance(found, list)
            and bool(found)
            and all(has_shape(value, shown[0]) for value in found)
        )
    return type(found) is type(shown)


@pytest.mark.parametrize(("command", "answer"), console_lines())
def test_answer_to_a_curl_line_has_the_shape_on_the_page(server, command, answer):
    if shutil.which("curl") is None:
        pytest.skip("no curl on the PATH: the lines of docs/serving.md are not run")
    assert command.startswith(f"curl -s {ADDRESS}/")
    done = subprocess.run(
        ["/bin/sh", "-c", command.replace(ADDRESS, server)],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    found, shown = json.loads(done.stdout), parsed(answer)
    assert has_shape(found, shown), found
    if "predictions" in shown:
        assert len(found["predictions"]) == len(shown["predictions"])
    assert ("error" in found) == ("error" in shown)


def test_page_covers_every_model_and_both_formats():
    commands = " ".join(command for command, _ in console_lines())
    for part in ("query_tower", "document_tower", "search", "instances", "inputs"):
        assert part in commands


def test_files_that_the_page_points_to_exist():
    text = PAGE.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)h][^)]*)\)", text):
        assert (PAGE.parent / link).is_file(), link
    for path in set(re.findall(r"export/serving/[\w.-]+", text)):
        assert (ROOT / path).is_file(), path


def test_different_shapes_are_distinguished():
    shown = parsed('{"a": [[0.5, ...]], "b": {...}}')
    assert has_shape({"a": [[0.1, 0.2, 0.3]], "b": {"c": 1}}, shown)
    for other in ({"a": [0.1], "b": 1}, {"a": [[0.1]]}, {"a": [["x"]], "b": 1}, {"a": [], "b": 1}):
        assert not has_shape(other, shown)


def test_the_python_block_asks_the_server(server):
    text = PAGE.read_text(encoding="utf-8").partition(TWO_REQUESTS)[0]
    (block,) = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    here = {
        f"http://{ADDRESS}": server,
        "timeout=1.0": "timeout=30.0",
        "Which city is known for sugar?": "red apple",  # which the small model knows
    }
    for shown, used in here.items():
        assert shown in block
        block = block.replace(shown, used)
    names = {}
    exec(compile(block, PAGE.name, "exec"), names)
    assert names["vectors"].shape[0] == 1
    assert names["documents"][0].id
