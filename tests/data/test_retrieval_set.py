"""What must hold among the parts of a set, each defect with place, reason and remedy; splits."""

import re

import numpy as np
import pytest

from tests.small_world import DOCUMENTS, JUDGMENTS, QUERIES, SPLITS, SmallWorld, random_set
from tf_smoothclir.data.candidate_lists import candidate_lists, is_among, pair_key, with_documents
from tf_smoothclir.data.hashing import hash_ids, mix
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources import source
from tf_smoothclir.data.sources.memory import MemorySource
from tf_smoothclir.data.sources.source import Judgment, Text
from tf_smoothclir.data.sources.splits import known_queries
from tf_smoothclir.training.evaluated_sets import log_known_queries
from tf_smoothclir.utils.errors import InputError

queries, documents = tuple(QUERIES.items()), tuple(DOCUMENTS.items())


def test_rows_follow_the_streams_and_judgments_are_sorted_by_query(small_set):
    shuffled = RetrievalSet.load(SmallWorld(judgments=JUDGMENTS[::-1]))
    assert small_set.query_ids == list(QUERIES)
    assert small_set.document_ids == list(DOCUMENTS)
    for loaded in (small_set, shuffled):
        assert (np.diff(loaded.query_rows) >= 0).all()
        triples = zip(loaded.query_rows, loaded.document_rows, loaded.grades)
        named = {(loaded.query_ids[q], loaded.document_ids[d], grade) for q, d, grade in triples}
        assert named == set(JUDGMENTS)


def test_queries_in_leaves_out_those_without_a_judgment(small_set):
    loaded = RetrievalSet.load(SmallWorld(splits={**SPLITS, "q7": "test"}))
    assert loaded.splits[6] == source.SPLITS.index("test")
    assert loaded.queries_in("test").tolist() == [4, 5]
    assert loaded.queries_in("validation").tolist() == [3, 7]  # q8: judged, nothing relevant
    assert small_set.splits.tolist() == [0, 0, 0, 1, 2, 2, -1, 1]  # q7: neither judged nor split
    everything_in_training = RetrievalSet.load(SmallWorld(splits=dict.fromkeys(SPLITS, "train")))
    assert len(everything_in_training.queries_in("train")) == 7
    assert everything_in_training.judged_splits == ("train", "validation")
    assert small_set.judged_splits == source.SPLITS
    message = r"^small-en-de: no query of the test split has a judgment \(7 judged queries\)\. Move"
    with pytest.raises(InputError, match=message):
        everything_in_training.queries_in("test")


def test_weights_stay_with_their_judgments():
    """Hazard: judgments are sorted, and those that repeat each other go."""
    weighted = [(*judgment, 1.0 + place) for place, judgment in enumerate(JUDGMENTS)]
    world = SmallWorld(judgments=[*weighted[::-1], ("q1", "d2", 0, 99.0)])
    world.max_skipped = 0.1
    loaded = RetrievalSet.load(world)
    rows = zip(loaded.query_rows, loaded.document_rows, loaded.grades, loaded.weights)
    named = [(loaded.query_ids[q], loaded.document_ids[d], *others) for q, d, *others in rows]
    assert sorted(named) == sorted(weighted)


@pytest.mark.parametrize(("codes", "share"), [("dd", ""), ("d?", "some"), ("??", "any")])
def test_documents_of_no_known_language_are_said(codes, share, caplog):
    caplog.set_level("INFO", logger="absl")
    texts = [Text(str(n), "", "eins", {"d": "de"}.get(code, "")) for n, code in enumerate(codes)]
    RetrievalSet.load(MemorySource([Text("q", "", "one")], texts, [Judgment("q", "1", 1)]))
    said = [message for message in caplog.messages if "no language is known" in message]
    assert [f"known of {share} of the documents" in message for message in said] == [True] * bool(
        share
    )


def test_a_negative_grade_counts_as_0():
    found, expected = (
        RetrievalSet.load(SmallWorld(judgments=(("q4", "d1", grade), *JUDGMENTS)))
        for grade in (-(10**18), 0)
    )
    np.testing.assert_array_equal(found.grades, expected.grades)


AMONG = "is not among the 8 queries and 12 documents. Add the"
BAD_JUDGMENTS = [
    ((*JUDGMENTS[:2], ("q99", "d1", 1)), f"3: the judged query 'q99' {AMONG} query, or remove"),
    ((("q1", "q1", 1), *JUDGMENTS), f"1: the judged document 'q1' {AMONG} document, or remove"),
    ((("q4", "d1", 3), *JUDGMENTS), "1: grade 3 is outside 0..2. Correct it, or give one more"),
    ((*JUDGMENTS, ("q1", "d2", 1)), "12: the same query and document are already judged at"),
]
NO_SPLIT = {id_: split for id_, split in SPLITS.items() if id_ != "q4"}
USED = "is already used at"
BAD = [
    ({"queries": (*queries, queries[1])}, f"queries.tsv:9: id 'q2' {USED} queries.tsv:2"),
    ({"documents": documents[:1] * 2}, f"documents.tsv:2: id 'd1' {USED} documents.tsv:1"),
    ({"queries": (), "judgments": ()}, "small-en-de: there are no queries. Check the files of"),
    ({"documents": ()}, "small-en-de: there are no documents. Check the files of the set."),
    (
        {"documents": [(f"{n}:d1", "") for n in "abcd"], "judgments": [("q1", "d1", 1)]},
        "judgments.tsv:1: the judged document 'd1' is not among the 8 queries and 4 documents."
        " Call it a:d1 or b:d1 or c:d1.",
    ),
    *(({"judgments": bad}, f"judgments.tsv:{message}") for bad, message in BAD_JUDGMENTS),
    ({"judgments": JUDGMENTS[-1:]}, "small-en-de: no query has a relevant document (1 judgments"),
    ({"splits": {"q99": "train"}}, "splits.tsv:1: query 'q99' is not among the queries. Correct"),
    ({"splits": {**SPLITS, "q7": "dev"}}, "splits.tsv:8: 'dev' is not one of train, validation"),
    ({"splits": NO_SPLIT}, "splits.tsv: query 'q4' has no split. Give every query a split, or"),
]


@pytest.mark.parametrize(("parts", "message"), BAD)
def test_defects(parts, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        RetrievalSet.load(SmallWorld(**parts))


def split_of(query_ids, *, judged=(), **seed):
    texts = [(id_, f"text of {id_}") for id_ in query_ids]
    judgments = [(id_, "d1", 1) for id_ in judged or query_ids]
    loaded = RetrievalSet.load(SmallWorld(queries=texts, judgments=judgments, splits=None), **seed)
    return dict(zip(loaded.query_ids, loaded.splits.tolist()))


IDS = [f"q{i}" for i in range(50)]


@pytest.mark.parametrize(
    ("count", "sizes"), [(3, [1, 1, 1]), (5, [3, 1, 1]), (9, [5, 2, 2]), (40, [24, 8, 8])]
)
def test_seeded_split_is_three_to_one_to_one_over_judged_queries(count, sizes):
    found = split_of(IDS, judged=IDS[:count])
    assert [list(found.values()).count(split) for split in range(3)] == sizes
    assert all(found[id_] == -1 for id_ in IDS[count:])


def test_seeded_split_depends_on_ids_and_seed_alone():
    expected = split_of(IDS)
    assert split_of(IDS, seed=13) == split_of(IDS[::-1]) == expected != split_of(IDS, seed=14)
    assert split_of([*IDS, "never judged"], judged=IDS) == {**expected, "never judged": -1}


def test_queries_of_the_same_text_are_in_one_split_and_others_stay_where_they_are():
    twins = {f"{id_}{n}": f" TEXT  of {id_}" for id_ in IDS for n in ("a", "b")}
    world = SmallWorld(
        queries=[*((id_, f"text of {id_}") for id_ in IDS), *twins.items()],
        judgments=[(id_, "d1", 1) for id_ in [*IDS, *twins]],
        splits=None,
    )
    loaded = RetrievalSet.load(world)
    found = dict(zip(loaded.query_ids, loaded.splits.tolist()))
    assert [list(found.values()).count(split) for split in range(3)] == [90, 30, 30]
    assert all(found[f"{id_}{n}"] == found[id_] for id_ in IDS for n in "ab")
    assert loaded.known_queries == {"validation": (0, 0), "test": (0, 0)}


def test_texts_of_training_queries_in_other_splits_are_counted(caplog):
    texts = {"q1": "a red apple", "q5": "A red\tapple", "q6": "apple red a a", "q8": "red"}
    world = SmallWorld(queries={**QUERIES, **texts}.items())
    loaded = RetrievalSet.load(world)
    assert loaded.known_queries == {"validation": (0, 0), "test": (1, 1)}
    assert "training query" not in caplog.text  # perhaps nothing is trained on it
    log_known_queries(loaded)
    warning = "of the test queries, 1 (50%) have the text of a training query, and 1 more its words"
    assert warning in caplog.text
    assert "validation" not in caplog.text
    del texts["q5"]
    with caplog.at_level("INFO", logger="absl"):
        log_known_queries(RetrievalSet.load(SmallWorld(queries={**QUERIES, **texts}.items())))
    assert (
        "of the test queries, 0 (0%) have the text of a training query, and 1 more" in caplog.text
    )
    assert known_queries(["a b"], ["A b", "b a", "b a a", ""]) == (1, 2)


ARRAYS = ("query_rows", "offsets", "document_rows", "grades")
DTYPES = ["int32", "int64", "int32", "int32"]


def by_query(retrieval_set, lists):
    """Query id -> [(document id, grade)], in the order of the list."""
    found = {}
    for i, query in enumerate(lists.query_rows):
        part = slice(lists.offsets[i], lists.offsets[i + 1])
        documents = [retrieval_set.document_ids[row] for row in lists.document_rows[part]]
        found[retrieval_set.query_ids[query]] = list(zip(documents, lists.grades[part].tolist()))
    return found


def test_added_documents_come_last_with_grade_0_and_once(small_set):
    lists = candidate_lists(small_set, "train", negatives=0, seed=1)
    row = small_set.document_ids.index
    given = np.array([[row("d7"), -1], [-1, -1], [row("d8"), row("d1")]])
    found = with_documents(lists, given)
    assert by_query(small_set, found) == {
        "q1": [("d2", 2), ("d3", 1), ("d7", 0)],
        "q2": [("d4", 2), ("d5", 1), ("d2", 0)],
        "q3": [("d6", 2), ("d8", 0), ("d1", 0)],
    }
    for one in (lists, found):
        assert [getattr(one, name).dtype for name in ARRAYS] == DTYPES
    # Documents that a list already has are not added.
    lists = candidate_lists(small_set, "train", negatives=40, seed=1)  # every document
    everything = np.tile(np.arange(len(small_set.document_ids)), (3, 1))
    found = with_documents(lists, everything)
    np.testing.assert_array_equal(found.document_rows, lists.document_rows)
    np.testing.assert_array_equal(found.grades, lists.grades)
    last = 2**31 - 1
    keys = pair_key(np.array([0, 0, 1, last, last]), np.array([0, last, 0, 0, last]))
    assert (np.diff(keys) > 0).all()
    among = is_among(np.array([2, 5, 9]), np.array([[1, 2, 3], [5, 9, 10]]))
    assert among.tolist() == [[False, True, False], [True, True, False]]


def sampled_by_hand(world, query, judged, negatives, seed, epoch=0):
    """Of a row of hashes, which grows until it is long enough: each document that is new."""
    documents, draws = len(world.document_ids), negatives + 8
    stream = mix(hash_ids([query], f"negatives {seed}") ^ mix(np.uint64(epoch)))
    while True:
        hashes = mix(stream + np.arange(max(draws, documents), dtype=np.uint64))
        every = draws > 2 * documents  # a permutation, which has them all
        rows = np.argsort(hashes[:documents]) if every else hashes[:draws] % np.uint64(documents)
        ids = dict.fromkeys(world.document_ids[row] for row in rows)
        found = [id_ for id_ in ids if id_ not in judged][:negatives]
        if every or len(found) == negatives:
            return found
        draws *= 4


@pytest.mark.parametrize("documents", [6, 9, 12, 30, 100])
@pytest.mark.parametrize("negatives", [0, 1, 4, 5, 40])
@pytest.mark.parametrize(("seed", "epoch"), [(1, {}), (2, {"epoch": 1})], ids=str)
def test_negatives_are_distinct_never_judged_and_as_many_as_asked(
    documents, negatives, seed, epoch
):
    world = random_set(5, documents, seed=seed, split="train")
    judged = {}
    for query, document, grade in zip(world.query_rows, world.document_rows, world.grades):
        judged.setdefault(world.query_ids[query], {})[world.document_ids[document]] = grade
    lists = candidate_lists(world, "train", negatives=negatives, seed=seed, **epoch)
    found = by_query(world, lists)
    assert found.keys() == judged.keys()
    for query, pairs in found.items():
        grades = dict(pairs)
        assert len(grades) == len(pairs)  # no document twice
        assert {d: grades[d] for d in judged[query]} == judged[query]
        others = [grade for document, grade in pairs if document not in judged[query]]
        left = len(world.document_ids) - len(judged[query])
        assert others == [0] * min(negatives, left)
        sampled = sampled_by_hand(world, query, judged[query], negatives, seed, **epoch)
        assert [document for document, _ in pairs[len(judged[query]) :]] == sampled
