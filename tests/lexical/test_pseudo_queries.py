"""Pseudo-queries: which documents have one, which words it has, and training on them."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from tests.lexical.helpers import tokenized
from tests.training.test_trainer import assert_same, start, train_until_killed, trained
from tf_smoothclir.lexical.positions import FLAT, PositionProfile
from tf_smoothclir.lexical.pseudo_queries import (
    _NO_TOKEN,
    _translated,
    with_pseudo_queries,
    write_pseudo_queries,
)
from tf_smoothclir.settings.presets import changed

FALLING = PositionProfile(100.0, 15.0)


WORDS = ["[PAD]", "[UNK]", "chat", "noir", "nasa"]
ENGLISH = ["[PAD]", "[UNK]", "nasa", "cat", "black"]


def table_of(entries):
    return sp.csr_array(entries.astype(np.float32))


def test_each_word_is_drawn_by_its_probability():
    table = np.zeros((5, 5))
    table[2, [3, 4]] = 0.6, 0.2  # pruned: the row sums to 0.8
    table[3, 4] = 0.9
    tokens = np.repeat([2, 3], 4000)
    found = _translated(tokens, (ENGLISH, WORDS), table_of(table), np.random.default_rng(1))
    assert (found[4000:] == 4).all()
    # 3 with probability 0.6 / 0.8; the standard error of 4,000 draws is 0.007.
    assert np.mean(found[:4000] == 3) == pytest.approx(0.75, abs=0.03)
    assert set(found[:4000]) == {3, 4}


def test_a_word_without_translation_stays_or_is_left_out():
    table, random = table_of(np.zeros((5, 5))), np.random.default_rng(1)
    tokens = np.array([2, 4, 7])
    found = _translated(tokens, (ENGLISH, WORDS), table, random)
    assert found.tolist() == [_NO_TOKEN, 2, _NO_TOKEN]  # spelled alike
    found = _translated(tokens, (WORDS, WORDS), table, random)
    assert found.tolist() == [2, 4, 7]  # shared, with a word behind the vocabulary


@pytest.fixture(scope="module")
def tokenized_set(tiny):
    return tokenized(tiny())


def made(tokenized_set, directory, profile=FALLING, number=1000, seed=13):
    """Pseudo-queries by a table that translates each document word to the query word of its id."""
    directory.mkdir()
    size = len(tokenized_set.vocabulary("document"))
    table = np.eye(size, max(size, len(tokenized_set.vocabulary("query"))))
    model = SimpleNamespace(table=table_of(table), fields=(profile,))
    write_pseudo_queries(directory, tokenized_set, model, number=number, seed=seed)
    return with_pseudo_queries(tokenized_set, directory)


def test_documents_that_are_no_querys_mate_have_one(tokenized_set, tmp_path):
    """Hazard: towers learn what validation and test queries look for."""
    before = tokenized_set.retrieval_set
    found = made(tokenized_set, tmp_path / "made")
    after, own = found.retrieval_set, len(before.query_ids)
    training = set(before.queries_in("train").tolist())
    mates = set(before.document_rows[before.grades == 2].tolist())
    expected = set(range(len(before.document_ids))) - mates - {29}  # document 29 is empty
    assert set(after.document_rows[after.query_rows >= own].tolist()) == expected
    assert (after.grades[after.query_rows >= own] == 2).all()
    assert set(after.queries_in("train")) == training | set(range(own, own + len(expected)))
    for split in ("validation", "test"):
        assert after.queries_in(split).tolist() == before.queries_in(split).tolist()
    for row in range(own):
        assert found.tokens("query")[row].tolist() == tokenized_set.tokens("query")[row].tolist()


@pytest.mark.parametrize("profile", [FALLING, FLAT])
def test_they_are_as_long_as_queries_and_begin_by_the_profile(tokenized_set, tmp_path, profile):
    found = made(tokenized_set, tmp_path / "made", profile)
    after, own = found.retrieval_set, len(tokenized_set.retrieval_set.query_ids)
    begins = set()
    for query, document in zip(after.query_rows, after.document_rows):
        if query < own:
            continue
        tokens, whole = found.tokens("query")[query].tolist(), found.tokens("document")[document]
        assert len(tokens) == 2  # queries have two words, documents three
        begins |= {begin for begin in (0, 1) if whole[begin : begin + 2].tolist() == tokens}
    assert begins == ({0, 1} if profile.is_flat else {0})


def test_a_smaller_number_is_drawn_by_seed(tokenized_set, tmp_path):
    def documents(number, seed):
        found = made(tokenized_set, tmp_path / f"{number}-{seed}", number=number, seed=seed)
        rows = found.retrieval_set
        return set(rows.document_rows[rows.query_rows >= len(tokenized_set.tokens("query"))])

    few, more, others = documents(4, 13), documents(8, 13), documents(8, 14)
    assert few < more != others
    assert len(few) in (3, 4)  # one document is empty


@pytest.mark.slow
@pytest.mark.parametrize("preset", [{"batching": "in_batch", "hard_negatives": 2}, {}])
def test_a_run_trains_on_them_and_continues_to_the_same_bits(tiny, tmp_path, preset):
    settings = changed(tiny(**preset), {"pseudo_queries": 18})
    whole = trained(settings, tmp_path / "whole")
    fewer = trained(changed(settings, {"pseudo_queries": 0}), tmp_path / "without")
    assert whole[0].pairs > fewer[0].pairs
    train_until_killed(start(settings, tmp_path / "killed")[0], 3)
    assert_same(trained(settings, tmp_path / "killed"), whole)
