"""Section 8 of docs/serving.md: a search with a re-ranker, by two requests."""

import contextlib
import io
import json
import re
import shutil
import subprocess

import pytest

from tests.server import test_docs as page
from tests.server.local_server import grpc_server, local_server
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.search.opening import open_search
from tf_smoothclir.training.retrievers import load_models
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import train

SECTION = page.PAGE.read_text(encoding="utf-8").partition(page.TWO_REQUESTS)[2]
DEPTH = 10  # of the exported search model


@pytest.fixture(scope="module")
def export(tiny, tmp_path_factory):
    """`(run, export)` of a lexical run whose re-ranker counts much."""
    path = tmp_path_factory.mktemp("two_requests")
    train(tiny(retriever="lexical", reranker="late_interaction", rerank_depth=DEPTH), path / "run")
    run = RunDirectory.load(path / "run")
    reranker = load_models(run).reranker.chosen(weight=30.0)
    shutil.rmtree(run.reranker)
    with run.writing(run.reranker) as temporary:
        reranker.save(temporary)
    export_run(run, path / "export", search_depth=DEPTH)
    return run, path / "export"


@pytest.fixture(scope="module")
def address(export):
    with local_server(export[1]) as address:
        yield address


@pytest.mark.parametrize(("command", "shown"), page.console_lines(SECTION))
def test_the_requests_have_the_answers_of_the_page(address, command, shown):
    if shutil.which("curl") is None:
        pytest.skip("no curl on the PATH")
    command = command.replace(page.ADDRESS, address.removeprefix("http://"))
    done = subprocess.run(
        ["/bin/sh", "-c", command.replace("Which city is known for sugar?", "word1 word4")],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    found = json.loads(done.stdout)
    assert page.has_shape(found, page.parsed(shown)), found


@pytest.mark.parametrize("server", [grpc_server, local_server])
def test_two_requests_rank_as_a_search_does(export, server):
    run, directory = export
    (block,) = re.findall(r"^```python\n(.*?)^```", SECTION, re.DOTALL | re.MULTILINE)
    block = block.replace("Which city is known for sugar?", "word1 word4")
    source = source_of(run.settings().data)
    names = {"texts": {one.id: one.text for one in source.documents()}}
    with server(directory) as address, contextlib.redirect_stdout(io.StringIO()) as printed:
        block = block.replace(f"http://{page.ADDRESS}", address)
        exec(compile(block, page.PAGE.name, "exec"), names)
    (hits,) = open_search(directory, "", lambda data: data).search(["word1 word4"], DEPTH)
    assert names["weight"] == 30.0
    lines = [line.split() for line in printed.getvalue().splitlines()]
    assert [id for _, id in lines] == [hit.id for hit in hits]
    assert [float(total) for total, _ in lines] == pytest.approx(
        [hit.score for hit in hits], abs=2e-3
    )
    assert [hit.id for hit in hits] != [document.id for document in names["found"]]
