"""Validation queries cut short: which words stay, and that every family ranks them."""

import numpy as np
import pytest

from tests.training.fixtures import tokenized_by
from tf_smoothclir.training import run_report
from tf_smoothclir.training.run_models import ModelsOverSet, load_models
from tf_smoothclir.training.run_report import hits_of_short_queries
from tf_smoothclir.training.short_queries import cut_short


def test_a_third_the_first_ten_words_the_others_the_three_rarest():
    long = " ".join(f"w{number}" for number in range(12))
    texts = {
        2: "The sea, the sea!",
        3: long,
        5: "the w1 zebra, the w2 yak; w3 xenon",
        9: long,
        11: "!",
    }
    assert cut_short(texts) == {
        2: "the sea the sea",
        3: "w0 w10 w11",  # of those in two queries, the first by name
        5: "zebra yak xenon",  # w1 to w3 are in three queries, the others in one
        9: "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9",
        11: "!",  # no word is left
    }


def test_what_has_no_spaces_has_words_of_two_characters_unless_users_split_it():
    texts = {0: "日本人 です。四つ字熟語 ok 字"}
    assert cut_short(texts) == {0: "日本 人 です 四つ 字熟 語 ok 字"}
    assert cut_short(texts, pretokenized=True) == texts
    # Of 日本 人日 本人 日本 ok, the first by name: each is in one query.
    assert cut_short({0: "字", 1: "日本人日本人日本ok"})[1] == "日本 人日 ok"


@pytest.mark.parametrize("name", ["dense", "lexical", "hybrid"])
def test_all_that_ranks_ranks_them_and_the_set_is_left_as_it_is(ranking_runs, name, monkeypatch):
    run = ranking_runs[name]
    over = ModelsOverSet(run.settings(), tokenized_by(run), load_models(run))
    before = [query.text for query in over.retrieval_set.source.queries()]
    rows = over.retrieval_set.queries_in("validation")
    monkeypatch.setattr(
        run_report, "cut_short", lambda texts, as_is: {**texts, rows[1]: before[rows[0]]}
    )
    for own, hits in hits_of_short_queries(over).items():
        (whole,) = over.retrievers[own].rank(rows, 10)
        np.testing.assert_allclose(hits.scores[1], whole.scores[0, :10], rtol=1e-5)
        np.testing.assert_allclose(hits.scores[2:], whole.scores[2:, :10], rtol=1e-5)
    assert [query.text for query in over.retrieval_set.source.queries()] == before
