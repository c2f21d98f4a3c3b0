"""docs/serving.md, docs/requests.md: lines run, and answers have the shape that a page shows."""

import contextlib
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.published import RERANKED_DEPTH
from tests.server.local_server import local_server
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.search.opening import open_search

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = "".join(DOCS.joinpath(name).read_text("utf-8") for name in ("serving.md", "requests.md"))
# The sections before this one are tried with towers, this one with a re-ranker.
SECTIONS = TEXT.partition("## With a re-ranker")[::2]
ADDRESS = "localhost:8501"
QUERY, ANYTHING = "Which city is known for sugar?", "..."


def console_lines(section):
    """`(command, answer on the page)` of each `$` line."""
    for block in re.findall(r"^```console\n(.*?)^```", section, re.DOTALL | re.MULTILINE):
        for part in block.split("$ ")[1:]:
            command, _, answer = part.rstrip("\n").rpartition("\n")
            yield command, answer


def python_block(section, changes):
    """Runs the only block of Python in a section; returns its names and what it printed."""
    (block,) = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    names = changes.pop("names", {})
    for shown, used in changes.items():
        assert shown in block
        block = block.replace(shown, used)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(block, "page", "exec"), names)
    return names, printed.getvalue()


@pytest.fixture(scope="module")
def servers(export, reranked):
    """Of each section."""
    with local_server(export) as first, local_server(reranked[1]) as second:
        yield first, second


def has_shape(found, shown):
    """Whether an answer has the names, types and nesting of what the page shows."""
    if shown == ANYTHING:
        return bool(found)
    if type(found) is not type(shown):
        return False
    if isinstance(shown, dict):
        return found.keys() == shown.keys() and all(has_shape(found[k], shown[k]) for k in shown)
    return not isinstance(shown, list) or (
        bool(found) and all(has_shape(value, shown[0]) for value in found)
    )


@pytest.mark.parametrize(
    ("section", "command", "answer"),
    [(number, *line) for number in (0, 1) for line in console_lines(SECTIONS[number])],
)
def test_answer_to_a_curl_line_has_the_shape_on_the_page(servers, section, command, answer):
    if shutil.which("curl") is None:
        pytest.skip("no curl on the PATH: the lines of the pages are not run")
    assert command.startswith(f"curl -s {ADDRESS}/")
    command = command.replace(ADDRESS, servers[section])
    if section:
        command = command.replace(QUERY, "word1 word4")
    options = {"capture_output": True, "text": True, "timeout": 30, "check": True}
    done = subprocess.run(["/bin/sh", "-c", command], **options)
    # "..." stands for more of the same.
    shown = json.loads(answer.replace(", ...]", "]").replace("{...}", f'"{ANYTHING}"'))
    found = json.loads(done.stdout)
    assert has_shape(found, shown), found
    if "predictions" in shown:
        assert len(found["predictions"]) == len(shown["predictions"])
    assert ("error" in found) == ("error" in shown)


def test_the_python_block_asks_the_server(servers):
    changes = {f"http://{ADDRESS}": servers[0], "timeout=1.0": "timeout=30.0", QUERY: "red apple"}
    names, _ = python_block(SECTIONS[0], changes)
    assert names["vectors"].shape[0] == 1
    assert names["documents"][0].id


def test_two_requests_rank_as_a_search_does(servers, reranked):
    run, directory = reranked
    source = source_of(run.settings().data)
    search, first = (
        open_search(directory, "", lambda data: data, retriever=name)
        for name in ("auto", "lexical")
    )
    for query in (one.text for one in source.queries()):
        (hits,), (before,) = (one.search([query], RERANKED_DEPTH) for one in (search, first))
        if [hit.id for hit in hits] != [hit.id for hit in before]:
            break
    texts = {one.id: one.text for one in source.documents()}
    changes = {f"http://{ADDRESS}": servers[1], QUERY: query, "names": {"texts": texts}}
    names, printed = python_block(SECTIONS[1], changes)
    assert names["weight"] == 30.0
    lines = [line.split() for line in printed.splitlines()]
    assert [id for _, id in lines] == [hit.id for hit in hits]
    scores = [hit.score for hit in hits]
    assert [float(total) for total, _ in lines] == pytest.approx(scores, abs=2e-3)
    assert [hit.id for hit in hits] != [document.id for document in names["found"]]
