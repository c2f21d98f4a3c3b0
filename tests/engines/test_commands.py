"""The commands with a collection in Milvus Lite: write, change, search, serve a page."""

import dataclasses
import json
import shutil

import pytest

from tests.engines.lite import needs_milvus
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.engines.milvus import Address
from tf_smoothclir.index.builder import build_index
from tf_smoothclir.index.document_collections import SourceCollection
from tf_smoothclir.index.export_halves import export_halves
from tf_smoothclir.search.opening import open_search
from tf_smoothclir.server.search_page import open_page
from tf_smoothclir.utils.errors import InputError

pytestmark = needs_milvus
QUERIES = ["word1 word4 word2", "word8", "word3 unheard"]


def the_same(data):
    return data


@pytest.fixture(scope="module")
def run(commands):
    """Runs a command; returns what it did."""
    return commands.run


@pytest.fixture(scope="module")
def flags(run, export_dir, tmp_path_factory):
    """Flags for the collection of the run's set, which a command has written; read-only."""
    uri = tmp_path_factory.mktemp("milvus") / "milvus.db"
    given = [f"--export_dir={export_dir}", "--engine=milvus", f"--uri={uri}"]
    done = run("export.build_index", *given, "--verbosity=-1")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr  # pymilvus and gRPC log what is no error of the user
    assert done.stdout.startswith(f"{uri} smoothclir: ")
    return given


def address_in(flags, filter_=""):
    return Address(flags[-1].removeprefix("--uri="), "smoothclir", filter_)


def test_engine_finds_what_the_index_finds(flags, export_dir, tmp_path):
    halves, export = export_halves(export_dir)
    collection = SourceCollection(source_of(export.data))
    build_index(tmp_path / "index", collection, halves, export, data=export.data)
    here = open_search(export_dir, tmp_path / "index", the_same)
    there = open_search(export_dir, "", the_same, engine=address_in(flags))
    # The documents of an engine come and go, so nobody says how many there are.
    assert there.collection == dataclasses.replace(here.collection, documents=None)
    for of_index, of_engine in zip(here.search(QUERIES, 20), there.search(QUERIES, 20)):
        expected = {hit.id: hit.score for hit in of_index}
        assert {hit.id: hit.score for hit in of_engine} == pytest.approx(expected, abs=1e-6)
        scores = [hit.score for hit in of_engine]
        assert scores == sorted(scores, reverse=True)
        assert {hit.text for hit in of_engine} == {hit.text for hit in of_index}
        assert there.explain(QUERIES[0], of_index) == here.explain(QUERIES[0], of_index)
    answer = open_page(there).search({"q": "word1 word2", "k": "3"})
    assert [result["rank"] for result in answer["results"]] == [1, 2, 3]


def test_filter_of_the_command_leaves_out_documents(run, flags, tmp_path):
    # A file of Milvus Lite is open in one process at a time.
    shutil.copytree(address_in(flags).uri, tmp_path / "milvus.db")
    flags = [*flags[:-1], f"--uri={tmp_path}/milvus.db"]
    query = ["--json", "--query=word1", "--top_k=1", "--verbosity=-1"]
    (first,) = json.loads(run("export.search", *flags, *query).stdout)["results"]
    chosen = f'--filter=id != "{first["id"]}"'
    (other,) = json.loads(run("export.search", *flags, *query, chosen).stdout)["results"]
    assert other["id"] != first["id"]
    assert other["score"] <= first["score"]


def test_towers_of_another_run_are_refused(flags, export):
    with pytest.raises(InputError, match="different training runs"):
        open_search(export, "", the_same, engine=address_in(flags))


def test_documents_come_and_go_by_the_commands(run, export_dir, tmp_path):
    (tmp_path / "old.tsv").write_text("a\tmot1\nb\tmot2\nc\tmot3\n")
    (tmp_path / "add.tsv").write_text("b\tmot4 mot4\nd\tmot5\n")
    (tmp_path / "remove.txt").write_text("a\n")
    given = [f"--export_dir={export_dir}", "--engine=milvus", f"--uri={tmp_path}/milvus.db"]
    given += ["--engine_collection=mine", "--verbosity=-1"]
    changes = [f"--add={tmp_path}/add.tsv", f"--remove={tmp_path}/remove.txt"]
    refused = run("export.build_index", *given, *changes)
    assert refused.returncode == 1
    assert "there is no such collection" in refused.stderr
    run("export.build_index", *given, f"--collection={tmp_path}/old.tsv")
    refused = run("export.build_index", *given, *changes)
    assert f"error: {tmp_path}/add.tsv:1: id 'b' is in the collection" in refused.stderr
    assert "Traceback" not in refused.stderr
    done = run("export.build_index", *given, *changes, "--replace")
    assert done.stdout == f"{tmp_path}/milvus.db mine: 3 documents\n"
    found = json.loads(run("export.search", *given, "--json", "--query=word1").stdout)["results"]
    assert {hit["id"]: hit["text"] for hit in found} == {"b": "mot4 mot4", "c": "mot3", "d": "mot5"}
