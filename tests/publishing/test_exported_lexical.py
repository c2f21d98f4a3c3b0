"""Exports of lexical and hybrid runs, and of one half: a directory alone ranks as the run does."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from tests.published import DEPTH, NoVerifier, encode, grades_of_hits
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.lexical.feedback import Feedback, tf_idf
from tf_smoothclir.lexical.retriever import RowRetriever
from tf_smoothclir.lexical.score_rows import lexical_rows
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.publishing.export_directory import (
    DIRECTORIES,
    exported_versions,
    load_part,
    load_tower,
    part_dir,
)
from tf_smoothclir.publishing.exported_lexical import ExportedLexical, load_lexical
from tf_smoothclir.publishing.exported_models import load_exported_models
from tf_smoothclir.publishing.model_card import model_card_path
from tf_smoothclir.publishing.version_writer import PairInfo, publish_version
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text.vocabulary import write_vocabulary
from tf_smoothclir.training.retrievers import load_cut_points, load_models
from tf_smoothclir.training.train import tokenized_set_of
from tf_smoothclir.utils.digests import with_own_digest
from tf_smoothclir.utils.errors import InputError

PARTS = {
    "dense": ("query", "document"),
    "lexical": ("lexical",),
    "hybrid": ("query", "document", "lexical"),
}


@pytest.fixture
def copy(ranking_exports, tmp_path):
    """`copy(name)` is an export that may be changed."""
    return lambda name: shutil.copytree(ranking_exports[name], tmp_path / name)


@pytest.fixture(scope="module")
def halves(ranking_runs, tmp_path_factory):
    """Name of a half -> the export of that half of the hybrid run alone; read-only."""
    path = tmp_path_factory.mktemp("halves")
    for name in ("dense", "lexical"):
        options = {"retriever": name, "search_depth": DEPTH, "verifier": NoVerifier()}
        export_run(ranking_runs["hybrid"], path / name, **options)
        assert "a part of the run" in model_card_path(path / name, 1).read_text("utf-8")
    return {name: path / name for name in ("dense", "lexical")}


def check_parts(path, name):
    there = {role for role in DIRECTORIES if exported_versions(path, role) == [1]}
    assert there == {*PARTS[name], "search"}
    models = load_exported_models(path)
    assert models.retriever == name
    assert models.manifest.parts == PARTS[name]
    assert set(models.towers) == set(PARTS[name]) - {"lexical"}
    assert (models.manifest.dim > 0) == (models.manifest.epsilon > 0) == bool(models.towers)


def test_an_export_has_the_parts_that_rank(ranking_exports, halves):
    for name, path in (*ranking_exports.items(), *halves.items()):
        check_parts(path, name)


@pytest.mark.parametrize("name", ["lexical", "hybrid"])
def test_the_loaded_model_is_that_of_the_run(ranking_exports, ranking_runs, name):
    expected = load_models(ranking_runs[name])
    found, manifest = load_lexical(ranking_exports[name])
    assert manifest.role == "lexical"
    np.testing.assert_array_equal(found.model.table.toarray(), expected.lexical.table.toarray())
    for array in ("background", "weights"):
        np.testing.assert_array_equal(getattr(found.model, array), getattr(expected.lexical, array))
    for value in ("fields", "feedback", "psq"):
        assert getattr(found.model, value) == getattr(expected.lexical, value)
    assert found.text == ranking_runs[name].settings().text
    assert found.fusion == (expected.fusion and dataclasses.replace(expected.fusion, seconds=0.0))


def scores_by_the_export(models, queries, documents):
    """Ranks with nothing of the run: `[queries, documents]`."""
    parts = models.lexical
    read = parts.document_reader.words(documents)
    impacts = parts.model.impacts(read, parts.spelling)
    rows = lexical_rows(parts.query_reader.words(queries).matrix(), impacts)
    if parts.fusion is not None:
        asked = encode(models.towers["query"].encode, queries)
        vectors = encode(models.towers["document"].encode, documents)
        rows = parts.fusion.rows(rows, lambda chosen: asked[chosen] @ vectors.T)
    feedback = Feedback.of(tf_idf(read.matrix()), parts.feedback) if parts.feedback else None
    ranker = RowRetriever(rows, np.arange(len(documents)), feedback)
    return ranker.scores(np.arange(len(queries)))


@pytest.mark.parametrize(
    ("run_name", "name"),
    [("lexical", "lexical"), ("hybrid", "hybrid"), ("hybrid", "dense"), ("hybrid", "lexical")],
)
def test_an_export_and_its_search_model_rank_as_the_run(
    ranking_exports, halves, ranking_runs, run_name, name
):
    run, path = ranking_runs[run_name], (ranking_exports if run_name == name else halves)[name]
    source = source_of(run.settings().data)
    queries = [text.text for text in source.queries()]
    tokenized_set = tokenized_set_of(source, run.settings(), run, SPLITS)
    run_models, ids = load_models(run), tokenized_set.retrieval_set.document_ids
    scores = run_models.retrievers(tokenized_set)[name].scores(np.arange(len(queries)))
    if run_name == name:
        documents = [text.text for text in source.documents()]
        own = scores_by_the_export(load_exported_models(path), queries, documents)
        np.testing.assert_allclose(own, scores, rtol=1e-5, atol=1e-5)
        assert np.ptp(scores) > 0.1
    model, manifest = load_part(path, "search")
    found = model.signatures["serving_default"](text=tf.constant(queries))
    found = {name: value.numpy() for name, value in found.items()}
    rows = np.vectorize(lambda id_: ids.index(id_.decode()))(found["ids"])
    ours = np.take_along_axis(scores, rows, axis=1)
    np.testing.assert_allclose(found["scores"], ours, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ours, -np.sort(-scores)[:, :DEPTH], rtol=1e-5, atol=1e-5)
    cut_points = load_cut_points(run, run_models)[name]
    assert manifest.cut_points == cut_points
    own = np.float32(cut_points.scores), np.float32(cut_points.shares)
    expected = [grades_of_hits(row, own) for row in found["scores"]]
    np.testing.assert_array_equal(found["grades"], expected)


def load_query_tower(path):
    return load_part(path, "query")


@pytest.mark.parametrize("missing", ["query", "document", "lexical"])
def test_a_version_without_one_of_its_parts_is_refused(copy, missing):
    path = copy("hybrid")
    shutil.rmtree(part_dir(path, missing))
    for load in (load_query_tower, load_lexical, load_exported_models):
        with pytest.raises(InputError, match=r"there is no .*Write all parts with smoothclir-exp"):
            load(path)


@pytest.mark.usefixtures("no_child_process")
def test_the_latest_complete_version_counts_whatever_its_retriever(copy, ranking_runs):
    path = copy("hybrid")
    assert export_run(ranking_runs["hybrid"], path, search_model=False) == 2
    assert load_exported_models(path).manifest.version == 2
    shutil.rmtree(part_dir(path, "query") / "2")
    assert load_exported_models(path).manifest.version == 1
    assert load_lexical(path)[1].version == 1
    with pytest.raises(InputError, match="there is no complete version 2"):
        load_exported_models(path, 2)
    assert export_run(ranking_runs["lexical"], path, search_model=False) == 3
    assert load_exported_models(path).retriever == "lexical"
    assert load_exported_models(path, 1).retriever == "hybrid"
    assert load_tower(path, "query").manifest.version == 1


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lexical", {"table_type": "int8"}, r"--table_type=int8: .* has no towers"),
        ("lexical", {"vector_type": "int8"}, r"--vector_type=int8: .* no towers.*Leave it out"),
        ("dense", {"vector_type": "int8", "search_model": False}, r"=int8: .*--nosearch_model"),
        ("lexical", {"retriever": "dense"}, "--retriever=dense: the run was trained with"),
        ("hybrid", {"retriever": "reranked"}, "--retriever=reranked: the run was trained without"),
    ],
)
def test_what_a_run_does_not_have_is_refused(ranking_runs, tmp_path, name, options, message):
    with pytest.raises(InputError, match=message):
        export_run(ranking_runs[name], tmp_path, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name",
    ["model/lexical.json", "model/lexical.npz", "vocabulary/query.txt", "text.json", "hybrid.json"],
)
def test_a_changed_file_is_named(copy, name):
    path = copy("hybrid")
    file = part_dir(path, "lexical") / "1" / name
    file.write_bytes(file.read_bytes() + b" ")
    with pytest.raises(InputError, match=f"{name}: the file is not the one that was written"):
        load_lexical(path)


def test_parts_of_two_runs_are_refused_together(copy):
    path = copy("hybrid")
    file = part_dir(path, "lexical") / "1" / "manifest.json"
    manifest = json.loads(file.read_text())
    file.write_text(json.dumps(with_own_digest({**manifest, "pair_id": "0" * 64})))
    for load in (load_query_tower, load_exported_models):
        with pytest.raises(InputError, match="they come from different training runs"):
            load(path)


def pair_id(parts, path, cut_point=0.3, threshold=0.7):
    cut_points = CutPoints((0.2, cut_point), (0.5, 0.9), (0.2, 0.7))
    info = PairInfo(0, 0.0, (0.2, threshold), DataSettings(), cut_points)
    texts = {"query": [b"a"], "document": [b"b"]}
    version = publish_version({"lexical": ExportedLexical(parts)}, path, info, texts)
    return load_lexical(path, version)[1].pair_id


@pytest.mark.usefixtures("no_child_process")
def test_whatever_determines_the_scores_is_in_the_pair_id_and_seconds_are_not(
    ranking_exports, tmp_path
):
    parts = load_lexical(ranking_exports["hybrid"])[0]
    vocabulary = shutil.copytree(parts.vocabulary_dir, tmp_path / "vocabulary")
    tokens = (vocabulary / "query.txt").read_text().split("\n")[:-1]
    write_vocabulary(vocabulary / "query.txt", [*tokens[:-1], "another"])
    of_model = {
        "table": parts.model.table * 0.5,
        "weights": parts.model.weights + 1,
        "feedback": 3.5,
        "length_power": -0.123,
        "mean_length": 7.0,
    }
    changes = [{"model": dataclasses.replace(parts.model, **{k: v})} for k, v in of_model.items()]
    changes += [
        {"vocabulary_dir": vocabulary},
        {"text": TextSettings(max_query_tokens=7)},
        {"fusion": dataclasses.replace(parts.fusion, share=0.123)},
        {"fusion": None},
    ]
    path = tmp_path / "export"
    before = pair_id(parts, path)
    found = [pair_id(dataclasses.replace(parts, **change), path) for change in changes]
    found += [pair_id(parts, path, cut_point=0.4), pair_id(parts, path, threshold=0.6)]
    assert len({before, *found}) == 1 + len(found)
    model, fusion = (dataclasses.replace(one, seconds=77.0) for one in (parts.model, parts.fusion))
    assert pair_id(dataclasses.replace(parts, model=model, fusion=fusion), path) == before
