"""BM25 and query likelihood against hand arithmetic, plain loops and public implementations."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st

from tests.lexical.helpers import words
from tf_smoothclir.lexical.rankers import RANKERS
from tf_smoothclir.lexical.rankers.bm25 import Bm25
from tf_smoothclir.lexical.rankers.query_likelihood import QueryLikelihood
from tf_smoothclir.lexical.rankers.term_weights import Collection

SIZE = 8
# Word 0 has no id but counts towards lengths; word 7 is in no document.
DOCUMENTS = [[2, 3, 2, 0], [3, 4], [], [5, 6, 6, 6, 2, 0, 0]]


def scores(ranker, documents, queries):
    found = ranker(Collection.of(words(*documents, size=SIZE)))
    return found.rows(words(*queries, size=SIZE).matrix())(np.arange(len(queries)))


def bm25_by_loop(k1, b, documents, query):
    mean = max(1, sum(map(len, documents)) / len(documents))
    result = []
    for document in documents:
        score = 0
        for word in filter(None, query):
            frequency = sum(word in other for other in documents)
            rarity = math.log(1 + (len(documents) - frequency + 0.5) / (frequency + 0.5))
            tf = document.count(word)
            length = 1 - b + b * len(document) / mean
            score += rarity * tf * (k1 + 1) / (tf + k1 * length) if tf else 0
        result.append(score)
    return result


def likelihood_by_loop(mu, documents, query):
    """log P(q | d) itself, with the words that the collection has."""
    collection = [word for document in documents for word in document]
    return [
        sum(
            math.log(
                (document.count(word) + mu * collection.count(word) / len(collection))
                / (len(document) + mu)
            )
            for word in query
            if word and word in collection
        )
        for document in documents
    ]


def test_by_hand():
    # Two documents of one word, one of which is asked for: idf = log(1 + 1.5 / 1.5) = log 2, and
    # tf (k1 + 1) / (tf + k1) = 1 at the mean length.
    found = scores(Bm25(1.2, 0.75), [[2], [3]], [[2]])
    assert found == pytest.approx(np.array([[math.log(2), 0]]), rel=1e-6)
    # "2" of ["2 3", "3 3"], μ = 4: P(2) = 1/4. log((1 + 1) / 6) - log((0 + 1) / 6) = log 2.
    ((first, second),) = scores(QueryLikelihood(4.0), [[2, 3], [3, 3]], [[2]])
    assert first - second == pytest.approx(math.log(2), rel=1e-6)


texts = st.lists(st.integers(0, 7), max_size=5)


@given(
    st.lists(texts, min_size=1, max_size=6),
    st.lists(texts, min_size=1, max_size=3),
    st.sampled_from([(1.2, 0.75), (0.3, 0.0), (2.0, 1.0), (0.0, 0.5)]),
    st.sampled_from([1.0, 10.0, 1000.0]),
)
@example(DOCUMENTS, [[2, 3, 3], [6, 7], [], [4, 5, 2]], (0.9, 0.4), 5.0)
def test_both_are_those_of_plain_loops(documents, queries, bm25, mu):
    found = scores(Bm25(*bm25), documents, queries)
    expected = [bm25_by_loop(*bm25, documents, query) for query in queries]
    assert found == pytest.approx(np.array(expected), rel=1e-4, abs=1e-6)
    for row, query in zip(scores(QueryLikelihood(mu), documents, queries), queries):
        expected = np.array(likelihood_by_loop(mu, documents, query))
        # The same up to what no document changes.
        assert row - row[0] == pytest.approx(expected - expected[0], abs=1e-4)


def test_bm25_ranks_as_package_bm25s():
    bm25s = pytest.importorskip("bm25s", reason="of extra rivals")
    documents = [[str(word) for word in document] for document in DOCUMENTS if document]
    theirs = bm25s.BM25(k1=1.2, b=0.75, method="lucene", dtype="float64")
    theirs.index(documents, show_progress=False)
    ours = scores(Bm25(1.2, 0.75), [document for document in DOCUMENTS if document], [[2, 3, 6]])
    # It leaves out k1 + 1.
    expected = theirs.get_scores(["2", "3", "6"])
    assert ours[0] == pytest.approx(2.2 * expected, rel=1e-5)


@pytest.mark.parametrize("name", sorted(RANKERS))
def test_weights_of_words_count_as_that_many_words_also_of_nothing(name):
    ranker = RANKERS[name]()(Collection.of(words(*DOCUMENTS, size=SIZE)))
    once = words([2, 3], [3, 6], size=SIZE).matrix()
    whole = ranker.rows(sp.csr_array(once.sum(axis=0)[None]))(np.array([0]))
    parts = ranker.rows(once)(np.array([0, 1])).sum(axis=0)
    halves = ranker.rows(sp.csr_array(once * np.float32(0.5)))(np.array([0, 1])).sum(axis=0)
    assert whole[0] == pytest.approx(parts, rel=1e-5)
    assert 2 * halves == pytest.approx(parts, rel=1e-5)

    # An empty collection and unknown words score finite.
    assert np.isfinite(scores(RANKERS[name](), [[], []], [[2], []])).all()
    assert not scores(RANKERS[name](), [[2], [3]], [[7]]).any()
