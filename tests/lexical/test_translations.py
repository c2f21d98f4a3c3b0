"""Dictionaries, queries word by word in the other language, and documents by PSQ."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from tests.lexical.helpers import counts, shares
from tf_smoothclir.lexical.dictionary import Dictionary, mixed
from tf_smoothclir.lexical.postings import Postings
from tf_smoothclir.lexical.psq import PsqSettings, background, impacts
from tf_smoothclir.lexical.query_translation import by_nearest, by_table, inverted, literal
from tf_smoothclir.lexical.words import same_spelling
from tf_smoothclir.utils.errors import InputError

QUERY_WORDS = ["[PAD]", "[UNK]", "dog", "cat", "the", "html"]
DOCUMENT_WORDS = ["[PAD]", "[UNK]", "chien", "chat", "le", "la", "html", "chienne", "42"]
BACKGROUND = np.array([0.1, 0.1, 0.2, 0.1, 0.5, 0.1])
OF_QUERIES, OF_DOCUMENTS = "query_to_document", "document_to_query"


def read(tmp_path, content, direction=OF_QUERIES):
    path = tmp_path / "dictionary.txt"
    path.write_text(content, encoding="utf-8")
    return Dictionary.read(path, direction)


def table_of(tmp_path, content, direction=OF_QUERIES):
    """Document word and query word -> probability."""
    dictionary = read(tmp_path, content, direction)
    found = dictionary.table(QUERY_WORDS, DOCUMENT_WORDS, BACKGROUND).toarray()
    return {
        f"{DOCUMENT_WORDS[t]} {QUERY_WORDS[w]}": round(float(found[t, w]), 5)
        for t, w in zip(*np.nonzero(found))
    }


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
MORE_THAN_1 = "le the 0.9\nle dog 0.6\n"


@pytest.mark.parametrize(
    ("content", "direction", "expected"),
    [
        (WORDS, OF_QUERIES, ALIKE),
        (WORDS.replace(" ", "\t"), OF_QUERIES, ALIKE),
        (TURNED_ROUND, OF_QUERIES, {"le the": 0.75, "le dog": 0.25, "chien dog": 1}),
        (AS_THEY_ARE, OF_DOCUMENTS, {"le the": 0.6, "le dog": 0.1, "la the": 0.5}),
        (MORE_THAN_1, OF_DOCUMENTS, {"le the": 0.6, "le dog": 0.4}),
        (FAST_ALIGN, OF_DOCUMENTS, {"le the": 0.2, "le dog": 0.8, "la the": 1}),
        (GIZA, OF_QUERIES, {"le the": 1, "la the": 1, "chien dog": 1}),
    ],
)
def test_dictionaries_by_hand(tmp_path, content, direction, expected):
    assert table_of(tmp_path, content, direction) == expected


def test_entries_of_several_words_are_left_out_and_counted(tmp_path, caplog):
    content = "hot dog\tchien chaud\ndog\tchien\nthe dog\tchien\n"
    with caplog.at_level("INFO", logger="absl"):
        dictionary = read(tmp_path, content)
    assert (dictionary.query_words, dictionary.document_words) == (["dog"], ["chien"])
    assert "2 of 3 entries are not of one word each" in caplog.text


def test_words_that_a_vocabulary_lacks_and_words_spelled_like_an_empty_word(tmp_path):
    dictionary = read(tmp_path, "hound chien\ndog chien\nwolf loup\nkitten chat\nhound chat\n")
    assert dictionary.new_query_words(QUERY_WORDS, DOCUMENT_WORDS) == ["hound", "kitten"]
    dictionary = read(tmp_path, "dog NULL 0.3\nNULL le 0.3\nnull nul 1\n")
    assert (dictionary.query_words, dictionary.document_words) == (["null"], ["nul"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("dog\n", ":1: 1 columns instead of 2 or 3.*Give a word, a translation"),
        ("dog chien\ncat chat 0.5\n", ":2: 3 columns instead of 2.*Give a word"),
        ("dog chien 0.5\ncat chat\n", ":2: 2 columns instead of 3.*Give a word"),
        ("dog chien 0.5\ncat chat much\n", ":2: 'much' is neither a probability nor.*Give a word"),
        ("dog chien 0.5\ncat chat nan\n", ":2: 'nan' is neither a probability nor.*Give a word"),
        ("dog chien 1.5\n", ":1: '1.5' is neither a probability nor.*Give a word"),
        ("dog chien -1\ncat chat -2\ncat le 0.5\n", ":3: 0.5 is positive, but .* line 1.*Give a"),
        ("dog chien\n\ncat chat\n", r":2: the line is blank.*\. \w+.*\."),
        ("hot dog\tchien chaud\n", "no entry has one word in both columns"),
        ("2 3 0.5\n", "no entry has its words in the vocabularies.*words instead of numbers"),
        ("chien dog\n", "no entry has its words.*--dictionary_direction"),
    ],
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


SPELLING = same_spelling(QUERY_WORDS, DOCUMENT_WORDS)
DOG, CAT, HTML, ONLY_42 = 2, 3, 5, len(QUERY_WORDS) + 8


def words_of(translation, word):
    row = translation.toarray()[word]
    return {DOCUMENT_WORDS[place]: round(float(row[place]), 6) for place in np.flatnonzero(row)}


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (1, {"chien": 1}),
        (2, {"chien": 0.625, "chienne": 0.375}),  # 0.5 / 0.8, 0.3 / 0.8
        (9, {"chien": 0.555556, "chienne": 0.333333, "chat": 0.111111}),
    ],
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


VECTORS = {"dog": [1, 0], "cat": [0, 2], "html": [0, 0]}
DOCUMENT_VECTORS = {"chien": [0.1, 0.9], "chat": [0, 5], "chienne": [9, 1], "42": [1, 0]}


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
        module = "tf_smoothclir.lexical.query_translation"
        monkeypatch.setattr(f"{module}._SIMILARITIES_AT_ONCE", at_once)
        assert words_of(nearest(), CAT) == {"chat": 1}


def test_a_table_is_turned_round_by_bayes_rule():
    # P(w | t) for t = 0, 1, and P(t) = 1/4, 3/4: P(t = 0 | w = 0) = 0.2 / (0.2 + 0.3).
    table = sp.csr_array(np.array([[0.8, 0.2], [0.4, 0.0]], np.float32))
    found = inverted(table, np.array([0.25, 0.75]))
    np.testing.assert_allclose(found.toarray(), [[0.4, 0.6], [1, 0]], rtol=1e-6)
    # Words that never occur translate nothing.
    table = sp.csr_array(np.array([[0.8, 0.2], [0.0, 1.0]], np.float32))
    found = inverted(table, np.array([0.0, 1.0]))
    np.testing.assert_allclose(found.toarray(), [[0, 0], [0, 1]])


def test_background_counts_unseen_words_a_little():
    found = background(counts([2, 2, 3], size=5))
    # 2.1 + 1.1 of words that occur, and room of 0.1 for each of these two.
    assert found == pytest.approx(np.array([0.1, 0.1, 2.1, 1.1, 0.1]) / (3.2 + 0.2))


@pytest.mark.parametrize("settings", [PsqSettings(), PsqSettings(alpha=0.5, beta=0.0)])
def test_impacts_are_those_of_the_formula(settings):
    table, spelling = np.zeros((2, 4, 4))
    table[2, 2:], table[3, 3], spelling[2, 3] = [0.75, 0.25], 0.5, 1
    documents, known = [[2, 3, 3, 0], [3], []], background(counts([2, 3, 3], size=4))
    tables = sp.csr_array(table), sp.csr_array(spelling)
    found = impacts(shares(*documents, size=4), *tables, known, settings).toarray()
    alpha, beta = settings.alpha, settings.beta
    for row, document in enumerate(documents):
        for word in range(4):
            translated = sum(table[t, word] for t in document) / max(1, len(document))
            same = sum(spelling[t, word] for t in document) / max(1, len(document))
            probability = (1 - beta) * translated + beta * same
            expected = math.log(1 + (1 - alpha) * probability / (alpha * known[word]))
            assert found[row, word] == pytest.approx(expected, rel=1e-5)


def test_scores_are_those_of_package_fast_psq(tmp_path):
    fast_psq = pytest.importorskip("fast_psq", reason="of extra rivals")
    translations = {"2": {"3": 0.7, "4": 0.2}, "3": {"3": 0.1, "5": 0.9}, "4": {"4": 1.0}}
    documents, queries = [[2, 3, 3, 4], [4, 4], [3, 2]], [[3, 4, 4], [5], [4, 5]]
    numbers = {3: 7, 4: 2, 5: 30}
    (tmp_path / "counts").write_text("".join(f"{n} {word}\n" for word, n in numbers.items()))
    theirs = fast_psq.PSQVectorizer.from_dict(
        translations, source_tokenizer=str.split, target_tokenizer=str.split, alpha=0.1
    )
    theirs.load_query_term_importance(str(tmp_path / "counts"))
    of_documents = theirs.translate([" ".join(map(str, document)) for document in documents])
    of_queries = theirs.make_target_vectors([" ".join(map(str, query)) for query in queries])

    table, nothing = np.zeros((6, 6), np.float32), sp.csr_array((6, 6), dtype=np.float32)
    for word, probabilities in translations.items():
        table[int(word), [int(other) for other in probabilities]] = [*probabilities.values()]
    # Its P(w): every word once more than counted, over the sum of the counts and one.
    known = np.array([1 + numbers.get(word, 0) for word in range(6)]) / (1 + sum(numbers.values()))
    settings = PsqSettings(alpha=0.1, beta=0.0)
    found = impacts(shares(*documents, size=6), sp.csr_array(table), nothing, known, settings)
    ours = Postings.of(found).sums(counts(*queries, size=6))
    assert ours == pytest.approx((of_queries @ of_documents).toarray(), rel=1e-5)
