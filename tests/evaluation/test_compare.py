"""Comparing systems: numbers by hand, significance, refusals, tables, and the command itself."""

import dataclasses
import functools
import json
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import tf_smoothclir as sc
from tests.cases import cases
from tests.small_world import random_set, vectors_with_ties
from tf_smoothclir.evaluation import compare as module
from tf_smoothclir.evaluation import comparison_report, trec
from tf_smoothclir.evaluation.compare import bootstrap_interval, compare, randomization_test
from tf_smoothclir.evaluation.evaluate import evaluate_split
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.errors import InputError

NAN = math.nan
OTHERS = "b: it is evaluated on other queries than a (4 differ, such as ['q0', 'q1', 'q7']). Ev"
# Two systems over 3 queries; q3 is answered by the first alone, q9 is not judged.
QRELS = "q1 0 d1 2\nq1 0 d2 1\nq2 0 d1 1\nq3 0 d3 2\n"
FILES = {
    "qrels": QRELS,
    "bm25.run": "q1 Q0 d2 1 9 t\nq1 Q0 d1 2 8 t\nq2 Q0 d7 1 5 t\nq3 Q0 d3 1 5 t\n",
    "dense.run": "q1 Q0 d1 1 1.5 t\r\nq2\tQ0\td1\t1\t-2\tt\r\nq9 Q0 d1 1 1 t\r\n",
}
# Eighths: sums are exact and there are many ties.
PAIRS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=14)
SCORES = PAIRS.map(lambda pairs: np.array(pairs, np.float64).T / 8)


def system(values, ids=None):
    values = np.array(values, np.float64)
    ids = tuple(ids or (f"q{number}" for number in range(len(values))))
    return trec.RunMetrics(ids, dict.fromkeys(METRICS, values), 0, 0, 0)


SYSTEMS = {
    "base": system([0.5, 0.5, 0.5, NAN, 0.25]),
    "good": system([1.0, 0.5, 0.75, NAN, 0.5]),
    "bad": system([0.0, 0.5, 0.25, NAN, 0.5]),
}


def test_differences_by_hand():
    good, bad = compare(SYSTEMS, metrics=["MAP"])
    assert (good.metric, good.system, good.queries, good.left_out) == ("MAP", "good", 4, 1)
    assert good.baseline_mean == pytest.approx((0.5 + 0.5 + 0.5 + 0.25) / 4)
    assert good.mean == pytest.approx((1 + 0.5 + 0.75 + 0.5) / 4)
    assert good.difference == pytest.approx((0.5 + 0 + 0.25 + 0.25) / 4)
    assert (good.wins, good.ties, good.losses) == (3, 1, 0)
    assert (bad.wins, bad.ties, bad.losses) == (1, 1, 2)
    # Three differences: all to one side in 2 of 8 patterns. -2 -1 +1 quarters: 6 of 8 are as far
    # from 0 as -2, or farther.
    assert (good.randomization_p, bad.randomization_p) == (2 / 8, 6 / 8)
    assert (good.holm_p, bad.holm_p) == (2 * 2 / 8, 6 / 8)
    assert good.low <= good.difference <= good.high
    # P-values and interval are those of the significance tests.
    a, b = np.random.default_rng(1).uniform(size=(2, 40))
    for options, seed, samples in (({"seed": 5, "samples": 3000}, 5, 3000), ({}, 13, 100_000)):
        (row,) = compare({"a": system(a), "b": system(b)}, metrics=["MAP"], **options)
        assert row.randomization_p == randomization_test(b, a, seed=seed, samples=samples)
        assert (row.low, row.high) == bootstrap_interval(b - a, seed=seed, samples=10_000)


def test_every_metric_and_system_once_against_any_baseline():
    rows = compare(SYSTEMS, metrics=[*METRICS, "MAP"])
    expected = [(metric, name) for metric in METRICS for name in ("good", "bad")]
    assert [(row.metric, row.system) for row in rows] == expected
    assert compare(SYSTEMS) == rows
    # Another baseline reverses the difference.
    base, bad = compare(SYSTEMS, baseline="good", metrics=["MAP"])
    good, _ = compare(SYSTEMS, metrics=["MAP"])
    assert (base.system, bad.system, base.difference) == ("base", "bad", -good.difference)
    assert (base.wins, base.losses) == (good.losses, good.wins)


def test_rounding_of_float32_is_no_difference():
    third = np.array([1 / 3, 0.2, 0.7])
    rounded = third.astype(np.float32).astype(np.float64)
    assert (third != rounded).any()
    (row,) = compare({"a": system(third), "b": system(rounded)}, metrics=["MAP"])
    assert (row.wins, row.ties, row.losses, row.difference, row.low, row.high) == (0, 3, 0, 0, 0, 0)
    assert row.randomization_p == row.holm_p == 1
    # Nor is a metric that no query has.
    (row,) = compare({"a": system([NAN]), "b": system([NAN])}, metrics=["MAP"])
    found = row.queries, row.left_out, row.mean, row.difference, row.randomization_p
    assert found == (0, 1, 0, 0, 1)


@cases(
    "systems, baseline, message",
    ({"a": system([1])}, "", "RUN RUN ...: 1 given, but a comparison needs two. Give the run"),
    (SYSTEMS, "best", "--baseline=best: no run has this name. Give one of: base, good, bad."),
    ({"a": system([1, 0]), "b": system([1, 0], ["q7", "q8"])}, "", OTHERS),
)
def test_systems_that_cannot_be_compared_are_refused(systems, baseline, message):
    with pytest.raises(InputError) as error:
        compare(systems, baseline=baseline)
    assert str(error.value).startswith(message)


@cases(
    "paths, names",
    (["runs/a", "runs/b/"], ["a", "b"]),
    (["x/run.trec", "y/run.trec", "bm25"], ["x/run.trec", "y/run.trec", "bm25"]),
    (["1/x/r", "2/x/r", "2/y/r"], ["1/x/r", "2/x/r", "y/r"]),
    (["a", "a/a", "b/a/a"], ["tmp/a", "tmp/a/a", "b/a/a"]),
    (["/a", "/b/a"], ["/a", "b/a"]),
)
def test_names_are_the_last_parts_that_tell_runs_apart(paths, names, tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.chdir(tmp_path / "tmp")
    assert module.system_names(paths) == names
    with pytest.raises(InputError, match=r"^runs/\./a: it is given more than once. Give each run"):
        module.system_names(["runs/./a", "b", "runs/a/"])


@pytest.fixture
def files(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def read(directory, *pairs):
    return module.read_systems({run: (directory / run, directory / qrels) for run, qrels in pairs})


@cases(
    "other, queries",
    (QRELS.replace("d2 1", "d2 0"), "1 queries such as ['q1']"),
    (QRELS + "".join(f"q{n} 0 d1 2\n" for n in "4567"), "4 queries such as ['q4', 'q5', 'q6']"),
)
def test_runs_with_other_judgments_are_refused(files, other, queries):
    (files / "other").write_text(other)
    message = f"/other: its judgments differ from those of .*{re.escape(queries)}.*the same split"
    with pytest.raises(InputError, match=message):
        read(files, ("bm25.run", "qrels"), ("dense.run", "other"))


def test_the_same_judgments_in_another_order_are_accepted_and_no_answer_is_refused(files):
    (files / "other").write_text("".join(reversed(QRELS.splitlines(keepends=True))))
    expected, _ = read(files, ("bm25.run", "qrels"), ("dense.run", "qrels"))
    found, _ = read(files, ("bm25.run", "qrels"), ("dense.run", "other"))
    assert compare(found) == compare(expected)
    (files / "foreign.run").write_text("x1 Q0 d1 1 1 t\n")
    with pytest.raises(InputError, match=r"foreign\.run: it answers no query of .*qrels\. Give"):
        read(files, ("bm25.run", "qrels"), ("foreign.run", "qrels"))


def test_tables_have_the_numbers_and_json_every_digit(tmp_path):
    systems = {"base_1|a": SYSTEMS["base"], "50% & more": SYSTEMS["good"]}
    rows = compare(systems, metrics=["MAP", "P_r@5"])
    options = {"baseline": "base_1|a", "best_grade": 2, "seed": 13, "samples": 100_000}
    rules = comparison_report.legend(rows, systems, **options)
    comparison = comparison_report.Comparison(rows, "base_1|a", tuple(systems), rules)
    comparison.save(tmp_path)
    assert "| MAP | base_1\\|a | 4 | 0.4375 |  |" in str(comparison)
    assert "| MAP | 50% & more | 4 | 0.6875 | +0.2500 (" in str(comparison)
    assert "| 0.2500 | 0.2500 | 3/1/0 |" in str(comparison)
    assert "* run 50% & more: lacks 0 judged queries" in str(comparison)
    found = json.loads((tmp_path / "comparison.json").read_text())["comparisons"]
    assert found == [dataclasses.asdict(row) for row in comparison.rows]
    # Small p are not shown as 0.
    systems = {"a": system(np.zeros(40)), "b": system(np.linspace(0.4, 0.5, 40))}
    (_, cells) = comparison_report.table_rows(compare(systems, metrics=["MAP"]), "a")
    assert cells[5] == "1e-05"


@pytest.fixture(scope="module")
def run(commands):
    return functools.partial(commands.run, "trainers.compare")


def test_command_compares_trec_files(run, files):
    arguments = ["bm25.run", "dense.run", "--qrels=qrels", "--output_dir=out"]
    done = run(*arguments, "--measures=MAP,RR(rel=2)", cwd=files)
    assert done.returncode == 0
    message = "dense.run: it answers 2 of the 3 judged queries; the other 1 score 0.\n"
    assert done.stderr == message
    table = (files / "out" / "comparison.md").read_text()
    assert done.stdout.startswith(table)
    assert "| MAP | bm25.run | 3 | 0.6667 |" in table
    assert "| MAP | dense.run | 3 | 0.5000 | -0.1667 (" in table
    assert "| RR(rel=2) | bm25.run | " in table
    assert "the highest grade here is 2" in table
    assert "* run dense.run: lacks 1 judged queries; left out are 1 queries without" in table


def test_command_and_python_agree_and_full_retrieval_is_something_else(run, tmp_path):
    """Two runs on the same set, whose towers are not trained, and what was measured of them."""
    world, evaluations = random_set(20, 60, seed=1), {}
    for name, seed in (("first", 2), ("second", 3)):
        out = RunDirectory.create(tmp_path / name, RunSettings()).evaluation / "test"
        towers = vectors_with_ties(world, seed=seed)
        evaluations[name] = evaluate_split(world, towers, "test", negatives=7, trec_dir=out)
    first, second = sc.Model(tmp_path / "first"), tmp_path / "second"
    comparison = sc.compare(first, second, full=False)
    done = run("first", "second", "--nofull", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert str(comparison) == done.stdout == comparison._repr_markdown_()
    for refused in ({"measures": "RR"}, {"measures": []}, {"samples": 1.5}, {"seed": -1}):
        with pytest.raises(InputError, match=f"^{next(iter(refused))}.* Give "):
            sc.compare(first, second, **refused)
    for refused in (None, [first, second]):
        with pytest.raises(InputError, match=r"^run=.* it is .*Give a path"):
            sc.compare(first, refused)
    for metric in METRICS:
        for name, evaluation in evaluations.items():
            count, mean = evaluation.counts[metric], evaluation.metrics[metric]
            assert f"| {metric} | {name} | {count} | {mean:.4f} |" in done.stdout
    # The second by what evaluate wrote of it.
    measures = "--measures=full/MRR@10,MAP,nDCG@10,Recall@100,full/MRR_mr"  # with the prefix or not
    arguments = ["second/evaluation", "first/", "--baseline=first", measures]
    full = run(*arguments, "--samples=500", cwd=tmp_path)
    for metric in ("full/MRR@10", "full/MAP", "full/nDCG@10", "full/Recall@100"):
        count, mean = (getattr(evaluations["first"], of)[metric] for of in ("counts", "metrics"))
        assert f"| {metric} | first | {count} | {mean:.4f} |" in full.stdout
    assert "| full/MRR_mr | first | " in full.stdout
    assert "* baseline: first;" in full.stdout
    assert "else 500 random ones" in full.stdout
    refused = run("first", "second", "--split=train", cwd=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: first: it has no full.run.trec of the train")
    with pytest.raises(InputError, match=r"has figures of test, but none .* Give --split=test"):
        sc.compare(second / "evaluation", first, split="train")


def test_given_qrels_judge_all_runs_on_the_queries_of_run_directories(tmp_path, caplog):
    world = random_set(20, 60, seed=1)
    for name, seed in (("first", 2), ("second", 3)):
        options = {"negatives": 7, "trec_dir": tmp_path / name / "test"}
        evaluate_split(world, vectors_with_ties(world, seed=seed), "test", **options)
    first, second = tmp_path / "first", tmp_path / "second"
    own, foreign = (second / f"test/full.{kind}.trec" for kind in ("qrels", "run"))
    lines, qrels = own.read_text().splitlines(keepends=True), tmp_path / "qrels"
    qrels.write_text("".join([*lines, "of-training 0 d1 3\n"]))
    expected = sc.compare(first, second)
    for pair in ((first, foreign), (foreign, first), (first, second)):
        found = sc.compare(*pair, qrels=qrels, baseline=expected.baseline)
        values = [dataclasses.replace(row, system="second") for row in found.rows]
        assert values == expected.rows
        assert found.rules["qrels"].startswith(f"{qrels} judges all runs, on the test queries")
    # Other judgments are those of all runs, and queries without any are counted.
    last = lines[-1].split()[0]
    qrels.write_text("".join(line for line in lines if line.split()[0] != last))
    (row,) = sc.compare(first, foreign, qrels=qrels, measures=["MAP"]).rows
    (of_files,) = sc.compare(
        first / "test/full.run.trec", foreign, qrels=qrels, measures=["MAP"]
    ).rows
    assert row.queries + row.left_out == 19
    assert dataclasses.replace(of_files, metric="full/MAP", system=row.system) == row
    assert f"it judges 19 of the 20 queries of {first}/test/full.qrels.trec; the" in caplog.text
    qrels.write_text("other 0 d1 1\n")
    with pytest.raises(InputError, match=r"qrels: it has no relevant document for any query of "):
        sc.compare(first, foreign, qrels=qrels)
    with pytest.raises(InputError, match=r"differ .* RUN/evaluation/<split>/qrels\.trec"):
        sc.compare(first, foreign, qrels=own, full=False)


def sampled_test(a, b):
    return randomization_test(a, b, seed=3, samples=500)


def scores(queries, seed, shift=0.0):
    generator = np.random.default_rng(seed)
    a = generator.uniform(size=queries)
    return a, a + generator.normal(shift, 0.2, size=queries)


@settings(max_examples=60)
@given(SCORES.filter(lambda ab: 2 <= ab.shape[1] <= 12))
def test_exact_randomization_agrees_with_scipy_with_many_ties(ab):
    options = {"permutation_type": "samples", "n_resamples": np.inf}
    expected = stats.permutation_test(ab, lambda x, y: np.mean(x - y), **options).pvalue
    assert randomization_test(*ab, seed=1) == pytest.approx(expected, rel=1e-12)
    # The sampled test is that of any scale, and of either direction.
    sampled = sampled_test(*ab)
    assert 0 < sampled <= 1
    assert sampled_test(4 * ab[1] + 3, 4 * ab[0] + 3) == sampled


def test_exact_by_hand():
    # Of the 8 sums +-1 +-2 +-3, those of size 6 or more are 6 and -6; of size 4 or more, 4 of them.
    assert randomization_test(np.array([1, 2, 3]), np.zeros(3), seed=1) == 2 / 8
    # Queries without a difference leave the test exact.
    many = np.append(np.zeros(1000), [-1, 2, 3])
    assert randomization_test(many, np.zeros(1003), seed=1) == 4 / 8
    for few in ([], [0.5]):
        assert randomization_test(np.array(few), np.zeros(len(few)), seed=1) == 1


def test_sampling_agrees_with_the_exact_value_and_the_t_test():
    a, b = scores(14, seed=3, shift=0.08)
    exact = randomization_test(a, b, seed=1, samples=2**14)
    sampled = randomization_test(a, b, seed=1, samples=2**14 - 1)
    assert sampled != exact
    assert sampled == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 2**14))
    # With the t-test for more than a block of queries.
    a, b = scores(6000, seed=4, shift=0.003)
    p = stats.ttest_rel(a, b).pvalue
    assert 0.01 < p < 0.5
    found = randomization_test(a, b, seed=1, samples=100_000)
    assert found == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / 100_000) + 0.002)


def test_ties_within_rounding_of_float32_count_as_extreme():
    a = np.array([1 / 3, 2 / 3, 1 / 7, 1])
    b = np.array([2 / 3, 1 / 3, 1 / 7 + 1 / 3, 1 / 3])
    # In thirds: -1, 1, -1, 2 add up to 1; no pattern of these has a smaller sum than 1 in size.
    assert randomization_test(a, b, seed=1) == 1
    rounded = [v.astype(np.float32).astype(np.float64) for v in (a, b)]
    assert randomization_test(*rounded, seed=1) == 1


def test_p_at_a_fixed_seed_is_the_same_on_every_machine():
    a, b = np.arange(40) % 7 / 8, np.arange(40) % 5 / 8
    assert randomization_test(a, b, seed=13, samples=2000) == 65 / 2001
    assert randomization_test(a, b, seed=14, samples=2000) != 65 / 2001
    # The least p of samples is 1 of one more.
    for samples in (1, 3000):
        found = randomization_test(np.ones(40), np.zeros(40), seed=1, samples=samples)
        assert found == 1 / (samples + 1)
    # No sum is below one of 0, whatever block of samples it is in.
    a, b = np.tile([0, 1], 20), np.tile([1, 0], 20)
    assert randomization_test(a, b, seed=1, samples=3000) == 1
    with pytest.raises(ValueError, match="samples must be at least 1, but is 0"):
        randomization_test(np.ones(3), np.zeros(3), seed=1, samples=0)


def test_holm_by_hand():
    for p, adjusted in (
        ([], []),
        ([0.04], [0.04]),
        ([0.01, 0.04, 0.03], [3 * 0.01, 2 * 0.03, 2 * 0.03]),  # 0.04 may not pass 0.03
        ([0.6, 0.7], [1, 1]),
        ([0, 0.5], [0, 0.5]),
        ([0.02, 0.02], [2 * 0.02, 2 * 0.02]),
    ):
        np.testing.assert_allclose(module.holm(p), adjusted, rtol=1e-12)
    for p in ([0.5, math.nan], [-0.1], [1.1]):
        with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
            module.holm(p)


@cases(
    "a, b, message",
    ([0.1, math.nan], [0.1, 0.2], "Query 1 has a score in one system and NaN in the other"),
    ([1, math.inf], [0.1, 0.2], "must be finite"),
    ([0.1, 0.2], [1, math.inf], "must be finite"),
    ([0.1], [0.1, 0.2], r"\(1,\) and \(2,\)"),
)
def test_scores_that_do_not_pair_are_an_error(a, b, message):
    with pytest.raises(ValueError, match=message):
        sampled_test(np.array(a), np.array(b))


def test_an_interval_is_about_the_normal_one_whatever_the_batch(monkeypatch):
    values = np.random.default_rng(1).beta(2, 5, size=800)
    half = 1.96 * values.std() / math.sqrt(len(values))
    low, high = expected = bootstrap_interval(values, seed=3, samples=4000)
    assert low == pytest.approx(values.mean() - half, abs=0.05 * half)
    assert high == pytest.approx(values.mean() + half, abs=0.05 * half)
    drawn = np.random.default_rng(3).integers(0, len(values), (4000, len(values)))
    assert expected == tuple(np.percentile(values[drawn].mean(axis=1), [2.5, 97.5]))
    assert bootstrap_interval(values, seed=4, samples=4000) != expected
    monkeypatch.setattr("tf_smoothclir.evaluation.compare._VALUES_PER_BATCH", 7 * len(values))
    assert bootstrap_interval(values, seed=3, samples=4000) == expected
    # It leaves out queries without a value.
    with_gaps = np.insert(values[:50], [0, 20, 50], np.nan)
    assert bootstrap_interval(with_gaps, seed=3) == bootstrap_interval(values[:50], seed=3)
    for nothing in ([], [math.nan]):
        assert bootstrap_interval(np.array(nothing), seed=3) == (0, 0)
    for number in (1, 9):
        assert bootstrap_interval(np.full(number, 0.25), seed=3) == (0.25, 0.25)
    # Of two values, a quarter of the samples has the one alone, a quarter the other.
    assert bootstrap_interval(np.array([0.0, 1.0]), seed=3) == (0, 1)
