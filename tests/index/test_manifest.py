"""The facts of an index: read as they were written, and described."""

import dataclasses

import pytest

from tf_smoothclir.index.manifest import INDEX, DenseNote, IndexManifest, LexicalNote, Recall
from tf_smoothclir.index.vector_index import IndexSettings
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.folder import write_manifest
from tf_smoothclir.utils.errors import InputError

MANIFEST = IndexManifest(
    version=1,
    pair_id="a" * 64,
    thresholds=(0.2, 0.7),
    fingerprint="b" * 64,
    collection_name="toy-en-fr",
    data=DataSettings(),
    documents=2000,
    cut_points=CutPoints((0.2, 0.7), (), (0.2, 0.7)),
    parts=("query", "document"),
    vectors=DenseNote(8, IndexSettings("hnsw", 32, 32), Recall(0.997, 10, 1000, "queries")),
    impacts=LexicalNote(300, feedback=True),
)


@pytest.mark.parametrize("change", [{}, {"data": None}, {"vectors": None}, {"impacts": None}])
def test_facts_are_read_as_they_were_written(tmp_path, change):
    manifest = dataclasses.replace(MANIFEST, **change)
    write_manifest(tmp_path, INDEX, manifest.facts())
    assert IndexManifest.read(tmp_path) == manifest


def test_facts_that_are_missing_or_of_another_type_are_named(tmp_path):
    facts = MANIFEST.facts()
    for changed in ({**facts, "documents": 1.5}, {**facts, "vectors": {"dim": 8}}):
        write_manifest(tmp_path, INDEX, changed)
        message = r"(documents must be an integer|vectors.settings is missing)"
        with pytest.raises(InputError, match=message):
            IndexManifest.read(tmp_path)


def test_manifest_is_described_in_one_line():
    described = "2000 documents; hnsw, recall@10 0.9970 (queries); 300 impacts of query words"
    assert str(MANIFEST) == described
