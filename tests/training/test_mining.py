"""Hard negatives against a slow search by hand, and the guards that keep relevant ones out."""

from unittest import mock

import numpy as np
import pytest

from tests.cases import cases
from tests.small_world import random_set, vectors_with_ties
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.training import batches
from tf_smoothclir.training.batches import HardNegatives, SampledBatches
from tf_smoothclir.two_tower import scorer as scorer_module

QUERIES, DOCUMENTS = 30, 50


@pytest.fixture(scope="module")
def world():
    return random_set(QUERIES, DOCUMENTS, seed=3, split="train")


@pytest.fixture(scope="module")
def retriever(world):
    return vectors_with_ties(world, seed=4)


def mined(world, retriever, epoch=1, ranks=(3, 20), margin=0.25, **changes):
    miner = HardNegatives(world, TrainingSettings(hard_negatives=4, **changes))
    with mock.patch.multiple(batches, MINED_RANKS=ranks, MARGIN=margin):
        found = miner.mine_after(epoch, retriever)
    return [[d for d in row if d >= 0] for row in miner.documents.numpy().tolist()], found


def candidates_by_hand(world, retriever, query, ranks, margin):
    """Possible documents of a query, and how many were refused by the margin."""
    scores = retriever.documents @ retriever.queries[query]
    ranking = sorted(range(DOCUMENTS), key=lambda d: (-scores[d], world.tie_order[d]))
    of_query = world.query_rows == query
    grades = dict(zip(world.document_rows[of_query].tolist(), world.grades[of_query].tolist()))
    highest = max(grades.values())
    unjudged = [d for d in ranking[ranks[0] - 1 : ranks[1]] if d not in grades]
    if not highest:
        return set(), len(unjudged)
    mate = max(scores[d] for d, grade in grades.items() if grade == highest)
    possible = {d for d in unjudged if scores[d] <= mate - margin * abs(mate)}
    return possible, len(unjudged) - len(possible)


@cases("ranks", (1, 20), (3, 20), (10, 500), (4, 4))
@cases("margin", 0.0, 0.25)
def test_what_is_mined_agrees_with_a_search_by_hand(world, retriever, ranks, margin, monkeypatch):
    monkeypatch.setattr(scorer_module, "_SCORES_PER_CHUNK", 7 * DOCUMENTS)  # several chunks
    found, counts = mined(world, retriever, ranks=ranks, margin=margin)
    all_possible = all_refused = 0
    for query, documents in enumerate(found):
        possible, refused = candidates_by_hand(world, retriever, query, ranks, margin)
        assert set(documents) <= possible
        assert len(set(documents)) == len(documents) == min(4, len(possible))
        all_possible, all_refused = all_possible + len(possible), all_refused + refused
    assert all_refused > 0
    assert counts["per_query"] == pytest.approx(sum(map(len, found)) / QUERIES, abs=1e-3)
    assert counts["refused"] == pytest.approx(all_refused / (all_possible + all_refused), abs=1e-4)


def test_seed_and_epoch_decide_and_nothing_is_mined_after_the_last(world, retriever):
    first = mined(world, retriever)
    assert mined(world, retriever) == first
    assert mined(world, retriever, epoch=2)[0] != first[0]
    assert mined(world, retriever, seed=14)[0] != first[0]
    assert mined(world, retriever, epoch=1, epochs=2)[1]
    assert mined(world, retriever, epoch=2, epochs=2)[1] is None


def test_mined_documents_come_last_in_the_lists_of_their_queries(world):
    """Hazard: training lists of queries made of documents follow, which nothing is mined for."""
    own = [world.document_rows[world.query_rows == query] for query in range(QUERIES)]
    unjudged = [min({*range(DOCUMENTS)} - {*rows}) for rows in own]
    miner = HardNegatives(world, TrainingSettings(hard_negatives=1))
    miner.documents.assign([[document] for document in unjudged])
    larger = world.with_training_queries(np.array([7]))
    found = miner.added_to(candidate_lists(larger, "train", negatives=0, seed=1))
    assert found.document_rows[found.offsets[1:] - 1].tolist() == [*unjudged, 7]


@cases(
    "changes, negatives, epochs",
    ({}, 3, (0, 0)),
    ({"fresh_negatives": True}, 3, (0, 1)),
    ({"train_negatives": 0}, 0, (0, 0)),
    ({"train_negatives": 2, "hard_negatives": 1}, 2, (0, 0)),
)
def test_an_epoch_trains_on_its_candidate_lists(tokenized_set, changes, negatives, epochs):
    settings = TrainingSettings(negatives=3, seed=5, **changes)
    data = tokenized_set.retrieval_set
    batches = SampledBatches(tokenized_set, settings, mined=data, both_at_once=False)
    mined = []
    for number, of_lists in enumerate(epochs):
        epoch = batches.epoch(number)
        lists = candidate_lists(data, "train", negatives=negatives, seed=5, epoch=of_lists)
        pairs = zip(lists.pair_query_rows, lists.document_rows, lists.grades)
        expected = [(data.query_ids[q], data.document_ids[d], int(grade)) for q, d, grade in pairs]
        expected += [(data.query_ids[q], data.document_ids[d], 0) for q, d in enumerate(mined)]
        rows = [row for step in range(epoch.steps) for row in epoch.rows(step)]
        assert sorted(rows) == sorted(expected)
        if settings.hard_negatives:  # the first document of those that are not in a list
            there = [lists.document_rows[lists.pair_query_rows == query] for query in range(3)]
            mined = [min({*range(len(data.document_ids))} - {*own}) for own in there]
            batches.variables["hard_negatives"].assign([[document] for document in mined])
