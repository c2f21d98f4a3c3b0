"""A collection in Milvus Lite: ranks exactly, takes changes by id, belongs to one export."""

import dataclasses
import sys
import types

import numpy as np
import pytest

from tests.engines.lite import needs_milvus
from tests.index.helpers import (
    DIM,
    TOWER,
    Tower,
    brute_force,
    document,
    found_by,
    hits_by,
    in_memory,
    queries,
)
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.engines import milvus_building
from tf_smoothclir.engines.milvus import Address, CollectionNote, Milvus
from tf_smoothclir.engines.milvus_building import build_collection, change_collection
from tf_smoothclir.engines.milvus_collection import MOST_HITS, MilvusCollection
from tf_smoothclir.index.dense_half import DenseHalf
from tf_smoothclir.plugins import family
from tf_smoothclir.protocols.text_search import CutPoints
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

NAME = "texts"
TEXTS = [document(number) for number in range(60)]
TEXTS += [Text("ид 'q\"\\", "", "日 meer"), document(99, "")]
ADDED = [document(number) for number in range(100, 110)]


def build(milvus, texts=TEXTS, *, export=TOWER, fail_after=None, **arguments):
    halves = [DenseHalf(Tower(fail_after), DIM)]
    return build_collection(milvus, NAME, in_memory(texts), halves, export, **arguments)


def change(milvus, add=(), remove=(), *, export=TOWER, **arguments):
    halves, added = [DenseHalf(Tower(), DIM)], in_memory(add) if add else None
    return change_collection(milvus, NAME, halves, export, add=added, remove=remove, **arguments)


def ids_of(found):
    return [id_ for id_, _ in found]


def test_columns_that_milvus_does_not_keep_are_said(caplog):
    caplog.set_level("INFO", logger="absl")
    collection = in_memory(TEXTS)
    assert milvus_building._checked_size(collection) == len(TEXTS)
    assert caplog.messages == []
    collection.others = [{"year": 2020, "language": "pt"} for _ in TEXTS]
    milvus_building._checked_size(collection)
    assert caplog.messages == ["Milvus keeps ids, titles and texts. Left out are: year, language"]


def assert_holds(milvus, texts):
    index = MilvusCollection(milvus, NAME)
    assert len(index) == len(texts)
    for query in queries(3):
        found, expected = found_by(index, query, 15), brute_force(texts, query, 15)
        assert ids_of(found) == ids_of(expected)
        assert dict(found) == pytest.approx(dict(expected), abs=1e-6)
    (all_,) = hits_by(index, queries(1), 1000)
    found_texts = {(hit.id, hit.title, hit.text) for hit in all_}
    assert found_texts == {text[:3] for text in texts if text.text}  # else the score is zero
    with milvus.explained():
        assert milvus.client.list_collections() == [NAME]


@pytest.fixture
def milvus(tmp_path):
    with Milvus(str(tmp_path / "milvus.db")) as connection:
        yield connection


@pytest.fixture
def built(milvus):
    build(milvus)
    return milvus


FOUND = CutPoints((0.1, 0.4), (0.6, 0.9))


def test_which_cut_points_vectors_have():
    of_sum = "hybrid", CutPoints((0.2, 0.7), ())
    for retriever, expected in (("dense", FOUND), of_sum):
        shared = {**TOWER.shared(), "cut_points": FOUND, "retriever": retriever}
        note = CollectionNote(**shared, halves=("dense",), kind="flat")
        assert family("dense").cut_points(note) == expected


@needs_milvus
def test_collection_is_there_after_reconnecting_with_what_it_remembers(tmp_path):
    uri = str(tmp_path / "milvus.db")
    with Milvus(uri) as milvus:
        export = dataclasses.replace(TOWER, cut_points=FOUND)
        build(milvus, export=export, data=DataSettings(toy_entities=300))
    index = MilvusCollection.at(Address(uri, NAME))
    note = index.manifest
    assert (note.pair_id, note.thresholds) == (TOWER.pair_id, TOWER.thresholds)
    assert (note.data, note.cut_points) == (DataSettings(toy_entities=300), FOUND)
    assert (note.halves, note.kind) == (("dense",), "flat")
    for hits in hits_by(index, queries(20), 40):  # grades by score and share of the first
        scores = np.float32([hit.score for hit in hits])
        assert [hit.grade for hit in hits] == FOUND.of_hits(scores).tolist()


@needs_milvus
def test_equal_scores_are_ordered_by_the_hash_of_the_id_and_a_filter_leaves_out(milvus):
    texts = [document(number, "copy") for number in range(12)]
    build(milvus, texts)
    for filter_, chosen in (("", texts), ('title like "Title 1%"', [texts[1], *texts[10:]])):
        found = found_by(MilvusCollection(milvus, NAME, filter_), queries(1)[0], 12)
        assert ids_of(found) == ids_of(brute_force(chosen, queries(1)[0], 12))


@needs_milvus
def test_documents_are_added_replaced_and_removed_by_id(milvus):
    build(milvus, kind="hnsw")
    assert_holds(milvus, TEXTS)
    change(milvus, ADDED)
    assert_holds(milvus, TEXTS + ADDED)
    again = document(3, "another text")
    change(milvus, [again], remove=["d5", TEXTS[60].id, "d999"])  # one that is not there
    gone = {"d3", "d5", TEXTS[60].id}
    rest = [text for text in TEXTS if text.id not in gone]
    assert_holds(milvus, [*rest, *ADDED, again])
    # A document is removed before the same id is added.
    other = document(3, "a third text")
    change(milvus, [other], remove=["d3"])
    assert_holds(milvus, [*rest, *ADDED, other])


@needs_milvus
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"remove": ["d3"], "add": [*ADDED[:2], ADDED[0]]}, r"\[2\]: id 'd100' is already used"),
        (
            {"remove": ["d3"], "export": dataclasses.replace(TOWER, pair_id="b" * 64)},
            "collection 1 and document 1: they come from different training runs",
        ),
    ],
)
def test_refused_change_changes_nothing(built, changes, message):
    with pytest.raises(InputError, match=message):
        change(built, **changes)
    assert_holds(built, TEXTS)


@needs_milvus
def test_collection_is_replaced_only_with_overwrite_once_the_new_one_is_complete(built):
    with pytest.raises(InputError, match="there is a collection of this name already"):
        build(built, TEXTS[:9])
    with pytest.raises(KeyboardInterrupt):
        build(built, TEXTS[:30], fail_after=20, overwrite=True)
    assert len(MilvusCollection(built, NAME)) == len(TEXTS)
    build(built, TEXTS[:30], overwrite=True)
    assert_holds(built, TEXTS[:30])


@needs_milvus
def test_collection_of_somebody_else_is_refused_and_left_alone(milvus):
    milvus.client.create_collection(NAME, dimension=4)
    replace, add = lambda: build(milvus, overwrite=True), lambda: change(milvus, ADDED)
    for attempt in (replace, add, lambda: MilvusCollection(milvus, NAME)):
        with pytest.raises(InputError, match="smoothclir-index did not write this collection"):
            attempt()
    assert milvus.client.list_collections() == [NAME]


@needs_milvus
def test_what_cannot_be_searched_is_named(built):
    with pytest.raises(InputError, match=r"--engine_collection=mine: there is no such .*texts"):
        MilvusCollection(built, "mine")
    with pytest.raises(InputError, match=r"--filter=title is: Milvus refuses: .*boolean\.md"):
        MilvusCollection(built, NAME, "title is").search(queries(1), 5)
    with pytest.raises(InputError, match=f"--top_k={MOST_HITS + 1}: Milvus returns at most"):
        MilvusCollection(built, NAME).search(queries(1), MOST_HITS + 1)


@needs_milvus
@pytest.mark.parametrize("uri", ["http://127.0.0.1:1", "missing/milvus.db"])
def test_engine_that_does_not_answer_is_named(uri, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=rf"--uri={uri}: Milvus refuses: .*Start Milvus"):
        Milvus(uri)


@needs_milvus
def test_long_texts_are_cut_where_milvus_ends_them(milvus):
    text = "é" * 40_000
    build(milvus, [Text("d1", "", text)])
    ((hit,),) = MilvusCollection(milvus, NAME).search(queries(1), 1)
    assert hit.text == text[: 65_535 // 2]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "memory: there are no documents"),
        ([*TEXTS, TEXTS[3]], r"\[62\]: id 'd3' is already used at .*\[3\]"),
    ],
)
def test_what_cannot_be_written_is_named_before_anything_is(texts, message):
    with pytest.raises(InputError, match=message):
        build(types.SimpleNamespace(has=lambda name: False), texts)


def test_missing_package_is_named_with_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    remedy = r"pip install .*milvus.* on Python 3\.12 or 3\.13"
    with pytest.raises(InputError, match=rf"--engine=milvus: it needs .*pymilvus.*{remedy}"):
        Milvus("milvus.db")
