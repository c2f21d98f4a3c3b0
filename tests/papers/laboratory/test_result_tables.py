"""Tables as Markdown, LaTeX and CSV: marks, formats, escapes."""

import csv
import io

import pytest

from tests.papers.laboratory.fakes import fake_system
from tf_smoothclir.papers.laboratory.tables import (
    latex_escape,
    paper_table,
    system_csv,
    system_table,
)
from tf_smoothclir.papers.liu2020.paper_numbers import paper_values
from tf_smoothclir.settings.training import METRICS

SYSTEMS = [fake_system("SOSL", (0.4, 0.5, 0.6)), fake_system("MSE", (0.3, 0.3, 0.3), loss="mse")]


def test_the_best_mean_of_each_column_is_bold_and_the_marked_value_has_the_mark():
    systems = [*SYSTEMS, fake_system("3PartL2", (0.5,), loss="three_part_l2")]
    table = system_table("Test", "loss", systems, {("MSE", "MAP")}, costs=True)
    of_mse = ["0.300 †" if metric == "MAP" else "0.300" for metric in METRICS]
    shown = [line.strip("| ").split(" | ") for line in table.markdown().splitlines()[-3:]]
    assert shown == [
        ["SOSL", "0.2, 0.7", *["**0.500 (0.400 to 0.600)**"] * len(METRICS), "1.0", "500"],
        ["MSE", "0.2, 0.7", *of_mse, "1.0", "500"],
        ["3PartL2", "0.2, 0.55, 0.9", *["**0.500**"] * len(METRICS), "1.0", "500"],  # equal means
    ]


def test_the_papers_values_stand_below_ours_and_are_bold_in_its_own_table_alone():
    paper = paper_values("table2")
    rows = system_table("Test", "loss", SYSTEMS, paper=paper["fr"]).rows
    assert [row[0] for row in rows] == ["SOSL", "SOSL (paper)", "MSE", "MSE (paper)"]
    assert [cell.mean for cell in rows[1][2:]] == [paper["fr"]["SOSL"][m] for m in METRICS]
    assert not any(cell.best for cell in rows[1][2:])
    table = paper_table("paper", "loss", {"Italian": paper["it"]})
    bold = {row[1]: [m for m, cell in zip(METRICS, row[2:]) if cell.best] for row in table.rows}
    others = [metric for metric in METRICS if metric != "P_r@5"]
    assert bold == {"SOSL": others, "3PartL2": [], "MSE": [], "PO": ["P_r@5"]}


def test_latex_escapes_texts():
    text = "50% & {a} #1 $ a\\b~c^d θ, ε 0.5 †"
    assert latex_escape(text) == (
        r"50\% \& \{a\} \#1 \$ a\textbackslash{}b\textasciitilde{}c\textasciicircum{}d "
        r"$\theta$, $\varepsilon$ 0.5 \textsuperscript{$\dagger$}"
    )
    assert r"loss\_a & $\theta$ & P\_mr@1" in system_table("Test", "loss_a", SYSTEMS).latex()


def test_csv_has_every_value_of_ours_and_of_the_paper():
    text = system_csv("a, set", SYSTEMS, {("MSE", "MAP")}, paper_values("table2"), "fr")
    rows = list(csv.DictReader(io.StringIO(text)))
    ours = [row for row in rows if row["source"] == "ours"]
    assert len(ours) == 2 * (len(METRICS) + 1)  # and full/MRR@10
    assert len(rows) - len(ours) == 4 * 4 * len(METRICS)
    names = ("set", "system", "metric", "lowest_seed", "highest_seed", "queries")
    assert [ours[0][name] for name in names] == ["a, set", "SOSL", "P_mr@1", "0.4", "0.6", "7"]
    assert float(ours[0]["mean"]) == pytest.approx((0.4 + 0.5 + 0.6) / 3, abs=1e-15)
    differing = [(r["system"], r["metric"]) for r in ours if r["differs_from_first"] == "yes"]
    assert differing == [("MSE", "MAP")]
    of_paper = {row["set"] for row in rows if row["comparable"] == "yes"} - {"a, set"}
    assert of_paper == {"WikiCLIR fr"}
