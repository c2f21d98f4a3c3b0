"""The first queries of a set, and fewer training queries, whatever the set."""

import dataclasses

import pytest

from tests.small_world import DOCUMENTS, JUDGMENTS, QUERIES, SPLITS, SmallWorld
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS as SPLIT_NAMES
from tf_smoothclir.data.sources.splits import SelectedJudgments
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

TOY = DataSettings(toy_entities=300)


def test_first_queries_are_those_that_the_judgments_name_first():
    order = list(dict.fromkeys(judgment[0] for judgment in JUDGMENTS))
    selected = SelectedJudgments(SmallWorld(), max_queries=3, seed=1)
    assert {query.id for query in selected.queries()} == set(order[:3])
    assert [j[:3] for j in selected.judgments()] == [j for j in JUDGMENTS if j[0] in order[:3]]
    assert [document.id for document in selected.documents()] == list(DOCUMENTS)
    assert selected.splits() == {id_: SPLITS[id_] for id_ in SPLITS if id_ in order[:3]}
    every = SelectedJudgments(SmallWorld(), max_queries=100, seed=1)  # more than there are
    assert [query.id for query in every.queries()] == [id_ for id_ in QUERIES if id_ in order]


def test_places_are_those_in_the_whole_set():
    world = SmallWorld(judgments=JUDGMENTS[::-1])
    selected = SelectedJudgments(world, max_queries=1, seed=1)
    (kept,) = selected.queries()
    assert kept.id == JUDGMENTS[-1][0]
    assert selected.place("queries", 0) == world.place("queries", list(QUERIES).index(kept.id))
    assert selected.place("documents", 2) == world.place("documents", 2)
    assert selected.place("judgments", 0) == world.place("judgments", 0)
    of_one = SelectedJudgments(SmallWorld(splits={"q1": "train"}), max_queries=2, seed=1)
    with pytest.raises(InputError, match=r"^splits\.tsv: query 'q2' has no split"):
        RetrievalSet.load(of_one)
    # Hazard: nothing of a stream is kept, of which something has to be said.
    of_others = SelectedJudgments(SmallWorld(splits={"q9": "train"}), max_queries=1, seed=1)
    assert of_others.place("splits", 0) == SmallWorld().place("splits", 0)


def test_fingerprint_tells_selections_apart():
    names = "max_queries", "max_train_queries"
    settings = [{}, dict.fromkeys(names, 50), *({name: n} for name in names for n in (50, 51))]
    prints = {source_of(DataSettings(toy_entities=300, **one)).fingerprint() for one in settings}
    assert len(prints) == len(settings)
    assert not isinstance(source_of(TOY), SelectedJudgments)


@pytest.mark.parametrize("max_queries", [0, 100])
def test_fewer_training_queries_leave_the_other_splits_as_they_were(max_queries):
    before = DataSettings(toy_entities=300, max_queries=max_queries)
    fewer = dataclasses.replace(before, max_train_queries=20)
    whole, loaded = (RetrievalSet.load(source_of(settings)) for settings in (before, fewer))
    (whole_train, *whole_others), (train, *others) = (
        [[each.query_ids[row] for row in each.queries_in(split)] for split in SPLIT_NAMES]
        for each in (whole, loaded)
    )
    sizes = [(max_queries or 300) * share // 5 for share in (3, 1, 1)]  # of those that are kept
    assert [*map(len, (whole_train, *whole_others))] == sizes
    assert len(train) == 20
    assert set(train) < set(whole_train)
    assert others == whole_others
    # The words of queries that are left out must not get into the vocabulary.
    assert set(loaded.query_ids) & set(whole_train) == set(train)
    more = RetrievalSet.load(source_of(dataclasses.replace(before, max_train_queries=30)))
    assert set(train) < set(more.query_ids)


def test_fewer_training_queries_leave_the_splits_of_the_set():
    judged = {judgment[0] for judgment in JUDGMENTS}
    training = {id_ for id_ in judged if SPLITS[id_] == "train"}
    splits = SelectedJudgments(SmallWorld(), max_train_queries=1, seed=1).splits()
    assert len([id_ for id_ in splits if id_ in training]) == 1 < len(training)
    assert {id_ for id_ in splits if id_ not in training} == set(SPLITS) - training
