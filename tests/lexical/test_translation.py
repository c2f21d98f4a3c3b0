"""Dictionaries, tables learned from pairs, words of similar spelling, and what they translate."""

import collections
import itertools
import math
import types
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from nltk import translate

from tests.cases import cases
from tests.lexical.helpers import counts, shares, words
from tests.text.test_vocabulary import by_hand as ngrams_by_hand
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.lexical import training_pairs
from tf_smoothclir.lexical.dictionary import Dictionary, mixed
from tf_smoothclir.lexical.ibm_model_1 import (
    LEAST_PROBABILITY,
    PLAIN_ROUNDS,
    ROUNDS,
    Alignments,
    pruned,
)
from tf_smoothclir.lexical.psq import (
    ALPHA,
    BETA,
    background,
    by_documents,
    impacts,
    spelling_mixed_in,
)
from tf_smoothclir.lexical.related_words import lookalikes, shared_counts, similar_words
from tf_smoothclir.lexical.sparse_tables import inverted, rows_of_1
from tf_smoothclir.lexical.training_pairs import TableChoices, TrainingPairs
from tf_smoothclir.lexical.word_classes import word_classes
from tf_smoothclir.lexical.words import FLAT, PositionProfile, same_spelling
from tf_smoothclir.papers.laboratory.translated import by_nearest, by_table, literal
from tf_smoothclir.utils.errors import InputError

QUERY_WORDS = ["[PAD]", "[UNK]", "dog", "cat", "the", "html"]
DOCUMENT_WORDS = ["[PAD]", "[UNK]", "chien", "chat", "le", "la", "html", "chienne", "42"]
BACKGROUND = np.array([0.1, 0.1, 0.2, 0.1, 0.5, 0.1])
OF_QUERIES, OF_DOCUMENTS = "query_to_document", "document_to_query"
# Without probabilities, all translations of a word are alike; one entry is there twice.
WORDS = "dog chien\nThe le\nthe la\ncat chat\ndog le\ndog chien\n"
ALIKE = {"chien dog": 1, "chat cat": 1, "le the": 0.5, "le dog": 0.5, "la the": 1}
# `fast_align -p`: source, target, log P(target | source), by tabs, and its empty word.
FAST_ALIGN = f"le\tthe\t{math.log(0.25)}\n<eps>\tthe\t-1.5\nle\tdog\t0\nla\tthe\t-0\n"
# `*.actual.ti.final` of Giza: target, source, P(source | target), by spaces, and its empty word.
GIZA = "dog NULL 0.3\nNULL le 0.3\nthe le 0.5\nthe la 4.06e-06\ndog chien 1\n"
# P(le | the) = 0.6 and P(le | dog) = 0.5: P(the | le) = 0.6 * 0.5 / (0.6 * 0.5 + 0.5 * 0.2).
TURNED_ROUND = "the le 0.6\ndog le 0.5\ndog chien 0.5\n"
# The other half of "la" is of a word that the set does not have.
AS_THEY_ARE = "le the 0.6\nle dog 0.1\nla the 0.5\nla nowhere 0.5\n"
SPELLING = same_spelling(QUERY_WORDS, DOCUMENT_WORDS)
DOG, CAT, HTML, ONLY_42 = 2, 3, 5, len(QUERY_WORDS) + 8
VECTORS = {"dog": [1, 0], "cat": [0, 2], "html": [0, 0]}
DOCUMENT_VECTORS = {"chien": [0.1, 0.9], "chat": [0, 5], "chienne": [9, 1], "42": [1, 0]}
TRIPLE = [[1, 2], [1, 3], [2, 4]], [[5, 6], [5, 7], [6, 8, 5]]
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
WEIGHTS = {(3, 3): 2.0, (0, 2): 1.5}  # of judgments; of others 1
NEIGHBOURS = np.array([[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]])


def read(tmp_path, content, direction=OF_QUERIES):
    path = tmp_path / "dictionary.txt"
    path.write_text(content, encoding="utf-8")
    return Dictionary.read(path, direction)


def table_of(tmp_path, content, direction=OF_QUERIES):
    dictionary = read(tmp_path, content, direction)
    found = dictionary.table(QUERY_WORDS, DOCUMENT_WORDS, BACKGROUND).toarray()
    return {
        f"{DOCUMENT_WORDS[t]} {QUERY_WORDS[w]}": round(float(found[t, w]), 5)
        for t, w in zip(*np.nonzero(found))
    }


@cases(
    "content, direction, expected",
    (WORDS, OF_QUERIES, ALIKE),
    (WORDS.replace(" ", "\t"), OF_QUERIES, ALIKE),
    (TURNED_ROUND, OF_QUERIES, {"le the": 0.75, "le dog": 0.25, "chien dog": 1}),
    (AS_THEY_ARE, OF_DOCUMENTS, {"le the": 0.6, "le dog": 0.1, "la the": 0.5}),
    ("le the 0.9\nle dog 0.6\n", OF_DOCUMENTS, {"le the": 0.6, "le dog": 0.4}),
    (FAST_ALIGN, OF_DOCUMENTS, {"le the": 0.2, "le dog": 0.8, "la the": 1}),
    (GIZA, OF_QUERIES, {"le the": 1, "la the": 1, "chien dog": 1}),
)
def test_dictionaries_by_hand(tmp_path, content, direction, expected):
    assert table_of(tmp_path, content, direction) == expected


def test_words_of_a_dictionary(tmp_path, caplog):
    with caplog.at_level("INFO", logger="absl"):
        dictionary = read(tmp_path, "hot dog\tchien chaud\ndog\tchien\nthe dog\tchien\n")
        read(tmp_path, "hot dog\tchien chaud\ndog\tchien\nthe dog\tchien\n")  # as each fold does
    assert (dictionary.query_words, dictionary.document_words) == (["dog"], ["chien"])
    assert caplog.text.count("2 of 3 entries are not of one word each, and left out. A list") == 1
    # Words that a vocabulary lacks, and a word that is spelled like an empty one.
    dictionary = read(tmp_path, "hound chien\ndog chien\nwolf loup\nkitten chat\nhound chat\n")
    assert dictionary.new_query_words(QUERY_WORDS, DOCUMENT_WORDS) == ["hound", "kitten"]
    # Entries that the tokenizer reads alike count once; words without spaces have several tokens.
    alike = "Dog chien 0.4\ndog Chien 0.4\ndog chien 0.1\n"
    assert read(tmp_path, alike).probabilities.tolist() == [0.4]
    dictionary = read(tmp_path, "apple\t苹果\t0.8\nmama\tパパ\t0.5\ndog\tสุนัข\t1\na dog\t犬\t1\n")
    pairs = list(zip(dictionary.query_words, dictionary.document_words))
    assert pairs[:2] == [("apple", "苹果"), ("mama", "パパ")]
    assert [thai for word, thai in pairs if word == "dog"] == ["สุนัข"]
    assert dictionary.probabilities.tolist() == [0.8, 0.5, 1]
    pairs = read(tmp_path, "苹果 apple 0.8\n", OF_DOCUMENTS)
    assert list(zip(pairs.document_words, pairs.probabilities)) == [("苹果", 0.8)]
    dictionary = read(tmp_path, "dog NULL 0.3\nNULL le 0.3\nnull nul 1\n")
    assert (dictionary.query_words, dictionary.document_words) == (["null"], ["nul"])


@cases(
    "content, message",
    ("dog\n", ":1: 1 columns instead of 2 or 3.*Give a word, a translation"),
    ("dog chien\ncat chat 0.5\n", ":2: 3 columns instead of 2.*Give a word"),
    ("dog chien 0.5\ncat chat nan\n", ":2: 'nan' is neither a probability nor.*Give a word"),
    ("dog chien 1.5\n", ":1: '1.5' is neither a probability nor.*Give a word"),
    ("dog chien -1\ncat chat -2\ncat le 0.5\n", ":3: 0.5 is positive, but .* line 1.*Give a"),
    ("hot dog\tchien chaud\n", "no entry has one word in both columns"),
    ("2 3 0.5\n", "no entry has its words in the vocabularies.*words instead of numbers"),
    ("chien dog\n", "no entry has its words.*--dictionary_direction"),
)
def test_a_dictionary_of_no_use_is_an_error_with_place_and_remedy(tmp_path, content, message):
    with pytest.raises(InputError, match=rf"dictionary\.txt.*{message}"):
        table_of(tmp_path, content)


def test_tables_are_mixed_by_a_share():
    first = sp.csr_array(np.array([[0.5, 0.5], [0, 1]], np.float32))
    second = sp.csr_array(np.array([[1, 0], [0, 0]], np.float32))
    np.testing.assert_allclose(mixed(first, second, 0.2).toarray(), [[0.6, 0.4], [0, 0.8]])
    for share, expected in ((0.0, first), (1.0, second)):
        found = mixed(first, second, share)
        np.testing.assert_array_equal(found.toarray(), expected.toarray())
        assert (found.nnz, found.dtype) == (expected.nnz, np.float32)


def words_of(translation, word):
    row = translation.toarray()[word]
    return {DOCUMENT_WORDS[place]: round(float(row[place]), 6) for place in np.flatnonzero(row)}


@cases(
    "most, expected",
    (2, {"chien": 0.625, "chienne": 0.375}),  # 0.5 / 0.8, 0.3 / 0.8
    (9, {"chien": 0.555556, "chienne": 0.333333, "chat": 0.111111}),
)
def test_the_best_translations_share_one_word(most, expected):
    table = np.zeros((SPELLING.shape[1], SPELLING.shape[0]), np.float32)
    table[DOG, [2, 7, 3]] = 0.5, 0.3, 0.1
    table[CAT, 3] = 0.2
    found = by_table(sp.csr_array(table), SPELLING, most)
    assert words_of(found, DOG) == expected
    assert words_of(found, CAT) == {"chat": 1}
    assert words_of(literal(SPELLING), DOG) == {}
    for translation in (found, literal(SPELLING)):  # what has no translation is as it is spelled
        assert words_of(translation, HTML) == {"html": 1}
        assert words_of(translation, ONLY_42) == {"42": 1}  # a word that only documents have


def nearest(missing=()):
    queries = np.array([VECTORS.get(word, [0, 0]) for word in QUERY_WORDS], np.float32)
    documents = np.array([DOCUMENT_VECTORS.get(word, [0, 0]) for word in DOCUMENT_WORDS], float)
    occurring = np.array([word not in missing for word in DOCUMENT_WORDS])
    return by_nearest(queries, documents, occurring, SPELLING)


def test_the_nearest_word_is_that_of_the_largest_cosine_not_of_the_longest_vector(monkeypatch):
    assert words_of(nearest(), DOG) == {"42": 1}  # cosine 1; "chienne" 0.994 and longer
    assert words_of(nearest(missing=["42"]), DOG) == {"chienne": 1}  # what no document has is none
    # Words without a vector stay as they are.
    assert words_of(nearest(), HTML) == {"html": 1}
    assert words_of(nearest(missing=DOCUMENT_WORDS), DOG) == {}  # nothing to be near to
    assert words_of(nearest(missing=DOCUMENT_WORDS), HTML) == {"html": 1}
    for at_once in (10**6, 1):
        module = "tf_smoothclir.papers.laboratory.translated"
        monkeypatch.setattr(f"{module}._SIMILARITIES_AT_ONCE", at_once)
        assert words_of(nearest(), CAT) == {"chat": 1}
    # P(w | t) for t = 0, 1, and P(t) = 1/4, 3/4: P(t = 0 | w = 0) = 0.2 / (0.2 + 0.3).
    table = sp.csr_array(np.array([[0.8, 0.2], [0.4, 0.0]], np.float32))
    found = inverted(table, np.array([0.25, 0.75]))
    np.testing.assert_allclose(found.toarray(), [[0.4, 0.6], [1, 0]], rtol=1e-6)
    # Words that never occur translate nothing.
    table = sp.csr_array(np.array([[0.8, 0.2], [0.0, 1.0]], np.float32))
    np.testing.assert_allclose(inverted(table, np.array([0.0, 1.0])).toarray(), [[0, 0], [0, 1]])
    found = background(counts([2, 2, 3], size=5))
    # 2.1 + 1.1 of words that occur, and room of 0.1 for each of these two.
    assert found == pytest.approx(np.array([0.1, 0.1, 2.1, 1.1, 0.1]) / (3.2 + 0.2))
    assert background(counts([2], size=3)) == pytest.approx(np.array([0.1, 0.1, 1.1]) / (1.1 + 0.1))
    assert background(counts([], size=2)) == pytest.approx([1, 1])  # room of one word
    # Words that are spelled like one of 9 or 1 in 40 words of documents, of which one may be of the
    # document that is scored; that no query has, or three.
    spelling, counted = sp.csr_array(np.eye(4, dtype="f4")), np.array([0, 3, 3, 0])
    raised = by_documents(np.full(4, 0.1), counted, np.array([9, 9, 21, 1]), spelling)
    assert raised == pytest.approx([3 * 8 / 40, 3 * 8 / 40 / 2, 3 * 20 / 40 / 2, 0.1])


def test_impacts_are_those_of_the_formula():
    table, spelling = np.zeros((2, 4, 4))
    table[2, 2:], table[3, 3], spelling[2, 3] = [0.75, 0.25], 0.5, 1
    documents, known = [[2, 3, 3, 0], [3], []], background(counts([2, 3, 3], size=4))
    mixed = spelling_mixed_in(sp.csr_array(table), sp.csr_array(spelling))
    found = impacts([shares(*documents, size=4)], mixed, known).toarray()
    for row, document in enumerate(documents):
        for word in range(4):
            translated = sum(table[t, word] for t in document) / max(1, len(document))
            same = sum(spelling[t, word] for t in document) / max(1, len(document))
            probability = (1 - BETA) * translated + BETA * same
            expected = math.log(1 + (1 - ALPHA) * probability / (ALPHA * known[word]))
            assert found[row, word] == pytest.approx(expected, rel=1e-5)


def learned(queries, documents, rounds, weights=None):
    # Fewer words of queries than of documents, so that neither stands for the other.
    alignments = Alignments.of(counts(*queries, size=5), shares(*documents, size=10))
    weights = np.ones(len(queries)) if weights is None else weights
    with mock.patch("tf_smoothclir.lexical.ibm_model_1.ROUNDS", rounds):
        (found,) = alignments.learn_counts(weights[:, None])
    return rows_of_1(found).toarray()


@cases("rounds", 1, 2, 5, 30)
def test_nltk_finds_the_same(rounds):
    null = 9  # NLTK lets a word of the query stand for nothing: here, a word of every document
    texts = zip(*([[str(word) for word in text] for text in texts] for texts in TRIPLE))
    pairs = [translate.AlignedSent(query, document) for query, document in texts]
    theirs = translate.IBMModel1(pairs, rounds).translation_table
    ours = learned(TRIPLE[0], [[*document, null] for document in TRIPLE[1]], rounds)
    for query, document in zip(*TRIPLE):  # what never met keeps its first value there
        for word, t in itertools.product(query, document):
            assert ours[t, word] == pytest.approx(theirs[str(word)][str(t)], abs=1e-5)
            assert ours[null, word] == pytest.approx(theirs[str(word)][None], abs=1e-5)


def test_pairs_of_weight_0_and_empty_texts_are_as_if_they_were_not_there():
    weighted = learned(*TRIPLE, 4, np.array([1, 1, 0]))
    assert weighted == pytest.approx(learned(TRIPLE[0][:2], TRIPLE[1][:2], 4), abs=1e-6)
    assert not learned([[], [1]], [[2], []], 3).any()
    assert not learned([], [], 3).any()
    # What is as likely as the least is kept.
    table = sp.csr_array(np.array([[0.25, 0.5, 0.0]]))
    assert pruned(table, least=0.5).toarray().tolist() == [[0, 0.5, 0]]


def class_of(word):
    """Two words of a text begin alike: 0 and 1, 2 and 3, ..."""
    return word // 2


def texts_of(queries, documents, size, **others):
    empty = sp.csr_array((size, size))
    vocabulary = [f"{chr(97 + class_of(word)) * 5}{'es'[word % 2]}" for word in range(size)]
    return types.SimpleNamespace(
        vocabularies=(vocabulary[: others["known"]], vocabulary),
        spelling=empty,
        query_words=words(*queries, size=size),
        queries=counts(*queries, size=size),
        documents=words(*documents, size=size),
        similar_words=(empty, empty),
        **others,
    )


@pytest.fixture(scope="module")
def pairs():
    query_rows, document_rows = np.array([*MATES, *LOWER, *OTHERS]).T
    judged = types.SimpleNamespace(
        query_rows=query_rows,
        document_rows=document_rows,
        grades=np.array([2] * len(MATES) + [1] * len(LOWER) + [2] * len(OTHERS)),
        weights=np.array([WEIGHTS.get(pair, 1.0) for pair in zip(query_rows, document_rows)]),
        splits=np.array([SPLITS.index("train")] * 5 + [SPLITS.index("validation")] * 7),
    )
    return TrainingPairs(texts_of(QUERIES, DOCUMENTS, SIZE, retrieval_set=judged, known=UNSEEN))


def slow_em(pairs):
    """T(w | t) from `(query words, {document word: share}, weight, factor of word and t, a)`.

    Probabilities are of classes until the last round. Returns what all words count, too.
    """
    found_words = {word for query, *_ in pairs for word in query}
    table, inverse = collections.defaultdict(lambda: 1 / len(found_words)), {}
    for one_round in range(ROUNDS):
        is_last, expected = one_round == ROUNDS - 1, collections.Counter()
        for query, document, weight, factor, agreement in pairs:
            for word in query:
                near = {t: share * factor(word, t) for t, share in document.items()}
                total = sum(table[t, word] * share for t, share in near.items())
                for t, share in near.items():
                    count = weight * table[t, word] * share / total
                    if one_round >= PLAIN_ROUNDS:
                        of_query = sum(inverse[t, other] for other in query)
                        agreed = query.count(word) * inverse[t, word] / of_query
                        count *= 1 - agreement + agreement * agreed
                    expected[t, word] += count
        of = (lambda word: word) if is_last else class_of
        counts, rows, columns = (collections.Counter() for _ in range(3))
        for (t, word), count in expected.items():
            counts[of(t), of(word)] += count
            rows[of(t)] += count
            columns[of(word)] += count
        table = {(t, word): counts[of(t), of(word)] / rows[of(t)] for t, word in expected}
        inverse = {(t, word): counts[of(t), of(word)] / columns[of(word)] for t, word in expected}
    return table, expected.total()


def shares_of(document, profile, left_out=None):
    """p(t | d): what a word has of the weights of all positions of a text."""
    weights = profile(np.arange(len(document)))
    found = collections.Counter()
    for word, weight in zip(document, weights):
        if word != left_out:
            found[word] += weight / weights.sum()
    return found


def place(text, word):
    """The mean place of a word in a text, in parts of it."""
    return np.mean([(at + 0.5) / len(text) for at, one in enumerate(text) if one == word])


def everywhere(word, t):
    return 1.0


def near_diagonal(query, document, tension):
    """The factor exp(-tension |a - b|) of two words at a and b."""
    return lambda word, t: math.exp(-tension * abs(place(query, word) - place(document, t)))


@cases("queries", [0, 1, 2, 3], [0, 2, 3], [2])
@cases("profile", FLAT, PositionProfile(3.0, 2.0), ids=["flat", "falling"])
@cases(
    "weight, tension, agreement",
    *((0.0, 0.0, 0.0), (0.03, 0.0, 0.5), (0.5, 0.0, 1.0), (0.5, 1.0, 0.0)),
)
def test_tables_are_those_of_em_over_pairs(
    pairs, weight, tension, agreement, profile, queries, monkeypatch
):
    monkeypatch.setattr(training_pairs, "TENSION", tension)
    known = [[word for word in query if word < UNSEEN] for query in QUERIES]
    listed = []
    for q, d in MATES:
        if q in queries:
            shares = shares_of(DOCUMENTS[d], profile)
            near = near_diagonal(QUERIES[q], DOCUMENTS[d], tension)
            listed.append((known[q], shares, WEIGHTS.get((q, d), 1.0), near, agreement))
    for q, d in LOWER:
        if weight and q in queries:
            rare = [word for word in known[q] if word != COMMON]
            shares = shares_of(DOCUMENTS[d][:40], profile, COMMON)
            listed.append((rare, shares, weight * WEIGHTS.get((q, d), 1.0), everywhere, 0.0))
    choices = TableChoices(profile, weight, agreement, in_order=tension > 0)
    ((table, evidence),) = pairs.tables(choices, [np.array(queries)])
    found = pruned(table).toarray()
    expected = np.zeros((SIZE, SIZE))
    learned, total = slow_em(listed)
    for place, probability in learned.items():
        expected[place] = probability
    assert expected[LATE, 3] == 0  # the 41st word of document 3, which is of query 1
    expected[expected < 0.002] = 0  # small shares of a row, before its rest is scaled to 1
    expected /= np.maximum(expected.sum(axis=1, keepdims=True), 0.5)
    expected[expected < LEAST_PROBABILITY] = 0
    clear = np.abs(expected - LEAST_PROBABILITY) > 1e-4
    np.testing.assert_allclose(found[clear], expected[clear], atol=1e-5)
    assert np.count_nonzero(found) >= 2
    if not agreement:
        # Each query word counts once, for the document words that may stand for it.
        counted = [(words, pair_weight) for words, shares, pair_weight, *_ in listed if shares]
        assert total == pytest.approx(sum(len(words) * one for words, one in counted))
    # Less only by small shares, of which the diagonal leaves more.
    assert evidence.sum() == pytest.approx(total, rel=0.01 if tension else 1e-3)


def test_words_with_letters_that_begin_alike_are_one_class():
    words = ["[PAD]", "walked", "walker", "walk", "12345", "123456", "élèves", "élève"]
    words += ["शिक्षा", "शिक्षक"]  # vowel signs are no letters
    assert word_classes(words, 12).tolist() == [0, 1, 1, 2, 3, 4, 5, 5, 6, 6, 7, 8]


def test_pairs_are_those_of_training_queries_and_their_table_is_learned_once(pairs):
    assert list(zip(*pairs.mates)) == MATES
    assert list(zip(*pairs.lower)) == LOWER
    assert pairs.training.tolist() == [0, 1, 2, 3]
    choices = TableChoices(lower_grades=0.1)
    ((table, _),) = pairs.tables(choices, [pairs.training])
    whole = pairs.whole_table(choices)
    np.testing.assert_array_equal(whole[0].toarray(), pruned(table).toarray())
    assert pairs.whole_table(choices) is whole  # learned once


def test_places_of_words_are_means_in_parts_of_their_texts():
    found = words([5, 6, 5, 7], [0, 3], [], size=8).places().toarray()
    expected = np.zeros((3, 8))
    expected[0, 5:8] = (0.5 + 2.5) / 2 / 4, 1.5 / 4, 3.5 / 4
    expected[1, 3] = 1.5 / 2  # a word without an id has its place
    np.testing.assert_allclose(found, expected)


def parallel_texts(number, half):
    """A generator, queries of words below `half`, documents of others, and their set."""
    generator = np.random.default_rng(1)
    queries = [generator.permutation(np.arange(1, half))[:8].tolist() for _ in range(number)]
    documents = [[half + word for word in query] for query in queries]
    rows, ones = np.arange(number), np.ones(number, int)  # one training query for each document
    judged = {"query_rows": rows, "document_rows": rows, "weights": ones, "grades": ones}
    pairs = types.SimpleNamespace(**judged, splits=np.zeros(number, int))
    return generator, queries, documents, {"retrieval_set": pairs, "known": half}


@cases("is_parallel", True, False)
def test_pairs_are_parallel_where_that_makes_them_more_likely(is_parallel):
    """Hazard: words of a page stand anywhere, and would be read as if its order were a query's."""
    generator, queries, documents, own = parallel_texts(number := 150, half := 40)
    if not is_parallel:
        documents = [generator.permutation(document).tolist() for document in documents]
    documents[3], documents[4] = [], [0, 0]  # empty, and without a known word: they say nothing
    texts = texts_of(queries, documents, 2 * half, **own)
    assert TrainingPairs(texts).are_parallel == is_parallel
    texts.documents = words(*[[]] * number, size=2 * half)
    assert not TrainingPairs(texts).are_parallel
    texts.retrieval_set.grades = np.zeros(number, int)
    assert not TrainingPairs(texts).are_parallel  # there are none


@cases("seed", *range(10))
def test_a_few_pairs_are_not_parallel_by_chance(seed):
    """Hazard: of 300 pages, the words happened to stand in order, and tables found far less."""
    _, queries, answers, own = parallel_texts(6, half := 40)
    generator = np.random.default_rng(seed)
    pages = [generator.integers(half, 2 * half, 16).tolist() for _ in answers]
    for page, answer in zip(pages, answers):
        begin = generator.integers(9)
        page[begin : begin + 8] = answer
    assert not TrainingPairs(texts_of(queries, pages, 2 * half, **own)).are_parallel
    assert TrainingPairs(texts_of(queries, answers, 2 * half, **own)).are_parallel


def test_a_passage_is_not_parallel_where_its_document_is_not():
    """Hazard: short passages of pages, about as long as a query, were read in its order."""
    generator, queries, answers, own = parallel_texts(number := 150, half := 40)
    documents = [generator.integers(half, 2 * half, 80).tolist() for _ in range(number)]
    for document, answer in zip(documents, answers):
        begin = 8 * generator.integers(10)
        document[begin : begin + 8] = answer
    pairs = TrainingPairs(texts_of(queries, documents, 2 * half, **own))
    assert not pairs.of_passages(words(*answers, size=2 * half)).are_parallel


def cosine(first: str, second: str, words: list[str]) -> float:
    grams = {word: {*ngrams_by_hand(word, 3, 5)} for word in words}
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


def test_lookalikes_are_the_four_nearest_words_above_a_cosine_of_0_4():
    near = [0.9, 0.5, 0.8, 0.7, 0.6, 0.39]
    similar = sp.csr_array(np.array([[0, *near], [0.41, *[0] * 6]]) ** 4)
    expected = np.array([[0, 0.9, 0, 0.8, 0.7, 0.6, 0], [0.41, *[0] * 6]]) ** 4
    np.testing.assert_array_equal(lookalikes(similar).toarray(), expected)


@cases("words", [], ["alone"], ["x", "xx"], ["", "", ""], ["1998", "1999", "x"])
def test_numbers_and_single_characters_are_like_no_other_word(words):
    found = similar_words(words)
    assert found.shape == (len(words), len(words))
    assert found.nnz == 0


@cases(
    "counts, of_documents, of_queries, expected",
    # Document word 0 was seen with query word 0 four times; word 1 was never seen, and looks
    # like word 0; word 2 looks like none. Neighbours count as two occurrences together.
    ([[4, 0], [0, 0], [0, 3]], 1, 0, [[4, 0], [2 * 4 / 4, 0], [0, 3]]),
    # Σ s c = 0.5 · 0.4 = 0.2: few occurrences of neighbours count 2 · 0.2.
    ([[0.4, 0], [0, 0], [0, 0]], 1, 0, [[0.4, 0], [2 * 0.2, 0], [0, 0]]),
    # Query words get a tenth of what their neighbours have.
    ([[5, 0, 1]], 0, 1.6, [[5, 0.1 * 0.8 * 5, 1]]),
    # Shares below two thousandths are left out.
    ([[1000, 1.9, 3]], 0, 0, [[1000, 0, 3]]),
)
def test_counts_are_shared_with_neighbours_by_hand(counts, of_documents, of_queries, expected):
    counts = sp.csr_array(np.array(counts, np.float32))
    similar = (
        sp.csr_array((factor * NEIGHBOURS)[:size, :size].astype(np.float32))
        for size, factor in zip(counts.shape, (of_documents, of_queries))
    )
    np.testing.assert_allclose(shared_counts(counts, *similar).toarray(), expected, rtol=1e-6)
