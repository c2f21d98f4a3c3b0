"""Exports of lexical and hybrid runs: an export directory alone ranks as the run does."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from tests.published import DEPTH, encode, grades_of_hits, undesired_operations
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
from tf_smoothclir.publishing.exported_lexical import ExportedLexical, LexicalParts, load_lexical
from tf_smoothclir.publishing.exported_models import load_exported_models
from tf_smoothclir.publishing.verification import Verifier
from tf_smoothclir.publishing.version_writer import PairInfo, publish_version
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text.vocabulary import write_vocabulary
from tf_smoothclir.training.retrievers import load_cut_points, load_models
from tf_smoothclir.training.train import tokenized_set_of
from tf_smoothclir.utils.digests import with_own_digest
from tf_smoothclir.utils.errors import InputError

NAMES = ("lexical", "hybrid")
PARTS = {
    "dense": ("query", "document"),
    "lexical": ("lexical",),
    "hybrid": ("query", "document", "lexical"),
}


@pytest.fixture(scope="module")
def exports(ranking_exports):
    return ranking_exports


@pytest.fixture
def copy(exports, tmp_path):
    """`copy(name)` is an export that may be changed."""
    return lambda name: shutil.copytree(exports[name], tmp_path / name)


@pytest.mark.parametrize("name", PARTS)
def test_an_export_has_the_parts_that_rank(exports, name):
    there = {role for role in DIRECTORIES if exported_versions(exports[name], role) == [1]}
    assert there == {*PARTS[name], "search"}
    models = load_exported_models(exports[name])
    assert models.retriever == name
    assert models.manifest.parts == PARTS[name]
    assert set(models.towers) == set(PARTS[name]) - {"lexical"}
    assert (models.manifest.dim > 0) == (models.manifest.epsilon > 0) == bool(models.towers)


@pytest.mark.parametrize("name", NAMES)
def test_the_loaded_model_is_that_of_the_run(exports, ranking_runs, name):
    expected, (found, manifest) = load_models(ranking_runs[name]), load_lexical(exports[name])
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
        vectors = {
            role: encode(models.towers[role].encode, texts)
            for role, texts in (("query", queries), ("document", documents))
        }
        rows = parts.fusion.rows(
            rows, lambda chosen: vectors["query"][chosen] @ vectors["document"].T
        )
    feedback = Feedback.of(tf_idf(read.matrix()), parts.feedback) if parts.feedback else None
    ranker = RowRetriever(rows, np.arange(len(documents)), feedback)
    return ranker.scores(np.arange(len(queries)))


@pytest.mark.parametrize("name", NAMES)
def test_an_export_scores_as_its_run(exports, ranking_runs, name):
    run = ranking_runs[name]
    source = source_of(run.settings().data)
    queries, documents = (
        [text.text for text in texts] for texts in (source.queries(), source.documents())
    )
    tokenized_set = tokenized_set_of(source, run.settings(), run, SPLITS)
    retriever = load_models(run).retrievers(tokenized_set)[name]
    expected = retriever.scores(np.arange(len(queries)))
    found = scores_by_the_export(load_exported_models(exports[name]), queries, documents)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert np.ptp(expected) > 0.1


@pytest.mark.parametrize("name", NAMES)
def test_the_search_model_ranks_as_the_run(exports, ranking_runs, name):
    run = ranking_runs[name]
    source = source_of(run.settings().data)
    tokenized_set = tokenized_set_of(source, run.settings(), run, SPLITS)
    models, ids = load_models(run), tokenized_set.retrieval_set.document_ids
    scores = models.retrievers(tokenized_set)[name].scores(np.arange(20))
    model, manifest = load_part(exports[name], "search")
    queries = tf.constant([text.text for text in source.queries()])
    found = {k: v.numpy() for k, v in model.signatures["serving_default"](text=queries).items()}
    rows = np.vectorize(lambda id_: ids.index(id_.decode()))(found["ids"])
    ours = np.take_along_axis(scores, rows, axis=1)
    np.testing.assert_allclose(found["scores"], ours, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ours, -np.sort(-scores)[:, :DEPTH], rtol=1e-5, atol=1e-5)
    cut_points = load_cut_points(run, models)[name]
    assert manifest.cut_points == cut_points
    own = np.float32(cut_points.scores), np.float32(cut_points.shares)
    expected = [grades_of_hits(row, own) for row in found["scores"]]
    np.testing.assert_array_equal(found["grades"], expected)


@pytest.mark.parametrize("role", ["search", "query"])
def test_all_parts_have_core_operations_only(exports, role):
    assert not undesired_operations(load_part(exports["hybrid"], role)[0])


@pytest.mark.parametrize("missing", ["query", "document", "lexical"])
@pytest.mark.parametrize("asked", ["query", "lexical", "all"])
def test_a_version_without_one_of_its_parts_is_refused(copy, missing, asked):
    path = copy("hybrid")
    shutil.rmtree(part_dir(path, missing))
    load = {
        "query": lambda: load_tower(path, "query"),
        "lexical": lambda: load_lexical(path),
        "all": lambda: load_exported_models(path),
    }[asked]
    with pytest.raises(InputError, match=r"there is no .*Write all parts with smoothclir-export"):
        load()


def test_an_incomplete_latest_version_is_passed_over(copy, ranking_runs, monkeypatch):
    path = copy("hybrid")
    monkeypatch.setattr(Verifier, "compare", lambda verifier: None)
    assert export_run(ranking_runs["hybrid"], path, search_model=False) == 2
    assert load_exported_models(path).manifest.version == 2
    shutil.rmtree(part_dir(path, "query") / "2")
    assert load_exported_models(path).manifest.version == 1
    assert load_lexical(path)[1].version == 1
    with pytest.raises(InputError, match="there is no complete version 2"):
        load_exported_models(path, 2)


def test_the_latest_version_may_be_of_another_retriever(copy, ranking_runs, monkeypatch):
    path = copy("dense")
    monkeypatch.setattr(Verifier, "compare", lambda verifier: None)
    assert export_run(ranking_runs["lexical"], path, search_model=False) == 2
    assert load_exported_models(path).retriever == "lexical"
    assert load_exported_models(path, 1).retriever == "dense"
    assert load_tower(path, "query").manifest.version == 1


def test_narrow_tables_without_towers_are_refused(ranking_runs, tmp_path):
    with pytest.raises(InputError, match=r"--table_type=int8: .* has no towers"):
        export_run(ranking_runs["lexical"], tmp_path, table_type="int8")


def test_a_lexical_export_has_no_tower(exports):
    with pytest.raises(InputError, match=r"there is no query tower\. Write all parts"):
        load_tower(exports["lexical"], "query")


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


@pytest.mark.parametrize("role", ["query", "lexical"])
def test_parts_of_two_runs_are_refused_together(copy, role):
    path = copy("hybrid")
    file = part_dir(path, "lexical") / "1" / "manifest.json"
    manifest = json.loads(file.read_text())
    file.write_text(json.dumps(with_own_digest({**manifest, "pair_id": "0" * 64})))
    with pytest.raises(InputError, match="they come from different training runs"):
        load_exported_models(path)
    with pytest.raises(InputError, match="they come from different training runs"):
        load_part(path, "query")


@pytest.fixture
def parts_of_hybrid(exports):
    return load_lexical(exports["hybrid"])[0]


def vocabulary(tmp_path, parts):
    """Another vocabulary of the same size."""
    path = shutil.copytree(parts.vocabulary_dir, tmp_path / "vocabulary")
    tokens = (path / "query.txt").read_text().split("\n")[:-1]
    write_vocabulary(path / "query.txt", [*tokens[:-1], "another"])
    return path


CHANGES = {
    "table": lambda parts, _: {
        "model": dataclasses.replace(parts.model, table=parts.model.table * 0.5)
    },
    "weights": lambda parts, _: {
        "model": dataclasses.replace(parts.model, weights=parts.model.weights + 1)
    },
    "feedback": lambda parts, _: {"model": dataclasses.replace(parts.model, feedback=3.5)},
    "vocabulary": lambda parts, path: {"vocabulary_dir": vocabulary(path, parts)},
    "lengths": lambda parts, _: {"text": TextSettings(max_query_tokens=7)},
    "fusion": lambda parts, _: {"fusion": dataclasses.replace(parts.fusion, share=0.123)},
    "no fusion": lambda parts, _: {"fusion": None},
}


def pair_id(parts, path, cut_point=0.3, threshold=0.7):
    cut_points = CutPoints((0.2, cut_point), (0.5, 0.9), (0.2, 0.7))
    info = PairInfo(0, 0.0, (0.2, threshold), DataSettings(), cut_points)
    texts = {"query": [b"a"], "document": [b"b"]}
    version = publish_version({"lexical": ExportedLexical(parts)}, path, info, texts)
    return load_lexical(path, version)[1].pair_id


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_determines_the_scores_is_in_the_pair_id(
    parts_of_hybrid, tmp_path, change, no_child_process
):
    before = pair_id(parts_of_hybrid, tmp_path / "export")
    changed = dataclasses.replace(parts_of_hybrid, **CHANGES[change](parts_of_hybrid, tmp_path))
    assert pair_id(changed, tmp_path / "export") != before


def test_thresholds_and_cut_points_are_in_the_pair_id_and_seconds_are_not(
    parts_of_hybrid, tmp_path, no_child_process
):
    before = pair_id(parts_of_hybrid, tmp_path)
    model = dataclasses.replace(parts_of_hybrid.model, seconds=77.0)
    fusion = dataclasses.replace(parts_of_hybrid.fusion, seconds=77.0)
    slower = LexicalParts(model, parts_of_hybrid.vocabulary_dir, parts_of_hybrid.text, fusion)
    assert pair_id(slower, tmp_path) == before
    assert pair_id(slower, tmp_path, cut_point=0.4) != before
    assert pair_id(slower, tmp_path, threshold=0.6) != before


def test_words_are_read_by_the_vocabularies_of_the_export(parts_of_hybrid):
    words = (parts_of_hybrid.vocabulary_dir / "query.txt").read_text().split("\n")
    ids = parts_of_hybrid.query_reader(tf.constant([f"{words[2].upper()} {words[3]}"])).ids
    assert ids.numpy().tolist() == [2, 3]
