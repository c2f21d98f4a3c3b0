"""Figures over seeds, tests of per-query means, tables, and the plots of Liu et al."""

import csv
import io
import types

import pytest

from tests.papers.laboratory.fakes import fake_system, finish, study_in
from tf_smoothclir.papers.laboratory.cells import Cell
from tf_smoothclir.papers.laboratory.system_metrics import (
    per_query_means,
    read_system_metrics,
    significant,
)
from tf_smoothclir.papers.laboratory.tables import latex_escape, system_csv, system_table
from tf_smoothclir.papers.liu2020 import figures
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.training import METRICS

SYSTEMS = [fake_system("SOSL", (0.4, 0.5, 0.6)), fake_system("MSE", (0.3, 0.3, 0.3), loss="mse")]


class OneQuery(Cell):
    """A cell with TREC files of one query and two documents."""

    parts = values = ()

    def done(self, scores):
        finish(self, test=self.seed / 10)
        directory = self.path / "evaluation" / "test"
        directory.mkdir(parents=True)
        lines = [f"q Q0 {document} 0 {score} t\n" for document, score in scores.items()]
        (directory / "run.trec").write_text("".join(lines))
        (directory / "qrels.trec").write_text("q 0 a 0\nq 0 b 2\n")


def test_a_system_has_the_test_metrics_of_each_finished_seed(tmp_path):
    studies = {seed: study_in(tmp_path / str(seed)) for seed in (1, 2, 3)}
    cells = [OneQuery(s, changed(s.settings, {"seed": seed})) for seed, s in studies.items()]
    cells[0].done({"a": 1, "b": 2})
    cells[2].done({"a": 2, "b": 1})
    system = read_system_metrics("SOSL", cells)
    assert system.values["MAP"] == pytest.approx([0.1, 0.3])
    assert system.seeds == (1, 3)
    assert read_system_metrics("SOSL", cells[1:2]) is None
    means, best_grade = per_query_means([system])
    assert best_grade == 2
    assert means["SOSL"].per_query["MRR_mr"].tolist() == pytest.approx([(1 + 1 / 2) / 2])


def test_a_difference_counts_by_its_corrected_p():
    names = ("system", "metric", "randomization_p", "holm_p")
    found = [dict(zip(names, (s, "MAP", 0.01, p))) for s, p in (("far", 0.049), ("near", 0.05))]
    assert significant([types.SimpleNamespace(**one) for one in found]) == {("far", "MAP")}


def test_the_best_mean_of_each_column_is_bold_and_the_marked_value_has_the_mark():
    systems = [*SYSTEMS, fake_system("3PartL2", (0.5,), loss="three_part_l2")]
    facts = {"θ": {"SOSL": "0.2, 0.7"}}
    table = system_table("loss", systems, [*METRICS, "other"], {("MSE", "MAP")}, facts=facts)
    of_mse = ["0.300 †" if metric == "MAP" else "0.300" for metric in METRICS]
    shown = [line.strip("|\n")[1:-1].split(" | ") for line in table.markdown().splitlines()[-3:]]
    assert shown == [
        ["SOSL", *["**0.500 (0.400 to 0.600)**"] * len(METRICS), "", "0.2, 0.7"],
        ["MSE", *of_mse, "", ""],
        ["3PartL2", *["**0.500**"] * len(METRICS), "", ""],  # equal means
    ]
    among = system_table("loss", systems, METRICS, rivals=systems[1:2])
    best = [[cell.best for cell in row[1:]] for row in among.rows]
    assert best == [[is_rival] * len(METRICS) for is_rival in (False, True, False)]
    assert [system.thresholds for system in systems[1:]] == ["0.2, 0.7", "0.2, 0.55, 0.9"]


def test_latex_escapes_texts():
    assert latex_escape("50% & {a} #1 $ a\\b~c^d θ, ε 0.5 †") == (
        r"50\% \& \{a\} \#1 \$ a\textbackslash{}b\textasciitilde{}c\textasciicircum{}d "
        r"$\theta$, $\varepsilon$ 0.5 \textsuperscript{$\dagger$}"
    )
    latex = system_table("loss_a", SYSTEMS, METRICS, facts={"θ": {"SOSL": "0.2, 0.7"}}).latex()
    assert r"\begin{tabular}{l" + "r" * len(METRICS) + "l}" in latex
    assert r"loss\_a & P\_mr@1" in latex


def test_csv_has_every_value():
    rows = list(csv.DictReader(io.StringIO(system_csv("a, set", SYSTEMS, {("MSE", "MAP")}))))
    assert len(rows) == 2 * len(METRICS)
    names = ("set", "system", "metric", "lowest_seed", "highest_seed", "queries")
    assert [rows[0][name] for name in names] == ["a, set", "SOSL", "P_mr@1", "0.4", "0.6", "7"]
    assert float(rows[0]["mean"]) == pytest.approx((0.4 + 0.5 + 0.6) / 3, abs=1e-15)
    assert [(r["system"], r["metric"]) for r in rows if r["marked"] == "yes"] == [("MSE", "MAP")]


def test_overlap_is_the_share_of_scores_common_to_two_grades():
    # Shares 0.8 0.2, 0.5 0.5, 0 1, of the pairs of all seeds.
    found = figures.grade_overlaps(fake_system("", (0.1, 0.2)))
    assert [*found.values()] == pytest.approx([0.5 + 0.2, 0 + 0.5, 0 + 0.2])


def test_plots_are_drawn_with_a_line_at_each_threshold(tmp_path, monkeypatch):
    losses = [fake_system(loss, (0.1,), loss=loss) for loss in ("sosl", "three_part_l2", "mse")]
    epsilons = [fake_system(name, (0.1, 0.2)) for name in ("0", "0.5", "2")]
    drawn, save_png = [], figures.save_png
    monkeypatch.setattr(
        figures, "save_png", lambda f, *a, **k: drawn.append(f) or save_png(f, *a, **k)
    )
    figures.plot_score_densities(tmp_path / "densities", "title", losses)
    figures.plot_metric_curves(tmp_path / "curves", "title", epsilons, label="ε")
    assert [path.read_bytes()[:4] for path in tmp_path.iterdir()] == [b"\x89PNG"] * 2
    lines = [[line.get_xdata()[0] for line in panel.lines] for panel in drawn[0].axes[:3]]
    assert lines == [[0.2, 0.7], [0.2, 0.55, 0.9], [0.2, 0.7]]
