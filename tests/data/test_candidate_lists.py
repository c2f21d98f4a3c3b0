"""Candidate lists and their sampled documents, over hand-made and random sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.small_world import JUDGMENTS, SPLITS, SmallWorld
from tf_smoothclir.data.candidate_lists import candidate_lists, is_among, with_documents
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.utils.errors import InputError

SETTINGS = settings(deadline=None, max_examples=60, derandomize=True)


def by_query(retrieval_set, lists):
    """Query id -> [(document id, grade)], in the order of the list."""
    found = {}
    for i, query in enumerate(lists.query_rows):
        part = slice(lists.offsets[i], lists.offsets[i + 1])
        documents = [retrieval_set.document_ids[row] for row in lists.document_rows[part]]
        found[retrieval_set.query_ids[query]] = list(zip(documents, lists.grades[part].tolist()))
    return found


def sampled(retrieval_set, lists):
    """Query id -> the set of sampled documents."""
    judged = {(query, document) for query, document, _ in JUDGMENTS}
    return {
        query: {document for document, _ in pairs if (query, document) not in judged}
        for query, pairs in by_query(retrieval_set, lists).items()
    }


def wide_set(queries, documents):
    """One judged document for each query; all in training."""
    names = [f"q{i}" for i in range(queries)]
    return RetrievalSet.load(
        SmallWorld(
            queries=[(name, "") for name in names],
            documents=[(f"d{i}", "") for i in range(documents)],
            judgments=[(name, f"d{i % documents}", 2) for i, name in enumerate(names)],
            splits=dict.fromkeys(names, "train"),
        )
    )


def test_without_sampling_a_list_is_the_judgments(small_set):
    assert by_query(small_set, candidate_lists(small_set, "train", negatives=0, seed=1)) == {
        "q1": [("d2", 2), ("d3", 1)],
        "q2": [("d4", 2), ("d5", 1), ("d2", 0)],
        "q3": [("d6", 2)],
    }


def test_lists_are_flat_and_contiguous_by_query(small_set):
    lists = candidate_lists(small_set, "train", negatives=4, seed=1)
    assert lists.query_rows.tolist() == [0, 1, 2]
    assert lists.offsets.tolist() == [0, 2 + 4, 6 + 3 + 4, 13 + 1 + 4]
    assert lists.pair_query_rows.tolist() == [0] * 6 + [1] * 7 + [2] * 5
    dtypes = (lists.query_rows, lists.offsets, lists.document_rows, lists.grades)
    assert [array.dtype.name for array in dtypes] == ["int32", "int64", "int32", "int32"]


def test_added_documents_come_last_with_grade_0(small_set):
    lists = candidate_lists(small_set, "train", negatives=0, seed=1)
    row = small_set.document_ids.index
    given = np.array([[row("d7"), -1], [-1, -1], [row("d8"), row("d1")]])
    found = with_documents(lists, given)
    assert by_query(small_set, found) == {
        "q1": [("d2", 2), ("d3", 1), ("d7", 0)],
        "q2": [("d4", 2), ("d5", 1), ("d2", 0)],
        "q3": [("d6", 2), ("d8", 0), ("d1", 0)],
    }
    for name in ("query_rows", "offsets", "document_rows", "grades"):
        assert getattr(found, name).dtype == getattr(lists, name).dtype


def test_documents_that_a_list_already_has_are_not_added(small_set):
    lists = candidate_lists(small_set, "train", negatives=40, seed=1)  # every document
    everything = np.tile(np.arange(len(small_set.document_ids)), (3, 1))
    found = with_documents(lists, everything)
    np.testing.assert_array_equal(found.document_rows, lists.document_rows)
    np.testing.assert_array_equal(found.grades, lists.grades)


def test_is_among():
    ordered = np.array([2, 5, 9])
    found = is_among(ordered, np.array([[1, 2, 3], [5, 9, 10]]))
    assert found.tolist() == [[False, True, False], [True, True, False]]


def test_all_are_taken_if_fewer_are_left(small_set):
    for query, pairs in by_query(
        small_set, candidate_lists(small_set, "train", negatives=40, seed=1)
    ).items():
        assert sorted(document for document, _ in pairs) == sorted(small_set.document_ids), query


def test_exactly_as_many_as_are_left(small_set):
    # q2 has 3 judgments of 12 documents: 9 are left.
    found = sampled(small_set, candidate_lists(small_set, "train", negatives=9, seed=1))
    assert found["q2"] == set(small_set.document_ids) - {"d2", "d4", "d5"}
    assert len(found["q1"]) == 9


def test_a_query_with_the_whole_collection_judged_gets_no_samples():
    everything = [("q1", f"d{i}", 1) for i in range(1, 13)]
    loaded = RetrievalSet.load(SmallWorld(judgments=everything, splits={"q1": "test"}))
    lists = candidate_lists(loaded, "test", negatives=5, seed=1)
    assert lists.offsets.tolist() == [0, 12]


def test_seed_and_epoch_decide(small_set):
    def sample(**key):
        return sampled(small_set, candidate_lists(small_set, "train", negatives=5, **key))

    first = sample(seed=1)
    assert sample(seed=1, epoch=0) == first
    assert sample(seed=2) != first
    assert sample(seed=1, epoch=1) != first
    assert sample(seed=1, epoch=1) != sample(seed=1, epoch=2)


def test_negatives_of_a_query_do_not_depend_on_the_other_queries(small_set):
    expected = sampled(small_set, candidate_lists(small_set, "train", negatives=5, seed=1))
    for alone in ("q1", "q2", "q3"):
        splits = {query: "train" if query == alone else "test" for query in SPLITS}
        loaded = RetrievalSet.load(SmallWorld(splits=splits))
        found = sampled(loaded, candidate_lists(loaded, "train", negatives=5, seed=1))
        assert found == {alone: expected[alone]}


def test_an_empty_split_is_an_error():
    loaded = RetrievalSet.load(SmallWorld(splits=dict.fromkeys(SPLITS, "train")))
    with pytest.raises(InputError, match=r"no query of the validation split has a judgment"):
        candidate_lists(loaded, "validation", negatives=5, seed=1)


@st.composite
def worlds(draw):
    documents = draw(st.integers(1, 30))
    queries = draw(st.integers(1, 5))
    pairs = draw(
        st.dictionaries(
            st.tuples(st.integers(0, queries - 1), st.integers(0, documents - 1)),
            st.integers(0, 2),
            max_size=40,
        )
    )
    judgments = [(f"q{q}", f"d{d}", grade) for (q, d), grade in pairs.items()]
    judgments = [("q0", "d0", 1), *(j for j in judgments if j[:2] != ("q0", "d0"))]
    names = [f"q{i}" for i in range(queries)]
    return RetrievalSet.load(
        SmallWorld(
            queries=[(name, "") for name in names],
            documents=[(f"d{i}", "") for i in range(documents)],
            judgments=judgments,
            splits=dict.fromkeys(names, "train"),
        )
    )


@SETTINGS
@given(worlds(), st.integers(0, 40), st.integers(0, 3), st.integers(0, 3))
def test_negatives_are_distinct_never_judged_and_as_many_as_asked(world, negatives, seed, epoch):
    judged = {}
    for query, document, grade in zip(world.query_rows, world.document_rows, world.grades):
        judged.setdefault(world.query_ids[query], {})[world.document_ids[document]] = grade
    lists = candidate_lists(world, "train", negatives=negatives, seed=seed, epoch=epoch)
    found = by_query(world, lists)
    assert found.keys() == judged.keys()
    for query, pairs in found.items():
        grades = dict(pairs)
        assert len(grades) == len(pairs)  # no document twice
        assert {d: grades[d] for d in judged[query]} == judged[query]
        others = [grade for document, grade in pairs if document not in judged[query]]
        left = len(world.document_ids) - len(judged[query])
        assert others == [0] * min(negatives, left)


@pytest.mark.parametrize("documents", [8, 40])  # the whole collection drawn, and a part of it
def test_every_document_is_sampled_about_as_often(documents):
    world, negatives = wide_set(2000, documents), 3
    lists = candidate_lists(world, "train", negatives=negatives, seed=5)
    drawn = np.bincount(lists.document_rows[lists.grades == 0], minlength=documents)
    # Each document is the judged one, and so never sampled, of as many queries as any other.
    expected = 2000 * negatives / documents
    chi_square = ((drawn - expected) ** 2 / expected).sum()
    # 99.9% points for 7 and 39 degrees of freedom; draws without replacement vary less than that.
    assert chi_square < {8: 24.3, 40: 72.1}[documents]
