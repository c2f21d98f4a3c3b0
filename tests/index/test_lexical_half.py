"""The lexical half of an index: as written in segments, it is what one matrix would be."""

import numpy as np

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.index import encoding, sparse_files
from tf_smoothclir.index.builder import build_index
from tf_smoothclir.index.document_collections import SourceCollection
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.lexical_half import LexicalHalf
from tf_smoothclir.lexical.feedback import Feedback, tf_idf
from tf_smoothclir.lexical.postings import Postings
from tf_smoothclir.publishing.exported_lexical import LexicalParts, load_lexical


def arrays(postings):
    rare = postings.rare
    return rare.ends, rare.ids, rare.values, postings.common, postings.common_values


def test_in_batches_it_is_what_one_matrix_would_be(ranking_exports, tmp_path, monkeypatch):
    monkeypatch.setattr(encoding, "_TEXTS_PER_CALL", 3)
    monkeypatch.setattr(sparse_files, "_ROWS_AT_ONCE", 2)
    parts, manifest = load_lexical(ranking_exports["lexical"])
    model = type(parts.model)(**{**vars(parts.model), "feedback": 5.0})
    half = LexicalHalf(LexicalParts(model, parts.vocabulary_dir, parts.text))
    collection = SourceCollection(source_of(manifest.data))
    build_index(tmp_path / "index", collection, [half], manifest)
    index = DocumentIndex(tmp_path / "index")

    texts = [text.text for text in collection.documents()]
    words = parts.document_reader.batch(texts)
    impacts = model.impacts(words, parts.spelling)
    for found, expected in zip(arrays(index.lexical.postings), arrays(Postings.of(impacts))):
        np.testing.assert_array_equal(found, expected)
    scores = np.random.default_rng(1).random((3, len(texts)), np.float32)
    expected = Feedback.of(tf_idf(words.matrix()), 5.0).added_to(scores)
    np.testing.assert_array_equal(index.lexical.feedback(5.0).added_to(scores), expected)
    assert index.dense is None
    assert index.manifest.halves == ("impacts",)
    assert f"{index.manifest.impacts.impacts} impacts of query words" in str(index.manifest)
    assert not list((tmp_path / "index").rglob("*_rows.*"))  # of the time of building
