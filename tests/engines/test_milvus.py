"""A collection in Milvus Lite: exact ranks, changes by id, one export, searches, commands."""

import dataclasses
import importlib.util
import json
import sys
import types

import numpy as np
import pytest

from tests.cases import cases
from tests.index import helpers
from tests.index.helpers import DIM, document, in_memory, queries
from tests.training.tiny_set import DOCUMENTS
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.engines import milvus_building
from tf_smoothclir.engines.milvus import Address, CollectionNote, Milvus
from tf_smoothclir.engines.milvus_building import build_collection, change_collection
from tf_smoothclir.engines.milvus_collection import MOST_HITS, MilvusCollection, candidates
from tf_smoothclir.families.lexical import word_ranker
from tf_smoothclir.hybrid.fusion import Fusion
from tf_smoothclir.index import builder, dense_half, document_index
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.plugins import family
from tf_smoothclir.protocols.text_search import CutPoints
from tf_smoothclir.publishing.export_directory import load_part
from tf_smoothclir.publishing.exported_models import load_exported_models
from tf_smoothclir.search import engine_ranker, opening, query_reading, text_search
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

MISSING = [name for name in ("pymilvus", "milvus_lite") if not importlib.util.find_spec(name)]
REASON = f"{' and '.join(MISSING)}: an extra, .[milvus], from Python 3.12 on"
needs_milvus = pytest.mark.skipif(bool(MISSING), reason=REASON)
NAME = "texts"
TEXTS = [document(number) for number in range(60)]
TEXTS += [Text("ид 'q\"\\", "", "日 meer"), document(99, "")]
ADDED = [document(number) for number in range(100, 110)]
FOUND = CutPoints((0.1, 0.4), (0.6, 0.9))
QUERIES = ["wordb worde wordc", "wordi wordi", "wordd unheard", "unheard", ""]


def build(milvus, texts=TEXTS, *, export=helpers.TOWER, fail_after=None, **arguments):
    halves = [dense_half.DenseHalf(helpers.Tower(fail_after), DIM)]
    return build_collection(milvus, NAME, in_memory(texts), halves, export, **arguments)


def change(milvus, add=(), remove=(), *, export=helpers.TOWER, **arguments):
    halves, added = [dense_half.DenseHalf(helpers.Tower(), DIM)], in_memory(add) if add else None
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
        found, expected = helpers.found_by(index, query, 15), helpers.brute_force(texts, query, 15)
        assert ids_of(found) == ids_of(expected)
        assert dict(found) == pytest.approx(dict(expected), abs=1e-6)
    (all_,) = helpers.hits_by(index, queries(1), 1000)
    found_texts = {(hit.id, hit.title, hit.text) for hit in all_}
    assert found_texts == {text[:3] for text in texts if text.text}  # else the score is zero
    with milvus.explained():
        assert milvus.client.list_collections() == [NAME]


@pytest.fixture(scope="session")
def lite():
    """Skips what asks for it where Milvus Lite is not installed."""
    if MISSING:
        pytest.skip(REASON)


@pytest.fixture
def milvus(lite, tmp_path):
    with Milvus(str(tmp_path / "milvus.db")) as connection:
        yield connection


@pytest.fixture
def built(milvus):
    build(milvus)
    return milvus


def test_which_cut_points_vectors_have():
    for retriever, expected in (("dense", FOUND), ("hybrid", CutPoints((0.2, 0.7), ()))):
        shared = {**helpers.TOWER.shared(), "cut_points": FOUND, "retriever": retriever}
        note = CollectionNote(**shared, halves=("dense",), kind="flat")
        assert family("dense").cut_points(note) == expected


@needs_milvus
def test_collection_is_there_after_reconnecting_with_what_it_remembers(tmp_path):
    uri = str(tmp_path / "milvus.db")
    with Milvus(uri) as milvus:
        export = dataclasses.replace(helpers.TOWER, cut_points=FOUND)
        build(milvus, export=export, data=DataSettings(toy_entities=300))
    index = MilvusCollection.at(Address(uri, NAME))
    note = index.manifest
    assert (note.pair_id, note.thresholds) == (helpers.TOWER.pair_id, helpers.TOWER.thresholds)
    assert (note.data, note.cut_points) == (DataSettings(toy_entities=300), FOUND)
    assert (note.halves, note.kind) == (("dense",), "flat")
    for hits in helpers.hits_by(index, queries(20), 40):  # grades by score and share of the first
        scores = np.float32([hit.score for hit in hits])
        assert [hit.grade for hit in hits] == FOUND.of_hits(scores).tolist()


def test_equal_scores_are_ordered_by_the_hash_of_the_id_and_a_filter_leaves_out(milvus):
    texts = [document(number, "copy") for number in range(12)]
    build(milvus, texts)
    for filter_, chosen in (("", texts), ('title like "Title 1%"', [texts[1], *texts[10:]])):
        found = helpers.found_by(MilvusCollection(milvus, NAME, filter_), queries(1)[0], 12)
        assert ids_of(found) == ids_of(helpers.brute_force(chosen, queries(1)[0], 12))


def test_documents_are_added_replaced_and_removed_by_id(milvus):
    build(milvus, kind="hnsw")
    assert_holds(milvus, TEXTS)
    change(milvus, ADDED)
    assert_holds(milvus, TEXTS + ADDED)
    again = document(3, "another text")
    change(milvus, [again], remove=["d5", TEXTS[60].id, "d999"])  # one that is not there
    rest = [text for text in TEXTS if text.id not in {"d3", "d5", TEXTS[60].id}]
    assert_holds(milvus, [*rest, *ADDED, again])
    # A document is removed before the same id is added.
    other = document(3, "a third text")
    change(milvus, [other], remove=["d3"])
    assert_holds(milvus, [*rest, *ADDED, other])


@cases(
    "changes, message",
    ({"remove": ["d3"], "add": [*ADDED[:2], ADDED[0]]}, r"\[2\]: id 'd100' is already used"),
    (
        {"remove": ["d3"], "export": dataclasses.replace(helpers.TOWER, pair_id="b" * 64)},
        "collection 1 and document 1: they come from different training runs",
    ),
)
def test_refused_change_changes_nothing(built, changes, message):
    with pytest.raises(InputError, match=message):
        change(built, **changes)
    assert_holds(built, TEXTS)


def test_collection_is_replaced_only_with_overwrite_once_the_new_one_is_complete(built):
    with pytest.raises(InputError, match="there is a collection of this name already"):
        build(built, TEXTS[:9])
    with pytest.raises(KeyboardInterrupt):
        build(built, TEXTS[:30], fail_after=20, overwrite=True)
    assert len(MilvusCollection(built, NAME)) == len(TEXTS)
    build(built, TEXTS[:30], overwrite=True)
    assert_holds(built, TEXTS[:30])


def test_collection_of_somebody_else_is_refused_and_left_alone(milvus):
    milvus.client.create_collection(NAME, dimension=4)
    replace, add = lambda: build(milvus, overwrite=True), lambda: change(milvus, ADDED)
    for attempt in (replace, add, lambda: MilvusCollection(milvus, NAME)):
        with pytest.raises(InputError, match="smoothclir-index did not write this collection"):
            attempt()
    assert milvus.client.list_collections() == [NAME]


def test_what_cannot_be_searched_is_named(built):
    with pytest.raises(InputError, match=r"--engine_collection=mine: there is no such .*texts"):
        MilvusCollection(built, "mine")
    with pytest.raises(InputError, match=r"--filter=title is: Milvus refuses: .*boolean\.md"):
        MilvusCollection(built, NAME, "title is").search(queries(1), 5)
    with pytest.raises(InputError, match=f"--top_k={MOST_HITS + 1}: Milvus returns at most"):
        MilvusCollection(built, NAME).search(queries(1), MOST_HITS + 1)


@needs_milvus
@cases("uri", "http://127.0.0.1:1", "missing/milvus.db")
def test_engine_that_does_not_answer_is_named(uri, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=rf"--uri={uri}: Milvus refuses: .*Start Milvus"):
        Milvus(uri)


def test_long_texts_are_cut_where_milvus_ends_them(milvus):
    text = "é" * 40_000
    build(milvus, [Text("d1", "", text)])
    ((hit,),) = MilvusCollection(milvus, NAME).search(queries(1), 1)
    assert hit.text == text[: 65_535 // 2]


@cases(
    "texts, message",
    ([], "memory: there are no documents"),
    ([*TEXTS, TEXTS[3]], r"\[62\]: id 'd3' is already used at .*\[3\]"),
)
def test_what_cannot_be_written_is_named_before_anything_is(texts, message):
    with pytest.raises(InputError, match=message):
        build(types.SimpleNamespace(has=lambda name: False), texts)


def test_missing_package_is_named_with_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    remedy = r"pip install .*milvus.* on Python 3\.12 or 3\.13"
    with pytest.raises(InputError, match=rf"--engine=milvus: it needs .*pymilvus.*{remedy}"):
        Milvus("milvus.db")


def opened(path, engine, **options):
    return opening.open_search(path, "", lambda data: data, engine=engine, **options)


def build_exported(path, uri):
    """Writes what an export is for into a collection of Milvus; returns its address."""
    halves, manifest = builder.export_halves(path)
    with Milvus(str(uri)) as milvus:
        build_collection(milvus, "texts", source_of(manifest.data), halves, manifest)
    return Address(str(uri), "texts")


def test_more_candidates_are_found_than_documents_are_wanted():
    assert [*map(candidates, (1, 500, 9000))] == [1000, 5000, 16_384]


@pytest.fixture(scope="module")
def export(ranking_exports):
    return load_exported_models(ranking_exports["hybrid"])


@pytest.fixture(scope="module")
def address(lite, ranking_exports, tmp_path_factory):
    uri = tmp_path_factory.mktemp("milvus") / "milvus.db"
    return build_exported(ranking_exports["hybrid"], uri)


@pytest.fixture(scope="module")
def searches(ranking_exports, export, address, tmp_path_factory):
    """`searches(fusion, filter)`: the search on disk and the one in Milvus, by this fusion."""
    halves, manifest = builder.export_halves(ranking_exports["hybrid"])
    path = tmp_path_factory.mktemp("index") / "index"
    builder.build_index(path, source_of(manifest.data), halves, manifest)
    index = document_index.DocumentIndex(path)
    encode = query_reading.by_tower(load_part(ranking_exports["hybrid"], "query").model)

    def searches(fusion, filter_=""):
        lexical = dataclasses.replace(export["lexical"], fusion=fusion)
        there = MilvusCollection.at(dataclasses.replace(address, filter=filter_))
        rankers = (word_ranker("hybrid", lexical, one, encode) for one in (index, there))
        return [text_search.TextSearch(None, ranker) for ranker in rankers]

    return searches


@cases("share", 0.0, 0.01, 0.3, 1.0)
def test_engine_adds_the_scores_as_the_index_does(searches, share):
    # Feedback is what the engine leaves out; all documents are among the candidates.
    here, there = searches(Fusion(share, 2.0, 0.25))
    compared = 0
    for of_index, of_engine in zip(*(one.search(QUERIES, DOCUMENTS) for one in (here, there))):
        expected = {hit.id: hit.score for hit in of_index}
        for hit in of_engine:
            assert hit.score == pytest.approx(expected[hit.id], rel=1e-5, abs=1e-5)
        # A document that shares no word with the query has no score by words alone.
        without = sorted(expected.keys() - {hit.id for hit in of_engine})
        assert [expected[id_] for id_ in without] == pytest.approx([0.0] * len(without))
        assert [hit.rank for hit in of_engine] == list(range(1, len(of_engine) + 1))
        compared += len(of_engine)
    assert compared > DOCUMENTS


def test_filter_holds_for_both_halves_and_explanations_are_those_of_the_index(searches):
    (hits,) = searches(Fusion(0.3, 2.0, 0.25), 'id in ["3", "5"]')[1].search(QUERIES[:1], 9)
    assert {hit.id for hit in hits} == {"3", "5"}
    here, there = searches(Fusion(0.3, 2.0, 0.25))
    for role in ("document", "query"):
        ours, theirs = (search.explain(QUERIES[0], hits, role) for search in (there, here))
        for one, other in zip(ours, theirs, strict=True):
            assert (one.score, one.towers) == pytest.approx((other.score, other.towers), rel=1e-5)
            assert [word.word for word in one.words] == [word.word for word in other.words]


def test_each_retriever_is_opened_as_for_an_index(ranking_exports, searches, address, export):
    fusions = {"dense": Fusion(1.0, 1.0, 1.0), "lexical": Fusion(0.0, 1.0, 1.0)}
    of_run = dataclasses.replace(export["lexical"].fusion, feedback=0.0)
    for retriever in ("auto", "dense", "lexical", "hybrid"):
        there = opened(ranking_exports["hybrid"], address, retriever=retriever)
        assert isinstance(there.ranker, engine_ranker.EngineRanker)
        (hits,) = there.search(QUERIES[:1], 3)
        (best,) = searches(fusions.get(retriever, of_run))[0].search(QUERIES[:1], 3)
        # The fusion counts vectors once for each of the three words of the query.
        expected = [hit.score / (3 if retriever == "dense" else 1) for hit in best]
        assert [hit.score for hit in hits] == pytest.approx(expected, rel=1e-5)


@needs_milvus
def test_export_of_a_lexical_run_needs_no_vectors(ranking_exports, tmp_path):
    path = ranking_exports["lexical"]
    address = build_exported(path, tmp_path / "milvus.db")
    search = opened(path, address)
    assert search.search(["unheard"], 3) == [[]]
    (hits,) = search.search(QUERIES[:1], 3)
    assert len(hits) == 3
    with pytest.raises(InputError, match="--retriever=dense: the index has no vectors"):
        opened(path, address, retriever="dense")


@needs_milvus
def test_document_without_words_is_kept_and_is_no_hit(ranking_exports, tmp_path):
    halves, manifest = builder.export_halves(ranking_exports["hybrid"])
    with Milvus(build_exported(ranking_exports["hybrid"], tmp_path / "milvus.db").uri) as milvus:
        added = in_memory([document("empty", "")])
        changed = change_collection(milvus, "texts", halves, manifest, add=added)
        assert len(changed) == DOCUMENTS + 1
        (found,) = changed.search(np.ones((1, manifest.dim), np.float32), DOCUMENTS + 1)
        assert "dempty" not in {hit.id for hit in found}  # its score is zero
        (fields,) = changed.values(["dempty"])
        assert (list(fields["lexical"]), any(fields["dense"])) == ([NO_WORD], False)


@needs_milvus
def test_documents_come_and_go_by_the_commands(commands, export_dir, tmp_path):
    (tmp_path / "old.tsv").write_text("a\tmotb\nb\tmotc\nc\tmotd\n")
    (tmp_path / "add.tsv").write_text("b\tmote mote\nd\tmotf\n")
    (tmp_path / "remove.txt").write_text("a\n")
    given = [f"--export_dir={export_dir}", "--engine=milvus", f"--uri={tmp_path}/milvus.db"]
    given += ["--engine_collection=mine", "--verbosity=-1"]
    changes = [f"--add={tmp_path}/add.tsv", f"--remove={tmp_path}/remove.txt"]
    commands.run("export.build_index", *given, f"--collection={tmp_path}/old.tsv")
    done = commands.run("export.build_index", *given, *changes)
    assert done.stdout == f"{tmp_path}/milvus.db mine: 3 documents\n"
    assert "Traceback" not in done.stderr  # pymilvus and gRPC log what is no error of the user
    texts = {"b": "mote mote", "c": "motd", "d": "motf"}
    for chosen, left_out in ([], ""), (['--filter=id != "c"'], "c"):
        done = commands.run("export.search", *given, "--json", "--query=wordb", *chosen)
        hits = json.loads(done.stdout)["results"]
        expected = {id_: text for id_, text in texts.items() if id_ != left_out}
        assert {hit["id"]: hit["text"] for hit in hits} == expected
