"""The manifest of an index: read as it was written, and checked."""

import json

import pytest

from tf_smoothclir.index.manifest import DenseNote, IndexManifest, Recall, check_is_index
from tf_smoothclir.index.vector_index import IndexSettings
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

MANIFEST = {
    "version": 1,
    "pair_id": "a" * 64,
    "thresholds": (0.2, 0.7),
    "fingerprint": "b" * 64,
    "collection_name": "toy-en-fr",
    "data": DataSettings(),
    "documents": 2000,
    "content": "000002",
    "digests": {"000002/documents/hashes": "c" * 64},
    "cut_points": CutPoints((0.2, 0.7), (), (0.2, 0.7)),
    "parts": ("query", "document"),
    "vectors": DenseNote(8, IndexSettings("hnsw", 32, 32), Recall(0.997, 10, 1000, "queries")),
}
REQUIRED = ["role", *(name for name in MANIFEST if name != "vectors")]


@pytest.mark.parametrize("change", [{}, {"data": None}, {"vectors": None}])
def test_manifest_is_read_as_it_was_written(tmp_path, change):
    manifest = IndexManifest(**{**MANIFEST, **change})
    manifest.write(tmp_path)
    assert IndexManifest.read(tmp_path) == manifest
    described = "2000 documents; hnsw, recall@10 0.9970 (queries)"
    assert str(manifest) == (described if manifest.vectors else "2000 documents")


MISSING = object()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        *((name, MISSING, rf"manifest\.json: .*{name}'? ?.*\. Choose") for name in REQUIRED),
        *((name, 1.5, rf"{name}.* 1\.5") for name in (*REQUIRED, "vectors")),
        ("thresholds", [0.2, 0.6], "its entries are not those that its digest was made of"),
        ("documents", 2001, "its entries are not those that its digest was made of"),
    ],
)
def test_missing_and_changed_entries_are_found(tmp_path, name, value, message):
    IndexManifest(**MANIFEST).write(tmp_path)
    entries = {**json.loads((tmp_path / "manifest.json").read_text()), name: value}
    written = {key: entry for key, entry in entries.items() if entry is not MISSING}
    (tmp_path / "manifest.json").write_text(json.dumps(written))
    with pytest.raises(InputError, match=message):
        IndexManifest.read(tmp_path)
    if name != "role":
        check_is_index(tmp_path)  # so that it can be replaced
