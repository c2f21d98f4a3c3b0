"""A model in Python: of runs and exports, of each retriever, with the figures of the commands."""

import dataclasses
import enum
import itertools
import pickle
import shutil
import sys
import tempfile

import numpy as np
import pytest

import tf_smoothclir as sc
from tests.cases import cases, word
from tests.training import tiny_set
from tf_smoothclir.api import collections
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.files import read_json
from tf_smoothclir.training.run_evaluation import evaluate_run

RETRIEVERS = ("dense", "lexical", "hybrid")
QUERIES = ["wordb worde", "wordc", "unheard of", ""]
# As in mteb.types; MTEB itself needs PyTorch.
PromptType = enum.Enum("PromptType", {"query": "query", "document": "document"})


@pytest.fixture(scope="module")
def models(ranking_runs, ranking_exports):
    runs = {(name, "run"): sc.load(run.path) for name, run in ranking_runs.items()}
    return runs | {(name, "export"): sc.load(path) for name, path in ranking_exports.items()}


@pytest.fixture(params=itertools.product(RETRIEVERS, ("run", "export")), ids=str)
def one(request, models):
    return models[request.param]


def facts(found):
    return [[(hit.rank, hit.id, hit.grade, hit.text) for hit in hits] for hits in found]


def test_evaluate_gives_the_figures_of_training(one, ranking_runs, tiny_dir):
    expected = read_json(ranking_runs[one.retriever].metrics)
    assert one.evaluate(negatives=3).metrics == pytest.approx(expected["test"], rel=1e-6)
    again = one.evaluate(tiny_dir, split="validation", negatives=3)
    assert again.metrics == pytest.approx(expected["validation"], rel=1e-6)
    assert again.counts == expected["counts"]["validation"]
    assert again.confusion is not None


def test_all_queries_of_another_set_without_splits_are_measured(models, tiny_dir, tmp_path):
    other = shutil.copytree(tiny_dir, tmp_path / "other", ignore=lambda *_: ["splits.tsv"])
    model = models["lexical", "export"]  # of 20 queries, some with the same words, 5 are drawn
    for split, queries in ((None, tiny_set.QUERIES), ("test", 5)):
        assert model.evaluate(other, split=split).counts["MRR_mr"] == queries
    run = models["lexical", "run"]._run
    data = dataclasses.replace(run.settings().data, data_dir=str(other))
    for splits, queries in (((), tiny_set.QUERIES), (("test",), 5)):
        content, _ = evaluate_run(run, data, splits, output_dir=str(tmp_path / "out"))
        assert content["counts"]["test"]["MRR_mr"] == queries


def test_vectors_are_those_that_rank(models):
    model = models["dense", "run"]
    queries, documents = model.encode_queries(QUERIES), model.encode_documents(QUERIES)
    assert queries.shape == documents.shape == (len(QUERIES), model.dim)
    assert queries.dtype == np.float32
    np.testing.assert_allclose((queries * documents).sum(1), model.score(QUERIES, QUERIES))
    assert model.encode_queries([]).shape == (0, model.dim)
    for kind, name in itertools.product(("run", "export"), ("encode_queries", "encode_documents")):
        with pytest.raises(sc.InputError, match=r"no vectors\. Use search or score, or train with"):
            getattr(models["lexical", kind], name)(["a"])


def test_search_in_documents_given_in_memory(one, parts, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    everything = parts["documents"]
    some = {id_: text for id_, text in everything.items() if int(id_) % 2}
    found = one.search(QUERIES[:2], 20, documents=some)
    assert all(hit.id in some and hit.text == some[hit.id] for hits in found for hit in hits)
    assert all(hits for hits in found)
    assert [*tmp_path.iterdir()] == []
    (nothing,) = one.search(["zebra"], documents=some)
    assert (nothing, nothing.reading.unknown) == ([], ("zebra",))
    assert pickle.loads(pickle.dumps(nothing)).reading == nothing.reading
    of_training = one.search(QUERIES[:2], tiny_set.DOCUMENTS, documents=everything)
    assert facts(of_training) == facts(one.search(QUERIES[:2], tiny_set.DOCUMENTS))
    of_list = one.search(QUERIES[:1], 3, documents=(listed := list(some.values())))
    assert {hit.id for hit in of_list[0]} <= {str(place) for place in range(len(some))}
    monkeypatch.setattr(collections, "index_in_memory", None)  # it is indexed once for all
    assert one.search(QUERIES[:1], 3, documents=listed, retriever=one.retriever) == of_list


def test_documents_have_the_columns_and_the_language_of_training():
    like = DataSettings(columns="text=body", document_language="fr")
    source = collections.documents_of([{"id": 1, "body": "mot"}], None, like)
    assert list(source.documents()) == [Text("1", "", "mot", "fr")]


def test_an_index_on_disk_is_used_and_checked(models, tmp_path):
    run, export = models["hybrid", "run"], models["hybrid", "export"]
    index = run.build_index(tmp_path / "index")
    expected = facts(run.search(QUERIES, 3))
    assert facts(run.search(QUERIES, 3, index=index)) == expected
    assert facts(export.search(QUERIES, 3, index=index, filter=None)) == expected
    assert facts(export.search(QUERIES, 3)) == expected
    small = run.build_index(tmp_path / "small", {"a": "motb"})
    assert [hit.id for hit in run.search(["wordb"], index=small)[0]] == ["a"]
    run.build_index(small, {"a": "motb", "b": "motb"}, update=True)
    assert {hit.id for hit in run.search(["wordb"], index=small)[0]} == {"a", "b"}
    with pytest.raises(sc.InputError, match="come from different training runs"):
        models["dense", "run"].search(QUERIES, index=index)
    for half in ("dense", "lexical"):
        assert len(run.search(QUERIES, 3, retriever=half)) == len(QUERIES)


@cases("role", "query", "document")
def test_explanations_add_up_to_the_score(one, role):
    query, document = "wordb worde", " ".join(word("mot", one) for one in tiny_set.words_of(1))
    explanation = one.explain(query, document, role)
    (score,) = one.score([query], [document])
    parts = [word.share for word in explanation.words]
    total = sum(parts) + explanation.remainder + explanation.towers + explanation.feedback
    assert [explanation.score, total] == pytest.approx([score, score], rel=1e-5, abs=1e-6)


@cases("grade", 2, 1)  # the highest of binary judgments is another
def test_queries_that_were_trained_on_are_counted(models, parts, caplog, grade):
    judged = [(id_, id_, grade) for id_ in parts["queries"]]
    given = {name: parts[name] for name in ("queries", "documents")}
    found = models["dense", "run"].evaluate(**given, judgments=judged)
    assert found.counts["MRR_mr"] == found.counts["full/MRR@10"] == len(judged)
    # Of 20 queries, 12 are in the training split; several queries have the same words.
    assert "of the 20 test queries" in caplog.text


@cases(
    "call, message",
    (lambda m: m.search("wordb"), "queries='wordb': it is a single string"),
    (lambda m: m.search(["a"], 0), "k: it is 0, an int"),
    (lambda m: m.search(["a"], documents=["b"], index="c"), "index is given too"),
    (lambda m: m.search(["a"], retriever="bm25"), "there is no such retriever"),
    (lambda m: m.score(["a"], ["b", "c"]), "there are 1 queries and 2 documents"),
    (lambda m: m.explain("a", "b", "queries"), "no such role. Give query or d"),
    (lambda m: m.evaluate(split="tset"), "there is no such split"),
    (lambda m: sc.compare(m, "other", split="cv"), "no such split. Give train, validation"),
    (lambda m: m.evaluate(queries=["a"]), "documents, judgments are missing"),
    (lambda m: m.evaluate(3), "data: it is an int"),
    (lambda m: m.build_index("x", update=True, overwrite=True), "^overwrite, update: the one"),
    (lambda m: sc.load("nowhere"), "there is no such directory"),
    (lambda m: sc.load(m.path.parent), "there is neither a run"),
    (lambda m: sc.load(3), "^load: path=3: it is an int. Give a path"),
    (lambda m: sc.train(output_dir=b"x"), "^train: output_dir=b'x': it is a bytes. Give a path"),
    (lambda m: m.search(["a"], index=5), "^search: index=5: it is an int"),
    (lambda m: m.search(["a"], index="nope"), "nope: there is no such directory. Check the path"),
    (lambda m: m.build_index(None), "^build_index: directory=None: it is None"),
    (lambda m: m.export(b"x"), "^export: directory=b'x': it is a bytes"),
)
def test_wrong_arguments_say_what_to_write(models, call, message):
    with pytest.raises(sc.InputError, match=message):
        call(models["hybrid", "run"])


def test_an_export_is_written_by_the_run_alone(models, tmp_path, no_child_process):
    for number in (1, 2):
        path = models["dense", "run"].export(tmp_path / "export", depth=2)
        newest, first = sc.load(path), pickle.loads(pickle.dumps(sc.load(path, version=1)))
        versions = [model._models.manifest.version for model in (newest, first)]
        assert versions == [number, 1]
    assert first.retriever == "dense"
    with pytest.raises(sc.InputError, match="there is no complete version 3"):
        sc.load(path, version=3)
    with pytest.raises(sc.InputError, match=r"it is an export already\. Copy"):
        models["dense", "export"].export(tmp_path / "again")
    with pytest.raises(sc.InputError, match="it is an export"):
        _ = models["dense", "export"].metrics


@pytest.mark.slow
def test_mteb_gets_the_tower_of_each_kind_of_text_and_its_similarities(models, monkeypatch):
    texts = ["wordb", "wordc wordd", "worde"]
    batches = [{"text": texts[:2], "id": ["a", "b"]}, {"text": texts[2:], "id": ["c"]}]
    task = {"task_metadata": object(), "hf_split": "test", "hf_subset": "en-fr", "batch_size": 32}
    model = models["dense", "run"]
    encoder = sc.MtebEncoder(model)
    queries = encoder.encode(batches, prompt_type=PromptType.query, **task)
    documents = encoder.encode(batches, prompt_type=PromptType.document, **task)
    np.testing.assert_array_equal(queries, model.encode_queries(texts))
    np.testing.assert_array_equal(documents, model.encode_documents(texts))
    np.testing.assert_array_equal(encoder.encode(texts, prompt_type="passage"), documents)
    every, expected = encoder.similarity(queries, documents), model.score(texts, texts)
    assert every.shape == (3, 3)
    np.testing.assert_allclose(np.diag(every), expected, atol=1e-6)
    np.testing.assert_allclose(encoder.similarity_pairwise(queries, documents), expected, atol=1e-6)
    np.testing.assert_allclose(encoder.similarity(queries[1], documents), every[1:2], atol=1e-6)
    with pytest.raises(sc.InputError, match="does not say which of them its texts are"):
        encoder.encode(batches, prompt_type=None, **task)
    with pytest.raises(sc.InputError, match="a batch has image, and no 'text'"):
        encoder.encode([{"image": [1]}], prompt_type=PromptType.query, **task)
    with pytest.raises(sc.InputError, match="has no towers"):
        sc.MtebEncoder(models["lexical", "run"])
    monkeypatch.setitem(sys.modules, "mteb.models.model_meta", None)
    with pytest.raises(sc.InputError, match=r"mteb is missing.*pip install 'mteb>=2'"):
        _ = encoder.mteb_model_meta
