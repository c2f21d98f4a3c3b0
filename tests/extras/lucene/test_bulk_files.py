"""Bulk files, read back and ranked as Elasticsearch and OpenSearch rank them."""

import json

import numpy as np
import pytest

from tests.cases import cases
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.extras.lucene import bulk_files
from tf_smoothclir.extras.lucene.bulk_files import BulkFormat, write_bulk_files
from tf_smoothclir.index.builder import halves_of, index_in_memory
from tf_smoothclir.index.document_collections import open_files
from tf_smoothclir.plugins import family
from tf_smoothclir.publishing.exported_models import load_exported_models
from tf_smoothclir.search.opening import search_in
from tf_smoothclir.utils.errors import InputError

LONG = "x" * 70
YEAR = {"range": {"metadata.year": {"gte": 2020}}}


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def clauses_of(body):
    """Field -> what is asked of it, with `boost`, in one form for both engines."""
    query, found = body.get("query", {}), {}
    for clause in query.get("bool", {}).get("should", [query] if query else []):
        if "sparse_vector" in clause:
            assert clause["sparse_vector"]["prune"] is False  # else frequent words are left out
            found["words"] = clause["sparse_vector"]
        elif "neural_sparse" in clause:
            asked = clause["neural_sparse"]["words"]
            found["words"] = {**asked, "query_vector": asked["query_tokens"]}
        else:
            asked = clause["knn"]["vector"]
            found["vector"] = {**asked, "query_vector": asked["vector"]}
    if "knn" in body:
        found["vector"] = body["knn"]
    return found


def score(body, record):
    """Σ boost Σ_w n(w) value(w), and boost (inner product + 1): what the engines document."""
    total = 0
    for name, asked in clauses_of(body).items():
        value, query = record.get(name, {}), asked["query_vector"]
        if name == "vector":
            total += asked["boost"] * (np.dot(query, value) + 1)
        else:
            total += asked["boost"] * sum(n * value.get(word, 0) for word, n in query.items())
    return total


@cases("engine", *bulk_files.ENGINES)
@cases("name", "dense", "lexical", "hybrid")
def test_the_engine_scores_as_the_model_does_without_feedback(
    ranking_exports, ranking_runs, tmp_path, monkeypatch, engine, name
):
    monkeypatch.setattr(bulk_files, "DOCUMENTS_PER_FILE", 20)
    monkeypatch.setattr(bulk_files, "_DOCUMENTS_AT_ONCE", 7)
    models = load_exported_models(ranking_exports[name])
    source = source_of(ranking_runs[name].settings().data)
    texts = {document.id: document.text for document in source.documents()}
    queries = [*list(source.queries())[:4], Text("", "", "unheard of")]
    written = write_bulk_files(tmp_path / "out", models, source, queries, engine)
    assert (written.documents, written.queries) == (30, 4)
    parts = sorted((tmp_path / "out" / "documents").iterdir())
    lines = [line for part in parts for line in lines_of(part)]
    records = {a["index"]["_id"]: b for a, b in zip(lines[::2], lines[1::2])}
    assert ({id_: record["text"] for id_, record in records.items()}, len(parts)) == (texts, 2)
    asked = lines_of(tmp_path / "out" / "queries.ndjson")
    assert asked[::2] == [{}] * 4
    fields = json.loads((tmp_path / "out" / "mapping.json").read_text())["mappings"]["properties"]
    for query, body in zip(queries[:4], asked[1::2], strict=True):
        assert clauses_of(body).keys() == fields.keys() & {"words", "vector"}
        right = family(name).scores(models, [query.text] * 30, list(texts.values()))
        found = np.array([score(body, records[id_]) for id_ in texts])
        constant = clauses_of(body).get("vector", {"boost": 0})["boost"]  # of each document
        np.testing.assert_allclose(found - constant, right, rtol=1e-3, atol=1e-3)


@cases("engine", *bulk_files.ENGINES)
def test_further_columns_are_typed_fields_to_filter_by(ranking_exports, tmp_path, engine):
    rows = [
        {"id": "a", "text": "motb motc", "year": 2021, "made": "2021-05-06", "a.b": "x"},
        {"id": "b", "text": "motb", "share": 0.5, "open": True, "tags": ["x", "y"]},
    ]
    path = tmp_path / "pages.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    models = load_exported_models(ranking_exports["lexical"])
    write_bulk_files(tmp_path / "out", models, open_files(path, "--collection"), (), engine)
    fields = json.loads((tmp_path / "out/mapping.json").read_text())["mappings"]["properties"]
    types = {name: field["type"] for name, field in fields["metadata"]["properties"].items()}
    kinds = ("long", "date", "keyword", "double", "boolean", "keyword")
    assert types == dict(zip(("year", "made", "a<dot>b", "share", "open", "tags"), kinds))
    longest = {name for name, field in fields["metadata"]["properties"].items() if len(field) > 1}
    assert longest == {"a<dot>b", "tags"}
    assert fields["metadata"]["properties"]["tags"]["ignore_above"] * 4 <= 32_766  # bytes
    _, first, _, second = lines_of(tmp_path / "out/documents/part-00000.ndjson")
    assert first["metadata"] == {"year": 2021, "made": "2021-05-06", "a<dot>b": "x"}
    assert second["metadata"] == {"share": 0.5, "open": True, "tags": ["x", "y"]}
    form = BulkFormat(engine, load_exported_models(ranking_exports["lexical"]))
    plain, body = form.query("wordb"), form.query("wordb", filter=YEAR)
    assert body == {**plain, "query": {"bool": {"must": plain["query"], "filter": YEAR}}}
    of_vectors = BulkFormat(engine, load_exported_models(ranking_exports["dense"]))
    body = of_vectors.query("wordb", filter=YEAR)
    nearest = body.get("knn") or body["query"]["bool"]["must"]["knn"]["vector"]
    assert nearest["filter"] == YEAR
    assert "metadata" not in form.mapping()["mappings"]["properties"]


@cases("asked", "dyson", f"wordb {LONG}y DYSON", "unheard of")
def test_new_words_are_found_as_an_index_finds_them(ranking_exports, tmp_path, asked):
    models = load_exported_models(ranking_exports["lexical"])
    texts = {"a": f"motb Dyson V{LONG}", "b": "dyson motc motc", "c": f"motb {LONG}"}
    path = tmp_path / "new.jsonl"
    path.write_text("".join(json.dumps({"id": id_, "text": texts[id_]}) + "\n" for id_ in texts))
    source = open_files(path, "--collection")
    write_bulk_files(tmp_path / "out", models, source, [Text("", "", asked)], "elasticsearch")
    new = (tmp_path / "out/new_words.txt").read_text("utf-8").split()
    assert new == ["dyson", f"v{'x' * 63}", "x" * 64]
    body = BulkFormat("elasticsearch", models, new).query(asked)
    queries = tmp_path / "out/queries.ndjson"
    assert (lines_of(queries)[1:] if queries.exists() else [None]) == [body]
    lines = lines_of(tmp_path / "out/documents/part-00000.ndjson")
    scores = {a["index"]["_id"]: score(body or {}, b) for a, b in zip(lines[::2], lines[1::2])}
    search = search_in(index_in_memory(source, halves_of(models), models.manifest), models)
    hits = {hit.id: hit.score - hit.constant for hit in search.search([asked], 3)[0]}
    assert hits == pytest.approx({id_: of for id_, of in scores.items() if of}, rel=1e-3)


def test_a_dot_is_no_part_of_the_name_of_a_field(ranking_exports):
    form = BulkFormat("opensearch", load_exported_models(ranking_exports["lexical"]))
    form._words[2] = "3.5"
    assert form._feature(2) == "3<dot>5"


def test_what_has_neither_words_nor_vectors_is_refused():
    class Models(dict):
        retriever = "overlap"

    with pytest.raises(InputError, match="overlap models have neither impacts of words"):
        BulkFormat("elasticsearch", Models())


def test_the_command_writes_a_set_and_refuses_to_write_over_it(commands, ranking_exports, tmp_path):
    arguments = [f"--export_dir={ranking_exports['lexical']}", f"--output_dir={tmp_path / 'out'}"]
    arguments.append("--version=1")
    module = "tf_smoothclir.extras.lucene.write_files"
    done = commands.run(module, *arguments)
    assert "30 documents and" in done.stdout, done.stderr
    of_export = load_exported_models(ranking_exports["lexical"]).manifest
    written = json.loads((tmp_path / "out/mapping.json").read_text())["mappings"]["_meta"]
    assert written == {"pair_id": of_export.pair_id, "version": 1}
    assert "it is there already. Give a new one" in commands.run(module, *arguments).stderr
