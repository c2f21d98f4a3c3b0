"""Translation tables: IBM Model 1 by hand, by NLTK and by EM the slow way; similar spelling."""

import collections
import itertools
import math
import types

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from nltk import translate

from tests.lexical.helpers import counts, shares, words
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.lexical.ibm_model_1 import LEAST_PROBABILITY, ROUNDS, Alignments, pruned
from tf_smoothclir.lexical.positions import FLAT, PositionProfile
from tf_smoothclir.lexical.related_words import shared_counts, similar_words
from tf_smoothclir.lexical.training_pairs import TrainingPairs


def learned(queries, documents, rounds, weights=None):
    alignments = Alignments.of(counts(*queries, size=10), shares(*documents, size=10))
    table, likelihoods = alignments.learn_table(rounds, weights)
    return table.toarray(), likelihoods


def test_one_round_by_hand():
    # Each word of "1 2" is to one half due to each word of "5 6": c = 1/2 for all four pairs.
    table, likelihoods = learned([[1, 2]], [[5, 6]], 1)
    assert table[5, 1] == table[5, 2] == table[6, 1] == table[6, 2] == 0.5
    # P(1 | d) = P(2 | d) = 1/2 before it: T is 1/2 everywhere.
    assert likelihoods == pytest.approx([2 * math.log(0.5)])


TRIPLE = [[1, 2], [1, 3], [2, 4]], [[5, 6], [5, 7], [6, 8, 5]]


@pytest.mark.parametrize("rounds", [1, 2, 5, 30])
def test_nltk_finds_the_same(rounds):
    null = 9  # NLTK lets a word of the query stand for nothing: here, a word of every document
    texts = zip(*([[str(word) for word in text] for text in texts] for texts in TRIPLE))
    pairs = [translate.AlignedSent(query, document) for query, document in texts]
    theirs = translate.IBMModel1(pairs, rounds).translation_table
    ours, _ = learned(TRIPLE[0], [[*document, null] for document in TRIPLE[1]], rounds)
    for query, document in zip(*TRIPLE):  # what never met keeps its first value there
        for word, t in itertools.product(query, document):
            assert ours[t, word] == pytest.approx(theirs[str(word)][str(t)], abs=1e-5)
            assert ours[null, word] == pytest.approx(theirs[str(word)][None], abs=1e-5)


texts = st.lists(st.integers(1, 7), max_size=6)


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=8))
def test_likelihood_never_falls_and_rows_are_distributions(pairs):
    table, likelihoods = learned(*map(list, zip(*pairs)), 5)
    assert (np.diff(likelihoods) >= -1e-4).all()
    rows = table.sum(axis=1)
    aligned = {t for query, document in pairs for t in document if query}
    assert rows[sorted(aligned)] == pytest.approx(1)
    assert not np.delete(rows, sorted(aligned)).any()


def test_pairs_of_weight_0_and_empty_texts_are_as_if_they_were_not_there():
    weighted, likelihood = learned(*TRIPLE, 4, np.array([1, 1, 0]))
    without, expected = learned(TRIPLE[0][:2], TRIPLE[1][:2], 4)
    # The first table is 1 / (number of different query words): 4 there, 3 here.
    assert weighted == pytest.approx(without, abs=1e-6)
    assert likelihood[1:] == pytest.approx(expected[1:])
    assert not learned([[], [1]], [[2], []], 3)[0].any()
    assert not learned([], [], 3)[0].any()


COMMON, UNSEEN, LATE, SIZE = 1, 14, 15, 16
# Text n has word 2 + n and a word that all texts have.
QUERIES = [[2 + number, COMMON] for number in range(12)]
DOCUMENTS = [[2 + number, COMMON] for number in range(12)]
DOCUMENTS[3] = [5, COMMON, *[5] * 38, LATE]  # the last word is the 41st
QUERIES[1] = [3, 3, COMMON]
QUERIES[2] = [4, COMMON, UNSEEN]  # beyond the known words
MATES = [(0, 0), (1, 1), (2, 2), (3, 3)]
LOWER = [(0, 1), (0, 2), (1, 3), (2, 0)]
OTHERS = [(5, 5), (6, 6)]  # of validation


@pytest.fixture(scope="module")
def pairs():
    query_rows, document_rows = np.array([*MATES, *LOWER, *OTHERS]).T
    grades = np.array([2] * len(MATES) + [1] * len(LOWER) + [2] * len(OTHERS))
    splits = np.array([SPLITS.index("train")] * 5 + [SPLITS.index("validation")] * 7)
    texts = types.SimpleNamespace(
        retrieval_set=types.SimpleNamespace(
            query_rows=query_rows, document_rows=document_rows, grades=grades, splits=splits
        ),
        queries=counts(*QUERIES, size=SIZE),
        documents=words(*DOCUMENTS, size=SIZE),
        known=UNSEEN,
        similar_words=(sp.csr_array((SIZE, SIZE)), sp.csr_array((SIZE, SIZE))),
    )
    return TrainingPairs(texts, texts.documents.matrix)


def slow_em(pairs):
    """T(w | t) from `(query words, {document word: share}, weight)`."""
    found_words = {word for query, _, _ in pairs for word in query}
    table = collections.defaultdict(lambda: 1 / len(found_words))
    for _ in range(ROUNDS):
        expected = collections.Counter()
        for query, document, weight in pairs:
            for word in query:
                total = sum(table[t, word] * share for t, share in document.items())
                for t, share in document.items():
                    expected[t, word] += weight * table[t, word] * share / total
        totals = collections.Counter()
        for (t, _), count in expected.items():
            totals[t] += count
        table = {key: count / totals[key[0]] for key, count in expected.items()}
    return table


def shares_of(document, profile, left_out=None):
    """p(t | d): what a word has of the weights of all positions of a text."""
    weights = profile(np.arange(len(document)))
    found = collections.Counter()
    for word, weight in zip(document, weights):
        if word != left_out:
            found[word] += weight / weights.sum()
    return found


@pytest.mark.parametrize("queries", [[0, 1, 2, 3], [0, 2, 3], [2]])
@pytest.mark.parametrize("profile", [FLAT, PositionProfile(3.0, 2.0)], ids=["flat", "falling"])
@pytest.mark.parametrize("weight", [0.0, 0.03, 0.5])
def test_tables_are_those_of_em_over_the_pairs(pairs, weight, profile, queries):
    known = [[word for word in query if word < UNSEEN] for query in QUERIES]
    listed = [(known[q], shares_of(DOCUMENTS[d], profile), 1.0) for q, d in MATES if q in queries]
    for q, d in LOWER:
        if weight and q in queries:
            rare = [word for word in known[q] if word != COMMON]
            listed.append((rare, shares_of(DOCUMENTS[d][:40], profile, COMMON), weight))
    found = pruned(pairs.table(profile, weight, np.array(queries))).toarray()
    expected = np.zeros((SIZE, SIZE))
    for place, probability in slow_em(listed).items():
        expected[place] = probability
    expected[expected < LEAST_PROBABILITY] = 0
    clear = np.abs(expected - LEAST_PROBABILITY) > 1e-4
    np.testing.assert_allclose(found[clear], expected[clear], atol=1e-5)
    assert np.count_nonzero(found) >= 2


def test_pairs_are_those_of_training_queries_and_lower_grades_add_translations(pairs):
    assert list(zip(*pairs.mates)) == MATES
    assert list(zip(*pairs.lower)) == LOWER
    assert pairs.training.tolist() == [0, 1, 2, 3]
    without, found = (pairs.whole_table(FLAT, weight).toarray() for weight in (0.0, 0.1))
    assert without[3, 2] == 0  # document 1 is of query 0 by a lower grade alone
    assert found[3, 2] > 0
    assert found[LATE, 3] == 0  # the 41st word of document 3, which is of query 1
    assert found[LATE, 5] > 0  # but of its mate all words count
    assert pairs.whole_table(FLAT, 0.1) is pairs.whole_table(FLAT, 0.1)  # learned once


def cosine(first: str, second: str, words: list[str]) -> float:
    """Of TF-IDF vectors of n-grams that more than one word has; the slow way."""
    grams = {
        word: {
            f"<{word}>"[begin : begin + length]
            for length in (3, 4, 5)
            for begin in range(len(word) + 3 - length)
        }
        for word in words
    }
    words_with = collections.Counter(gram for own in grams.values() for gram in own)
    rarity = {gram: math.log(len(words) / number) for gram, number in words_with.items()}
    lengths = [math.hypot(*(rarity[gram] for gram in grams[word])) for word in (first, second)]
    return sum(rarity[gram] ** 2 for gram in grams[first] & grams[second]) / math.prod(lengths)


def test_the_similarity_is_the_fourth_power_of_the_cosine_of_ngrams():
    words = ["walk", "walked", "walks", "talks", "house", "houses"]
    found = similar_words(words).toarray()
    for (row, first), (column, second) in itertools.product(enumerate(words), repeat=2):
        expected = 0.0 if first == second else cosine(first, second, words)
        expected = expected**4 if expected >= 0.3 else 0.0
        assert found[row, column] == pytest.approx(expected, abs=1e-6), (first, second)
    assert np.count_nonzero(found) >= 4


@pytest.mark.parametrize("words", [[], ["alone"], ["x", "xx"], ["", "", ""], ["1998", "1999", "x"]])
def test_numbers_and_single_characters_are_like_no_other_word(words):
    found = similar_words(words)
    assert found.shape == (len(words), len(words))
    assert found.nnz == 0


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=8), unique=True, max_size=12))
def test_the_similarity_of_any_words_is_symmetric_and_never_of_a_word_with_itself(words):
    found = similar_words(words).toarray()
    np.testing.assert_allclose(found, found.T, atol=1e-6)
    assert not np.diag(found).any()
    assert found.size == 0 or 0 <= found.min() <= found.max() <= 1 + 1e-5


NEIGHBOURS = np.array([[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize(
    ("counts", "of_documents", "of_queries", "expected"),
    [
        # Document word 0 was seen with query word 0 four times; word 1 was never seen, and looks
        # like word 0; word 2 looks like none. Neighbours count as two occurrences together.
        ([[4, 0], [0, 0], [0, 3]], 1, 0, [[4, 0], [2 * 4 / 4, 0], [0, 3]]),
        # Σ s c = 0.5 · 0.4 = 0.2: few occurrences of neighbours count 2 · 0.2.
        ([[0.4, 0], [0, 0], [0, 0]], 1, 0, [[0.4, 0], [2 * 0.2, 0], [0, 0]]),
        # Query words get a tenth of what their neighbours have.
        ([[5, 0, 1]], 0, 1.6, [[5, 0.1 * 0.8 * 5, 1]]),
        # Shares below two thousandths are left out.
        ([[1000, 1.9, 3]], 0, 0, [[1000, 0, 3]]),
    ],
)
def test_counts_are_shared_with_neighbours_by_hand(counts, of_documents, of_queries, expected):
    counts = sp.csr_array(np.array(counts, np.float32))
    similar = (
        sp.csr_array((factor * NEIGHBOURS)[:size, :size].astype(np.float32))
        for size, factor in zip(counts.shape, (of_documents, of_queries))
    )
    np.testing.assert_allclose(shared_counts(counts, *similar).toarray(), expected, rtol=1e-6)
