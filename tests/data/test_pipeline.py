"""Batches of pairs and of lists: each once, a reproducible order, the tokens of the store."""

import types

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import cases
from tf_smoothclir.data import model_inputs as forms
from tf_smoothclir.data import pipeline as pipelines
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.pipeline import PIPELINES, ListPipeline
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text.tokens import Tokens

BATCH = 5
# 24 pairs in 3 lists: one list a batch, two (and one in the last), all in one.
CASES = [("pairs", BATCH), ("bucketed", BATCH), ("lists", 8), ("lists", 16), ("lists", 1000)]
CASES += [("in_batch", 8), ("in_batch", 1000)]


@pytest.fixture(scope="module")
def lists(small_set):
    return candidate_lists(small_set, "train", negatives=6, seed=1)  # 6 judged and 18 sampled pairs


@pytest.fixture(scope="module", params=CASES, ids=str)
def case(tokenized_set, request):
    name, size = request.param
    return name, PIPELINES[name](tokenized_set, batch_size=size, seed=13)


def positions(pipeline, lists, epoch):
    steps = range(len(pipeline.pair_ends(lists, epoch)))
    return [pipeline.batch_pairs(lists, epoch, step) for step in steps]


def split(tokens):
    texts = np.repeat(range(len(tokens.lengths)), tokens.lengths)
    np.testing.assert_array_equal(tokens.texts, texts)
    return [part.tolist() for part in np.split(tokens.ids, np.cumsum(tokens.lengths))[:-1]]


def texts_of(tokens):
    """The ids of each text, and the n-grams of each word."""
    if isinstance(tokens, Tokens):
        return split(tokens), {}
    assert len(set(tokens.distinct)) == len(tokens.distinct)
    return split(tokens), dict(zip(tokens.distinct.tolist(), split(tokens.ngrams)))


def test_an_epoch_has_every_pair_once_and_pair_ends_count_them(case, lists):
    name, pipeline = case
    for epoch in range(3):
        found = positions(pipeline, lists, epoch)
        assert sorted(np.concatenate(found)) == list(range(len(lists.grades)))
        sizes = [len(batch) for batch in found]
        np.testing.assert_array_equal(pipeline.pair_ends(lists, epoch), np.cumsum(sizes))
        if name in ("pairs", "bucketed"):
            assert sizes == [5, 5, 5, 5, 4]
            continue
        for batch in found:  # whole lists
            queries = list(set(lists.pair_query_rows[batch]))
            assert len(batch) == np.isin(lists.pair_query_rows, queries).sum()


def test_order_depends_on_seed_and_epoch_only(case, tokenized_set, lists):
    _, pipeline = case

    def orders(seed):
        made = type(pipeline)(tokenized_set, batch_size=8, seed=seed)
        return [tuple(np.concatenate(positions(made, lists, epoch))) for epoch in range(9)]

    assert orders(13) == orders(13) != orders(14)
    assert len(set(orders(13))) > 1


def test_documents_of_a_bucketed_batch_are_about_as_long(tokenized_set, lists, monkeypatch):
    # Two batches of 5 are sorted together: the first ten pairs in shuffled order, and so on.
    monkeypatch.setattr(pipelines, "_BATCHES_SORTED", 2)
    kinds = PIPELINES["bucketed"], PIPELINES["pairs"]
    made = (kind(tokenized_set, batch_size=BATCH, seed=13) for kind in kinds)
    bucketed, shuffled = (positions(pipeline, lists, 1) for pipeline in made)
    lengths = tokenized_set.tokens("document").lengths[lists.document_rows]
    for step in (0, 2):
        found = bucketed[step : step + 2]
        assert sorted(np.concatenate(found)) == sorted(np.concatenate(shuffled[step : step + 2]))
        short, long = sorted(found, key=lambda batch: lengths[batch].sum())
        assert lengths[short].max() <= lengths[long].min()


def test_batches_of_lists_have_the_wanted_number_of_pairs_on_average(tokenized_set):
    lengths = np.array([5, 5, 5, 3, 30, 2, 6, 5])  # of 61 pairs; one list is longer than a batch
    offsets = np.append(0, np.cumsum(lengths))
    lists = types.SimpleNamespace(query_rows=np.arange(len(lengths)), offsets=offsets)
    ends = ListPipeline(tokenized_set, batch_size=10, seed=13).pair_ends(lists, 0)
    assert ends[-1] == 61
    assert len(set((ends - 1) // 10)) == len(ends)  # the k-th ten pairs end in one batch at most
    assert all(np.diff(np.append(0, ends)) > 0)


def test_tokens_and_grades_are_those_of_the_pairs_also_of_empty_texts(case, tokenized_set, lists):
    name, pipeline = case
    assert {0, 11} <= set(lists.document_rows.tolist())  # first and last, both without a token
    for step, (inputs, grades) in enumerate(pipeline.epoch(lists, 2).as_numpy_iterator()):
        batch = pipeline.batch_pairs(lists, 2, step)
        queries, documents = lists.pair_query_rows[batch], lists.document_rows[batch]
        expected = lists.grades[batch]
        rows = {"query": queries, "document": documents}
        if name in ("lists", "in_batch"):
            rows["query"] = list(dict.fromkeys(queries))
            lengths = [np.sum(queries == query) for query in rows["query"]]
            np.testing.assert_array_equal(inputs.list_lengths, lengths)
        if name == "lists":
            np.testing.assert_array_equal(inputs.lists, np.repeat(range(len(lengths)), lengths))
        if name == "in_batch":  # each document once, each grade in its place
            rows["document"] = list(dict.fromkeys(documents))
            grade = dict(zip(zip(queries, documents), expected))
            expected = [[grade.get((q, d), 0) for d in rows["document"]] for q in rows["query"]]
        np.testing.assert_array_equal(grades, expected)
        for role in ROLES:
            expected = [tokenized_set.tokens(role)[row].tolist() for row in rows[role]]
            assert texts_of(getattr(inputs.texts, role))[0] == expected
    assert step + 1 == len(pipeline.pair_ends(lists, 2))


def test_epoch_from_a_step_on_is_the_tail_of_the_whole(case, lists):
    _, pipeline = case
    dataset = pipeline.epoch(lists, 1)
    assert {spec.dtype.name for spec in tf.nest.flatten(dataset.element_spec)} == {"int32"}
    assert dataset.options().autotune.enabled is False
    whole = list(dataset.as_numpy_iterator())
    for start in range(1, len(whole) + 1):
        tail = list(pipeline.epoch(lists, 1, start_step=start).as_numpy_iterator())
        assert len(tail) == len(whole) - start
        tf.nest.map_structure(np.testing.assert_array_equal, tail, whole[start:])


@pytest.fixture(scope="module", params=[0, 1000], ids=["words", "ngrams"])
def shared_set(request, small_set, tmp_path_factory):
    settings = TextSettings(shared_vocabulary=True, ngram_buckets=request.param)
    return tokenize_set(small_set, settings, tmp_path_factory.mktemp("cache"))


@cases("name", *PIPELINES)
def test_for_a_shared_tower_a_batch_has_all_queries_then_all_documents(name, shared_set, small_set):
    lists = candidate_lists(small_set, "train", negatives=2, seed=1)
    options = {"batch_size": 5, "seed": 13}
    pipelines = [PIPELINES[name](shared_set, both_at_once=both, **options) for both in (0, 1)]
    apart, together = (list(each.epoch(lists, 0).as_numpy_iterator()) for each in pipelines)
    assert len(apart) == len(together) > 1
    for (expected, grades), (found, same_grades) in zip(apart, together, strict=True):
        np.testing.assert_array_equal(same_grades, grades)
        queries, documents = map(texts_of, expected.texts)
        texts, ngrams = texts_of(found.texts.tokens)
        assert texts == [*queries[0], *documents[0]]
        assert ngrams == {**queries[1], **documents[1]}
        store = shared_set.ngrams("query")
        ids = {id_ for text in texts for id_ in text}
        assert ngrams == ({id_: store[id_].tolist() for id_ in ids} if store else {})
        assert type(found) is type(expected)
        for rest, expected_rest in zip(found[1:], expected[1:]):  # what there is about lists
            np.testing.assert_array_equal(rest, expected_rest)


def test_a_dictionary_is_pairs_or_lists_that_know_the_list_of_each_document():
    texts = forms.SeparateTexts([[2], [3]], [[4], [5], [6]])
    given, lists = texts._asdict(), {**texts._asdict(), "list_lengths": [2, 1]}
    for in_batch, kind in ((True, forms.InBatchInputs), (False, forms.ListInputs)):
        assert forms.model_inputs(given, in_batch=in_batch) == forms.PairInputs(texts)
        found = forms.model_inputs(lists, in_batch=in_batch)
        assert (type(found), found.texts) == (kind, texts)
        np.testing.assert_array_equal(found.list_lengths, [2, 1])
    np.testing.assert_array_equal(found.lists, [0, 0, 1])
    for wrong in ({"query": [[2]]}, {**given, "lists": [0]}):
        with pytest.raises(ValueError, match="inputs: a dictionary must have the keys 'query' and"):
            forms.model_inputs(wrong, in_batch=False)
