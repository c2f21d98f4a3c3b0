"""A foreign encoder that ranks, alone or as a part of a hybrid: trained, served, opened."""

import json
import math
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

import tf_smoothclir as sc
from tests.cases import cases
from tests.foreign_encoders import stand_in
from tests.published import NoVerifier
from tests.search.test_word_search import check_ranks, ranked_by_evaluation
from tf_smoothclir.families import hybrid
from tf_smoothclir.foreign_encoders import head_learning, opening, protocol
from tf_smoothclir.foreign_encoders.head import Head
from tf_smoothclir.hybrid import learning as hybrid_learning
from tf_smoothclir.hybrid.fusion import Fusion
from tf_smoothclir.plugins import family, with_parts
from tf_smoothclir.publishing import version_writer
from tf_smoothclir.publishing.export import Publication
from tf_smoothclir.search import word_ranker
from tf_smoothclir.search.opening import open_search
from tf_smoothclir.server import served_models
from tf_smoothclir.settings.data import EncoderSettings
from tf_smoothclir.settings.presets import preset_settings
from tf_smoothclir.storage.files import read_json
from tf_smoothclir.training import run_directory, run_models
from tf_smoothclir.training.train import train

ENCODER = "tests.foreign_encoders.stand_in:encode"
PARTS = {"encoder": [], "lexical": ["lexical", "encoder"]}
PARTS["hybrid"] = ["dense", *PARTS["lexical"]]


def a_head(*_):
    random = np.random.default_rng(5)
    texts = (protocol.unit_vectors(random.random((40, stand_in.DIM), np.float32)) for _ in range(2))
    matrix = 10 * np.eye(stand_in.DIM) + random.normal(size=(stand_in.DIM, stand_in.DIM))
    return Head.of(*texts, seed=5, matrix=matrix), "better"


@pytest.fixture(scope="module", params=PARTS)
def run(request, tiny_dir, tmp_path_factory):
    """A run that ranks by all of its parts, in whichever measure; but for one with a head."""
    path = tmp_path_factory.mktemp(request.param) / "run"
    given = {"retriever": request.param, "encoder": ENCODER, "cache_dir": str(path.parent)}
    given["distill"] = request.param == "hybrid"
    fusion = Fusion(0.2 * (request.param == "hybrid"), 2.0, 0.25, 1.0, 0.0, 0.3, 0.1)
    learn = a_head if request.param != "lexical" else head_learning.learn_head
    with (
        mock.patch.object(hybrid_learning, "learn_fusion", return_value=fusion),
        mock.patch.object(head_learning, "learn_head", learn),
    ):
        sc.train(tiny_dir, output_dir=path, preset="fast", dim=4, epochs=1, **given)
    return path


def test_it_is_trained_evaluated_exported_and_searched(run, tmp_path, monkeypatch):
    monkeypatch.setenv("SMOOTHCLIR_ENCODER", ENCODER)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    model = sc.load(run)
    if model.retriever != "encoder":  # it has a head, and the least beside
        monkeypatch.setattr(version_writer, "Verifier", NoVerifier)
    export = model.export(tmp_path / "export")
    query, text = "wordb worde", "motb mote"
    hits = model.search([query], k=3)[0]
    parts = PARTS[model.retriever.removesuffix("+encoder")]
    is_distilled = "dense" in parts
    assert [*read_json(run / "metrics.json").get("components", [])] == parts
    assert model.evaluate(negatives=40).metrics == pytest.approx(model.metrics)
    sc.load(export).build_index(export / "index")
    search = open_search(export, "", lambda data: data)
    with monkeypatch.context() as context:
        if is_distilled:  # its student reads queries, so nobody is asked
            context.delenv("SMOOTHCLIR_ENCODER")
            context.setattr(opening, "_named", set())
            models = run_models.load_models(run_directory.RunDirectory(run))
            publication = Publication(run_directory.RunDirectory(run), models)
            # The documents of a search model have the vectors of the encoder.
            assert family(model.retriever).vectors_in_graph(publication) is None
        (found,) = search.search([query], 3)
        explanations = search.explain(query, found)
    assert [hit.id for hit in found] == [hit.id for hit in hits]
    assert (export / "search").exists() == is_distilled
    if is_distilled:
        graph = tf.saved_model.load(str(export / "search" / "1")).signatures["serving_default"]
        answer = graph(text=tf.constant([query, "?"]))
        assert answer["ids"][0, :3].numpy().tolist() == [hit.id.encode() for hit in hits]
        np.testing.assert_allclose(answer["scores"][0, :3], [hit.score for hit in hits], rtol=1e-4)
        assert answer["evidence"].numpy().tolist() == [b"words", b"nothing"]
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in hits], rel=1e-4)
    if parts:
        monkeypatch.setattr(word_ranker, "_FIRST", 1)
        bounding = (8, 2), (64, 4)  # few, and yet it ranks as evaluation does
        monkeypatch.setattr(word_ranker, "_BOUNDING", bounding)
        check_ranks(search, *ranked_by_evaluation(run_directory.RunDirectory(run), model.retriever))
    of_hits = [explanation.score for explanation in explanations]
    assert of_hits == pytest.approx([hit.score for hit in found], rel=1e-4)
    explained = model.explain(query, text)
    for one in (*explanations, explained):  # by part; towers know no text without words
        assert (one.encoder != 0) == ("encoder" in parts)
        assert (one.towers != 0) == ("dense" in parts and bool(one.words))
        others = one.towers + one.encoder + one.feedback
        of_words = sum(word.share for word in one.words) + one.remainder
        assert one.score == pytest.approx(of_words + others, rel=1e-4)
    assert model.score([query], [text]) == pytest.approx([explained.score], abs=1e-5)
    if model.retriever == "encoder":
        served = served_models.load_models(export)["encoder_head"]
        head, vectors = a_head()[0], []
        for role, one in (("query", query), ("document", text)):
            encoded = stand_in.encode([one])
            vectors.append(head.vectors(role, protocol.unit_vectors(encoded)))
            rows = (3 * encoded).tolist()  # of whichever length
            body = json.dumps({"signature_name": role, "instances": rows}).encode()
            predicted = json.loads(served.answer(body))["predictions"]
            np.testing.assert_allclose(predicted, vectors[-1], atol=1e-6)
        for rows in ([[1.0]], ["a"], [[None] * 8], [[True] * 8], [[10**400] * 8], [[math.nan] * 8]):
            body = json.dumps({"signature_name": "query", "inputs": rows}).encode()
            with pytest.raises(sc.InputError, match="vector: a row is no vector"):
                served.answer(body)
        np.testing.assert_allclose(model.encode_queries([query]), vectors[0], atol=1e-6)
        assert explained.score == pytest.approx(np.vdot(*vectors), abs=1e-6)
    assert (export / "encoder_head").exists() == (model.retriever != "lexical+encoder")


def test_no_code_runs_and_nobody_is_asked_because_a_file_says_so(run, monkeypatch):
    """Hazard: a run from a stranger that sends queries away."""
    monkeypatch.setattr(opening, "_named", set())
    imported = []
    monkeypatch.setattr(opening, "imported", lambda *given, **_: imported.append(given))
    with pytest.raises(sc.InputError, match=f"If you trust it, set SMOOTHCLIR_ENCODER={ENCODER}"):
        sc.load(run).search(["wordb"])
    assert not imported
    monkeypatch.undo()
    monkeypatch.setenv("SMOOTHCLIR_ENCODER", ENCODER)
    with pytest.raises(sc.InputError, match="it is another one than in training"):
        opening.reopened(EncoderSettings(encoder=ENCODER), "another digest")


def test_vectors_in_a_file_rank_their_set_and_encode_nothing(tiny_dir, tmp_path, caplog):
    ids = np.arange(30).astype(str)
    vectors = np.random.default_rng(1).normal(size=(30, 4))
    of_queries = {"query_ids": ids[:20], "queries": vectors[:20]}  # like those of their mates
    np.savez(tmp_path / "vectors.npz", **of_queries, document_ids=ids, documents=vectors)
    given = {"retriever": "encoder", "encoder": str(tmp_path / "vectors.npz")}
    model = sc.train(tiny_dir, output_dir=tmp_path / "run", preset="lexical", **given)
    assert model.metrics["full/MRR@10"] == 1
    assert "can be measured, but not search. To search, train" in caplog.text
    with pytest.raises(sc.InputError, match="can encode no others"):
        model.search(["wordb"])


@cases(
    "given, retriever",
    ({}, "hybrid+encoder"),
    ({"tower": "lstm"}, "hybrid+encoder"),  # with the towers of another preset
    ({"preset": "lexical"}, "lexical+encoder"),
    ({"retriever": "encoder"}, "encoder"),
)
def test_an_encoder_joins_the_ranking(given, retriever):
    preset = given.pop("preset", "")
    settings = preset_settings(preset, {**given, "encoder": ENCODER})
    assert settings.retrieval.retriever == retriever
    assert settings.ranking_by("encoder").of(EncoderSettings).encoder == ENCODER
    assert not settings.ranking_by("lexical").of(EncoderSettings).encoder


def test_an_encoder_joins_no_towers_alone():
    with pytest.raises(sc.InputError, match="nothing ranks by it"):
        preset_settings("dense", {"encoder": ENCODER})


@cases(
    "shares, kept",
    ((0.0, 0.3), "lexical+encoder"),
    ((0.3, 0.0), "hybrid"),
    ((0.0, 0.0), "lexical"),
    ((0.4, 0.6), "hybrid+encoder"),
)
def test_parts_that_count_for_nothing_are_not_kept(tiny, tmp_path, monkeypatch, shares, kept):
    monkeypatch.setattr(hybrid, "_ENOUGH_QUERIES", 1)
    monkeypatch.setattr(hybrid_learning, "may_count", lambda *_: True)
    fusion = Fusion(shares[0], 2.0, 0.25, encoder_share=shares[1], encoder_deviation=0.1)
    monkeypatch.setattr(hybrid_learning, "learn_fusion", lambda *_: fusion)
    settings, path = tiny(retriever="hybrid", epochs=1, encoder=ENCODER), tmp_path / "run"
    result = train(settings, path)
    run = run_directory.RunDirectory.load(path)
    assert run.settings().retrieval.retriever == kept
    assert [*run_models.load_models(run)] == [*with_parts(kept)]
    assert run.checkpoints.exists() == (shares[0] > 0)
    assert (result["training"]["epochs"] == 1) == (shares[0] > 0)
    assert ("| left out |" in run.report.read_text()) == (kept != "hybrid+encoder")
    assert train(settings, path) == read_json(run.metrics)  # it is the run that was asked for
    if "encoder" not in kept:
        monkeypatch.delattr(opening, "reopened")  # nobody asks for it
    assert sc.load(path).search(["wordb"], k=1)
