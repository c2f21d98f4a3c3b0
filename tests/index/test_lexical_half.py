"""The lexical half of an index: as written in segments, it is what one matrix would be."""

import dataclasses
import shutil

import numpy as np
import pytest
import scipy.sparse as sp

from tests.index.helpers import contents, in_memory
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.index import builder, sparse_files
from tf_smoothclir.index.builder import build_index
from tf_smoothclir.index.document_index import DocumentIndex, IndexManifest
from tf_smoothclir.index.lexical_half import LexicalHalf
from tf_smoothclir.lexical.feedback import TERMS, Feedback, tf_idf
from tf_smoothclir.lexical.postings import Postings
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.publishing.exported_models import load_exported_models
from tf_smoothclir.storage.folder import write_manifest
from tf_smoothclir.utils.errors import InputError


@pytest.fixture(scope="module")
def parts(ranking_exports):
    """A lexical model that reads passages and has feedback."""
    parts = load_exported_models(ranking_exports["lexical"])["lexical"]
    model = dataclasses.replace(parts.model, feedback=5.0, passage_words=2)
    return LexicalParts(model, parts.vocabulary_dir, parts.text)


@pytest.fixture(scope="module")
def manifest(ranking_exports):
    return load_exported_models(ranking_exports["lexical"]).manifest


@pytest.fixture(scope="module")
def index(parts, manifest, tmp_path_factory):
    """An index whose lexical half has feedback; read-only."""
    path = tmp_path_factory.mktemp("index") / "index"
    build_index(path, source_of(manifest.data), [LexicalHalf(parts)], manifest)
    return path


@pytest.mark.parametrize("value", [-1, 1000])
@pytest.mark.parametrize(
    "file",
    [
        *("impacts.ids", "impacts.common", "impacts.ends", "impact_rows.offsets"),
        *(
            "vectors.offsets",
            "passages",
            "terms.ids",
            "../documents/text.offsets",
            "../documents/hashes",
        ),
    ],
)
def test_somebody_elses_arrays_are_checked_where_they_enter(index, tmp_path, file, value):
    """Their digests match; an id beyond the collection ended the process, or changed answers."""
    copied = shutil.copytree(index, tmp_path / "index")
    path = copied / "lexical" / file
    kind = "<i8" if file.endswith(("ends", "offsets", "hashes")) else "<i4"
    array = np.fromfile(path, kind)
    if file.endswith("hashes"):
        array = array[:-1] if value < 0 else np.append(array, [value])
    else:
        array[...] = value
    path.write_bytes(array.tobytes())
    manifest = IndexManifest.read(copied)
    write_manifest(copied, "index", dataclasses.asdict(manifest))
    with pytest.raises(InputError, match=r"does not fit the files beside it|is out of bounds"):
        search(DocumentIndex(copied))


def search(index):
    half = index.half("lexical")
    for words in np.arange(1, half.impacts(np.arange(0)).shape[1])[:, np.newaxis]:
        bounds = half.bounds(words)
        similarity = half.feedback(5.0).similarity(np.arange(len(index)), 1 + bounds)
        similarity.at_most(TERMS)
    return [index.documents[place] for place in range(len(index))]


def test_documents_lose_the_factors_of_languages_not_in_silence(parts, manifest, tmp_path, caplog):
    model = dataclasses.replace(parts.model, language_factors={"de": 1.1, "fr": 0.9})
    half = LexicalHalf(LexicalParts(model, parts.vocabulary_dir, parts.text))
    for name, language in (("known", "de"), ("unknown", "")):
        assert "Documents of no known language" not in caplog.text
        document = Text("1", "", "mot1", language)
        build_index(tmp_path / name, in_memory([document]), [half], manifest)
    assert "without the factors that the model has of de, fr. A column `language`" in caplog.text


def test_in_batches_it_is_what_one_matrix_would_be(parts, manifest, tmp_path, monkeypatch):
    monkeypatch.setattr(builder, "_TEXTS_PER_CALL", 3)
    monkeypatch.setattr(sparse_files, "_ROWS_AT_ONCE", 2)
    model, half, collection = parts.model, LexicalHalf(parts), source_of(manifest.data)
    build_index(tmp_path / "index", collection, [half], manifest)
    index = DocumentIndex(tmp_path / "index")

    texts = [text.text for text in collection.documents()]
    words = parts.document_reader.batch(texts)
    passages = model.passages(words)
    impacts, half_of_index = model.impacts(passages, parts.spelling), index.half("lexical")
    expected = Postings.of(impacts, passages.firsts)
    assert expected.rows > 2 * expected.documents - 2  # documents of three words
    assert (half_of_index.impacts(np.arange(expected.rows)) != impacts).nnz == 0
    for asked in np.random.default_rng(2).integers(0, impacts.shape[1], (20, 3)):
        query = np.bincount(asked[asked > 0], minlength=impacts.shape[1])
        (of_rows,) = expected.of_queries(sp.csr_array(query[np.newaxis].astype(np.float32)))
        scores = half_of_index.scores(asked, np.arange(len(texts)))
        np.testing.assert_array_equal(scores, expected.best(of_rows))
        bounds = half_of_index.bounds(asked)
        assert (scores <= bounds).all()
        assert (bounds - scores <= 3.01 * impacts.max() / 255).all()
        assert ((bounds == 0) == (scores == 0)).all()
        firsts = np.split(of_rows, passages.firsts[1:-1])
        best = [int(own.argmax()) if len(own) > 1 else None for own in firsts]
        assert half_of_index.best_passages(asked, np.arange(len(texts))) == best
    feedback, scores = Feedback.of(tf_idf(words.matrix()), 5.0), np.arange(len(texts), dtype="f4")
    expected = feedback.similarity(np.arange(len(texts)), scores)
    of_index = half_of_index.feedback(5.0).similarity(np.arange(len(texts)), scores)
    similarities = expected.of(np.arange(len(texts)))
    np.testing.assert_array_equal(of_index.of(np.arange(len(texts))), similarities)
    for terms in (1, TERMS):
        assert (similarities <= of_index.at_most(terms)).all()
    assert index.half("dense") is None
    assert list(index.manifest.halves) == ["lexical"]
    assert f"{index.manifest.halves['lexical']['impacts']} impacts of query words" in str(
        index.manifest
    )
    assert not list((tmp_path / "index").rglob("count_rows.*"))  # of the time of building

    # What an update takes from there is what a new index would have.
    documents = list(collection.documents())
    documents = in_memory([documents[9]._replace(text="mot1 mot2 mot5 mot6"), *documents[:9:-1]])
    read = []
    monkeypatch.setattr(
        half, "encode", lambda some: read.extend(some) or LexicalHalf.encode(half, some)
    )
    build_index(tmp_path / "index", documents, [half], manifest, update=True)
    assert read == [*documents.documents()][:1]
    build_index(tmp_path / "whole", documents, [half], manifest)
    assert contents(tmp_path / "index") == contents(tmp_path / "whole")
