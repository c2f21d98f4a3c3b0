"""Exported re-rankers: SavedModel, search in two stages, explanations, parts of one run."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.published import RERANKED_DEPTH, undesired_operations
from tests.server.local_server import local_server
from tests.training.fixtures import tokenized_by
from tf_smoothclir import InputError, ServingClient
from tf_smoothclir.families import reranked as reranked_family
from tf_smoothclir.protocols.scorer import Ranking
from tf_smoothclir.publishing import export, export_directory, exported_models
from tf_smoothclir.search import opening, second_stage
from tf_smoothclir.settings.retrieval import RERANKED
from tf_smoothclir.training.run_models import RunModels, load_models

TEXTS = ["word1 word4", "", "nobody knows", "word2 word2 word3 word5 word7"]
DOCUMENTS = [b"mot1 mot4 mot2", b"", b"\xff\x00 mot2", b"mot3 mot2 mot5 " * 60]


@pytest.fixture
def run(reranked):
    return reranked[0]


@pytest.fixture(scope="module")
def export_dir(reranked):
    return reranked[1]


def opened(export_dir, **options):
    return opening.open_search(export_dir, "", lambda data: data, **options)


@pytest.fixture(scope="module")
def search(export_dir):
    return opened(export_dir)


def padded(texts, encoder):
    tokens = encoder(tf.constant(texts))
    rows = np.split(tokens.ids.numpy(), np.cumsum(tokens.lengths.numpy())[:-1])
    longest = max(1, *map(len, rows))
    return np.array([[*row, *[0] * (longest - len(row))] for row in rows], np.int32)


def test_the_saved_model_scores_as_python_does(run, export_dir):
    model, manifest = export_directory.load_part(export_dir, "reranker")
    assert undesired_operations(model) == set()
    stage = exported_models.load_exported_models(export_dir)["reranked"]
    documents = padded(DOCUMENTS, stage.encoders["document"])
    serve = model.signatures["serving_default"]
    for text in TEXTS:
        (query,) = padded([text], stage.encoders["query"])
        expected = stage.reranker.network.list_scorer()(query, documents)
        for queries in ([text], [text] * len(DOCUMENTS)):
            found = serve(query=tf.constant(queries), document=tf.constant(DOCUMENTS))["score"]
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="query must have one row"):
        serve(query=tf.constant(["a", "b"]), document=tf.constant(DOCUMENTS[:3]))
    assert manifest.parts == ("lexical", "reranker")
    assert manifest.pair_id == export.models_of_run(run).manifest.pair_id
    said = model.signatures["pair_id"](text=tf.constant([""]))
    assert said["pair_id"].numpy()[0].decode() == manifest.pair_id
    assert said["weight"].numpy() == [30.0]


def test_a_model_server_re_ranks(export_dir):
    model, _ = export_directory.load_part(export_dir, "reranker")
    serve = model.signatures["serving_default"]
    expected = serve(query=tf.constant(TEXTS[:1]), document=tf.constant(DOCUMENTS))["score"]
    with local_server(export_dir) as address:
        client = ServingClient(address, batch_size=3)
        found = client.rerank(TEXTS[0], DOCUMENTS)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        assert client.rerank(TEXTS[0], []).shape == (0,)


def test_searches_rank_as_the_run_does(run, search):
    tokenized = tokenized_by(run)
    retriever = load_models(run).retrievers(tokenized)[RERANKED]
    queries = tokenized.retrieval_set.queries_in("train")
    depth = RERANKED_DEPTH + 2
    ranking = Ranking.joined(retriever.rank(queries, depth))
    texts = [query.text for query in tokenized.retrieval_set.source.queries()]
    found = search.search([texts[row] for row in queries], depth)
    first = load_models(run).retrievers(tokenized)["lexical"]
    before = Ranking.joined(first.rank(queries, depth))
    assert (before.document_rows != ranking.document_rows).any()
    for hits, rows, scores in zip(found, ranking.document_rows, ranking.scores):
        ids = [tokenized.retrieval_set.document_ids[row] for row in rows[: len(hits)]]
        assert [hit.id for hit in hits] == ids
        np.testing.assert_allclose([hit.score for hit in hits], scores[: len(hits)], rtol=1e-4)
        assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
        assert all(hit.grade in (0, 1, 2) for hit in hits)
    assert max(map(len, found)) > RERANKED_DEPTH


def test_explanations_name_pairs_of_words_that_add_up(search):
    assert search.search(["???", ""], 5) == [[], []]
    assert search.collection.retrievers == (RERANKED, "lexical")
    (hits,) = search.search(["word1 word4"], 3)
    for hit, explanation in zip(hits, search.explain("word1 word4", hits)):
        assert explanation.score == hit.score
        assert {pair.query_word for pair in explanation.pairs} <= {"word1", "word4"}
        assert all(pair.document_word in hit.text for pair in explanation.pairs)
        added = sum(pair.share for pair in explanation.pairs)
        assert added == pytest.approx(explanation.reranker, rel=1e-3)
        parts = sum(word.share for word in explanation.words) + explanation.remainder
        others = explanation.towers + explanation.feedback + explanation.reranker
        assert parts + others == pytest.approx(hit.score, rel=1e-5)


def test_a_re_ranker_that_is_not_there_is_missed(export_dir, search, monkeypatch):
    """Whoever copied the export may have left it out."""

    def versions(path, role):
        return [] if role == "reranker" else export_directory.exported_versions(path, role)

    monkeypatch.setattr(reranked_family, "exported_versions", versions)
    for retriever in ("auto", RERANKED):
        with pytest.raises(InputError, match=r"reranker/1: the index is of an export with a re-"):
            opened(export_dir, retriever=retriever)
    assert opened(export_dir, retriever="lexical").collection.retrievers == ("lexical",)


def test_exported_re_rankers_read_no_more_of_a_text_than_the_run(run, monkeypatch):
    models = load_models(run)
    text = dataclasses.replace(models.settings.text, max_query_tokens=2, max_document_tokens=3)
    settings = dataclasses.replace(models.settings, text=text)
    short = RunModels(settings, models)
    monkeypatch.setattr(export, "load_models", lambda _: short)
    stage = export.models_of_run(run)["reranked"]
    assert [stage.encoders[role].max_tokens for role in ("query", "document")] == [2, 3]


def test_searches_forget_the_words_of_the_first_documents(search, monkeypatch):
    expected = search.search(["word1 word4"], 3)
    search.ranker._known.clear()
    monkeypatch.setattr(second_stage, "_REMEMBERED", 2)
    assert search.search(["word1 word4"], 3) == expected
    assert len(search.ranker._known) == 2
