"""Run and qrels files of any system: what is read, what is refused, and trec_eval's own metrics."""

from __future__ import annotations

import math

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, RR, P, Success, nDCG

from tests.oracles import metrics as oracle
from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.evaluation import trec_files
from tf_smoothclir.evaluation.trec_files import highest_grade, read_qrels, read_run, run_metrics
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.utils.errors import InputError

SETTINGS = settings(deadline=None, max_examples=40, derandomize=True)
MEASURES = {
    "P_mr@1": P(rel=2) @ 1,
    "P_mr@5": Success(rel=2) @ 5,
    "P_r@5": P(rel=1) @ 5,
    "NDCG@5": nDCG @ 5,
    "MAP": AP(rel=1),
    "MRR_mr": RR(rel=2),
    "MRR_r": RR(rel=1),
}


@pytest.fixture
def write(tmp_path):
    def write_file(content):
        path = tmp_path / "file.trec"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def random_run_and_qrels(seed, *, queries=40, lowest_grade=0):
    """Runs of 0 to 30 documents without ties, judgments of retrieved and of other documents."""
    generator = np.random.default_rng(seed)
    run, qrels = {}, {}
    for query in range(queries):
        documents = [f"d{number}" for number in generator.permutation(60)]
        judged = generator.permutation(60)[: generator.integers(1, 20)]
        grades = generator.integers(lowest_grade, 3, size=len(judged))
        grades[0] = abs(grades[0])  # pytrec_eval crashes where all grades of a query are below 0
        qrels[f"q{query}"] = {f"d{d}": int(grade) for d, grade in zip(judged, grades)}
        length = int(generator.integers(0, 31))
        scores = generator.permutation(length) / 8 - 1
        if length:
            run[f"q{query}"] = dict(zip(documents[:length], scores.tolist()))
    assert max(max(judged.values()) for judged in qrels.values()) == 2
    return run, qrels


def single(run, qrels):
    """Metric -> value of the only query."""
    return {name: v.item() for name, v in run_metrics({"q": run}, {"q": qrels}).per_query.items()}


def same(values):
    return pytest.approx(values, rel=1e-6, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("lowest_grade", [0, -2], ids=["", "with grades below 0"])
@pytest.mark.parametrize("seed", range(4))
def test_ir_measures_agrees_on_every_metric_and_query(seed, lowest_grade):
    run, qrels = random_run_and_qrels(seed, lowest_grade=lowest_grade)
    found = run_metrics(run, qrels)
    theirs = {measure: {} for measure in MEASURES.values()}
    for value in ir_measures.iter_calc(list(MEASURES.values()), qrels, run):
        theirs[value.measure][value.query_id] = value.value
    for name, measure in MEASURES.items():
        counted = np.isfinite(found.per_query[name])
        expected = np.array([theirs[measure].get(query, 0.0) for query in found.query_ids])
        np.testing.assert_allclose(
            found.per_query[name][counted], expected[counted], atol=1e-6, err_msg=name
        )
        assert counted.sum() > 20
        assert not expected[~counted].any()


@pytest.mark.parametrize("seed", range(3))
def test_trec_eval_agrees_after_a_trip_through_files(seed, write):
    run, qrels = random_run_and_qrels(seed)
    lines = [f"{q} Q0 {d} 1 {s} me\n" for q, of_q in run.items() for d, s in of_q.items()]
    assert read_run(write("".join(lines))) == run
    lines = [f"{q} 0 {d} {g}\n" for q, of_q in qrels.items() for d, g in of_q.items()]
    assert read_qrels(write("".join(lines))) == qrels
    measures = {"map": "MAP", "ndcg_cut_5": "NDCG@5", "recip_rank": "MRR_r", "P_5": "P_r@5"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures.keys()).evaluate(run)
    found = run_metrics(run, qrels)
    for their_name, name in measures.items():
        for query, value in zip(found.query_ids, found.per_query[name]):
            if query in run and math.isfinite(value):
                assert value == pytest.approx(theirs[query][their_name], abs=1e-6)


def test_relevant_documents_not_retrieved_by_hand():
    # Ranks 1 and 2 have grades 0 and 1; a document of grade 2 and one of grade 1 are missed.
    found = single({"a": 9.0, "b": 8.0}, {"a": 0, "b": 1, "c": 2, "d": 1})
    log3 = math.log2(3)
    assert found == same(
        {
            "P_mr@1": 0,
            "P_mr@5": 0,
            "P_r@5": 1 / 5,
            "NDCG@5": (1 / log3) / (2 + 1 / log3 + 1 / 2),
            "MAP": (1 / 2) / 3,
            "MRR_mr": 0,
            "MRR_r": 1 / 2,
        }
    )


def test_query_that_the_run_lacks_scores_0_and_is_counted():
    found = run_metrics({"q1": {"a": 1.0}}, {"q1": {"a": 2}, "q2": {"a": 2}, "q3": {"a": 0}})
    assert found.query_ids == ("q1", "q2", "q3")
    assert (found.missing_queries, found.unjudged_queries) == (2, 0)
    for name in METRICS:
        best = 1 / 5 if name == "P_r@5" else 1
        assert found.per_query[name].tolist() == same([best, 0, math.nan]), name


def test_query_without_judgments_is_left_out_and_counted():
    found = run_metrics({"q1": {"a": 1.0}, "q2": {"b": 1.0}}, {"q1": {"a": 1}})
    assert found.query_ids == ("q1",)
    assert (found.missing_queries, found.unjudged_queries, found.unjudged_documents) == (0, 1, 0)


def test_unjudged_documents_have_grade_0_and_are_counted():
    with_unjudged = {"x": 9.0, "a": 8.0, "y": 7.0, "b": 6.0}
    judgments = {"a": 1, "b": 2, "c": 1}
    assert single(with_unjudged, judgments) == same(
        single(with_unjudged, {**judgments, "x": 0, "y": 0})
    )
    assert run_metrics({"q": with_unjudged}, {"q": judgments}).unjudged_documents == 2


def test_grades_below_0_are_grade_0():
    assert single({"a": 2.0, "b": 1.0}, {"a": -2, "b": 1, "c": -1}) == same(
        single({"a": 2.0, "b": 1.0}, {"a": 0, "b": 1, "c": 0})
    )


def test_infinite_scores_rank_first_and_last():
    run = {"last": -math.inf, "middle": 0.0, "first": math.inf}
    assert single(run, {"first": 2, "last": 1})["MAP"] == same((1 / 1 + 2 / 3) / 2)


DOCUMENTS = [f"d{number}" for number in range(9)]


@SETTINGS
@given(
    st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 2)),
    st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 2), min_size=1),
)
def test_ties_are_ordered_by_hash_and_never_by_file(run, grades):
    grades = {**grades, "best": 2}
    hashes = dict(zip(run, hash_ids(list(run)) if run else ()))
    order = sorted(run, key=lambda document: (-run[document], hashes[document]))
    found = single(run, grades)
    assert single(dict(reversed(run.items())), grades) == found
    # Five unjudged places keep the missed documents below every cut.
    ranked = [grades.get(document, 0) for document in order] + [0] * 5
    missed = [grade for document, grade in grades.items() if document not in run]
    expected = oracle.seven_metrics(ranked + missed, 3)
    relevant = sum(grade >= 1 for grade in grades.values())
    hits = [rank for rank, grade in enumerate(ranked, start=1) if grade >= 1]
    expected["MAP"] = sum(count / rank for count, rank in enumerate(hits, start=1)) / relevant
    expected["MRR_r"] = 1 / hits[0] if hits else 0
    expected["MRR_mr"] = 1 / (1 + ranked.index(2)) if 2 in ranked else 0
    assert found == same(expected)


def test_chunks_and_file_order_do_not_change_a_metric(monkeypatch):
    run, qrels = random_run_and_qrels(7)
    expected = run_metrics(run, qrels)
    monkeypatch.setattr(trec_files, "_QUERIES_PER_CHUNK", 7)
    found = run_metrics(dict(reversed(run.items())), dict(reversed(qrels.items())))
    assert found.query_ids == expected.query_ids
    for name in METRICS:
        np.testing.assert_allclose(found.per_query[name], expected.per_query[name], rtol=1e-6)


def test_highest_grade_is_that_of_all_queries():
    qrels = {"q1": {"a": 1}, "q2": {"a": 3, "b": 1}}
    assert highest_grade(qrels) == 3
    found = run_metrics({"q1": {"a": 1.0}, "q2": {"a": 1.0}}, qrels)
    assert found.per_query["P_mr@1"].tolist() == same([math.nan, 1])


@pytest.mark.parametrize(
    "content",
    [
        "q1 Q0 d1 1 2.5 me\nq1 Q0 d2 2 -1e-3 me\n",
        "q1\tQ0\td1\t1\t2.5\tme\r\nq1\tQ0\td2\t2\t-1e-3\tme\r\n",
        "q1  Q0 \t d1 1 2.5 me\nq1 Q0 d2 7 -0.001 me",
        "\ufeffq1 Q0 d1 1 2.5 me\nq1 Q0 d2 2 -.001 me\n",
    ],
    ids=["spaces", "tabs and CRLF", "mixed, wrong rank, no last line end", "byte order mark"],
)
def test_layouts_of_runs(content, write):
    assert read_run(write(content)) == {"q1": {"d1": 2.5, "d2": -0.001}}


@pytest.mark.parametrize(
    "content", ["q1 0 d1 2\nq1 0 d2 -1\n", "q1\t0\td1\t2\r\nq1\t0\td2\t-1\r\n"]
)
def test_layouts_of_qrels(content, write):
    assert read_qrels(write(content)) == {"q1": {"d1": 2, "d2": -1}}


@pytest.mark.parametrize(
    ("text", "score"),
    [("-1", -1), ("+.5", 0.5), ("2.", 2), ("1.5E-03", 0.0015), ("-inf", -math.inf), ("1e5", 1e5)],
)
def test_scores_are_numbers_as_c_prints_them(text, score, write):
    assert read_run(write(f"q1 Q0 d1 1 {text} me\n")) == {"q1": {"d1": score}}


GOOD_RUN, GOOD_QRELS = "q1 Q0 d1 1 0.5 me\n", "q1 0 d1 2\n"
BAD = {
    "run with 5 columns": (read_run, "q1 Q0 d1 1 0.5\n", ":1: 5 columns instead of 6", "Put one"),
    "run with 7": (read_run, GOOD_RUN + "q 1 Q0 d1 1 0.5 me\n", ":2: 7 columns", "none into an id"),
    "qrels as run": (read_run, GOOD_QRELS, ":1: 4 columns instead of 6", "Put one"),
    "run as qrels": (read_qrels, GOOD_RUN, ":1: 6 columns instead of 4", "Put one"),
    "score": (read_run, GOOD_RUN + "q1 Q0 d2 1 high me\n", ":2: score 'high' is", "Give a number"),
    "NaN score": (read_run, "q1 Q0 d2 1 NaN me\n", ":1: score 'NaN' is not a number", "Give a"),
    "Python's score": (read_run, "q1 Q0 d2 1 1_0 me\n", ":1: score '1_0' is not a", "Give a"),
    "Thai digit": (read_run, "q1 Q0 d2 1 \u0e53 me\n", ":1: score '\u0e53' is not a", "Give a"),
    "hexadecimal": (read_run, "q1 Q0 d2 1 0x1p3 me\n", ":1: score '0x1p3' is not a", "Give a"),
    "Python's grade": (read_qrels, "q1 0 d1 1_0\n", ":1: grade '1_0' is not an", "Give a grade"),
    "document twice": (
        read_run,
        GOOD_RUN + "q2 Q0 d1 1 1 me\nq1 Q0 d1 2 0.4 me\n",
        ":3: query 'q1' has document 'd1' a second time",
        "Keep one",
    ),
    "judged twice": (read_qrels, 2 * GOOD_QRELS, ":2: query 'q1' has document 'd1' a", "Keep one"),
    "grade": (read_qrels, "q1 0 d1 1.5\n", ":1: grade '1.5' is not an integer", "Give a grade"),
    "huge grade": (read_qrels, "q1 0 d1 99999999999\n", ":1: grade 99999999999 is", "Give a grade"),
    "nothing relevant": (read_qrels, "q1 0 d1 0\nq2 0 d1 -1\n", ": no document has", "Judge at"),
    "empty run": (read_run, "", ": the file is empty", "Give it one record"),
    "empty qrels": (read_qrels, "", ": the file is empty", "Give it one record"),
    "blank line": (read_run, "\n" + GOOD_RUN, ":1: the line is blank", "Remove it"),
    "not UTF-8": (read_run, b"q\xff Q0 d1 1 1 me\n", ":1: byte 0xff", "iconv"),
}


@pytest.mark.parametrize(("read", "content", "reason", "remedy"), BAD.values(), ids=BAD)
def test_bad_file_is_an_error_with_place_and_remedy(read, content, reason, remedy, write):
    path = write(content)
    with pytest.raises(InputError) as error:
        read(path)
    message = str(error.value)
    assert message.startswith(f"{path}{reason}")
    assert remedy in message


@pytest.mark.parametrize("read", [read_run, read_qrels])
def test_missing_file_and_directory_are_errors(read, tmp_path):
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InputError, match=r"cannot be read: .* Check the path"):
            read(path)
