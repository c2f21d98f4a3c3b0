"""Encoding with Beam gives the same index as encoding in one process."""

import numpy as np
import pytest

from tests.beam import LOCAL_RUNNER, needs_beam, without_beam
from tf_smoothclir.index import beam_encoding
from tf_smoothclir.index.beam_encoding import BeamEncoder
from tf_smoothclir.index.builder import build_index
from tf_smoothclir.index.document_collections import SourceCollection, open_files
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.export_halves import export_halves
from tf_smoothclir.index.work_directory import work_directory
from tf_smoothclir.utils.errors import InputError


@pytest.fixture
def collection(tmp_path):
    (tmp_path / "parts").mkdir()
    for part in range(3):
        lines = (f"{part}-{n}\troter apfel {'meer ' * n}\n" for n in range(20))
        (tmp_path / "parts" / f"{part}.tsv").write_text("".join(lines))
    return open_files(tmp_path / "parts", "--collection")


def vectors_by_document(index):
    return {index.documents[row]: vector.tolist() for row, vector in enumerate(index.dense.vectors)}


@needs_beam
def test_pipeline_gives_the_index_of_one_process(
    publish_pair, no_child_process, collection, tmp_path, monkeypatch
):
    publish_pair(tmp_path / "export")
    monkeypatch.setattr(beam_encoding, "_BYTES_PER_SEGMENT", 500)
    halves = export_halves(tmp_path / "export")
    build_index(tmp_path / "here", collection, *halves)
    encoder = BeamEncoder(tmp_path / "export", 1, LOCAL_RUNNER)
    build_index(tmp_path / "beam", collection, *halves, encode_all=encoder)
    here, there = DocumentIndex(tmp_path / "here"), DocumentIndex(tmp_path / "beam")
    assert vectors_by_document(here) == vectors_by_document(there)
    query = np.array([[0.3, -0.2, 0.4]], np.float32)
    assert here.search(query, 20) == there.search(query, 20)


@needs_beam
def test_finished_segments_are_kept(
    publish_pair, no_child_process, collection, tmp_path, monkeypatch
):
    publish_pair(tmp_path / "export")
    monkeypatch.setattr(beam_encoding, "_BYTES_PER_SEGMENT", 500)
    halves = export_halves(tmp_path / "export")
    encoder = BeamEncoder(tmp_path / "export", 1, LOCAL_RUNNER)

    def interrupted(work, *arguments):
        encoder(work, *arguments)
        (work / "complete.json").unlink()
        (work / "part-000000" / "vectors" / "vectors").unlink()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(tmp_path / "index", collection, *halves, encode_all=interrupted)
    kept = work_directory(tmp_path / "index") / "part-000001" / "vectors" / "vectors"
    inodes = [kept.stat().st_ino]

    def again(work, *arguments):
        segments = encoder(work, *arguments)
        inodes.append(kept.stat().st_ino)
        return segments

    build_index(tmp_path / "index", collection, *halves, encode_all=again)
    assert inodes[0] == inodes[1]
    assert len(DocumentIndex(tmp_path / "index")) == 60


@needs_beam
def test_invalid_pipeline_options_are_named(collection, tmp_path):
    with pytest.raises(InputError, match=r"--beam: .*NoSuchRunner"):
        BeamEncoder(tmp_path, 1, ["--runner=NoSuchRunner"])(tmp_path, collection, None)


@without_beam
def test_missing_beam_is_named_with_the_extra(collection, tmp_path):
    with pytest.raises(InputError, match=r"--beam: it needs Apache Beam .*pip install .\.\[beam\]"):
        BeamEncoder(tmp_path, 1, LOCAL_RUNNER)(tmp_path, collection, None)


@needs_beam
def test_collection_that_is_not_files_is_refused(tmp_path):
    encoder = BeamEncoder(tmp_path, 1, LOCAL_RUNNER)
    with pytest.raises(InputError, match="only collections of files"):
        encoder(tmp_path, SourceCollection.__new__(SourceCollection), None)
