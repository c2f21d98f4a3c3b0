"""Runs with a re-ranker: what they learn, keep, go on from and rank with."""

import dataclasses
import json
import shutil
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from tests.cases import cases
from tests.training.fixtures import run_of, tokenized_by
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.interaction import learning, reranker_learning
from tf_smoothclir.interaction.reranker import Reranker
from tf_smoothclir.training import run_directory, run_models
from tf_smoothclir.training.train import train
from tf_smoothclir.utils.errors import InputError


@pytest.fixture(scope="module")
def run(tiny, tmp_path_factory):
    settings = tiny(reranker="late_interaction", rerank_depth=5)
    return run_of(settings, tmp_path_factory.mktemp("reranked") / "run")


@pytest.fixture(scope="module")
def tokenized(run):
    return tokenized_by(run)


@pytest.fixture(scope="module")
def models(run):
    return run_models.load_models(run)


@pytest.fixture(scope="module")
def first_stage(models, tokenized):
    return models.retrievers(tokenized)["dense"]


def test_a_run_says_what_was_chosen_and_scores_by_both_stages(run, tokenized, models, finished):
    content = json.loads(run.metrics.read_text())
    assert list(content["components"]) == ["dense"]
    assert content["reranker"]["network"] == "late_interaction"
    assert content["reranker"]["validation"]["0"] > 0
    assert content["training"]["seconds"] >= content["reranker"]["seconds"]
    assert "reranked" not in run_models.load_models(finished)
    lists = candidate_lists(tokenized.retrieval_set, "test", negatives=3, seed=1)
    found = models.retrievers(tokenized)
    assert list(found) == ["dense", "reranked"]
    assert found["reranked"]._ranks == 5
    scores = run_models.load_retriever(run, tokenized)[0].score(lists)
    np.testing.assert_array_equal(scores, found["reranked"].score(lists))
    reranker = models["reranked"]
    second = reranker.scorer(reranker.texts(tokenized)).score(lists)
    expected = found["dense"].score(lists) + reranker.weight * second
    np.testing.assert_allclose(scores, expected, rtol=1e-5)


def test_lists_have_unjudged_negatives_and_more_lists_related_ones(tokenized, first_stage):
    retrieval_set = tokenized.retrieval_set
    names = ("query_rows", "document_rows", "grades")
    rows, documents, of_pairs = (getattr(retrieval_set, name) for name in names)
    grades = dict(zip(zip(rows, documents), of_pairs))
    lists = reranker_learning.training_lists(retrieval_set, first_stage, seed=1)
    assert (retrieval_set.splits[lists.query_rows] == 0).all()
    pairs = [*zip(lists.pair_query_rows, lists.document_rows)]
    assert len({*pairs}) == len(pairs)
    found = {(grade, grades.get(pair)) for pair, grade in zip(pairs, lists.grades)}
    assert found == {(2, 2), (0, None)}  # never a judged one

    more = reranker_learning.with_related(lists, retrieval_set, seed=1)
    before = len(lists.query_rows)
    assert len(more.query_rows) > before
    np.testing.assert_array_equal(more.document_rows[: lists.offsets[-1]], lists.document_rows)
    np.testing.assert_array_equal(more.offsets[: before + 1], lists.offsets)
    for number in range(before, len(more.query_rows)):
        own = slice(*more.offsets[number : number + 2])
        row, listed = more.query_rows[number], more.document_rows[own]
        assert retrieval_set.splits[row] == 0
        assert len(set(listed)) == len(listed)
        found = [grades.get((row, document)) for document in listed]
        # Grade 1 counts as relevant here; what nobody judged does not.
        assert [{1: 2, None: 0}[grade] for grade in found] == more.grades[own].tolist()
        assert {1, None} == set(found)
        assert found.count(1) <= 5

    parts = {name: getattr(retrieval_set, name)[of_pairs == 2] for name in names}
    binary = dataclasses.replace(retrieval_set, **parts)  # without related documents
    lists = reranker_learning.training_lists(binary, first_stage, seed=1)
    again = reranker_learning.with_related(lists, binary, seed=1)
    assert len(again.query_rows) == len(lists.query_rows) > 0


@cases("gains", (0.02, 0.01), (0.01, 0.02), (0.0, 0.0))
def test_validation_decides_about_related_ones(models, first_stage, tokenized, monkeypatch, gains):
    """The first is learned without them, the second with them."""
    unchanged = learning.Learned(0, (0.0,), (), 0.0)
    monkeypatch.setattr(reranker_learning, "learn", lambda *_, **__: unchanged)
    found = [(3 * gain, float(gain > 0), {0.0: 0.5, 1.0: 0.5 + gain}) for gain in gains]
    best = mock.Mock(side_effect=found)
    monkeypatch.setattr(reranker_learning.FirstStageValidation, "best", best)
    given = ("late_interaction", models["reranked"].codes, tokenized, first_stage)
    learned = reranker_learning.learn_reranker(*given, depth=5, seed=1)
    assert learned.choices.related == (gains[1] > gains[0])
    assert learned.weight == pytest.approx(3 * max(gains))


@cases("falls, refused", (0.5, False), (3.0, True))
def test_map_falls_no_more_than_others_rise(first_stage, tokenized, monkeypatch, falls, refused):
    """A network that looks for the best document alone puts related ones below random ones."""
    validation = reranker_learning.FirstStageValidation(tokenized.retrieval_set, first_stage, 5)
    of_lists, calls = reranker_learning.list_metrics, []

    def measured(*args):
        """NDCG@5 rises with each share that is tried, and MAP falls."""
        calls.append(1)
        found, rises = of_lists(*args), 0.01 * len(calls)
        return {"NDCG@5": found["NDCG@5"] + rises, "MAP": found["MAP"] - falls * rises}

    monkeypatch.setattr(reranker_learning, "list_metrics", measured)
    silent = SimpleNamespace(score=lambda lists: np.zeros(len(lists.document_rows), np.float32))
    _, share, values = validation.best(silent)
    # MRR@10 stays: each share adds 0.01 / 2 to the mean of NDCG@5 and MRR@10.
    np.testing.assert_allclose(np.diff(list(values.values())), 0.01 / 2, atol=1e-6)
    assert share == (0 if refused else 10)


def test_a_killed_run_learns_the_rest_again_and_nothing_twice(run, models, tmp_path):
    again = run_directory.RunDirectory.load(shutil.copytree(run.path, tmp_path / "run"))
    again.metrics.unlink()
    shutil.rmtree(again.reranker)

    def stop_saving(_, path):
        path.mkdir()
        raise KeyboardInterrupt

    stop, learned = mock.Mock(side_effect=KeyboardInterrupt), lambda *_, **__: models["reranked"]
    with mock.patch.object(reranker_learning, "learn", stop), pytest.raises(KeyboardInterrupt):
        train(run.settings(), again.path)
    assert not again.reranker.exists()
    with (
        mock.patch.object(reranker_learning, "learn_reranker", learned),
        mock.patch.object(Reranker, "save", stop_saving),
        pytest.raises(KeyboardInterrupt),
    ):
        train(run.settings(), again.path)
    assert not again.reranker.exists()
    with pytest.raises(InputError, match="has not learned its re-ranker yet"):
        run_models.load_models(again)
    train(run.settings(), again.path)
    again.metrics.unlink()
    with mock.patch.object(reranker_learning, "learn", stop):
        train(run.settings(), again.path)
    old, new = (json.loads(one.metrics.read_text()) for one in (run, again))
    assert old["test"] == new["test"]
    old["reranker"]["seconds"] = new["reranker"]["seconds"] = 0
    assert old["reranker"] == new["reranker"]


def test_damaged_files_are_named(models, tmp_path):
    for name, damaged in (("reranker.json", lambda _: b"{}"), ("reranker.npz", lambda b: b[:-40])):
        models["reranked"].save(tmp_path / name)
        path = tmp_path / name / name
        path.write_bytes(damaged(path.read_bytes()))
        with pytest.raises(InputError, match="this is not a re-ranker"):
            Reranker.load(path.parent)
