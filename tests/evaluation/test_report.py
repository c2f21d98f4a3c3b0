"""The report: metrics, rules, plots, commands, flags, in tables that stay tables."""

import dataclasses
import re

import numpy as np
import pytest

from tf_smoothclir.evaluation.evaluate import Evaluation, metrics_content, rules
from tf_smoothclir.evaluation.report import (
    components_table,
    metrics_cells,
    print_results,
    without_queries,
    write_report,
)
from tf_smoothclir.utils.tables import markdown_table


def evaluation(value, confusion=None, hit_confusion=None):
    return Evaluation(
        metrics={"NDCG@5": value, "full/MRR@10": value / 2},
        intervals={"NDCG@5": (value - 0.1, value + 0.1), "full/MRR@10": (0.0, value)},
        counts={"NDCG@5": 1200, "full/MRR@10": 7},
        scores_by_grade=[],
        confusion=confusion,
        hit_confusion=hit_confusion,
    )


EVALUATIONS = {
    "validation": evaluation(0.5),
    "test": evaluation(0.25, np.array([[1200, 400], [0, 0]]), np.array([[6, 2], [1, 1]])),
}

CONTENT = metrics_content(EVALUATIONS, 40)


def cells(row):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


def tables(text):
    """Each run of lines between bars, as lists of cells."""
    found = re.findall(r"(?:^\| .* \|\n)+", text, flags=re.MULTILINE)
    return [[cells(row) for row in table.splitlines()] for table in found]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.md"
    write_report(
        path,
        title="toy: sosl",
        facts={"queries": "7 (en)", "set": "a|b\nc"},
        content=CONTENT,
        evaluations=EVALUATIONS,
        sections={"Components": components_table({"dense": EVALUATIONS, "hybrid": EVALUATIONS})},
        plots={"Scores": "plots/scores.png"},
        commands=["smoothclir-export --run_dir=run"],
        flags=["--epsilon=1.0", "--data_dir=a|b"],
    )
    return path.read_text(encoding="utf-8")


def test_metrics_table_is_printed_as_it_is_in_the_report(capsys, report):
    header, rows = metrics_cells(CONTENT, ["validation", "test"])
    assert header == ["metric", "validation (95% interval)", "test (95% interval)", "queries"]
    assert rows == [
        ["NDCG@5", "0.5000 (0.4000 to 0.6000)", "0.2500 (0.1500 to 0.3500)", "1,200 / 1,200"],
        ["full/MRR@10", "0.2500 (0.0000 to 0.5000)", "0.1250 (0.0000 to 0.2500)", "7 / 7"],
    ]
    print_results(CONTENT, ["validation", "test"])
    printed = capsys.readouterr().out
    assert "0.2500 (0.1500 to 0.3500)" in printed
    for table in re.findall(r"(?:^\|.*\n)+", printed, flags=re.MULTILINE):
        assert table in report


def test_a_metric_without_any_query_has_no_mean_and_a_sentence_says_why(capsys):
    nobody = {"test": dataclasses.replace(evaluation(0.0), counts={"NDCG@5": 3, "full/MRR@10": 0})}
    content = metrics_content(nobody, 40)
    rows = [row[1:] for row in metrics_cells(content, ["test"])[1]]
    assert rows == [["0.0000 (-0.1000 to 0.1000)", "3"], ["none", "0"]]
    (sentence,) = without_queries(content, ["test"])
    assert "highest grade" in sentence
    assert sentence.endswith("nothing to measure by full/MRR@10.")
    print_results(content, ["test"])
    assert sentence in capsys.readouterr().out


def test_every_row_of_every_table_has_as_many_cells_as_its_header(report):
    found = tables(report)
    assert len(found) == 6  # facts, metrics, components, predicted grades of lists and of hits
    for header, line, *rows in found:
        assert set(line) == {"---"}
        assert rows
        assert {len(row) for row in (line, *rows)} == {len(header)}
    # Bars and line breaks in a cell do not break it.
    assert markdown_table(["a"], [["x|y\nz"]]) == "| a |\n| --- |\n| x\\|y z |\n"
    assert "| set | a\\|b c |" in report


def test_metrics_rules_plots_commands_and_flags_are_there(report):
    assert report.startswith("# toy: sosl\n")
    for text in rules(40).values():
        assert f": {text}.\n" in report
    for key in rules(40):  # names for people, no keys of metrics.json
        assert f"* {key}:" not in report
    assert "![Scores](plots/scores.png)" in report
    assert "```\nsmoothclir-export --run_dir=run\n```" in report
    flags = "```\n--epsilon=1.0\n--data_dir=a|b\n```"
    assert report.endswith(f"<details><summary>All flags</summary>\n\n{flags}\n\n</details>\n")


def test_how_well_grades_are_predicted_only_where_there_are_cut_points(report):
    assert "### Candidate lists, validation" not in report
    assert "### Candidate lists, test" in report
    assert "### Hits, test" in report
    *_, (header, _, *summary), (_, _, *lists), (_, _, *hits) = tables(report)
    assert header == ["predicted grades", "accuracy", "macro-averaged accuracy", "quadratic kappa"]
    assert [row[:3] for row in summary] == [
        ["test, candidate lists", "0.7500", "0.7500"],
        ["test, hits", "0.7000", "0.6250"],  # 7 / 10; (6 / 8 + 1 / 2) / 2
    ]
    assert lists == [
        ["0", "1,200", "400", "75.0%"],  # 1200 / 1600
        ["1", "0", "0", "none"],
        ["right of those", "100.0%", "0.0%", ""],
    ]
    assert hits == [
        ["0", "6", "2", "75.0%"],
        ["1", "1", "1", "50.0%"],
        ["right of those", "85.7%", "33.3%", ""],  # 6 / 7, 1 / 3
    ]
