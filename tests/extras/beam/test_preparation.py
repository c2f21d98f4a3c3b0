"""The pipelines leave in the cache what one process leaves there."""

import pickle
import shutil

import pytest

from tests.beam import LOCAL_RUNNER, needs_beam, without_beam
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.extras.beam import preparation as beam_preparation
from tf_smoothclir.extras.beam.preparation import BeamPreparation
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.utils.errors import InputError

# The first document is longer than a piece; "und" occurs in all, "x0" to "x29" once each.
DOCUMENTS = [f"d{n}\tund und rot x{n} {'meer ' * (40 - n)}\n" for n in range(30)]
QUERIES = [f"q{n}\tand red {'word' if n % 2 else 'other'} y{n}\n" for n in range(10)]


@pytest.fixture
def retrieval_set(tmp_path):
    judgments = [f"q{n}\td{n}\t2\n" for n in range(10)]
    parts = {"documents": DOCUMENTS, "queries": QUERIES, "judgments": judgments}
    for name, lines in parts.items():
        (tmp_path / f"{name}.tsv").write_text("".join(lines))
    data = DataSettings(data_dir=str(tmp_path), document_language="de")
    return RetrievalSet.load(source_of(data))


def content(directory):
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


@needs_beam
@pytest.mark.parametrize(
    "changes", [{"vocabulary_size": 9, "min_count": 2}, {"shared_vocabulary": True}], ids=str
)
def test_beam_and_one_process_write_the_same_cache_byte_for_byte(
    retrieval_set, tmp_path, monkeypatch, changes
):
    monkeypatch.setattr(beam_preparation, "_BYTES_PER_PIECE", 300)
    settings = TextSettings(max_document_tokens=20, **changes)
    here = tokenize_set(retrieval_set, settings, tmp_path / "here")
    by_beam = BeamPreparation(retrieval_set, settings, LOCAL_RUNNER)(tmp_path / "beam")
    assert by_beam.directory.name == here.directory.name
    assert content(by_beam.directory) == content(here.directory)
    assert content(by_beam.vocabulary_dir) == content(here.vocabulary_dir)
    names = {path.name for path in (tmp_path / "beam").iterdir()}
    assert names == {here.directory.name, here.vocabulary_dir.name}


@needs_beam
def test_cached_files_are_not_made_again(retrieval_set, tmp_path, monkeypatch):
    preparation = BeamPreparation(retrieval_set, TextSettings(), LOCAL_RUNNER)
    first = preparation(tmp_path)
    shutil.rmtree(first.directory)
    monkeypatch.setattr(preparation, "_write_vocabularies", None)  # would fail if it were called
    second = preparation(tmp_path)
    monkeypatch.setattr(preparation, "_encode_documents", None)
    assert second == preparation(tmp_path) == first


def test_sets_without_files_and_ngrams_are_refused(retrieval_set):
    toy = RetrievalSet.load(source_of(DataSettings(toy_entities=300)))
    with pytest.raises(InputError, match=r"--beam: Beam reads sets of files only, not toy"):
        BeamPreparation(toy, TextSettings(), LOCAL_RUNNER)
    with pytest.raises(InputError, match=r"--ngram_buckets=100: only one process .*Leave it out"):
        BeamPreparation(retrieval_set, TextSettings(ngram_buckets=100), LOCAL_RUNNER)


@without_beam
def test_missing_beam_is_named_with_the_extra(retrieval_set, tmp_path):
    preparation = BeamPreparation(retrieval_set, TextSettings(), LOCAL_RUNNER)
    with pytest.raises(InputError, match=r"--beam: it needs Apache Beam .*pip install .\.\[beam\]"):
        preparation(tmp_path)
    assert not list(tmp_path.glob("*vocabulary*"))


def test_a_source_of_files_goes_to_workers(retrieval_set):
    source = pickle.loads(pickle.dumps(retrieval_set.source))
    pieces = list(source.document_pieces(200))
    assert len(pieces) > 3
    found = [pair for piece in pieces for pair in source.documents_in(piece)]
    assert found == list(enumerate(retrieval_set.source.documents()))
