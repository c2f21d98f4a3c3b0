"""Searches and commands with a collection in Milvus Lite: what the index on disk finds."""

import dataclasses
import json

import numpy as np
import pytest

from tests.engines.lite import needs_milvus
from tests.index.helpers import document, in_memory
from tests.training.tiny_set import DOCUMENTS
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.engines.milvus import Address, Milvus
from tf_smoothclir.engines.milvus_building import build_collection, change_collection
from tf_smoothclir.engines.milvus_collection import MilvusCollection, candidates
from tf_smoothclir.families.lexical import word_ranker
from tf_smoothclir.hybrid.fusion import Fusion
from tf_smoothclir.index.builder import build_index, export_halves
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.publishing.export_directory import load_part
from tf_smoothclir.publishing.exported_models import load_exported_models
from tf_smoothclir.search.engine_ranker import EngineRanker
from tf_smoothclir.search.opening import open_search
from tf_smoothclir.search.query_reading import by_tower
from tf_smoothclir.search.text_search import TextSearch
from tf_smoothclir.utils.errors import InputError

pytestmark = needs_milvus
QUERIES = ["word1 word4 word2", "word8 word8", "word3 unheard", "unheard", ""]


def opened(path, engine, **options):
    return open_search(path, "", lambda data: data, engine=engine, **options)


def build(path, uri):
    """Writes what an export is for into a collection of Milvus; returns its address."""
    halves, manifest = export_halves(path)
    documents = source_of(manifest.data)
    with Milvus(str(uri)) as milvus:
        build_collection(milvus, "texts", documents, halves, manifest)
    return Address(str(uri), "texts")


def test_more_candidates_are_found_than_documents_are_wanted():
    assert [*map(candidates, (1, 500, 9000))] == [1000, 5000, 16_384]


@pytest.fixture(scope="module")
def export(ranking_exports):
    """The models of a hybrid run."""
    return load_exported_models(ranking_exports["hybrid"])


@pytest.fixture(scope="module")
def address(ranking_exports, tmp_path_factory):
    """A collection with both halves."""
    return build(ranking_exports["hybrid"], tmp_path_factory.mktemp("milvus") / "milvus.db")


@pytest.fixture(scope="module")
def searches(ranking_exports, export, address, tmp_path_factory):
    """`searches(fusion, filter)`: the search on disk and the one in Milvus, by this fusion."""
    halves, manifest = export_halves(ranking_exports["hybrid"])
    path = tmp_path_factory.mktemp("index") / "index"
    build_index(path, source_of(manifest.data), halves, manifest)
    index = DocumentIndex(path)
    encode = by_tower(load_part(ranking_exports["hybrid"], "query").model)

    def searches(fusion, filter_=""):
        lexical = dataclasses.replace(export["lexical"], fusion=fusion)
        there = MilvusCollection.at(dataclasses.replace(address, filter=filter_))
        rankers = (word_ranker("hybrid", lexical, one, encode) for one in (index, there))
        return [TextSearch(None, ranker) for ranker in rankers]

    return searches


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_engine_adds_the_scores_as_the_index_does(searches, share):
    # Feedback is what the engine leaves out; all documents are among the candidates.
    here, there = searches(Fusion(share, 2.0, 0.25))
    compared = 0
    for of_index, of_engine in zip(
        here.search(QUERIES, DOCUMENTS), there.search(QUERIES, DOCUMENTS)
    ):
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
        assert isinstance(there.ranker, EngineRanker)
        (hits,) = there.search(QUERIES[:1], 3)
        (best,) = searches(fusions.get(retriever, of_run))[0].search(QUERIES[:1], 3)
        # The fusion counts vectors once for each of the three words of the query.
        times = 3 if retriever == "dense" else 1
        expected = [hit.score / times for hit in best]
        assert [hit.score for hit in hits] == pytest.approx(expected, rel=1e-5)


def test_export_of_a_lexical_run_needs_no_vectors(ranking_exports, tmp_path):
    path = ranking_exports["lexical"]
    address = build(path, tmp_path / "milvus.db")
    search = opened(path, address)
    assert search.search(["unheard"], 3) == [[]]
    (hits,) = search.search(QUERIES[:1], 3)
    assert len(hits) == 3
    with pytest.raises(InputError, match="--retriever=dense: the index has no vectors"):
        opened(path, address, retriever="dense")


def test_document_without_words_is_kept_and_is_no_hit(ranking_exports, tmp_path):
    halves, manifest = export_halves(ranking_exports["hybrid"])
    with Milvus(build(ranking_exports["hybrid"], tmp_path / "milvus.db").uri) as milvus:
        added = in_memory([document("empty", "")])
        changed = change_collection(milvus, "texts", halves, manifest, add=added)
        assert len(changed) == DOCUMENTS + 1
        (found,) = changed.search(np.ones((1, manifest.dim), np.float32), DOCUMENTS + 1)
        assert "dempty" not in {hit.id for hit in found}  # its score is zero
        (fields,) = changed.values(["dempty"])
        assert (list(fields["lexical"]), any(fields["dense"])) == ([NO_WORD], False)


def test_documents_come_and_go_by_the_commands(commands, export_dir, tmp_path):
    (tmp_path / "old.tsv").write_text("a\tmot1\nb\tmot2\nc\tmot3\n")
    (tmp_path / "add.tsv").write_text("b\tmot4 mot4\nd\tmot5\n")
    (tmp_path / "remove.txt").write_text("a\n")
    given = [f"--export_dir={export_dir}", "--engine=milvus", f"--uri={tmp_path}/milvus.db"]
    given += ["--engine_collection=mine", "--verbosity=-1"]
    changes = [f"--add={tmp_path}/add.tsv", f"--remove={tmp_path}/remove.txt"]
    commands.run("export.build_index", *given, f"--collection={tmp_path}/old.tsv")
    done = commands.run("export.build_index", *given, *changes)
    assert done.stdout == f"{tmp_path}/milvus.db mine: 3 documents\n"
    assert "Traceback" not in done.stderr  # pymilvus and gRPC log what is no error of the user
    texts = {"b": "mot4 mot4", "c": "mot3", "d": "mot5"}
    for chosen, left_out in ([], ""), (['--filter=id != "c"'], "c"):
        done = commands.run("export.search", *given, "--json", "--query=word1", *chosen)
        hits = json.loads(done.stdout)["results"]
        expected = {id_: text for id_, text in texts.items() if id_ != left_out}
        assert {hit["id"]: hit["text"] for hit in hits} == expected
