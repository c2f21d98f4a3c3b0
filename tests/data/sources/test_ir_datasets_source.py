"""Sets of the package ir_datasets, registered here: nothing is downloaded."""

import sys
import uuid

import pytest

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.ir_datasets_source import IrDatasetsSource
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Judgment
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError


@pytest.fixture
def register(tmp_path):
    package = pytest.importorskip("ir_datasets")
    name = f"own-{uuid.uuid4().hex}"

    def file(kind, lines):
        path = tmp_path / f"{kind}-{uuid.uuid4().hex}.tsv"
        path.write_text("".join(lines), encoding="utf-8")
        return str(path) if lines else None

    def register_set(part="", *, documents=3, queries=(), judgments=()):
        made = package.create_dataset(
            docs_tsv=file("docs", [f"d{i}\tune pierre {i}\n" for i in range(documents)]),
            queries_tsv=file("queries", [f"{id_}\twater\n" for id_ in queries]),
            qrels_trec=file("qrels", [f"{q} 0 {d} {g}\n" for q, d, g in judgments]),
        )
        package.registry.register(f"{name}{part}", made)
        return name

    return register_set


def test_a_set_with_its_own_judgments(register):
    triples = [("q1", "d1", 2), ("q1", "d2", -1)]
    name = register(queries=["q1", "q2"], judgments=triples)
    source = source_of(DataSettings(ir_dataset=name, document_language="de", max_skipped=0.6))
    assert isinstance(source, IrDatasetsSource)
    assert source.max_skipped == 0.6
    assert list(source.queries()) == [("q1", "", "water", ""), ("q2", "", "water", "")]
    assert next(source.documents()) == ("d0", "", "une pierre 0", "de")
    assert list(source.judgments()) == [Judgment("q1", "d1", 2), Judgment("q1", "d2", 0)]
    assert source.splits() is None
    assert (source.query_language, source.document_language) == ("", "de")
    for stream in ("queries", "judgments"):
        assert source.place(stream, 1) == f"{name}: record 2 of the {stream}"


def test_parts_are_splits(register):
    name = register()
    for part, query in (("train", "q1"), ("dev", "q2"), ("test", "q3")):
        register(f"/{part}", queries=["q1", "q2", "q3"], judgments=[(query, "d1", 1)])
    source = IrDatasetsSource(name)
    assert source.splits() == {"q1": "train", "q2": "validation", "q3": "test"}
    assert [query.id for query in source.queries()] == ["q1", "q2", "q3"]  # each once
    assert RetrievalSet.load(source).queries_in("test").tolist() == [2]


def test_fingerprint_follows_the_content(register):
    changes = [{}, {"judgments": [("q1", "d1", 2)]}, {"documents": 4}, {"queries": ["q1", "q2"]}]
    same = {"queries": ["q1"], "judgments": [("q1", "d1", 1)]}
    names = [register(f"-{n}", **{**same, **each}) + f"-{n}" for n, each in enumerate(changes)]
    prints = [IrDatasetsSource(name).fingerprint() for name in names]
    assert len(set(prints)) == 4
    assert prints[0] == IrDatasetsSource(names[0]).fingerprint()


def test_sets_that_cannot_be_used_and_a_missing_package_are_named(register, monkeypatch):
    with pytest.raises(InputError, match="no documents, or no queries with judgments"):
        IrDatasetsSource(register())
    with pytest.raises(InputError, match=r"there is no such set. Did you mean .*mr-tydi/sw"):
        IrDatasetsSource("mr-tidy/sw")
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(InputError, match=r"needs the package ir_datasets .*pip install '.\[ir_"):
        source_of(DataSettings(ir_dataset="mr-tydi/sw"))
