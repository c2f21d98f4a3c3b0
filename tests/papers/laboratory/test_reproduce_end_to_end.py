"""Reproduction on a small toy world: what it writes, and what it does not run twice."""

import csv
import json
import shutil

import pytest

from tests.papers.laboratory.fakes import study_in
from tf_smoothclir.papers.laboratory import reproduce as module
from tf_smoothclir.papers.laboratory.code_version import code_note
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import METRICS

pytestmark = pytest.mark.slow

SETTINGS = {"toy_entities": 300, "dim": 4, "negatives": 3, "epochs": 1}
NAMES = ["table1", "table2", "figure3"]
SET = "toy-en-fr"
COMMAND = "smoothclir-reproduce table1 table2 figure3 --toy_entities=300"
LOSSES = {"SOSL", "3PartL2", "MSE", "PO", "Cumulative logits"}


@pytest.fixture(scope="module")
def work_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("reproduce")


def complete_here(cells, ran):
    """Completes cells in this process, where TensorFlow is loaded already."""
    for cell in cells:
        if not cell.finished:
            ran.append(cell.name)
            cell.path.parent.mkdir(parents=True, exist_ok=True)
            cell.complete()
    return []


@pytest.fixture(scope="module")
def reproduce(work_dir):
    """`reproduce(names)` returns the names of the cells that it ran, and the failures."""
    settings = changed(RunSettings(), {**SETTINGS, "cache_dir": str(work_dir / "cache")})

    def do(names=NAMES, command="again", run_cells=complete_here):
        ran, out = [], work_dir / "out"
        study = study_in(out, settings)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "run_cells", lambda cells, _: run_cells(cells, ran))
            return ran, module.reproduce(names, study, processes=2, command=command)

    return do


@pytest.fixture(scope="module")
def output_dir(reproduce, work_dir):
    ran, failures = reproduce(command=COMMAND)
    assert (len(ran), failures) == (len(LOSSES), [])
    return work_dir / "out"


def rows_in(path, **wanted):
    rows = csv.DictReader(path.read_text().splitlines())
    return [row for row in rows if row.items() >= wanted.items()]


def losses_in(output_dir):
    return {row["system"] for row in rows_in(output_dir / "table2" / f"{SET}.csv")}


def cell_of(output_dir, loss):
    (mark,) = (output_dir / "cells").glob(f"{SET}-{loss}-*/cell.json")
    return mark.parent


def metrics_in(path):
    return json.loads((path / "metrics.json").read_text())["test"]


def test_tables_plots_and_a_report_are_written_with_the_metrics_of_the_runs(output_dir):
    for name in NAMES:
        for suffix in ("md", "csv", "tex", *(["png"] if name == "figure3" else [])):
            assert (output_dir / name / f"{SET}.{suffix}").stat().st_size > 0
    assert losses_in(output_dir) == LOSSES
    lines = (output_dir / "report.md").read_text().splitlines()
    assert f"* Table 2: losses: [{SET}](table2/{SET}.md)" in lines
    of_table = (output_dir / "table2" / f"{SET}.md").read_text()
    assert f"* {code_note()}\n\n```\n{COMMAND}\n```\n" in of_table
    metrics = metrics_in(cell_of(output_dir, "mse"))
    ours = rows_in(output_dir / "table2" / f"{SET}.csv", system="MSE")
    assert {row["metric"]: float(row["mean"]) for row in ours} == metrics
    comparison = output_dir / "table2" / f"{SET}-significance" / "comparison.json"
    tested = json.loads(comparison.read_text())
    assert tested["baseline"] == "SOSL"
    means = {r["metric"]: r["mean"] for r in tested["comparisons"] if r["system"] == "MSE"}
    assert means == pytest.approx({name: metrics[name] for name in METRICS}, abs=1e-6)


def test_a_cell_keeps_no_checkpoints_and_counts_all_scores(output_dir):
    path = cell_of(output_dir, "sosl")
    assert not (path / "checkpoints").exists()
    counts = json.loads((path / "training_scores.json").read_text())["counts"]
    queries = SETTINGS["toy_entities"] * 3 // 5
    assert (sum(counts[0]), sum(counts[2])) == (queries * SETTINGS["negatives"], queries)


def test_only_a_missing_cell_is_run_again_with_the_same_metrics(reproduce, output_dir):
    path = cell_of(output_dir, "mse")
    before = metrics_in(path)
    shutil.rmtree(path)
    assert reproduce() == ([path.name], [])
    assert metrics_in(path) == before
    assert reproduce(["table1"]) == ([], [])
    assert "Figure 3" in (output_dir / "report.md").read_text()  # of the experiments before


def test_a_failed_run_is_reported_and_the_others_are_shown(reproduce, output_dir):
    path = cell_of(output_dir, "three_part_l2")
    hidden = path.rename(path.with_name("hidden"))
    _, (failure,) = reproduce(
        ["table2"], run_cells=lambda cells, _: [cell for cell in cells if not cell.finished]
    )
    hidden.rename(path)
    assert str(path) in failure
    assert losses_in(output_dir) == LOSSES - {"3PartL2"}
    page = (output_dir / "table2" / f"{SET}.md").read_text()
    assert "* Not finished with all seeds: 3PartL2.\n" in page


def test_the_command_runs_missing_cells_in_processes_and_gives_the_same(
    commands, output_dir, work_dir
):
    directory = work_dir / "command" / "cells"
    for path in (cell_of(output_dir, loss) for loss in ("sosl", "mse", "three_part_l2")):
        shutil.copytree(path, directory / path.name)  # which leaves two
    flags = [f"--{name}={value}" for name, value in SETTINGS.items()]
    flags += ["--tune_epochs=0", f"--cache_dir={work_dir / 'cache'}", "--verbosity=-1"]
    flags += [f"--output_dir={work_dir / 'command'}"]
    done = commands.run("tf_smoothclir.papers.reproduce", "table2", *flags, check=True)
    assert done.stdout == f"Report: {work_dir / 'command'}/report.md\n"
    (warning,) = done.stderr.splitlines()
    assert warning.startswith(f"{SET}: only 60 test queries.")
    assert len(list(directory.glob("*.log"))) == 2
    found = {path.parent.name: metrics_in(path.parent) for path in directory.glob("*/metrics.json")}
    assert found == {name: metrics_in(output_dir / "cells" / name) for name in found}
    assert len(found) == 5
