"""The halves of an index: vectors as by brute force, words as one matrix would be."""

import dataclasses
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.cases import cases
from tests.index import helpers
from tests.index.helpers import DIM, brute_force, build, document, found_by, hits_by, queries
from tests.training.test_checkpoints import flip
from tf_smoothclir.data.sources import opening, source
from tf_smoothclir.index import builder, sparse_files
from tf_smoothclir.index.document_index import DocumentIndex, IndexManifest
from tf_smoothclir.index.index_kind import FLAT, HNSW, KINDS, LARGEST_FLAT, kind_for, search_effort
from tf_smoothclir.index.lexical_half import LexicalHalf
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.index.vector_index import FlatIndex, HnswIndex
from tf_smoothclir.lexical.feedback import TERMS, Feedback, tf_idf
from tf_smoothclir.lexical.postings import Postings
from tf_smoothclir.ops.top_k import recall
from tf_smoothclir.publishing import exported_lexical, exported_models
from tf_smoothclir.storage.folder import write_manifest
from tf_smoothclir.utils.errors import InputError

NUMBERS = st.floats(-1, 1, width=32)
SIZE = 10_000
TEXTS = [document(number) for number in range(300)]
FILES = ["impacts.ids", "impacts.common", "impacts.ends", "impact_rows.offsets", "vectors.offsets"]
FILES += ["passages", "terms.ids", "../documents/text.offsets", "../documents/hashes"]


@pytest.fixture(scope="module")
def vectors():
    """Vectors of documents in ten clusters."""
    generator = np.random.default_rng(5)
    made = generator.normal(size=(10, DIM))[generator.integers(10, size=SIZE)]
    made = made + 0.7 * generator.normal(size=made.shape)
    return (made / (1 + np.linalg.norm(made, axis=1, keepdims=True))).astype(np.float32)


@pytest.fixture(scope="module")
def ranker_of(vectors):
    return lambda index: Ranker(index, vectors, np.arange(SIZE, dtype=np.uint64))


@pytest.fixture(scope="module")
def asked(vectors):
    generator = np.random.default_rng(6)
    near = vectors[generator.integers(SIZE, size=50)]
    return (near + 0.05 * generator.normal(size=near.shape)).astype(np.float32)


@pytest.fixture(scope="module")
def exact(vectors, asked):
    """`[queries, documents]` float64: all scores, by one matrix product."""
    return asked.astype(np.float64) @ vectors.astype(np.float64).T


def opened(vectors):
    with tempfile.TemporaryDirectory() as directory:
        FlatIndex.write(vectors, Path(directory))
        return FlatIndex.opened(Path(directory))


@pytest.fixture(scope="module")
def built(vectors, tmp_path_factory):
    path = tmp_path_factory.mktemp("hnsw") / "faiss"
    HnswIndex.write(vectors, path)
    with open(path, "rb") as file:
        return {FLAT: FlatIndex(*opened(vectors)), HNSW: HnswIndex(file)}


@cases("kind", *KINDS)
@cases("number", 1, 20, SIZE)
def test_no_document_is_nearer_than_nearest_ones_say(asked, exact, built, ranker_of, kind, number):
    for query, row in zip(asked[:5], exact):
        near = ranker_of(built[kind]).nearest(query, number)
        assert (np.abs(near.scores - row[near.positions]) <= near.error).all()
        if kind == FLAT:
            assert len(near.positions) == number
            assert np.delete(row, near.positions).max(initial=-np.inf) <= near.others


def test_kind_and_effort_are_chosen_by_the_number_of_documents():
    assert [kind_for(n) for n in (1, LARGEST_FLAT, LARGEST_FLAT + 1)] == [FLAT, FLAT, HNSW]
    assert kind_for(9, HNSW) == HNSW
    assert [search_effort(n) for n in (9, 2_000_000, 2_000_001)] == [32, 32, 64]


@cases("kind, least", (FLAT, 1.0), (HNSW, 0.97))
def test_best_documents_are_found_as_the_recall_says(asked, exact, built, ranker_of, kind, least):
    shares, ranker = [], ranker_of(built[kind])
    for (positions, found), row in zip(ranker.rank(asked, 10), exact, strict=True):
        np.testing.assert_allclose(found, row[positions], atol=1e-7)
        assert (np.diff(found) <= 0).all()
        shares.append(len(set(positions) & set(np.argsort(-row)[:10])) / 10)
    assert np.mean(shares) >= least
    found = recall(asked, ranker.vectors, (rows for rows, _ in ranker.rank(asked, 10)), 10)
    assert found == pytest.approx(np.mean(shares), abs=1e-9)


@given(arrays(np.float32, (6, 5), elements=NUMBERS), arrays(np.float32, 5, elements=NUMBERS))
def test_no_inner_product_is_further_off_than_it_says(vectors, query):
    codes, scales, longest = opened(vectors)
    index, exact = FlatIndex(codes, scales, longest), vectors.astype(np.float64) @ query
    rounded = np.frombuffer(codes.part(0, len(codes)), np.int8).reshape(vectors.shape) * scales
    off = np.abs(rounded.astype(np.float64) @ query - exact)
    assert (off <= np.abs(query) @ scales / 2 * (1 + 1e-5) + 1e-7).all()
    scores, positions = index.search(query[None], len(vectors))
    assert (np.abs(scores[0] - exact[positions[0]]) <= index.error(query)).all()


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    """Kind -> directory of an index of `TEXTS`; read-only."""
    root = tmp_path_factory.mktemp("indexes")
    for kind in ("flat", "hnsw"):
        build(root / kind, TEXTS, kind=kind)
    return {kind: root / kind for kind in ("flat", "hnsw")}


@cases("depth", 1, 7, 100, len(TEXTS), len(TEXTS) + 1)
def test_flat_ranks_as_brute_force_in_a_batch_and_alone(indexes, depth):
    index, batch = DocumentIndex(indexes["flat"]), queries(300 if depth == 7 else 4)
    together, step = hits_by(index, batch, depth), len(batch) // 4
    for query, results in zip(batch[::step], together[::step], strict=True):
        expected = brute_force(TEXTS, query, depth)
        assert found_by(index, query, depth) == expected
        assert [(r.id, r.score) for r in results] == expected


@cases("kind", "flat", "hnsw")
def test_documents_come_with_title_text_and_grade(indexes, kind):
    by_id = {text.id: text for text in TEXTS}
    grades = set()
    asked = queries(20) * 2  # for scores up to 1 and more
    for row in hits_by(DocumentIndex(indexes[kind]), asked, 200):
        for result in row:
            assert (result.id, result.title, result.text) == by_id[result.id][:3]
            assert result.grade == (result.score > 0.2) + (result.score > 0.7)
            grades.add(result.grade)
    assert grades == {0, 1, 2}


def test_copies_of_a_text_are_ordered_by_the_hash_of_the_id(tmp_path):
    # More copies than FAISS is asked for, so the first ones by hash are not among its candidates.
    texts = [document(number, "copy" if number % 3 else None) for number in range(300)]
    build(tmp_path / "index", texts)
    index = DocumentIndex(tmp_path / "index")
    for query in [helpers.vector_of("copy"), *queries(3)]:
        for depth in (1, 10, 205):
            assert found_by(index, query, depth) == brute_force(texts, query, depth)


@cases("kind", "flat", "hnsw")
def test_zero_and_no_query_have_no_answer_and_one_of_another_length_is_refused(indexes, kind):
    index = DocumentIndex(indexes[kind])
    assert found_by(index, np.zeros(DIM, np.float32), 10) == []
    assert hits_by(index, np.zeros((0, DIM)), 5) == []
    with pytest.raises(InputError, match="they have 5 numbers, those of the index 8"):
        hits_by(index, np.zeros((2, 5)), 5)


def test_damaged_file_is_named(indexes, tmp_path):
    index_dir = shutil.copytree(indexes["hnsw"], tmp_path / "index")
    flip(index_dir / "documents" / "id.offsets")
    with pytest.raises(InputError, match=r"index: it is damaged: documents/id\.offsets is not the"):
        DocumentIndex(index_dir)


@pytest.fixture(scope="module")
def parts(ranking_exports):
    """A lexical model that reads passages and has feedback."""
    parts = exported_models.load_exported_models(ranking_exports["lexical"])["lexical"]
    model = dataclasses.replace(parts.model, feedback=5.0, passage_words=2)
    return exported_lexical.LexicalParts(model, parts.vocabulary_dir, parts.text)


@pytest.fixture(scope="module")
def manifest(ranking_exports):
    return exported_models.load_exported_models(ranking_exports["lexical"]).manifest


@pytest.fixture(scope="module")
def index(parts, manifest, tmp_path_factory):
    """An index whose lexical half has feedback; read-only."""
    path = tmp_path_factory.mktemp("index") / "index"
    builder.build_index(path, opening.source_of(manifest.data), [LexicalHalf(parts)], manifest)
    return path


@cases("value", -1, 1000)
@cases("file", *FILES)
def test_somebody_elses_arrays_are_checked_where_they_enter(index, tmp_path, file, value):
    """Their digests match; an id beyond the collection ended the process, or changed answers."""
    copied = shutil.copytree(index, tmp_path / "index")
    path = copied / "lexical" / file
    array = np.fromfile(path, "<i8" if file.endswith(("ends", "offsets", "hashes")) else "<i4")
    if file.endswith("hashes"):
        array = array[:-1] if value < 0 else np.append(array, [value])
    else:
        array[...] = value
    path.write_bytes(array.tobytes())
    write_manifest(copied, "index", dataclasses.asdict(IndexManifest.read(copied)))
    with pytest.raises(InputError, match=r"does not fit the files beside it|is out of bounds"):
        search(DocumentIndex(copied))


def search(index):
    half = index.half("lexical")
    for words in np.arange(1, half._known)[:, np.newaxis]:
        similarity = half.feedback(5.0).similarity(np.arange(len(index)), 1 + half.bounds(words))
        similarity.at_most(TERMS)
    return [index.documents[place] for place in range(len(index))]


def test_documents_lose_factors_and_words_not_in_silence(parts, manifest, tmp_path, caplog):
    caplog.set_level("INFO", logger="absl")
    model = dataclasses.replace(parts.model, language_factors={"de": 1.1, "fr": 0.9})
    half = LexicalHalf(exported_lexical.LexicalParts(model, parts.vocabulary_dir, parts.text))
    for name, language in (("known", "de"), ("unknown", "")):
        assert "Documents of no known language" not in caplog.text
        document = source.Text("1", "", "motb nouveau", language)
        builder.build_index(tmp_path / name, helpers.in_memory([document]), [half], manifest)
    assert "without the factors that the model has of de, fr. A column `language`" in caplog.text
    assert "New words, which no text of the training has: 1." in caplog.text


def test_in_batches_it_is_what_one_matrix_would_be(parts, manifest, tmp_path, monkeypatch):
    monkeypatch.setattr(builder, "_TEXTS_PER_CALL", 3)
    monkeypatch.setattr(sparse_files, "_ROWS_AT_ONCE", 2)
    model, half, collection = parts.model, LexicalHalf(parts), opening.source_of(manifest.data)
    builder.build_index(tmp_path / "index", collection, [half], manifest)
    index = DocumentIndex(tmp_path / "index")

    texts = [text.text for text in collection.documents()]
    words = parts.document_reader.batch(texts)
    passages = model.passages(words)
    impacts, half_of_index = model.impacts(passages, parts.spelling), index.half("lexical")
    expected = Postings.of(impacts, passages.firsts)
    assert expected.rows > 2 * len(texts) - 2  # documents of three words
    of_index = half_of_index.impacts(np.arange(expected.rows))
    assert (of_index[:, : impacts.shape[1]] != impacts).nnz == 0
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
    number = index.manifest.halves["lexical"]["impacts"]
    assert f"{number} impacts of query words" in str(index.manifest)
    assert not list((tmp_path / "index").rglob("count_rows.*"))  # of the time of building

    # What an update takes from there is what a new index would have.
    *_, tenth = documents = list(collection.documents())[:8:-1]
    documents = helpers.in_memory([tenth._replace(text="motb motc motf motg"), *documents[:-1]])
    encode, read = half.encode, []
    monkeypatch.setattr(half, "encode", lambda some: read.extend(some) or encode(some))
    builder.build_index(tmp_path / "index", documents, [half], manifest, update=True)
    assert read == [*documents.documents()][:1]
    builder.build_index(tmp_path / "whole", documents, [half], manifest)
    assert helpers.contents(tmp_path / "index") == helpers.contents(tmp_path / "whole")
