"""What must hold among the parts of a set, each defect with place, reason and remedy; splits."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.small_world import DOCUMENTS, JUDGMENTS, QUERIES, SPLITS, SmallWorld
from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources import source
from tf_smoothclir.data.sources.wikiclir_files import WikiClirDirectory
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


def test_queries_in_leaves_out_those_without_a_judgment():
    loaded = RetrievalSet.load(SmallWorld(splits={**SPLITS, "q7": "test"}))
    assert loaded.splits[6] == source.SPLITS.index("test")
    assert loaded.queries_in("test").tolist() == [4, 5]
    assert loaded.queries_in("validation").tolist() == [3, 7]  # q8: judged, nothing relevant


def test_tie_order_is_the_rank_by_hash_of_the_document_id(small_set):
    ids = list(DOCUMENTS)
    by_tie_order = [ids[row] for row in np.argsort(small_set.tie_order)]
    assert by_tie_order == sorted(ids, key=lambda id_: int(hash_ids([id_])[0]))


def test_a_query_without_judgment_and_split_is_in_no_split(small_set):
    assert small_set.splits.tolist() == [0, 0, 0, 1, 2, 2, -1, 1]


# ---- defects --------------------------------------------------------------------------------

BAD = {
    "duplicate query": (
        {"queries": (*queries, ("q2", "again"))},
        "queries.tsv:9: id 'q2' is already used at queries.tsv:2. Give every text its own id.",
    ),
    "duplicate document": (
        {"documents": (*documents[:3], ("d1", "again"), *documents[3:])},
        "documents.tsv:4: id 'd1' is already used at documents.tsv:1. Give every text its own id.",
    ),
    "no query": (
        {"queries": (), "judgments": ()},
        "small-en-de: there are no queries. Check the files of the set.",
    ),
    "no document": (
        {"documents": ()},
        "small-en-de: there are no documents. Check the files of the set.",
    ),
    "judgment of an unknown query": (
        {"judgments": (*JUDGMENTS[:2], ("q99", "d1", 1))},
        "judgments.tsv:3: the judged query 'q99' is not among the 8 queries and 12 documents."
        " Add the query, or remove the judgment.",
    ),
    "judgment of an unknown document": (
        {"judgments": (("q1", "q1", 1), *JUDGMENTS)},
        "judgments.tsv:1: the judged document 'q1' is not among the 8 queries and 12 documents."
        " Add the document, or remove the judgment.",
    ),
    "grade too high": (
        {"judgments": (*JUDGMENTS, ("q4", "d1", 3))},
        "judgments.tsv:12: grade 3 is outside 0..2. Correct it, or give one more of --thresholds"
        " for each further grade.",
    ),
    "negative grade": (
        {"judgments": (("q4", "d1", -1), *JUDGMENTS)},
        "judgments.tsv:1: grade -1 is outside 0..2. Correct it, or give one more of --thresholds"
        " for each further grade.",
    ),
    "duplicate judgment with another grade": (
        {"judgments": (*JUDGMENTS, ("q1", "d2", 1))},
        "judgments.tsv:12: the same query and document are already judged at judgments.tsv:1."
        " Keep one of the two.",
    ),
    "no judgment": (
        {"judgments": ()},
        "small-en-de: no query has a relevant document (0 judgments, none of grade 1 or more)."
        " Add judgments with grade 1 or more: training and evaluation need them.",
    ),
    "no relevant document": (
        {"judgments": (("q1", "d2", 0), ("q2", "d2", 0))},
        "small-en-de: no query has a relevant document (2 judgments, none of grade 1 or more)."
        " Add judgments with grade 1 or more: training and evaluation need them.",
    ),
    "split of an unknown query": (
        {"splits": {"q1": "train", "q99": "train"}},
        "splits.tsv:2: query 'q99' is not among the queries. Correct the line.",
    ),
    "unknown split name": (
        {"splits": {**SPLITS, "q7": "dev"}},
        "splits.tsv:8: 'dev' is not one of train, validation, test. Correct the line.",
    ),
    "judged query without a split": (
        {"splits": {id_: split for id_, split in SPLITS.items() if id_ != "q4"}},
        "splits.tsv: query 'q4' has no split. Give every query a split, or remove the file for a"
        " seeded 3:1:1 split.",
    ),
}


@pytest.mark.parametrize(("parts", "message"), BAD.values(), ids=BAD.keys())
def test_defects(parts, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        RetrievalSet.load(SmallWorld(**parts))


def test_highest_grade_follows_num_grades():
    with pytest.raises(InputError, match=r"judgments.tsv:1: grade 2 is outside 0\.\.1"):
        RetrievalSet.load(SmallWorld(), num_grades=2)
    assert RetrievalSet.load(SmallWorld(), num_grades=4).num_grades == 4


def test_an_empty_split_is_an_error_when_requested():
    everything_in_training = dict.fromkeys(SPLITS, "train")
    loaded = RetrievalSet.load(SmallWorld(splits=everything_in_training))
    assert len(loaded.queries_in("train")) == 7
    with pytest.raises(InputError) as error:
        loaded.queries_in("test")
    assert str(error.value) == (
        "small-en-de: no query of the test split has a judgment (7 judged queries)."
        " Move some to this split, or judge more queries."
    )


FILES = {
    "wiki_en.queries": "7\tWater\ta liquid\n8\tMoon\ta satellite\n",
    "wiki_fr.documents": "1\tEau\tun liquide\n2\tLune\tun satellite\n",
    "en2fr.rel": "7\t1\t2\n8\t2\t2\n",
    "splits.tsv": "7\ttrain\n8\ttest\n",
}
BAD_FILES = [
    ("wiki_en.queries", "7\ta\tb\n", "wiki_en.queries:3: id '7' is already used at"),
    ("wiki_fr.documents", "2\ta\tb\n", "wiki_fr.documents:3: id '2' is already used at"),
    ("en2fr.rel", "9\t1\t1\n", "en2fr.rel:3: the judged query '9' is not among the 2 queries"),
    ("en2fr.rel", "7\t9\t1\n", "en2fr.rel:3: the judged document '9' is not among"),
    ("en2fr.rel", "7\t2\t5\n", "en2fr.rel:3: grade 5 is outside 0..2"),
    ("en2fr.rel", "7\t1\t1\n", "en2fr.rel:3: the same query and document are already judged at"),
    ("splits.tsv", "9\ttrain\n", "splits.tsv:3: query '9' is not among the queries"),
]


@pytest.mark.parametrize(("name", "line", "reason"), BAD_FILES)
def test_defects_in_files_are_reported_by_file_and_line(tmp_path, name, line, reason):
    for file, content in FILES.items():
        (tmp_path / file).write_text(content + (line if file == name else ""), encoding="utf-8")
    with pytest.raises(InputError, match=f"^{re.escape(f'{tmp_path}/{reason}')}"):
        RetrievalSet.load(WikiClirDirectory(tmp_path, "fr"))


def test_the_file_of_a_missing_split_is_named(tmp_path):
    for file, content in {**FILES, "splits.tsv": "7\ttrain\n"}.items():
        (tmp_path / file).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=f"^{re.escape(f'{tmp_path}/splits.tsv: query')} '8' has"):
        RetrievalSet.load(WikiClirDirectory(tmp_path, "fr"))


# ---- seeded splits --------------------------------------------------------------------------


def split_of(query_ids, *, judged=None, seed=13):
    judged = query_ids if judged is None else judged
    world = SmallWorld(
        queries=[(id_, "text") for id_ in query_ids],
        judgments=[(id_, "d1", 1) for id_ in judged],
        splits=None,
    )
    loaded = RetrievalSet.load(world, seed=seed)
    return dict(zip(loaded.query_ids, loaded.splits.tolist()))


IDS = [f"q{i}" for i in range(50)]


def test_seeded_split_is_three_to_one_to_one_over_judged_queries():
    found = split_of(IDS, judged=IDS[:40])
    assert [list(found.values()).count(split) for split in (0, 1, 2, -1)] == [24, 8, 8, 10]
    assert all(found[id_] == -1 for id_ in IDS[40:])


@pytest.mark.parametrize(("count", "sizes"), [(3, [1, 1, 1]), (5, [3, 1, 1]), (9, [5, 2, 2])])
def test_sizes_of_small_splits(count, sizes):
    found = list(split_of(IDS[:count]).values())
    assert [found.count(split) for split in range(3)] == sizes


def test_seeded_split_depends_on_ids_and_seed_alone():
    expected = split_of(IDS)
    assert split_of(IDS) == expected
    assert split_of(IDS[::-1]) == expected
    assert split_of([*IDS, "never judged"], judged=IDS) == {**expected, "never judged": -1}
    assert split_of(IDS, seed=14) != expected
