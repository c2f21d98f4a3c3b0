"""A retriever of docs/plugins.md does all that those of the package do; no file knows it."""

import json
import re
import shutil
import sys
import urllib.parse

import pytest

import tf_smoothclir as sc
from tests.server.local_server import local_server, rest
from tests.test_plugins import PAGE
from tests.training.tiny_set import write_tiny_set
from tf_smoothclir import plugins
from tf_smoothclir.search.opening import open_search
from tf_smoothclir.server.search_page import open_page
from tf_smoothclir.utils.errors import InputError

(SOURCE,) = re.findall(r'```python title="my_bm25\.py"\n(.*?)```', PAGE, re.DOTALL)
QUERY, NAMED = "word1 word4", "--plugin=my_bm25"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A set in which a word is written alike in both languages, and the module of the page."""
    folder = tmp_path_factory.mktemp("family")
    (folder / "my_bm25.py").write_text(SOURCE)
    documents = write_tiny_set(folder / "data") / "wiki_fr.documents"
    documents.write_text(documents.read_text().replace("mot", "word"))
    return folder


@pytest.fixture
def loaded(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(plugins, "_plugins", dict(plugins._plugins))
    plugins.load(["my_bm25"])
    yield
    sys.modules.pop("my_bm25")


@pytest.fixture(scope="module")
def printed(commands, folder):
    """Output of each command, and what the last one refuses without the plug-in."""
    run, export, found = "--run_dir=run", "--export_dir=export", {}
    data = ["--data_dir=data", "--cache_dir=cache", "--output_dir=run"]
    for name, *flags in (
        ("trainers.train", "--retriever=bm25", *data),
        ("trainers.evaluate", run, "--split=validation"),
        ("export.export", run, export),
        ("export.build_index", export),
        ("export.search", export, f"--query={QUERY}", "--json", "--explain"),
    ):
        done = commands.run(name, NAMED, *flags, cwd=folder)
        assert done.returncode == 0, done.stderr
        found[name] = done.stdout or done.stderr
    found[""] = commands.run("export.search", export, f"--query={QUERY}", cwd=folder).stderr
    return found


def test_commands_train_evaluate_export_index_search_and_explain(printed, folder, loaded):
    assert sc.load(folder / "run").metrics["full/MRR@10"] > 0.5
    assert "search/1" not in printed["export.export"]
    assert {path.name for path in (folder / "export").iterdir()} >= {"family", "index"}
    answer = json.loads(printed["export.search"])
    first, second, *_ = answer["results"][0]["explanation"]["words"]
    assert {first["word"], second["word"]} == {*QUERY.split()}
    assert second["share"] > 0
    assert f"If you trust it, add {NAMED}" in printed[""]


def test_python_and_the_page_find_what_the_command_finds(printed, folder, loaded):
    expected = [hit["id"] for hit in json.loads(printed["export.search"])["results"]]
    metrics = sc.load(folder / "run").metrics
    for path in ("run", "export"):
        model = sc.load(folder / path)
        hits = model.search([QUERY])[0]
        assert [hit.id for hit in hits] == expected
        assert all(hit.grade is not None for hit in hits)
        explained = model.explain(QUERY, hits[0].text)
        assert model.score([QUERY], [hits[0].text]) == pytest.approx([explained.score])
        assert model.evaluate(negatives=40).metrics == pytest.approx(metrics)
        with pytest.raises(InputError, match="a bm25 model has no vectors"):
            model.encode_queries([QUERY])
    shutil.copytree(folder / "run", folder / "other")
    assert {row.difference for row in sc.compare(folder / "run", folder / "other").rows} == {0}
    search = open_search(folder / "export", "", lambda data: data)
    with local_server(folder / "export", page=open_page(search)) as address:
        _, found = rest(address, f"/api/search?q={urllib.parse.quote(QUERY)}")
    assert [hit["id"] for hit in found["results"]] == expected
    assert all(share for hit in found["results"] for _, share in hit["parts"] if share is not None)
