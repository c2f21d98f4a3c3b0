"""The index on disk: ranks exactly, and refuses damaged files and foreign vectors."""

import json

import numpy as np
import pytest

from tests.index.helpers import (
    DIM,
    brute_force,
    build,
    document,
    found_by,
    queries,
    vector_of,
)
from tests.training.test_run_directory import snapshot
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.vector_index import IndexSettings
from tf_smoothclir.utils.errors import InputError

TEXTS = [document(number) for number in range(300)]
HNSW = IndexSettings("hnsw")


@pytest.fixture
def index_dir(tmp_path):
    build(tmp_path / "index", TEXTS)
    return tmp_path / "index"


@pytest.mark.parametrize("depth", [1, 7, 100, len(TEXTS), len(TEXTS) + 1])
def test_flat_ranks_as_brute_force(index_dir, depth):
    index = DocumentIndex(index_dir)
    for query in queries(5):
        assert found_by(index, query, depth) == brute_force(TEXTS, query, depth)


@pytest.mark.parametrize("settings", [None, HNSW])
def test_documents_come_with_title_text_and_grade(tmp_path, settings):
    build(tmp_path / "index", TEXTS, settings=settings)
    by_id = {text.id: text for text in TEXTS}
    grades = set()
    for row in DocumentIndex(tmp_path / "index").search(
        queries(20) * 2, 200
    ):  # scores up to 1 and more
        for result in row:
            assert (result.id, result.title, result.text) == by_id[result.id]
            assert result.grade == (result.score > 0.2) + (result.score > 0.7)
            grades.add(result.grade)
    assert grades == {0, 1, 2}


def test_copies_of_a_text_are_ordered_by_the_hash_of_the_id(tmp_path):
    # More copies than FAISS is asked for, so the first ones by hash are not among its candidates.
    texts = [document(number, "copy" if number % 3 else None) for number in range(300)]
    build(tmp_path / "index", texts)
    index = DocumentIndex(tmp_path / "index")
    for query in [vector_of("copy"), *queries(3)]:
        for depth in (1, 10, 205):
            assert found_by(index, query, depth) == brute_force(texts, query, depth)


@pytest.mark.parametrize("settings", [None, HNSW])
def test_zero_query_gives_documents_by_the_hash_of_the_id(tmp_path, settings):
    build(tmp_path / "index", TEXTS, settings=settings)
    zero = np.zeros(DIM, np.float32)
    found = found_by(DocumentIndex(tmp_path / "index"), zero, 10)
    assert found == brute_force(TEXTS, zero, 10)


def test_order_of_the_collection_does_not_matter(tmp_path):
    for name, texts in (("there", TEXTS), ("back", TEXTS[::-1])):
        build(tmp_path / name, texts)
    for query in queries(5):
        there, back = (
            found_by(DocumentIndex(tmp_path / name), query, 20) for name in ("there", "back")
        )
        assert there == back


def test_query_is_answered_the_same_in_a_batch_and_alone(index_dir):
    index, batch = DocumentIndex(index_dir), queries(300)
    together = index.search(batch, 5)
    for query, results in zip(batch[::30], together[::30]):
        assert [(r.id, r.score) for r in results] == found_by(index, query, 5)


def test_no_query_gives_no_answer(index_dir):
    assert DocumentIndex(index_dir).search(np.zeros((0, DIM)), 5) == []


def test_query_vectors_of_another_length_are_refused(index_dir):
    with pytest.raises(InputError, match="they have 5 numbers, those of the index 8"):
        DocumentIndex(index_dir).search(np.zeros((2, 5)), 5)


def test_one_document_is_a_collection(tmp_path):
    build(tmp_path / "index", TEXTS[:1])
    assert [id_ for id_, _ in found_by(DocumentIndex(tmp_path / "index"), queries(1)[0], 5)] == [
        "d0"
    ]


def files_of(index_dir):
    return json.loads((index_dir / "manifest.json").read_text())["digests"]


@pytest.mark.parametrize("name", ["vectors", "text.values", "id.offsets", "hashes", "faiss"])
@pytest.mark.parametrize("damage", ["changed", "cut", "missing"])
def test_damaged_file_is_named(tmp_path, name, damage):
    index_dir = tmp_path / "index"
    build(index_dir, TEXTS, settings=HNSW)
    (path,) = [index_dir / file for file in files_of(index_dir) if file.endswith(f"/{name}")]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()
    if damage != "missing":
        path.write_bytes(content if damage == "changed" else content[:-1])
    with pytest.raises(InputError, match=f"/{name}: the file is not the one that was written"):
        DocumentIndex(index_dir)


def test_every_file_is_in_the_manifest(index_dir):
    there = {path.relative_to(index_dir).as_posix() for path in index_dir.rglob("*")}
    there = {name for name in there if (index_dir / name).is_file()}
    assert there == {"manifest.json", *files_of(index_dir)}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"role": "query"}'])
def test_damaged_manifest_is_refused(index_dir, text):
    (index_dir / "manifest.json").write_text(text)
    with pytest.raises(InputError, match=r"manifest\.json: this is not a manifest"):
        DocumentIndex(index_dir)


def test_reading_changes_nothing(index_dir):
    before = snapshot(index_dir)
    DocumentIndex(index_dir).search(queries(2), 5)
    assert snapshot(index_dir) == before
