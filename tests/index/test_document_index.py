"""The index on disk: ranks exactly, and refuses damaged files and foreign vectors."""

import shutil

import numpy as np
import pytest

from tests.index.helpers import DIM, brute_force, build, document, found_by, queries, vector_of
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.vector_index import IndexSettings
from tf_smoothclir.utils.errors import InputError

TEXTS = [document(number) for number in range(300)]


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    """Kind -> directory of an index of `TEXTS`; read-only."""
    root = tmp_path_factory.mktemp("indexes")
    for kind in ("flat", "hnsw"):
        build(root / kind, TEXTS, settings=IndexSettings(kind))
    return {kind: root / kind for kind in ("flat", "hnsw")}


@pytest.mark.parametrize("depth", [1, 7, 100, len(TEXTS), len(TEXTS) + 1])
def test_flat_ranks_as_brute_force_in_a_batch_and_alone(indexes, depth):
    index, batch = DocumentIndex(indexes["flat"]), queries(300 if depth == 7 else 4)
    together, step = index.search(batch, depth), len(batch) // 4
    for query, results in zip(batch[::step], together[::step]):
        expected = brute_force(TEXTS, query, depth)
        assert found_by(index, query, depth) == expected
        assert [(r.id, r.score) for r in results] == expected


@pytest.mark.parametrize("kind", ["flat", "hnsw"])
def test_documents_come_with_title_text_and_grade(indexes, kind):
    by_id = {text.id: text for text in TEXTS}
    grades = set()
    for row in DocumentIndex(indexes[kind]).search(queries(20) * 2, 200):  # scores up to 1 and more
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


@pytest.mark.parametrize("kind", ["flat", "hnsw"])
def test_zero_query_has_no_answer(indexes, kind):
    assert found_by(DocumentIndex(indexes[kind]), np.zeros(DIM, np.float32), 10) == []


def test_no_query_has_no_answer_and_one_of_another_length_is_refused(indexes):
    index = DocumentIndex(indexes["flat"])
    assert index.search(np.zeros((0, DIM)), 5) == []
    with pytest.raises(InputError, match="they have 5 numbers, those of the index 8"):
        index.search(np.zeros((2, 5)), 5)


def test_damaged_file_is_named(indexes, tmp_path):
    index_dir = shutil.copytree(indexes["hnsw"], tmp_path / "index")
    content = bytearray((index_dir / "documents" / "id.offsets").read_bytes())
    content[len(content) // 2] ^= 1
    (index_dir / "documents" / "id.offsets").write_bytes(content)
    with pytest.raises(InputError, match=r"index: it is damaged: documents/id\.offsets is not the"):
        DocumentIndex(index_dir)
