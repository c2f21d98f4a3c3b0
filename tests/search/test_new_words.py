"""Words that documents of an index have and the model never met: found as they are spelled."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st

from tests.cases import cases
from tests.index import helpers
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.families.lexical import word_ranker
from tf_smoothclir.index import builder, document_index, lexical_half
from tf_smoothclir.lexical.new_words import BYTES, hashes, numbered, spread
from tf_smoothclir.lexical.psq import ALPHA, BETA
from tf_smoothclir.lexical.words import FLAT, NO_WORD, Words
from tf_smoothclir.plugins import family
from tf_smoothclir.protocols.text_search import QueryReading
from tf_smoothclir.publishing.exported_models import load_exported_models
from tf_smoothclir.publishing.exported_search import Collection, build_search_model
from tf_smoothclir.search.text_search import TextSearch

# Two documents share the first new word, and one has one twice.
TEXTS = {
    "a": "motb blorptron motc motd",
    "b": "motb motc",
    "c": "Kwyjibo kwyjibo motf zorblax ?!",
    "d": "mote blorptron",
}
QUERIES = ["blorptron", "kwyjibo", "wordb Zorblax", "unheard", "?!", "blorptron kwyjibo"]
FOUND = [["d", "a"], ["c"], ["c", "b", "a"], [], [], ["d", "c", "a"]]


def documents_of(texts):
    return helpers.in_memory([Text(id_, "", text) for id_, text in texts.items()])


@pytest.fixture(scope="module")
def models(ranking_exports):
    return load_exported_models(ranking_exports["lexical"])


@pytest.fixture(scope="module")
def parts(models):
    """All positions and lengths alike and no feedback: scores can be computed by hand."""
    model = models["lexical"].model
    simple = {"fields": (FLAT,), "weights": model.weights[:1], "feedback": 0.0}
    model = dataclasses.replace(model, **simple, passage_words=0, length_power=0.0)
    return dataclasses.replace(models["lexical"], model=model)


@pytest.fixture(scope="module", params=[1, lexical_half._SHARED], ids=["one column", "many"])
def index(parts, models, tmp_path_factory, request):
    """Where new words share one column of postings, bounds say nothing, and scores all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexical_half, "_SHARED", request.param)
        path = tmp_path_factory.mktemp("index") / "index"
        half = lexical_half.LexicalHalf(parts)
        builder.build_index(path, documents_of(TEXTS), [half], models.manifest)
        yield document_index.DocumentIndex(path)


def score_of(parts, share):
    """Of a new word that has a share of a document; it counts as much as padding."""
    odds = (1 - ALPHA) / ALPHA / parts.model.background[0]
    return parts.model.weights[0, 0] * np.log1p(odds * BETA * share)


def test_an_index_and_a_search_model_find_them(parts, index):
    search = TextSearch(index, word_ranker("lexical", parts, index))
    hits = search.search(QUERIES, 4)
    assert [[hit.id for hit in of_query] for of_query in hits] == FOUND
    readings = [QueryReading("spelling", ("unheard",)), QueryReading("words")]
    answers = search.search(["blorptron unheard", "wordb blorptron"], 1)
    assert [answer.reading for answer in answers] == readings
    scores = [hit.score for hit in hits[0]]
    np.testing.assert_allclose(scores, [score_of(parts, 1 / 2), score_of(parts, 1 / 4)], rtol=1e-5)
    np.testing.assert_allclose(hits[1][0].score, score_of(parts, 2 / 6), rtol=1e-5)
    models = {"lexical": parts}
    pairs = [("blorptron", TEXTS["a"]), ("kwyjibo", TEXTS["c"]), ("wordb Zorblax", TEXTS["c"])]
    of_pairs = family("lexical").scores(models, *zip(*pairs))
    np.testing.assert_allclose(of_pairs, [hits[0][1].score, hits[1][0].score, hits[2][0].score])
    explained = search.explain("kwyjibo", hits[1])[0]
    assert explained == family("lexical").explanation(models, *pairs[1], "document")
    met = [(word.word, word.matches[0].word) for word in explained.words]
    assert met == [("kwyjibo", "kwyjibo")]
    collection = Collection.read(documents_of(TEXTS), {}, parts)
    points = index.manifest.cut_points
    model = build_search_model(collection, {}, parts, cut_points=points, depth=4)
    answers = model.serve(tf.constant(QUERIES))
    for of_query, ids, scores in zip(hits, answers["ids"].numpy(), answers["scores"].numpy()):
        assert [hit.id for hit in of_query] == [id_.decode() for id_ in ids if id_]
        own = [hit.score for hit in of_query]
        np.testing.assert_allclose(scores[: len(own)], own, rtol=1e-5)


def test_an_update_is_what_a_new_index_would_be(parts, models, tmp_path):
    changed = documents_of({"e": "zorblax neuf", **TEXTS, "b": "motb blorptron", "a": "motd"})
    half = lexical_half.LexicalHalf(parts)
    builder.build_index(tmp_path / "index", documents_of(TEXTS), [half], models.manifest)
    builder.build_index(tmp_path / "index", changed, [half], models.manifest, update=True)
    builder.build_index(tmp_path / "new", changed, [half], models.manifest)
    assert helpers.contents(tmp_path / "index") == helpers.contents(tmp_path / "new")


@given(words=st.lists(st.text(min_size=1, max_size=40), max_size=5))
@example(words=["é" * 40, "x" * 64, "x" * 65])
@cases("known", 10, 200_000)
def test_hashes_are_those_of_the_graph(known, words):
    words = [word.encode("utf-8", "replace").decode() for word in words]
    cut = tf.strings.substr(tf.constant(words, tf.string), 0, BYTES)
    expected = tf.strings.to_hash_bucket_fast(cut, spread(known)).numpy()
    assert hashes(words, known).tolist() == expected.tolist()


def test_new_words_get_numbers_after_the_known_ones():
    words = Words(np.array([3, 9000, NO_WORD, 700, 9000], np.int32), np.array([0, 2, 5]), 10)
    found, new = numbered(words, 10)
    assert found.ids.tolist() == [3, 11, NO_WORD, 10, 11]
    assert (found.size, new.tolist()) == (12, [690, 8990])
