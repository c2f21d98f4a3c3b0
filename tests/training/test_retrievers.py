"""Lexical and hybrid runs: what they write, go on from and rank with."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.training.test_run_directory import snapshot
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.evaluation.evaluate import evaluate_splits
from tf_smoothclir.protocols.cut_points import read_cut_points
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.training import retrievers, run_report
from tf_smoothclir.training.retrievers import load_models, load_scorer
from tf_smoothclir.training.run_checks import check_retriever
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import tokenized_set_of, train
from tf_smoothclir.training.trainer import Trainer
from tf_smoothclir.utils.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
FULL = {f"full/{name}" for name in ("MRR@10", "Recall@1", "Recall@10", "Recall@100")}
TREC = {"run.trec", "qrels.trec", "full.run.trec", "full.qrels.trec"}


@pytest.fixture(scope="module")
def runs(finished, tiny, tmp_path_factory):
    """Name of a retriever -> a finished run with it."""
    path = tmp_path_factory.mktemp("retrievers")
    for name in ("lexical", "hybrid"):
        train(tiny(retriever=name), path / name)
    return {
        "dense": finished,
        **{name: RunDirectory.load(path / name) for name in ("lexical", "hybrid")},
    }


def metrics_of(run):
    return json.loads(run.metrics.read_text())


@pytest.mark.parametrize("name", ["lexical", "hybrid"])
def test_metrics_json_has_the_keys_of_every_run(runs, name):
    result, dense = metrics_of(runs[name]), metrics_of(runs["dense"])
    assert result.keys() >= dense.keys()
    assert result["training"].keys() == dense["training"].keys()
    for split in ("test", "validation"):
        assert set(result[split]) == {*METRICS, *FULL}
        assert {path.name for path in (runs[name].evaluation / split).iterdir()} == TREC
        assert np.sum(result["confusion"][split]) == 4 * 5  # 4 lists of 2 judged, 3 sampled
    assert result["thresholds"] == [0.2, 0.7]
    assert result["training"]["seconds"] > result["lexical"]["seconds"] - 1e-3 > 0
    assert result["training"]["peak_rss_mb"] > 0


def test_a_dense_run_says_nothing_of_other_retrievers(runs):
    assert not metrics_of(runs["dense"]).keys() & {"components", "lexical", "hybrid"}
    assert not runs["dense"].lexical.exists()


def test_a_lexical_run_has_no_towers(runs):
    run = runs["lexical"]
    result = metrics_of(run)
    assert not run.checkpoints.exists()
    assert not run.fusion.exists()
    assert "components" not in result
    assert result["history"] == []
    assert (result["training"]["pairs"], result["training"]["epochs"]) == (0, 0)
    assert load_models(run).towers is None


def test_the_components_of_a_hybrid_are_the_runs_of_its_parts(runs):
    components = metrics_of(runs["hybrid"])["components"]
    assert list(components) == ["dense", "lexical"]
    for name, found in components.items():
        expected = metrics_of(runs[name])
        assert found == {split: expected[split] for split in ("test", "validation")}
        for split in ("test", "validation"):
            for file in TREC:
                theirs = runs[name].evaluation / split / file
                ours = runs["hybrid"].evaluation / "components" / name / split / file
                assert ours.read_bytes() == theirs.read_bytes()


def feedback_of(run):
    models = load_models(run)
    return getattr(models.fusion or models.lexical, "feedback", 0)


@pytest.mark.parametrize("name", ["dense", "lexical", "hybrid"])
def test_a_run_keeps_the_cut_points_of_what_it_ranks_with_and_of_its_parts(runs, name):
    kept = read_cut_points(runs[name].cut_points)
    assert list(kept) == (["dense", "lexical", "hybrid"] if name == "hybrid" else [name])
    assert metrics_of(runs[name])["cut_points"] == json.loads(
        json.dumps(dataclasses.asdict(kept[name]))
    )
    if name == "hybrid":
        for part in ("dense", "lexical"):
            assert kept[part] == read_cut_points(runs[part].cut_points)[part]
    assert (kept[name].alone == kept[name].scores) == (not feedback_of(runs[name]))


@pytest.mark.parametrize("name", ["lexical", "hybrid"])
def test_the_report_shows_what_was_chosen_and_its_plots_are_there(runs, name):
    run = runs[name]
    report = run.report.read_text()
    plots = re.findall(r"!\[.*\]\((.*)\)", report)
    assert "plots/positions.png" in plots
    assert ("plots/learning_curves.png" in plots) == (name == "hybrid")
    for plot in plots:
        assert (run.path / plot).read_bytes().startswith(b"\x89PNG")
    assert "| chosen on validation | " in report
    assert ("## Components" in report) == (name == "hybrid")
    assert "smoothclir-export" in report


@pytest.mark.parametrize("name", ["lexical", "hybrid"])
def test_a_loaded_run_ranks_as_it_was_evaluated(runs, name, tmp_path):
    run = runs[name]
    settings = run.settings()
    tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, ("test",))
    models = load_models(run)
    found = models.retrievers(tokenized_set)
    assert list(found)[-1] == name
    evaluations = evaluate_splits(
        tokenized_set.retrieval_set,
        found[name],
        ["test"],
        negatives=settings.training.negatives,
        trec_dir=tmp_path,
    )
    assert evaluations["test"].metrics == metrics_of(run)["test"]
    for file in TREC:
        assert (tmp_path / "test" / file).read_bytes() == (
            run.evaluation / "test" / file
        ).read_bytes()


def stop(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.usefixtures("without_plots")
@pytest.mark.parametrize("name", ["lexical", "hybrid"])
def test_a_killed_run_goes_on_with_what_it_has_learned(runs, name, tiny, tmp_path, monkeypatch):
    path, settings = tmp_path / "run", tiny(retriever=name)
    stages = [
        (Trainer, "train"),
        (retrievers, "learn_lexical_model"),
        (retrievers, "learn_fusion"),
        (run_report, "evaluate_splits"),
    ]
    for stage in stages if name == "hybrid" else stages[1::2]:
        with monkeypatch.context() as patch:
            patch.setattr(*stage, stop)
            with pytest.raises(KeyboardInterrupt):
                train(settings, path)
    run = RunDirectory.load(path)
    assert not run.finished
    kept = snapshot(run.lexical)
    for learned in ("learn_lexical_model", "learn_fusion"):
        monkeypatch.setattr(retrievers, learned, stop)  # nothing is learned again
    result = train(settings, path)
    assert snapshot(run.lexical) == kept
    expected = metrics_of(runs[name])
    for split in ("test", "validation"):
        assert result[split] == expected[split]
    assert result.get("components") == expected.get("components")
    before = snapshot(path)
    assert train(settings, path) == metrics_of(run)
    assert snapshot(path) == before


@pytest.mark.usefixtures("without_plots")
def test_overwriting_learns_again(runs, tiny, tmp_path):
    path = shutil.copytree(runs["hybrid"].path, tmp_path / "run")
    train(tiny(retriever="lexical"), path, overwrite=True)
    run = RunDirectory.load(path)
    assert run.lexical.is_dir()
    assert not run.fusion.exists()
    assert not run.checkpoints.exists()
    train(tiny(), path, overwrite=True)
    assert not run.lexical.exists()


def test_another_retriever_is_another_run(runs, tiny):
    with pytest.raises(InputError, match="--retriever: lexical there, hybrid here"):
        train(tiny(retriever="hybrid"), runs["lexical"].path)


@pytest.mark.parametrize(
    ("name", "missing", "message"),
    [
        ("lexical", "lexical", "has not learned its lexical model yet"),
        ("hybrid", "lexical", "has not learned its lexical model yet"),
        ("hybrid", "hybrid.json", "has not chosen the weights of its hybrid yet"),
        ("hybrid", "checkpoints", "has not completed an epoch yet"),
    ],
)
def test_an_unfinished_run_says_how_to_go_on(runs, name, missing, message, tmp_path):
    path = shutil.copytree(runs[name].path, tmp_path / "run")
    (path / missing).unlink() if missing.endswith("json") else shutil.rmtree(path / missing)
    with pytest.raises(InputError, match=rf"the run {message}\. Continue it: smoothclir-train"):
        load_models(RunDirectory.load(path, verify=False))


@pytest.mark.parametrize("retriever", ["dense", "lexical", "hybrid"])
def test_a_hybrid_ranks_by_any_of_its_parts(runs, retriever):
    run = runs["hybrid"]
    settings = run.settings()
    tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, SPLITS)
    expected = load_models(run).retrievers(tokenized_set)[retriever]
    found = load_scorer(run, tokenized_set, retriever=retriever)
    queries = tokenized_set.retrieval_set.queries_in("test")
    for own, other in zip(found.scorer.rank(queries, 9), expected.rank(queries, 9)):
        np.testing.assert_array_equal(own.document_rows, other.document_rows)
    assert found.cut_points == read_cut_points(run.cut_points)[retriever]


def test_a_run_ranks_by_nothing_that_it_did_not_train(runs):
    settings = runs["lexical"].settings()
    with pytest.raises(InputError, match="--retriever=dense: the run was trained with"):
        check_retriever(settings, "dense")
    check_retriever(settings, "lexical")


def test_evaluate_ranks_with_the_retriever_of_the_run_on_another_set_too(runs, tiny_dir, tmp_path):
    other = shutil.copytree(tiny_dir, tmp_path / "other")
    with open(other / "wiki_fr.documents", "a", encoding="utf-8") as file:
        file.write("999\tNouveau\tmot1 mot2 inconnu\n")
    run = runs["hybrid"]
    arguments = [f"--run_dir={run.path}", f"--data_dir={other}", f"--output_dir={tmp_path / 'out'}"]
    subprocess.run(
        [sys.executable, "-m", "trainers.evaluate", *arguments], cwd=ROOT, check=True, timeout=120
    )
    found = json.loads((tmp_path / "out" / "metrics.json").read_text())
    settings = run.settings()
    tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, SPLITS)
    ranker = load_models(run).retrievers(tokenized_set)["hybrid"]
    (ranking,) = ranker.rank(tokenized_set.retrieval_set.queries_in("test"), 1)
    lines = (tmp_path / "out" / "test" / "full.run.trec").read_text().splitlines()
    assert len(lines) == 4 * 31
    assert set(found["test"]) == {*METRICS, *FULL}
    best = {line.split()[0]: line.split()[2] for line in lines if line.split()[3] == "1"}
    ids = tokenized_set.retrieval_set
    same = [
        best[ids.query_ids[query]] in ("999", ids.document_ids[document])
        for query, document in zip(ranking.query_rows, ranking.document_rows[:, 0])
    ]
    assert np.mean(same) >= 0.75  # the new document changes feedback and rarity a little
