"""The index: ranks as brute force does, follows its collection and towers, refuses what changed."""

import dataclasses
import shutil

import numpy as np
import pytest
import tensorflow as tf

from tests.oracles import maths
from tests.serving.conftest import EPSILON
from tests.training.test_run_directory import snapshot
from tests.training.tiny_set import DOCUMENTS
from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.errors import InputError
from tf_smoothclir.serving import index as index_module
from tf_smoothclir.serving.index import Index, open_searcher
from tf_smoothclir.settings import DataSettings
from tf_smoothclir.text.vocabulary import TextEncoder
from tf_smoothclir.training.train import load_model, source_of

QUERY = "word1 word4 word2"


@pytest.fixture(scope="module")
def index_dir(export_dir, tmp_path_factory):
    """The index of the collection; not to be changed."""
    path = tmp_path_factory.mktemp("index") / "index"
    open_searcher(export_dir, path, the_same)
    return path


@pytest.fixture
def own_index(index_dir, tmp_path):
    """A copy of the index that may be changed."""
    return shutil.copytree(index_dir, tmp_path / "index")


@pytest.fixture
def builds(monkeypatch):
    """A list that grows with each index that is built."""
    built, build = [], index_module._build

    def counted(directory, *arguments):
        built.append(directory)
        build(directory, *arguments)

    monkeypatch.setattr(index_module, "_build", counted)
    return built


def the_same(trained_on):
    return DataSettings(**trained_on)


def raw_vectors(run, role, texts):
    """Outputs of a tower, before any normalisation."""
    encoder = TextEncoder(run.vocabulary / f"{role}.txt", 200)
    return getattr(load_model(run), f"{role}_tower")(encoder(tf.constant(texts))).numpy()


def brute_force(run, query):
    """Documents by falling SCS of the raw towers; equal scores by the hash of the id."""
    documents = list(source_of(run.settings().data).documents())
    vectors = raw_vectors(run, "document", [document.text for document in documents])
    (vector,) = raw_vectors(run, "query", [query])
    scores = [np.float32(maths.smooth_cosine(vector, other, EPSILON)) for other in vectors]
    hashes = hash_ids([document.id for document in documents])
    order = sorted(range(len(documents)), key=lambda i: (-scores[i].round(6), hashes[i]))
    return [(documents[i], scores[i]) for i in order]


@pytest.mark.parametrize("query", [QUERY, "word8", "word3 unheard"])
def test_ranks_as_brute_force_over_the_raw_model(export_dir, index_dir, tiny_run, query):
    searcher = open_searcher(export_dir, index_dir, the_same)
    (results,) = searcher.search([query], DOCUMENTS)
    expected = brute_force(tiny_run, query)
    assert [r.rank for r in results] == list(range(1, DOCUMENTS + 1))
    np.testing.assert_allclose([r.score for r in results], [s for _, s in expected], atol=1e-6)
    assert [(r.id, r.title, r.text) for r in results] == [tuple(d) for d, _ in expected]


def test_ties_are_broken_by_the_hash_of_the_id(export_dir, index_dir):
    # An empty query is the zero vector: all scores are 0.
    (results,) = open_searcher(export_dir, index_dir, the_same).search([""], DOCUMENTS)
    ids = [str(number) for number in range(DOCUMENTS)]
    expected = [ids[position] for position in np.argsort(hash_ids(ids))]
    assert {result.score for result in results} == {0.0}
    assert [result.id for result in results] == expected
    assert expected != ids


def test_grade_is_the_number_of_thresholds_below_the_score(export_dir, index_dir):
    searcher = open_searcher(export_dir, index_dir, the_same)
    found = searcher.search([f"word{number}" for number in range(9)], DOCUMENTS)
    grades = {(result.score > 0.2) + (result.score > 0.7) for row in found for result in row}
    assert len(grades) > 1
    for row in found:
        for result in row:
            assert result.grade == (result.score > 0.2) + (result.score > 0.7)


def test_queries_of_a_batch_are_answered_as_alone(export_dir, index_dir):
    searcher = open_searcher(export_dir, index_dir, the_same)
    queries = [QUERY, "", "word8"]
    together = searcher.search(queries, 5)
    for query, results in zip(queries, together):
        (alone,) = searcher.search([query], 5)
        assert [r.id for r in results] == [r.id for r in alone]


@pytest.mark.parametrize("depth", [1, DOCUMENTS, DOCUMENTS + 1, 10_000])
def test_depth_beyond_the_collection_gives_all_of_it(export_dir, index_dir, depth):
    (results,) = open_searcher(export_dir, index_dir, the_same).search([QUERY], depth)
    assert len(results) == min(depth, DOCUMENTS)
    assert len({result.id for result in results}) == len(results)


def test_index_that_is_there_is_used_as_it_is(export_dir, index_dir, builds):
    before = snapshot(index_dir)
    open_searcher(export_dir, index_dir, the_same)
    assert builds == []
    assert snapshot(index_dir) == before
    assert len(Index(index_dir)) == DOCUMENTS


def test_changed_collection_is_indexed_anew(export_dir, own_index, tiny_run, tmp_path, builds):
    data = shutil.copytree(tiny_run.settings().data.data_dir, tmp_path / "data")
    with open(data / "wiki_fr.documents", "a", encoding="utf-8") as file:
        file.write(f"{DOCUMENTS}\tNouveau\tmot1 mot1\n")

    def changed(trained_on):
        return dataclasses.replace(the_same(trained_on), data_dir=str(data))

    searcher = open_searcher(export_dir, own_index, changed)
    assert builds == [own_index]
    (results,) = searcher.search([QUERY], 1000)
    assert len(results) == DOCUMENTS + 1
    open_searcher(export_dir, own_index, changed)
    assert len(builds) == 1


def test_other_towers_index_anew(export_dir, own_index, builds, monkeypatch):
    # As after another export: the manifests of both towers have another pair_id.
    load_tower = index_module.load_tower

    def of_another_run(*arguments):
        encode, manifest = load_tower(*arguments)
        return encode, {**manifest, "pair_id": "f" * 64}

    monkeypatch.setattr(index_module, "load_tower", of_another_run)
    open_searcher(export_dir, own_index, the_same)
    assert builds == [own_index]
    assert Index(own_index).manifest["pair_id"] == "f" * 64


def test_towers_of_two_runs_are_refused_before_anything_is_indexed(
    export_dir, tmp_path, monkeypatch
):
    load_tower = index_module.load_tower

    def mixed(path, role):
        encode, manifest = load_tower(path, role)
        return encode, {**manifest, "pair_id": role}

    monkeypatch.setattr(index_module, "load_tower", mixed)
    with pytest.raises(InputError, match="different training runs"):
        open_searcher(export_dir, tmp_path / "index", the_same)
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize("name", ["vectors", "text.values", "id.offsets"])
def test_tampered_file_is_named(export_dir, own_index, name):
    content = bytearray((own_index / name).read_bytes())
    content[0] ^= 1
    (own_index / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name}: the file is not the one that was written"):
        open_searcher(export_dir, own_index, the_same)


def test_missing_file_is_named(export_dir, own_index):
    (own_index / "vectors").unlink()
    with pytest.raises(InputError, match="vectors: the file is not"):
        open_searcher(export_dir, own_index, the_same)


def test_directory_that_is_no_index_is_refused_and_not_deleted(export_dir, tmp_path, builds):
    (tmp_path / "thesis.tex").write_text("years of work")
    before = snapshot(tmp_path)
    with pytest.raises(
        InputError, match=r"manifest\.json: this is no manifest of the role 'index'"
    ):
        open_searcher(export_dir, tmp_path, the_same)
    assert snapshot(tmp_path) == before


def test_directory_of_a_tower_is_refused_and_not_deleted(export_dir, tmp_path, builds):
    # It has a manifest.json too, and may be of another pair.
    tower = shutil.copytree(export_dir / "query_tower" / "1", tmp_path / "tower")
    manifest = tower / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"pair_id": "', '"pair_id": "0'))
    before = snapshot(tower)
    with pytest.raises(InputError, match="no manifest of the role 'index'"):
        open_searcher(export_dir, tower, the_same)
    assert snapshot(tower) == before


def test_failure_while_indexing_leaves_nothing_behind(export_dir, tmp_path, monkeypatch):
    def fail(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(index_module, "_write", fail)
    with pytest.raises(KeyboardInterrupt):
        open_searcher(export_dir, tmp_path / "index", the_same)
    assert list(tmp_path.iterdir()) == []
