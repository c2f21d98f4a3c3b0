"""Word vectors made of the judged pairs, against a count by hand."""

import math

import numpy as np

from tests.cases import cases
from tf_smoothclir.data import word_places
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.settings.text import TextSettings

DIM = 2048  # an estimate is off by about 1 / √DIM


def places_by_hand(tokenized_set, role):
    """Token id -> the training queries whose text, or best document, has it."""
    found, judged = {}, tokenized_set.retrieval_set
    for place, query in enumerate(np.flatnonzero(judged.splits == SPLITS.index("train"))):
        rows = [query]
        if role == "document":
            best = (judged.query_rows == query) & (judged.grades == judged.num_grades - 1)
            rows = judged.document_rows[best]
        for row in rows:
            for token in tokenized_set.tokens(role)[row].tolist():
                found.setdefault(token, set()).add(place)
    found.pop(1, None)  # unknown
    return found


def correlation(ours, theirs, number):
    """φ of two words, from the sets of places where they occur."""
    both, a, b = len(ours & theirs), len(ours), len(theirs)
    return (number * both - a * b) / math.sqrt(a * b * (number - a) * (number - b))


def occurrences_of(tokenized_set, *roles, dim=DIM, seed=13):
    size = len(tokenized_set.vocabulary(roles[0]))
    return word_places.occurrences(tokenized_set, roles, size=size, dim=dim, seed=seed)


def counts_of(found):
    return {token: found.counts[token] for token in np.flatnonzero(found.counts)}


@cases("role", "query", "document")
def test_only_training_pairs_of_the_highest_grade_count(tokenized_set, role, monkeypatch):
    found = occurrences_of(tokenized_set, role, dim=8)
    by_hand = places_by_hand(tokenized_set, role)
    assert counts_of(found) == {token: len(places) for token, places in by_hand.items()}
    assert not found.vectors()[found.counts == 0].any()
    size = len(found.counts) - 5  # words outside the vocabulary are left out
    fewer = word_places.occurrences(tokenized_set, [role], size=size, dim=8, seed=13)
    np.testing.assert_array_equal(fewer.counts, found.counts[:size])
    # The size of chunks changes nothing but rounding; the seed decides.
    monkeypatch.setattr(word_places, "_TEXTS_PER_CHUNK", 3)
    chunked, other = (occurrences_of(tokenized_set, role, dim=8, seed=seed) for seed in (13, 2))
    np.testing.assert_allclose(chunked.sums(), found.sums(), atol=1e-5)
    np.testing.assert_array_equal(chunked.counts, found.counts)
    assert (found.sums() != other.sums).any()


def test_a_word_stands_between_the_known_words_beside_it(tokenized_set):
    random = np.random.default_rng(5)
    tables = {(role,): random.random((6, 3), np.float32) for role in ("query", "document")}
    size = len(tokenized_set.vocabulary("document"))
    found = word_places.occurrences_beside(tokenized_set, ["document"], size=size, tables=tables)
    number = int((tokenized_set.retrieval_set.splits == SPLITS.index("train")).sum())
    beside = [[] for _ in range(number)]
    for (role,), table in tables.items():
        for token, places in places_by_hand(tokenized_set, role).items():
            for place in places if token < len(table) else ():
                beside[place].append(table[token])
    vectors = np.stack([np.mean(rows or np.zeros((1, 3)), axis=0) for rows in beside])
    vectors -= vectors.mean(axis=0)
    by_hand = places_by_hand(tokenized_set, "document")
    assert counts_of(found) == {token: len(places) for token, places in by_hand.items()}
    for token, places in by_hand.items():
        expected = vectors[sorted(places)].sum(axis=0)
        np.testing.assert_allclose(found.sums()[token], expected, atol=1e-5)


def test_inner_products_across_languages_are_correlations(tokenized_set, monkeypatch):
    monkeypatch.setattr(word_places, "_TEXTS_PER_CHUNK", 5)
    number = int((tokenized_set.retrieval_set.splits == SPLITS.index("train")).sum())
    words = {role: places_by_hand(tokenized_set, role) for role in ("query", "document")}
    vectors = {role: occurrences_of(tokenized_set, role).vectors() for role in words}
    off = []
    for q, ours in words["query"].items():
        for d, theirs in words["document"].items():
            length = math.sqrt((1 - len(ours) / number) * (1 - len(theirs) / number))
            if length > 0:
                found = vectors["query"][q] @ vectors["document"][d] / DIM
                off.append(found - correlation(ours, theirs, number) * length)
    assert len(off) > 100
    assert np.std(off) < 2 / math.sqrt(DIM)
    assert abs(np.mean(off)) < 4 * np.std(off) / math.sqrt(len(off)) + 0.01


def test_an_ngram_occurs_where_its_words_occur(small_set, tmp_path):
    tokenized_set = tokenize_set(small_set, TextSettings(ngram_buckets=7), tmp_path)
    words = occurrences_of(tokenized_set, "document", dim=4)
    ngrams = tokenized_set.ngrams("document")
    of_words = words.sums()
    sums, counts = np.zeros((7, 4)), np.zeros(7, int)
    for word in range(words.size):
        for bucket in ngrams[word]:
            sums[bucket] += of_words[word]
            counts[bucket] += words.counts[word]
    found = words.of_ngrams(ngrams, 7)
    np.testing.assert_allclose(found.sums(of_words), sums, atol=1e-4)
    np.testing.assert_array_equal(found.counts, counts)
    np.testing.assert_array_equal(words.sums(slice(1, 3)), of_words[:, 1:3])


def test_a_shared_word_has_the_places_of_both_languages(small_set, tmp_path):
    tokenized_set = tokenize_set(small_set, TextSettings(shared_vocabulary=True), tmp_path)
    queries, documents = (places_by_hand(tokenized_set, role) for role in ("query", "document"))
    assert counts_of(occurrences_of(tokenized_set, "query", "document", dim=4)) == {
        token: len(queries.get(token, set()) | documents.get(token, set()))
        for token in queries.keys() | documents.keys()
    }


def texts_of(tokenized_set, role):
    store = tokenized_set.tokens(role)
    train = tokenized_set.retrieval_set.splits == SPLITS.index("train")
    rows = np.flatnonzero(train) if role == "query" else range(len(store))
    return [set(store[row].tolist()) for row in rows]


def idf_by_hand(texts, size):
    counts = [max(1, sum(token in text for text in texts)) for token in range(size)]
    counts[1] = 1  # unknown
    return [math.log(1 + len(texts) / count) for count in counts]


@cases("shared", False, True)
def test_documents_and_training_queries_are_counted(shared, small_set, tmp_path, monkeypatch):
    monkeypatch.setattr(word_places, "_TEXTS_PER_CHUNK", 5)
    world = tokenize_set(small_set, TextSettings(shared_vocabulary=shared), tmp_path)
    for roles in (["query", "document"],) if shared else (["query"], ["document"]):
        size = len(world.vocabulary(roles[0]))
        found = word_places.inverse_document_frequency(world, roles, size)
        texts = [text for role in roles for text in texts_of(world, role)]
        np.testing.assert_allclose(found, idf_by_hand(texts, size), rtol=1e-12)
        assert len(set(found)) > 1
        assert found[1] == found.max()
