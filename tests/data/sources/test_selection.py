"""The first queries of a set, and fewer documents of grade 1, whatever the set."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from tests.small_world import DOCUMENTS, JUDGMENTS, QUERIES, SPLITS, SmallWorld
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.selection import SelectedJudgments
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

TOY = DataSettings(toy_entities=300)


def related(source):
    return [(j.query_id, j.document_id) for j in source.judgments() if j.grade == 1]


def test_first_queries_are_those_that_the_judgments_name_first():
    order = list(dict.fromkeys(judgment[0] for judgment in JUDGMENTS))
    selected = SelectedJudgments(SmallWorld(), max_queries=3)
    assert {query.id for query in selected.queries()} == set(order[:3])
    assert [tuple(j) for j in selected.judgments()] == [j for j in JUDGMENTS if j[0] in order[:3]]
    assert [document.id for document in selected.documents()] == list(DOCUMENTS)
    assert selected.splits() == {id_: SPLITS[id_] for id_ in SPLITS if id_ in order[:3]}


def test_split_is_drawn_from_the_queries_that_are_kept():
    settings = DataSettings(toy_entities=300, max_queries=50)
    loaded = RetrievalSet.load(source_of(settings))
    sizes = [len(loaded.queries_in(split)) for split in ("train", "validation", "test")]
    assert sizes == [30, 10, 10]  # 3:1:1


def test_more_queries_than_there_are_keep_every_judged_one():
    selected = SelectedJudgments(SmallWorld(), max_queries=100)
    judged = {judgment[0] for judgment in JUDGMENTS}
    assert [query.id for query in selected.queries()] == [id_ for id_ in QUERIES if id_ in judged]


@pytest.mark.parametrize("mean", [0.0, 0.5, 1.0])
def test_related_documents_are_thinned_to_the_mean(mean):
    whole = source_of(TOY)
    source = SelectedJudgments(whole, related_per_query=mean, seed=3)
    assert len(related(source)) == round(mean * 300)
    assert set(related(source)) <= set(related(whole))
    grades = Counter(judgment.grade for judgment in source.judgments())
    assert grades[2] == 300


def test_with_one_seed_fewer_are_a_part_of_more_and_another_seed_draws_others():
    few, more, others = (
        set(related(SelectedJudgments(source_of(TOY), related_per_query=mean, seed=seed)))
        for mean, seed in ((0.5, 1), (1.0, 1), (1.0, 2))
    )
    assert few < more != others


def test_mean_is_over_the_queries_that_are_kept():
    settings = DataSettings(toy_entities=300, max_queries=100, related_per_query=0.5)
    assert len(related(source_of(settings))) == 50


def test_more_related_documents_than_there_are_cannot_be_had():
    number = len(related(source_of(TOY)))
    with pytest.raises(InputError) as error:
        list(source_of(DataSettings(toy_entities=300, related_per_query=50)).judgments())
    assert str(error.value) == (
        f"--related_per_query=50: toy-en-fr has {number} judgments of grade 1 for 300 queries,"
        f" {number / 300:.2f} per query. Give a smaller number: judgments can be left out, not"
        " added."
    )


def test_places_are_those_in_the_whole_set():
    order = list(dict.fromkeys(judgment[0] for judgment in JUDGMENTS))
    world = SmallWorld(judgments=JUDGMENTS[::-1])
    selected = SelectedJudgments(world, max_queries=1)
    (kept,) = selected.queries()
    assert kept.id == order[-1]
    assert selected.place("queries", 0) == world.place("queries", list(QUERIES).index(kept.id))
    assert selected.place("documents", 2) == world.place("documents", 2)
    assert selected.place("judgments", 0) == world.place("judgments", 0)


def test_fingerprint_tells_selections_apart():
    settings = [
        TOY,
        DataSettings(toy_entities=300, max_queries=50),
        DataSettings(toy_entities=300, max_queries=51),
        DataSettings(toy_entities=300, max_train_queries=50),
        DataSettings(toy_entities=300, max_train_queries=51),
        DataSettings(toy_entities=300, related_per_query=1.0),
        DataSettings(toy_entities=300, related_per_query=1.0, max_queries=50),
    ]
    assert len({source_of(one).fingerprint() for one in settings}) == len(settings)


def test_without_a_selection_the_source_is_the_set_itself():
    assert source_of(TOY).fingerprint() == source_of(TOY).whole.fingerprint()
    assert not isinstance(source_of(TOY), SelectedJudgments)


def splits_of(loaded):
    """Returns split -> ids of the judged queries of a loaded set."""
    return {
        split: [loaded.query_ids[row] for row in loaded.queries_in(split)]
        for split in ("train", "validation", "test")
    }


@pytest.mark.parametrize("max_queries", [0, 100])
def test_fewer_training_queries_leave_the_other_splits_as_they_were(max_queries):
    """The toy world has no splits of its own: they are drawn before queries are left out."""
    before = DataSettings(toy_entities=300, max_queries=max_queries)
    whole = splits_of(RetrievalSet.load(source_of(before)))
    loaded = RetrievalSet.load(source_of(dataclasses.replace(before, max_train_queries=20)))
    found = splits_of(loaded)
    assert len(found["train"]) == 20
    assert set(found["train"]) < set(whole["train"])
    assert found["validation"] == whole["validation"]
    assert found["test"] == whole["test"]
    # The words of queries that are left out must not get into the vocabulary.
    assert set(loaded.query_ids) & set(whole["train"]) == set(found["train"])


def test_splits_of_a_set_are_kept_with_fewer_training_queries():
    judged = {judgment[0] for judgment in JUDGMENTS}
    training = {id_ for id_ in judged if SPLITS[id_] == "train"}
    splits = SelectedJudgments(SmallWorld(), max_train_queries=1).splits()
    assert len([id_ for id_ in splits if id_ in training]) == 1 < len(training)
    assert {id_ for id_ in splits if id_ not in training} == set(SPLITS) - training


def test_fewer_training_queries_are_a_part_of_more():
    few, more = (
        set(SelectedJudgments(source_of(TOY), max_train_queries=number, seed=1).splits())
        for number in (20, 30)
    )
    assert few < more
