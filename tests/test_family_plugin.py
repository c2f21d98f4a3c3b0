"""A retriever of docs/retrievers.md does all that those of the package do; no file knows it."""

import json
import multiprocessing
import re
import shutil
import sys
import urllib.parse
from concurrent.futures import ProcessPoolExecutor

import pytest

import tf_smoothclir as sc
from tests.server.local_server import local_server, rest
from tests.test_examples import ROOT
from tests.training.tiny_set import write_tiny_set
from tf_smoothclir import InputError, plugins
from tf_smoothclir.search.opening import open_search
from tf_smoothclir.server.search_page import open_page

PAGE = ROOT.joinpath("docs", "retrievers.md").read_text("utf-8")
(SOURCE,) = re.findall(r'```python title="my_bm25\.py"\n(.*?)```', PAGE, re.DOTALL)
QUERY, NAMED = "wordb worde", "--plugin=my_bm25"
SEARCH = ("export.search", "--export_dir=export", f"--query={QUERY}", "--json", "--explain")


def test_commands_python_and_the_page_find_the_same(commands, tmp_path, monkeypatch):
    """A run, its export and its index, by commands; both languages write a word alike."""
    (tmp_path / "my_bm25.py").write_text(SOURCE)
    documents = write_tiny_set(tmp_path / "data") / "wiki_fr.documents"
    documents.write_text(documents.read_text().replace("mot", "word"))
    data = ("--data_dir=data", "--cache_dir=cache", "--output_dir=run")
    for name, *flags in (
        ("trainers.train", "--retriever=bm25", *data),
        ("trainers.evaluate", "--run_dir=run", "--split=validation"),
        ("export.export", "--run_dir=run", "--export_dir=export"),
        ("export.build_index", "--export_dir=export"),
    ):
        commands.run(name, NAMED, *flags, cwd=tmp_path, check=True)
    assert f"If you trust it, add {NAMED}" in commands.run(*SEARCH, cwd=tmp_path).stderr
    results = json.loads(commands.run(*SEARCH, NAMED, cwd=tmp_path).stdout)["results"]
    first, second = (explanation := results[0]["explanation"])["words"]
    assert {first["word"], second["word"]} == {*QUERY.split()}
    assert second["share"] > 0
    assert explanation["remainder"] == pytest.approx(0, abs=1e-5)
    assert not (tmp_path / "export" / "search").exists()  # it has no graph

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(plugins, "_plugins", dict(plugins._plugins))
    monkeypatch.delitem(sys.modules, "my_bm25", raising=False)
    sc.plugins.load(["my_bm25"])
    expected, metrics = [hit["id"] for hit in results], sc.load(tmp_path / "run").metrics
    assert metrics["full/MRR@10"] > 0.5
    for path in ("run", "export"):
        model = sc.load(tmp_path / path)
        hits = model.search([QUERY])[0]
        assert [hit.id for hit in hits] == expected
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            assert pool.submit(model.search, [QUERY]).result() == [hits]
        assert all(hit.grade is not None for hit in hits)
        explained = model.explain(QUERY, hits[0].text)
        assert model.score([QUERY], [hits[0].text]) == pytest.approx([explained.score])
        assert model.evaluate(negatives=40).metrics == pytest.approx(metrics)
        with pytest.raises(InputError, match="a bm25 model has no vectors"):
            model.encode_queries([QUERY])
    shutil.copytree(tmp_path / "run", tmp_path / "other")
    assert {row.difference for row in sc.compare(tmp_path / "run", tmp_path / "other").rows} == {0}
    search = open_search(tmp_path / "export", "", lambda data: data)
    with local_server(tmp_path / "export", page=open_page(search)) as address:
        _, found = rest(address, f"/api/search?q={urllib.parse.quote(QUERY)}")
    assert [hit["id"] for hit in found["results"]] == expected
    monkeypatch.setattr(plugins.FAMILIES["bm25"], "scorer", lambda *_: lambda queries: [[1, 2]])
    with pytest.raises(InputError, match=r"retriever=bm25: Bm25\.scorer .*\(1, 2\)\. Return \[q"):
        sc.load(tmp_path / "run").evaluate()
