"""The lexical half of an index: as written in segments, it is what one matrix would be."""

from __future__ import annotations

import numpy as np
import pytest

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.index import encoding, sparse_files
from tf_smoothclir.index.builder import build_index
from tf_smoothclir.index.document_collections import SourceCollection
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.lexical_half import LexicalHalf
from tf_smoothclir.lexical.feedback import Feedback, tf_idf
from tf_smoothclir.lexical.postings import Postings
from tf_smoothclir.publishing.exported_lexical import LexicalParts, load_lexical


@pytest.fixture(scope="module")
def exported(ranking_exports):
    """A lexical model with feedback, and the manifest of its export."""
    parts, manifest = load_lexical(ranking_exports["lexical"])
    model = type(parts.model)(**{**vars(parts.model), "feedback": 5.0})
    return LexicalParts(model, parts.vocabulary_dir, parts.text), manifest


@pytest.fixture
def build(exported, tmp_path):
    def build(name="index", half=None):
        parts, manifest = exported
        collection = SourceCollection(source_of(manifest.data))
        build_index(tmp_path / name, collection, [half or LexicalHalf(parts)], manifest)
        return DocumentIndex(tmp_path / name)

    return build


def arrays(postings):
    rare = postings.rare
    return rare.ends, rare.ids, rare.values, postings.common, postings.common_values


def check_whole(index, exported):
    parts, manifest = exported
    texts = [text.text for text in source_of(manifest.data).documents()]
    words = parts.document_reader.batch(texts)
    impacts = parts.model.impacts(words, parts.spelling)
    for found, expected in zip(arrays(index.lexical.postings), arrays(Postings.of(impacts))):
        np.testing.assert_array_equal(found, expected)
    scores = np.random.default_rng(1).random((3, len(texts)), np.float32)
    expected = Feedback.of(tf_idf(words.matrix()), 5.0).added_to(scores)
    np.testing.assert_array_equal(index.lexical.feedback(5.0).added_to(scores), expected)


def test_in_segments_and_chunks_it_is_what_one_matrix_would_be(build, exported, monkeypatch):
    monkeypatch.setattr(encoding, "DOCUMENTS_PER_SEGMENT", 7)
    monkeypatch.setattr(encoding, "_TEXTS_PER_CALL", 3)
    monkeypatch.setattr(sparse_files, "_ROWS_AT_ONCE", 2)
    index = build()
    check_whole(index, exported)
    assert index.dense is None
    assert index.manifest.halves == ("impacts",)
    assert f"{index.manifest.impacts.impacts} impacts of query words" in str(index.manifest)
    assert any(name.endswith("impacts.values") for name in index.manifest.digests)


def test_an_interrupted_build_continues(build, exported, monkeypatch):
    monkeypatch.setattr(encoding, "DOCUMENTS_PER_SEGMENT", 7)
    half, encoded = LexicalHalf(exported[0]), []
    encode = half.encode

    def failing(texts):
        encoded.append(len(texts))
        if sum(encoded) > 20:
            raise KeyboardInterrupt
        return encode(texts)

    monkeypatch.setattr(half, "encode", failing)
    with pytest.raises(KeyboardInterrupt):
        build(half=half)
    before = sum(encoded[:-1])
    monkeypatch.setattr(half, "encode", encode)
    encoded.clear()
    check_whole(build(half=half), exported)
    assert before >= 14  # two segments were whole
