"""A foreign encoder that ranks, alone or beside a translation table: trained, served, opened."""

import numpy as np
import pytest

import tf_smoothclir as sc
from tests.foreign_encoders import stand_in
from tests.training.fixtures import no_plots
from tf_smoothclir.foreign_encoders import opening
from tf_smoothclir.foreign_encoders.protocol import unit_vectors
from tf_smoothclir.search.opening import open_search
from tf_smoothclir.settings.encoder import EncoderSettings
from tf_smoothclir.utils.errors import InputError

ENCODER = "tests.foreign_encoders.stand_in:encode"


@pytest.fixture(scope="module", params=["encoder", "partnered"])
def run(request, tiny_dir, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param) / "run"
    given = {"retriever": request.param, "encoder": ENCODER, "cache_dir": str(path.parent)}
    with no_plots():
        sc.train(tiny_dir, output_dir=path, preset="lexical", **given)
    return path


def test_it_is_trained_evaluated_exported_and_searched(run, tmp_path, monkeypatch):
    monkeypatch.setenv("SMOOTHCLIR_ENCODER", ENCODER)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    model = sc.load(run)
    export = model.export(tmp_path / "export")
    query, text = "word1 word4", "mot1 mot4"
    hits = model.search([query], k=3)[0]
    assert model.evaluate(negatives=40).metrics == pytest.approx(model.metrics)
    sc.load(export).build_index(export / "index")
    search = open_search(export, "", lambda data: data)
    (found,) = search.search([query], 3)
    assert [hit.id for hit in found] == [hit.id for hit in hits]
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in hits], rel=1e-4)
    of_hits = [explanation.score for explanation in search.explain(query, found)]
    assert of_hits == pytest.approx([hit.score for hit in found], rel=1e-4)
    explained = model.explain(query, text)
    assert model.score([query], [text]) == pytest.approx([explained.score], abs=1e-5)
    if model.retriever == "encoder":
        first, second = (unit_vectors(stand_in.encode([one])) for one in (query, text))
        assert explained.score == pytest.approx(float((first * second).sum()))


def test_no_code_runs_and_nobody_is_asked_because_a_file_says_so(run, monkeypatch):
    """Hazard: a run from a stranger that sends queries away."""
    monkeypatch.setattr(opening, "_named", set())
    imported = []
    monkeypatch.setattr(opening, "imported", lambda *given, **_: imported.append(given))
    with pytest.raises(InputError, match=f"If you trust it, set SMOOTHCLIR_ENCODER={ENCODER}"):
        sc.load(run).search(["word1"])
    assert not imported
    monkeypatch.undo()
    monkeypatch.setenv("SMOOTHCLIR_ENCODER", ENCODER)
    with pytest.raises(InputError, match="it is another one than in training"):
        opening.reopened(EncoderSettings(encoder=ENCODER), "another digest")


def test_vectors_in_a_file_rank_the_set_that_they_are_of_and_encode_nothing(tiny_dir, tmp_path):
    ids = np.arange(30).astype(str)
    vectors = np.random.default_rng(1).normal(size=(30, 4))
    of_queries = {"query_ids": ids[:20], "queries": vectors[:20]}  # like those of their mates
    np.savez(tmp_path / "vectors.npz", **of_queries, document_ids=ids, documents=vectors)
    given = {"retriever": "encoder", "encoder": str(tmp_path / "vectors.npz")}
    with no_plots():
        model = sc.train(tiny_dir, output_dir=tmp_path / "run", preset="lexical", **given)
    assert model.metrics["full/MRR@10"] == 1
    with pytest.raises(InputError, match="can encode no others"):
        model.search(["word1"])
