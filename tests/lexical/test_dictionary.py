"""Dictionaries of people and of word aligners."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from tf_smoothclir.lexical.dictionary import Dictionary, mixed
from tf_smoothclir.utils.errors import InputError

QUERY_WORDS = ["[PAD]", "[UNK]", "dog", "cat", "the"]
DOCUMENT_WORDS = ["[PAD]", "[UNK]", "chien", "chat", "le", "la"]
BACKGROUND = np.array([0.1, 0.1, 0.2, 0.1, 0.5])


def read(tmp_path, content, direction="query_to_document"):
    path = tmp_path / "dictionary.txt"
    path.write_text(content, encoding="utf-8")
    return Dictionary.read(path, direction)


def entries(table):
    found = table.toarray()
    return {
        (DOCUMENT_WORDS[t], QUERY_WORDS[w]): round(float(found[t, w]), 5)
        for t, w in zip(*np.nonzero(found))
    }


def table_of(tmp_path, content, direction="query_to_document"):
    dictionary = read(tmp_path, content, direction)
    return dictionary.table(QUERY_WORDS, DOCUMENT_WORDS, BACKGROUND)


@pytest.mark.parametrize("separator", ["\t", " "])
def test_without_probabilities_all_translations_of_a_word_are_alike(tmp_path, separator):
    lines = ["dog chien", "The le", "the la", "cat chat", "dog le", "dog chien"]
    content = "".join(line.replace(" ", separator) + "\n" for line in lines)
    assert entries(table_of(tmp_path, content)) == {
        ("chien", "dog"): 1,  # although it is there twice
        ("chat", "cat"): 1,
        ("le", "the"): 0.5,
        ("le", "dog"): 0.5,
        ("la", "the"): 1,
    }


def test_probabilities_of_document_words_are_turned_round(tmp_path):
    # P(le | the) = 0.6 and P(le | dog) = 0.5: P(the | le) = 0.6 * 0.5 / (0.6 * 0.5 + 0.5 * 0.2).
    found = table_of(tmp_path, "the le 0.6\ndog le 0.5\ndog chien 0.5\n")
    assert entries(found) == {("le", "the"): 0.75, ("le", "dog"): 0.25, ("chien", "dog"): 1}


def test_probabilities_of_query_words_stay_as_they_are(tmp_path):
    content = "le the 0.6\nle dog 0.1\nla the 0.5\nla nowhere 0.5\n"
    assert entries(table_of(tmp_path, content, "document_to_query")) == {
        ("le", "the"): 0.6,
        ("le", "dog"): 0.1,
        ("la", "the"): 0.5,  # the other half is of a word that the set does not have
    }


def test_rows_of_more_than_1_are_scaled(tmp_path):
    found = table_of(tmp_path, "le the 0.9\nle dog 0.6\n", "document_to_query")
    assert entries(found) == {("le", "the"): 0.6, ("le", "dog"): 0.4}


def test_fast_align_writes_logarithms_and_its_empty_word(tmp_path):
    # `fast_align -p`: source, target, log P(target | source), by tabs.
    content = f"le\tthe\t{math.log(0.25)}\n<eps>\tthe\t-1.5\nle\tdog\t0\nla\tthe\t-0\n"
    found = table_of(tmp_path, content, "document_to_query")
    assert entries(found) == {("le", "the"): 0.2, ("le", "dog"): 0.8, ("la", "the"): 1}


def test_giza_writes_probabilities_and_its_empty_word(tmp_path):
    # `*.actual.ti.final`: target, source, P(source | target), by spaces.
    content = "dog NULL 0.3\nNULL le 0.3\nthe le 0.5\nthe la 4.06e-06\ndog chien 1\n"
    found = entries(table_of(tmp_path, content))
    assert found == {("le", "the"): 1, ("la", "the"): 1, ("chien", "dog"): 1}


def test_the_empty_word_of_giza_is_no_word_that_is_spelled_like_it(tmp_path):
    dictionary = read(tmp_path, "dog NULL 0.3\nNULL le 0.3\nnull nul 1\n")
    assert (dictionary.query_words, dictionary.document_words) == (["null"], ["nul"])


def test_entries_of_several_words_are_left_out_and_counted(tmp_path, caplog):
    content = "hot dog\tchien chaud\ndog\tchien\nthe dog\tchien\n"
    with caplog.at_level("INFO", logger="absl"):
        dictionary = read(tmp_path, content)
    assert (dictionary.query_words, dictionary.document_words) == (["dog"], ["chien"])
    assert "2 of 3 entries are not of one word each" in caplog.text


def test_the_words_that_a_vocabulary_lacks(tmp_path):
    dictionary = read(tmp_path, "hound chien\ndog chien\nwolf loup\nkitten chat\nhound chat\n")
    assert dictionary.new_query_words(QUERY_WORDS, DOCUMENT_WORDS) == ["hound", "kitten"]


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("dog\n", 1, "1 columns instead of 2 or 3"),
        ("dog chien\ncat chat 0.5\n", 2, "3 columns instead of 2"),
        ("dog chien 0.5\ncat chat\n", 2, "2 columns instead of 3"),
        ("dog chien 0.5\ncat chat much\n", 2, "'much' is neither a probability nor"),
        ("dog chien 0.5\ncat chat nan\n", 2, "'nan' is neither a probability nor"),
        ("dog chien 1.5\n", 1, "'1.5' is neither a probability nor"),
        ("dog chien -1\ncat chat -2\ncat le 0.5\n", 3, "0.5 is positive, but the number in line 1"),
        ("dog chien\n\ncat chat\n", 2, "the line is blank"),
    ],
)
def test_a_bad_line_is_named_with_a_remedy(tmp_path, content, line, reason):
    with pytest.raises(InputError, match=rf"dictionary\.txt:{line}: {reason}.*\. \w+.*\.") as error:
        read(tmp_path, content)
    assert "Give a word, a translation" in str(error.value) or "blank" in reason


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("hot dog\tchien chaud\n", "no entry has one word in both columns"),
        ("2 3 0.5\n", "no entry has its words in the vocabularies.*words instead of numbers"),
        ("chien dog\n", "no entry has its words.*--dictionary_direction"),
    ],
)
def test_a_dictionary_of_no_use_is_an_error(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        table_of(tmp_path, content)


def test_tables_are_mixed_by_a_share():
    first = sp.csr_array(np.array([[0.5, 0.5], [0, 1]], np.float32))
    second = sp.csr_array(np.array([[1, 0], [0, 0]], np.float32))
    np.testing.assert_allclose(mixed(first, second, 0.2).toarray(), [[0.6, 0.4], [0, 0.8]])
    for share, expected in ((0.0, first), (1.0, second)):
        found = mixed(first, second, share)
        np.testing.assert_array_equal(found.toarray(), expected.toarray())
        assert found.nnz == expected.nnz
        assert found.dtype == np.float32
