"""Reproduction on a small toy world: what it writes, and what it does not run twice."""

import csv
import dataclasses
import json
import os
import shutil

import pytest

from tf_smoothclir.papers.laboratory import reproduce as module
from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.laboratory.cells import SCORE_BINS
from tf_smoothclir.papers.laboratory.plan import Study
from tf_smoothclir.papers.laboratory.sets import open_sets
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings

pytestmark = pytest.mark.slow

SETTINGS = {"toy_entities": 300, "dim": 4, "negatives": 3, "epochs": 1}
NAMES = ["table1", "table2", "figure3"]
SET = "toy-en-fr"
COMMAND = "smoothclir-reproduce table1 table2 figure3 --toy_entities=300"


@pytest.fixture(scope="module")
def work_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("reproduce")


@pytest.fixture(scope="module")
def settings(work_dir):
    return changed(RunSettings(), {**SETTINGS, "cache_dir": str(work_dir / "cache")})


def complete_here(cells, ran):
    """Completes cells in this process, where TensorFlow is loaded already."""
    for cell in cells:
        if not cell.finished:
            ran.append(cell.cell.name)
            cell.path.parent.mkdir(parents=True, exist_ok=True)
            cell.complete()
    return []


def reproduce_here(settings, output_dir, names=NAMES, command="again"):
    study = Study(output_dir, (13,), {}, 0)
    sets = open_sets(settings, [settings.data])
    return module.reproduce(names, sets, study, processes=2, command=command)


@pytest.fixture(scope="module")
def output_dir(settings, work_dir):
    """What the experiments `NAMES` have written, their cells run in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "run_cells", lambda cells, _: complete_here(cells, []))
        assert reproduce_here(settings, work_dir / "out", command=COMMAND) == []
    return work_dir / "out"


@pytest.fixture
def again(settings, output_dir, monkeypatch):
    """`again()` does the same once more; returns the names of the cells that it ran."""
    ran = []

    def do(names=NAMES):
        ran.clear()
        return ran, reproduce_here(settings, output_dir, names)

    monkeypatch.setattr(module, "run_cells", lambda cells, _: complete_here(cells, ran))
    return do


def losses_in(output_dir):
    rows = csv.DictReader((output_dir / "table2" / f"{SET}.csv").read_text().splitlines())
    return {row["system"] for row in rows if row["source"] == "ours"}


def cell_of(output_dir, loss):
    (mark,) = (output_dir / "cells").glob(f"{SET}-{loss}-*/cell.json")
    return mark.parent


def test_tables_and_plots_are_written(output_dir):
    kinds = {"table1": "md csv tex", "table2": "md csv tex", "figure3": "md csv tex png"}
    for name, suffixes in kinds.items():
        for suffix in suffixes.split():
            assert (output_dir / name / f"{SET}.{suffix}").stat().st_size > 0
    assert losses_in(output_dir) == {"SOSL", "3PartL2", "MSE", "PO", "Cumulative logits"}
    text = (output_dir / "table2" / f"{SET}.md").read_text()
    assert "paper, WikiCLIR: not comparable" in text
    assert "Holm" in text
    assert f"\n{COMMAND}\n" in text
    assert len(list((output_dir / "table2" / f"{SET}-significance").iterdir())) == 4


def test_the_table_has_the_metrics_of_the_runs_on_test_queries(output_dir):
    metrics = json.loads((cell_of(output_dir, "mse") / "metrics.json").read_text())
    rows = csv.DictReader((output_dir / "table2" / f"{SET}.csv").read_text().splitlines())
    ours = [row for row in rows if row["source"] == "ours" and row["system"] == "MSE"]
    assert {r["metric"]: float(r["mean"]) for r in ours} == metrics["test"]


def test_the_same_metrics_are_tested_for_significance(output_dir):
    metrics = json.loads((cell_of(output_dir, "mse") / "metrics.json").read_text())
    path = output_dir / "table2" / f"{SET}-significance" / "comparison.csv"
    rows = [row for row in csv.DictReader(path.read_text().splitlines()) if row["system"] == "MSE"]
    assert {row["baseline"] for row in rows} == {"SOSL"}
    for row in rows:
        assert float(row["mean"]) == pytest.approx(metrics["test"][row["metric"]], abs=1e-6)


def test_report_has_every_section_and_the_commands_are_kept(output_dir):
    page = (output_dir / "report.html").read_text()
    for text in ("Table 1", "Table 2", "Figure 3", COMMAND):
        assert text in page
    assert (output_dir / "commands.txt").read_text() == f"{COMMAND}\n"


def test_a_cell_keeps_all_but_its_checkpoints(output_dir):
    path = cell_of(output_dir, "sosl")
    assert not (path / "checkpoints").exists()
    for part in ("config.json", "flags.txt", "evaluation/test/run.trec", "vocabulary/query.txt"):
        assert (path / part).is_file()


def test_scores_of_all_training_pairs_are_counted(output_dir):
    counts = json.loads((cell_of(output_dir, "sosl") / "training_scores.json").read_text())[
        "counts"
    ]
    queries = SETTINGS["toy_entities"] * 3 // 5
    assert [len(of_grade) for of_grade in counts] == [SCORE_BINS] * 3
    assert sum(counts[0]) == queries * SETTINGS["negatives"]
    assert sum(counts[2]) == queries


def test_finished_cells_are_not_run_again(again):
    assert again() == ([], [])


def test_another_experiment_stays_in_the_report(again, output_dir):
    again(["table1"])
    assert "Figure 3" in (output_dir / "report.html").read_text()


def test_only_a_missing_cell_is_run_again_with_the_same_metrics(again, output_dir):
    path = cell_of(output_dir, "mse")
    before = json.loads((path / "metrics.json").read_text())
    shutil.rmtree(path)
    assert again() == ([path.name], [])
    after = json.loads((path / "metrics.json").read_text())
    assert after["test"] == before["test"]


def test_a_failed_run_is_reported_and_the_others_are_shown(again, output_dir, monkeypatch):
    path = cell_of(output_dir, "three_part_l2")
    hidden = path.rename(path.with_name("hidden"))

    def fail(cells, processes):
        return [cell for cell in cells if not cell.finished]

    monkeypatch.setattr(module, "run_cells", fail)
    try:
        _, failures = again(["table2"])
    finally:
        hidden.rename(path)
    assert len(failures) == 1
    assert str(path) in failures[0]
    assert losses_in(output_dir) == {"SOSL", "MSE", "PO", "Cumulative logits"}
    assert f"Failed: {path}" in (output_dir / "report.html").read_text()


@pytest.mark.slow
def test_the_ablation_compares_re_ranking_and_full_retrieval(again, output_dir, monkeypatch):
    paper, *_, best = EXPERIMENTS["ablation"].systems
    small = dataclasses.replace(
        best, changes={**best.changes, "ngram_buckets": 50, "dim": 8, "mine_ranks": (1, 20)}
    )
    ablation = dataclasses.replace(EXPERIMENTS["ablation"], systems=(paper, small))
    monkeypatch.setitem(EXPERIMENTS, "ablation", ablation)
    ran, failures = again(["ablation"])
    assert (len(ran), failures) == (1, [])  # the paper's is there from Table 2
    rows = {
        kind: list(csv.DictReader((output_dir / "ablation" / path).read_text().splitlines()))
        for kind, path in (("own", f"{SET}.csv"), ("tests", f"{SET}-significance/comparison.csv"))
    }
    metric = "full/MRR@10"
    of_best = [r for r in rows["own"] if (r["system"], r["metric"]) == (best.name, metric)]
    (tested,) = [row for row in rows["tests"] if row["metric"] == metric]
    assert float(of_best[0]["mean"]) == pytest.approx(float(tested["mean"]), abs=1e-6)
    assert (output_dir / "ablation" / f"{SET}.png").stat().st_size > 0
    assert "seconds an epoch" in (output_dir / "ablation" / f"{SET}.md").read_text()


@pytest.mark.slow
def test_the_command_runs_missing_cells_in_processes_and_gives_the_same(
    commands, output_dir, work_dir
):
    directory = work_dir / "command" / "cells"
    for loss in ("sosl", "mse", "three_part_l2"):  # which leaves two
        path = cell_of(output_dir, loss)
        shutil.copytree(path, directory / path.name)
    flags = [f"--{name}={value}" for name, value in SETTINGS.items()]
    flags += ["--tune_epochs=0", f"--cache_dir={work_dir / 'cache'}", "--verbosity=-1"]
    flags += [f"--output_dir={work_dir / 'command'}"]
    done = commands.run("tf_smoothclir.papers.reproduce", "table2", *flags)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"Report: {work_dir / 'command'}/report.html\n"
    assert done.stderr == ""
    assert len(list(directory.glob("*.log"))) == 2
    cells = list(directory.glob("*/metrics.json"))
    assert len(cells) == 5
    for path in cells:
        here = output_dir / "cells" / path.parent.name / path.name
        assert json.loads(path.read_text())["test"] == json.loads(here.read_text())["test"]
    page = (work_dir / "command" / "report.html").read_text()
    assert "smoothclir-reproduce table2 --toy_entities=300" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table9"], "unknown: table9"),
        ([], "none is named"),
        (["table2", "--seeds=13,13"], "--seeds=13,13"),
        (["table2", "--seeds=x"], "--seeds=x"),
        (["table2", "--theta_1=0.9", "--theta_2=0.5"], "--theta_1, --theta_2"),
        (["table2", "--thresholds=0.5"], "--thresholds: the experiments of the paper use"),
        (
            ["table2", "--tune_epochs=0", "--theta_1=0"],
            "--tune_epochs=0 --theta_1=0: --tune_epochs=0",
        ),
    ],
)
def test_a_mistake_is_an_error_message(commands, arguments, message, tmp_path):
    done = commands.run(
        "tf_smoothclir.papers.reproduce", *arguments, f"--output_dir={tmp_path / 'out'}"
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == []
