"""Evaluating a split, cut points of grades, and the report with its plots."""

import dataclasses
import itertools
import re
import types
from unittest import mock

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import AP, RR, R, nDCG
from matplotlib import image
from matplotlib import pyplot as plt
from sklearn import linear_model

import tf_smoothclir as sc
from tests.cases import cases
from tests.small_world import random_set, vectors_with_ties
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.retrieval_set import Languages
from tf_smoothclir.evaluation import evaluate, plots, report
from tf_smoothclir.evaluation.calibration import best_cut_points, calibrated, reliable_cut_points
from tf_smoothclir.evaluation.evaluate import Evaluation, Hits, evaluate_split, metrics_content
from tf_smoothclir.evaluation.metrics import COLLECTION_METRICS, RULES, grade_metrics
from tf_smoothclir.losses.labels import predicted_grades
from tf_smoothclir.protocols.text_search import BEYOND, CutPoints
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.utils.errors import InputError

FULL = tuple(f"full/{name}" for name in COLLECTION_METRICS)
CUT_POINTS = CutPoints((-0.01, 0.01), shares=(0.7, 0.9), lists=(-0.01, 0.01))
METRIC_VALUES = {**dict.fromkeys(METRICS, 0.3), "full/MRR@10": 0.5}
HISTORY = [{"epoch": 1, "loss": 1.0, "validation": METRIC_VALUES}]
SCORES = [np.linspace(-0.5, 0.2, 50), np.linspace(0.1, 0.8, 20), np.array([0.9])]
DRAWINGS = {
    "curves of one epoch": (plots.learning_curves, [HISTORY], 1200),
    "scores of an empty grade": (plots.score_density, [[SCORES[0], np.zeros(0)], (0.2,)], 720),
    "more grades than colours": (plots.score_density, [[SCORES[2]] * 9, ()], 720),
}


@pytest.fixture(scope="module")
def world():
    retrieval_set = random_set(25, 60, seed=1)
    return retrieval_set, vectors_with_ties(retrieval_set, seed=2)


@pytest.fixture(scope="module")
def evaluation(world, tmp_path_factory):
    directory = tmp_path_factory.mktemp("trec") / "made"
    found = evaluate_split(*world, "test", negatives=7, trec_dir=directory)
    return found.graded(CUT_POINTS), directory


def test_every_metric_has_an_interval_around_it_and_a_count_and_files(evaluation, world):
    found, directory = evaluation
    assert list(found.metrics) == list(found.intervals) == list(found.counts) == [*FULL, *METRICS]
    for name, value in found.metrics.items():
        low, high = found.intervals[name]
        assert 0 <= low <= value <= high <= 1
    retrieval_set, _ = world
    of_grade = {2: ("P_mr@1", "full/MRR@10", "full/Recall@1"), 1: ("MAP", "NDCG@5", "full/MAP")}
    for grade, names in of_grade.items():
        queries = set(retrieval_set.query_rows[retrieval_set.grades >= grade])
        assert {found.counts[name] for name in names} == {len(queries)}
    assert found.counts["P_mr@1"] < found.counts["MAP"] <= 25
    names = sorted(path.name for path in directory.iterdir() if path.stat().st_size)
    files = ["full.qrels.trec", "full.run.trec", "per_query.tsv", "qrels.trec", "run.trec"]
    assert names == files
    header, *rows = [line.split("\t") for line in (directory / files[2]).read_text().splitlines()]
    assert header == ["query_id", *found.metrics]
    ids = [retrieval_set.query_ids[row] for row in found.hits.query_rows]
    assert [row[0] for row in rows] == ids == found.query_ids
    for name, of_queries in zip(header[1:], list(zip(*rows))[1:], strict=True):
        values = [float(value or "nan") for value in of_queries]
        np.testing.assert_allclose(values, found.per_query[name], rtol=1e-5)


def test_the_worst_queries_are_shown_with_what_was_found(evaluation, world):
    (retrieval_set, _), (found, _) = world, evaluation
    source = mock.Mock(wraps=retrieval_set.source)  # nobody reads titles of queries
    source.queries.return_value = [q._replace(title="T") for q in retrieval_set.source.queries()]
    retrieval_set = dataclasses.replace(retrieval_set, source=source)
    (worst, table), (others, _) = report.examples(retrieval_set, found)
    assert (worst, others) == ("The worst queries", "Examples")
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    values = np.sort(found.per_query["full/nDCG@10"][np.isfinite(found.per_query["full/nDCG@10"])])
    assert [row[-1] for row in rows] == [f"{value:.2f}" for value in values[:10]]
    texts = {query.text: place for place, query in enumerate(retrieval_set.source.queries())}
    documents = [" ".join(one.text.split()) for one in retrieval_set.source.documents()]
    for query, wanted, rank, first, _ in rows:
        (place,) = np.flatnonzero(found.hits.query_rows == texts[query])
        ranked = [documents[row][:100] for row in found.hits.document_rows[place]]
        assert first == ("the same" if ranked[0] == wanted else ranked[0])
        own = retrieval_set.query_rows == texts[query]
        best = retrieval_set.document_rows[own][np.argmax(retrieval_set.grades[own])]
        assert wanted == documents[best][:100]
        if best in found.hits.document_rows[place] and retrieval_set.grades[own].max() == 2:
            assert rank == str(1 + found.hits.document_rows[place].tolist().index(best))


def test_measures_by_name_are_those_of_the_ranking(world):
    found = evaluate_split(*world, "test", negatives=7, measures=["nDCG@10", "RR(rel=2)@10"])
    for ours, theirs in (("nDCG@10", "nDCG@10"), ("MRR@10", "RR(rel=2)@10")):
        values = found.per_query[f"full/{ours}"], found.per_query[f"full/{theirs}"]
        known = np.isfinite(values[0])
        np.testing.assert_allclose(values[0][known], values[1][known], atol=1e-6)


@cases(
    "measure, reason",
    ("best", "ir_measures has no such measure"),
    ("RBP", "ir_measures has no library here that computes it"),
    ("P", "ir_measures has no such measure"),  # without a cutoff
    ("R@0", "it counts no document"),
)
def test_a_measure_that_cannot_be_computed_is_refused_before_rankings(measure, reason):
    with pytest.raises(InputError, match=f"^--measures={measure}: {reason}.* Give "):
        evaluate_split(None, None, "test", negatives=7, measures=["nDCG@5", measure])
    with pytest.raises(InputError, match=f"^--measures={measure}: {reason}.* Give "):
        sc.compare(__file__, evaluate.__file__, qrels="qrels", measures=["MAP", measure])


def test_a_deep_cutoff_has_a_deep_ranking_and_changes_no_other_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluate, "_QUERIES_AT_ONCE", 4)  # of 9
    world = random_set(9, 150, seed=1)
    retriever, runs, found = vectors_with_ties(world, seed=2), {}, {}
    for name, measures in {"usual": ["R@100"], "deep": ["R@100", "R@120"]}.items():
        options = {"negatives": 7, "trec_dir": tmp_path / name / "test", "measures": measures}
        found[name] = evaluate_split(world, retriever, "test", **options)
        runs[name] = (tmp_path / name / "test/full.run.trec").read_text().splitlines()
    deep = found["deep"].per_query.pop("full/R@120")
    np.testing.assert_equal(found["deep"].per_query, found["usual"].per_query)
    (ranking,) = retriever.rank(world.queries_in("test"), 120)
    retrieved, relevant = (
        (ranking.grades(world) > 0).sum(axis=1),
        np.bincount(world.query_rows, world.grades > 0),
    )
    np.testing.assert_allclose(deep, retrieved / np.where(relevant, relevant, np.nan))
    assert (len(runs["deep"]), len(runs["usual"])) == (9 * 120, 9 * 100)
    assert [line for line in runs["deep"] if int(line.split()[3]) <= 100] == runs["usual"]
    content = metrics_content({"test": found["deep"]}, 7, 120)
    assert content["rules"]["full"].endswith("; further measures: 120 documents deep")
    # Comparisons say so, too.
    paths = [tmp_path / name for name in found]
    with pytest.raises(InputError, match=r"^--measures=R@120: .*usual are 100 .*smoothclir-eval"):
        sc.compare(*paths, measures=["R@100", "R@120"])
    rules = sc.compare(*paths, measures=["R@100", "MAP"]).rules
    assert rules["depth"].startswith("rankings have from 100 to 120 documents")
    assert rules["depth"].endswith("by full/MAP")
    assert "depth" not in sc.compare(*paths, measures=["R@100"]).rules


def test_scores_confusion_and_grades_cover_every_pair_and_hit(evaluation, world):
    retrieval_set, retriever = world
    found, _ = evaluation
    lists = candidate_lists(retrieval_set, "test", negatives=7, seed=evaluate.NEGATIVES_SEED)
    scores = retriever.score(lists)
    for grade in range(3):
        of_grade = scores[lists.grades == grade]
        np.testing.assert_array_equal(found.scores_by_grade[grade], of_grade)
        expected, _ = np.histogram(of_grade, [-np.inf, *CUT_POINTS.scores, np.inf])
        np.testing.assert_array_equal(found.confusion[grade], expected)
    # Hits are the first ten of each query, and graded by score and share.
    (ranking,) = retriever.rank(retrieval_set.queries_in("test"), 10)
    grades = ranking.grades(retrieval_set)
    np.testing.assert_array_equal(found.hits.scores, ranking.scores)
    np.testing.assert_array_equal(found.hits.grades, grades)
    first = ranking.scores[:, :1]
    shares = np.where(first > 0, ranking.scores / np.where(first == 0, 1, first), 0)
    by_share = np.digitize(shares, CUT_POINTS.shares, right=True)
    by_score = np.digitize(ranking.scores, CUT_POINTS.scores, right=True)
    for grade in range(3):
        expected = np.bincount(np.minimum(by_share, by_score)[grades == grade], minlength=3)
        np.testing.assert_array_equal(found.hit_confusion[grade], expected)
    content = metrics_content({"test": found}, 7)
    of_lists, of_hits = grade_metrics(found.confusion), grade_metrics(found.hit_confusion)
    assert content["grades"] == {"test": {"candidate lists": of_lists, "hits": of_hits}}
    assert content["rules"].items() >= RULES.items()
    assert "7 sampled ones" in content["rules"]["lists"]
    without = evaluate_split(*world, "test", negatives=7)
    assert (without.metrics, without.intervals) == (found.metrics, found.intervals)
    assert without.graded(None) is without
    content = metrics_content({"test": without}, 7)
    assert content["confusion"] == content["grades"] == {}
    assert "grades" not in content["rules"]


def test_a_scorer_is_measured_on_candidate_lists_alone_but_not_of_an_empty_split(world, tmp_path):
    scorer = types.SimpleNamespace(score=lambda lists: -world[1].score(lists))
    found = evaluate.evaluate_splits(world[0], scorer, ["test"], negatives=7, trec_dir=tmp_path)
    assert list(found["test"].metrics) == list(METRICS)
    files = sorted(path.name for path in (tmp_path / "test").iterdir())
    assert files == ["per_query.tsv", "qrels.trec", "run.trec"]
    assert "full" not in metrics_content(found, 7)["rules"]
    assert found["test"].hits is None
    assert found["test"].graded(CUT_POINTS).hit_confusion is None
    with pytest.raises(InputError, match="no query of the train split"):
        evaluate_split(*world, "train", negatives=3)


def macro_accuracy(scores_by_grade, cut_points):
    shares = [
        np.mean([sum(score > cut for cut in cut_points) == grade for score in own])
        for grade, own in enumerate(scores_by_grade)
        if len(own)
    ]
    return np.mean(shares)


def best_by_trying_all(scores_by_grade):
    scores = sorted({score for own in scores_by_grade for score in own})
    places = [scores[0] - 1, *scores]  # a cut point on a score leaves it below
    cuts = itertools.combinations_with_replacement(places, len(scores_by_grade) - 1)
    return max(macro_accuracy(scores_by_grade, cut) for cut in cuts)


@cases(
    "scores_by_grade, expected",
    ([[0.0, 0.25], [0.5], [1.0, 2.0]], (0.375, 0.75)),  # half way between separable grades
    # A grade that is better never predicted has no room.
    ([[0.0], [], [1.0]], (0.5, 0.5)),  # nobody has grade 1
    ([[0.0, 1.0], [-1.0, 3.0], [2.0]], (1.5, 1.5)),  # those of grade 1 score anyhow
)
def test_cut_points_by_hand(scores_by_grade, expected):
    assert best_cut_points(scores_by_grade) == expected


def test_cut_points_beyond_all_scores_and_without_a_middle():
    one, above, higher = (np.float32(1 + n * 2**-23) for n in range(3))  # neighbours in float32
    for scores_by_grade, grades in (
        ([[one, above], []], [0, 0]),  # only the lowest grade occurs
        ([[], [one, above]], [1, 1]),  # only the highest one
        ([[one], [above]], [0, 1]),  # between neighbours there is no middle: it is rounded down
        ([[above], [higher]], [0, 1]),  # or up
    ):
        (found,) = best_cut_points(scores_by_grade)
        scores = np.sort(np.concatenate(scores_by_grade))
        assert predicted_grades(scores, (found,)).numpy().tolist() == grades


@given(st.lists(st.lists(st.integers(-4, 4), max_size=6), min_size=2, max_size=4).filter(any))
def test_no_other_cut_points_are_better(scores_by_grade):
    found = best_cut_points(scores_by_grade)
    assert list(found) == sorted(found)
    expected = best_by_trying_all(scores_by_grade)
    assert macro_accuracy(scores_by_grade, found) == pytest.approx(expected)


def test_each_kind_of_score_has_cut_points_of_its_own():
    lists = [np.array([0.0]), np.array([1.0])]
    # Later hits have 3/4 and 1/2, and 3/4 and 1/4 of the first score. Those of the last query
    # score too low for grade 1.
    hits = Hits(np.float32([[16, 12, 8], [32, 24, 8], [4, 3, 3]]), np.array([[1, 1, 0]] * 3))
    hits.grades[2] = 0
    first = Hits(np.float32([[4], [5], [6], [8]]), np.array([[0], [0], [1], [1]]))
    found = calibrated(Evaluation({}, {}, {}, lists, hits), first)
    assert 5 < found.scores[0] < 6.5
    others = dataclasses.replace(found, scores=())
    assert others == CutPoints(scores=(), shares=(0.625,), lists=(0.5,))
    assert calibrated(Evaluation({}, {}, {}, lists)) == CutPoints((0.5,), shares=(), lists=(0.5,))
    # Where later hits are mostly wrong, the first one alone, and its equals, are graded.
    hits.grades[0, 1] = 0
    found = calibrated(Evaluation({}, {}, {}, lists, hits), first)
    equals = np.float32([[16, 16, 15.999]])
    assert found.of_hits(equals).tolist() == [[1, 1, 0]]


@cases("power", 0.0, 0.6)
def test_scores_that_grow_with_the_query_are_graded_by_its_words(power):
    generator, number = np.random.default_rng(3), 50_000
    words, merit = generator.choice([1, 3, 10, 30], number), generator.normal(size=number)
    scores = (np.exp(0.2 * merit) * words**power).astype(np.float32)[:, np.newaxis]
    scores[:10] = 0  # of queries that found nothing, which say nothing of the others
    grades = (generator.random(number) < 1 / (1 + np.exp(-3 * merit))).astype(int)[:, np.newaxis]
    hits = Hits(scores, grades, words=words)
    lists = [np.array([0.0]), np.array([1.0])]
    found = calibrated(Evaluation({}, {}, {}, lists, hits), hits)
    assert found.power == pytest.approx(power, abs=0.03)
    called = found.of_hits(scores, words)[:, 0] > 0
    for length in np.unique(words):  # right and wrong are as probable at the merit 0
        assert (called == (merit > 0))[words == length].mean() > 0.95
    evaluation = Evaluation({}, {}, {}, lists, hits).graded(found)
    assert evaluation.hit_confusion.sum(axis=0).tolist() == [(~called).sum(), called.sum()]
    for alike in (Hits(scores, grades, words=7), Hits(0 * scores, grades, words=words)):
        assert calibrated(evaluation, alike).power == 0


def test_a_grade_is_predicted_from_the_score_on_at_which_it_is_probable():
    scores = np.random.default_rng(1).normal(size=200_000).astype(np.float32)
    # The probabilities of grade 1 or more, and of grade 2, are logistic functions of the score.
    draws = np.random.default_rng(2).random(len(scores))
    grades = sum((draws < 1 / (1 + np.exp(-8 * scores + bias))).astype(int) for bias in (4, 12))
    expected = [bias / 8 for bias in (4, 12)]  # where 8 score - bias is 0
    assert reliable_cut_points(scores, grades, 3) == pytest.approx(expected, abs=0.03)
    # Of few hits, by the regression of another library, whose penalty is the same.
    few, grades = 20 + 5 * scores[:200], grades[:200]
    standard = ((few - few.mean()) / few.std())[:, np.newaxis]
    for grade, found in enumerate(reliable_cut_points(few, grades, 3), 1):
        model = linear_model.LogisticRegression(C=1.0, tol=1e-8).fit(standard, grades >= grade)
        even = few.mean() - few.std() * model.intercept_ / model.coef_[0]
        assert found == pytest.approx(even.item(), abs=1e-3)


def test_a_grade_that_is_probable_everywhere_is_predicted_where_four_of_five_hits_have_it():
    right_of_ten = {5: 10, 4: 7, 3: 6, 2: 6}  # from 4 on 17 of 20, from 3 on 23 of 30
    scores = np.repeat(np.float32([*right_of_ten]), 10)
    grades = np.concatenate([np.arange(10) < right for right in right_of_ten.values()]).astype(int)
    assert reliable_cut_points(scores, grades, 2) == (3.5,)
    # Of no score four of five: 7 of 10. So no hit of another query is called relevant.
    assert reliable_cut_points(scores[10:], grades[10:], 2) == (BEYOND,)


@cases(
    "scores, grades, right",
    ([1, 2, 3], [1, 1, 1], [True] * 3),  # all are right: so is the lowest
    ([1, 2, 3], [0, 0, 0], [False] * 3),
    ([3, 3, 3], [1, 1, 1], [True] * 3),  # scores that say nothing
    ([3, 3, 3], [1, 0, 0], [False] * 3),
    ([3, 2, 1] * 9, [0, 0, 1] * 9, [False] * 27),  # the higher, the worse
    ([0.0], [0], [False]),
    ([1, 2, 3, 4] * 9, [0, 0, 0, 1] * 4 + [0] * 20, [False] * 36),  # the best is not probable
)
def test_cut_points_of_hits_where_scores_tell_little(scores, grades, right):
    scores = np.float32(scores)
    (point,) = reliable_cut_points(scores, np.array(grades), 2)
    assert (scores > point).tolist() == right
    assert np.isfinite(point)
    if not any(right):  # nor is a longer query, whose score is higher
        assert point == BEYOND


def measured(value, confusion=None, hit_confusion=None):
    metrics = {"NDCG@5": value, "full/MRR@10": value / 2}
    intervals = {"NDCG@5": (value - 0.1, value + 0.1), "full/MRR@10": (0.0, value)}
    confusions = {"confusion": confusion, "hit_confusion": hit_confusion}
    return Evaluation(metrics, intervals, {"NDCG@5": 1200, "full/MRR@10": 7}, [], **confusions)


EVALUATIONS = {"validation": measured(0.5)}
EVALUATIONS["test"] = measured(0.25, np.array([[1200, 400], [0, 0]]), np.array([[6, 2], [1, 1]]))
CONTENT = metrics_content(EVALUATIONS, 40)


def test_the_report_and_the_terminal_have_the_numbers(tmp_path, capsys):
    path = tmp_path / "report.md"
    report.write_report(
        path,
        title="toy: sosl",
        facts={"set": "a|b\nc"},
        content=CONTENT,
        evaluations=EVALUATIONS,
        sections={"Components": report.components_table(dict.fromkeys(["a", "b"], EVALUATIONS))},
        plots={"Scores": "plots/scores.png"},
        commands=["smoothclir-export --run_dir=run"],
        flags=["--epsilon=1.0"],
    )
    written = path.read_text(encoding="utf-8")
    report.print_results(CONTENT, ["validation", "test"])
    printed = re.findall(r"(?:^\|.*\n)+", capsys.readouterr().out, flags=re.MULTILINE)
    assert len(printed) == 4  # metrics, predicted grades, and a table of pairs by grade
    assert written.index("| whole collection |") < written.index("| candidate lists |")
    for text in (
        *printed,
        "| NDCG@5 | 0.5000 (0.4000 to 0.6000) | 0.2500 (0.1500 to 0.3500) | 1,200 / 1,200 |",
        "| NDCG@5 | 0.5000 | 0.5000 | 0.2500 | 0.2500 |",  # of the components
        "| test, candidate lists | 0.7500 | 0.7500 |",
        "| test, hits | 0.7000 | 0.6250 |",  # 7 / 10; (6 / 8 + 1 / 2) / 2
        "| 0 | 1,200 | 400 | 75.0% |",  # 1200 / 1600
        "| 1 | 0 | 0 | none |",
        "| right of those | 85.7% | 33.3% |",  # of hits: 6 / 7, 1 / 3
        "| set | a\\|b c |",  # bars and line breaks in a cell do not break it
        *evaluate.rules(40).values(),
        "![Scores](plots/scores.png)",
        "smoothclir-export --run_dir=run\n",
        "--epsilon=1.0\n",
    ):
        assert text in written, text
    assert "Candidate lists, validation" not in written  # without cut points


def test_a_metric_without_any_query_has_no_mean_and_a_sentence_says_why():
    nobody = {"test": dataclasses.replace(measured(0.0), counts={"NDCG@5": 3, "full/MRR@10": 0})}
    content = metrics_content(nobody, 40)
    rows = [row for _, rows in report.metrics_cells(content, ["test"]) for row in rows]
    assert rows == [["MRR@10", "none", "0"], ["NDCG@5", "0.0000 (-0.1000 to 0.1000)", "3"]]
    (sentence,) = report.without_queries(content, ["test"])
    remedy = "Train with one of --thresholds for each grade above 0."
    assert sentence.endswith(f"nothing to measure by full/MRR@10. {remedy}")
    (sentence,) = report.without_queries({"counts": {"test": {"MAP": 0}}}, ["test"])
    assert sentence == "No test query has a relevant document, so nothing was measured."


@pytest.mark.filterwarnings("error::RuntimeWarning")  # of NumPy, such as means of nothing
@cases("draw, arguments, width", *DRAWINGS.values(), ids=DRAWINGS)
def test_drawings(draw, arguments, width, tmp_path):
    draw(tmp_path / "plot.png", *arguments)
    pixels = image.imread(tmp_path / "plot.png")
    assert pixels.shape == (480, width, 4)
    assert len(np.unique(pixels.reshape(-1, 4), axis=0)) > 50  # text and lines, no empty page
    assert plt.get_fignums() == []


@pytest.mark.filterwarnings("error::RuntimeWarning")  # of NumPy, such as means of nothing
@cases(
    "of_documents, of_queries",
    (("", "de", "fr"), ("en", "it")),
    (("", "de"), ("en",)),
    (("de",), ("en", "it")),
)
def test_figures_of_a_language_are_those_of_a_ranking_of_it_alone(world, of_documents, of_queries):
    retrieval_set, retriever = world
    assert evaluate_split(*world, "test", negatives=7).languages == {}
    languages = np.arange(60) % len(of_documents), np.arange(25) % len(of_queries)
    several = dataclasses.replace(
        retrieval_set,
        document_languages=Languages(of_documents, languages[0]),
        query_languages=Languages(of_queries, languages[1]),
    )
    found = evaluate_split(several, retriever, "test", negatives=7)
    every = {*languages[0]}, {*languages[1]}
    rows = {"all": every}
    if len(of_documents) > 1:
        rows |= {f"documents {c or 'unknown'}": ({n}, every[1]) for n, c in enumerate(of_documents)}
    if len(of_queries) > 1:
        rows |= {f"queries {c}": (every[0], {n}) for n, c in enumerate(of_queries)}
    assert list(found.languages) == list(rows)
    (ranking,) = retriever.rank(several.queries_in("test"), 100)
    judged = dict(zip(zip(several.query_rows, several.document_rows), several.grades))
    top = languages[0][ranking.document_rows[:, :10]]
    relevant_ones = languages[0][[d for (_, d), grade in judged.items() if grade]]
    for name, (wanted, asking) in rows.items():
        run, qrels = {}, {}
        for query, documents in zip(ranking.query_rows, ranking.document_rows):
            own = {d: int(grade) for (q, d), grade in judged.items() if q == query}
            grades = {str(d): own[d] for d in own if languages[0][d] in wanted}
            if languages[1][query] in asking and any(grades.values()):
                kept = documents[np.isin(languages[0][documents], [*wanted])]
                run[str(query)] = {str(d): -float(rank) for rank, d in enumerate(kept)}
                qrels[str(query)] = grades
        with_mates = {query: grades for query, grades in qrels.items() if 2 in grades.values()}
        measures = [RR(rel=2) @ 10, nDCG @ 20, AP, R @ 100]
        means = ir_measures.calc_aggregate(measures[1:], qrels, run)
        means |= ir_measures.calc_aggregate(measures[:1], with_mates, run)
        expected = [len(qrels), *(means[measure] for measure in measures)]
        if name.startswith("documents"):
            expected += [np.isin(some, [*wanted]).mean() for some in (top, relevant_ones)]
        np.testing.assert_allclose(list(found.languages[name].values()), expected)
        assert found.languages[name]["R@100"] == pytest.approx(means[R @ 100])  # not our Recall@100
    content = metrics_content({"test": found}, 7)
    assert content["languages"] == {"test": found.languages}
    ((header, cells),) = report.language_cells(content, ["test"])
    assert (header[-1] == "relevant") == (len(of_documents) > 1)
    assert [row[0] for row in cells] == list(found.languages)
