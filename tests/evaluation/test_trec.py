"""Run and qrels files, ours and those of any system, and the metrics that ir-measures finds."""

import functools
import math
import re

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, RR, P, R, Success, nDCG

from tests.cases import cases
from tests.small_world import random_set, vectors_with_ties
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.evaluation import metrics, trec
from tf_smoothclir.evaluation.trec import highest_grade, read_qrels, read_run, run_metrics
from tf_smoothclir.protocols.scorer import Ranking
from tf_smoothclir.settings.training import COMPARED, METRICS
from tf_smoothclir.two_tower.scorer import DenseRetriever
from tf_smoothclir.utils.errors import InputError

DOCUMENTS = st.sampled_from([f"d{number}" for number in range(9)])
RECORDS = {"q1": {"d1": 2.5, "d2": -0.001}}
JUDGMENTS = {"q1": {"d1": 2, "d2": -trec.MAX_GRADE}}
GOOD_RUN = "q1 Q0 d1 1 0.5 me\n"
BAD = {
    "run with 5 columns": (read_run, "q1 Q0 d1 1 0.5\n", ":1: 5 columns instead of 6", "Put one"),
    "NaN score": (read_run, "q1 Q0 d2 1 NaN me\n", ":1: score 'NaN' is not a number", "Give a"),
    "Python's score": (read_run, "q1 Q0 d2 1 1_0 me\n", ":1: score '1_0' is not a", "Give a"),
    "document twice": (read_run, 2 * GOOD_RUN, ":2: query 'q1' has document 'd1' a", "Keep one"),
    "huge grade": (read_qrels, "q1 0 d1 99999999999\n", ":1: grade 99999999999 is", "Give a grade"),
    "nothing relevant": (read_qrels, "q1 0 d1 0\nq2 0 d1 -1\n", ": no document has", "Judge at"),
}


def list_measures(best=2):
    return {
        "P_mr@1": P(rel=best) @ 1,
        "P_mr@5": Success(rel=best) @ 5,
        "P_r@5": P(rel=1) @ 5,
        "NDCG@5": nDCG @ 5,
        "MAP": AP(rel=1),
        "MRR_mr": RR(rel=best),
        "MRR_r": RR(rel=1),
    }


@pytest.fixture(scope="module", params=["small", "random", "two grades", "four grades", "no ties"])
def case(request, small_set):
    if request.param == "small":
        return small_set, vectors_with_ties(small_set, seed=1), "train"
    grades = {"two grades": 2, "four grades": 4}.get(request.param, 3)
    retrieval_set = random_set(60, 150, seed=2, grades=grades)
    retriever = vectors_with_ties(retrieval_set, seed=3)
    if request.param == "no ties":
        random = np.random.default_rng(3).normal(size=(210, 8)).astype(np.float32) / 8
        retriever = DenseRetriever(random[:60], random[60:], retrieval_set.tie_order)
    return retrieval_set, retriever, "test"


def check(per_query, query_ids, run, qrels, measures):
    found = {measure: {} for measure in measures.values()}
    run = list(ir_measures.read_trec_run(str(run)))
    qrels = list(ir_measures.read_trec_qrels(str(qrels)))
    for value in ir_measures.iter_calc(list(found), qrels, run):
        found[value.measure][value.query_id] = value.value
    for name, measure in measures.items():
        counted = np.isfinite(per_query[name])
        assert counted.any()
        theirs = np.array([found[measure].get(query, 0.0) for query in query_ids])
        np.testing.assert_allclose(per_query[name][counted], theirs[counted], atol=1e-6)
        assert not theirs[~counted].any()  # of what we leave out, it has no value above 0


def test_ir_measures_agrees_on_candidate_lists_and_full_retrieval(case, tmp_path):
    retrieval_set, retriever, split = case
    ids, best = np.array(retrieval_set.query_ids), retrieval_set.num_grades - 1
    run, qrels = tmp_path / "run.trec", tmp_path / "qrels.trec"
    for negatives in (0, 40):
        lists = candidate_lists(retrieval_set, split, negatives=negatives, seed=5)
        scores = retriever.score(lists)
        trec.write_list_run(run, retrieval_set, lists, scores)
        trec.write_qrels(qrels, retrieval_set, lists)
        per_query = metrics.list_metrics(retrieval_set, lists, scores)
        check(per_query, ids[lists.query_rows], run, qrels, list_measures(best))
    queries = retrieval_set.queries_in(split)
    ranking = Ranking.joined(retriever.rank(queries, metrics.DEPTH))
    trec.write_ranking(run, retrieval_set, *vars(ranking).values())
    judged = candidate_lists(retrieval_set, split, negatives=0, seed=5)
    trec.write_qrels(qrels, retrieval_set, judged)
    recalls = {f"full/Recall@{depth}": R(rel=best) @ depth for depth in (1, 10, 100)}
    graded = {"full/nDCG@10": nDCG @ 10, "full/MAP": AP, "full/MRR@10": RR(rel=best) @ 10}
    measures = {**graded, **recalls}
    check(metrics.retrieval_metrics(retrieval_set, ranking), ids[queries], run, qrels, measures)


def test_files_as_we_write_them(small_set, tmp_path):
    lists = candidate_lists(small_set, "train", negatives=0, seed=1)
    scores = np.where(lists.document_rows == 4, 0.5, 0).astype(np.float32)  # d5 has 0.5
    assert small_set.tie_order[[2, 3, 1]].tolist() == [0, 1, 4]  # d3, d4, d2
    # Ties are in our order.
    path = tmp_path / "run.trec"
    trec.write_list_run(path, small_set, lists, scores)
    lines = [line.split(" ") for line in path.read_text().splitlines()]
    # d2 and d3 both have 0; d3 is earlier in the tie order.
    ranks = [" ".join([*line[:4], line[5][:2]]) for line in lines]
    assert ranks[:3] == ["q1 Q0 d3 1 tf", "q1 Q0 d2 2 tf", "q2 Q0 d5 1 tf"]
    assert ranks[3:] == ["q2 Q0 d4 2 tf", "q2 Q0 d2 3 tf", "q3 Q0 d6 1 tf"]
    scores = [float(line[4]) for line in lines]
    assert scores[2:4] == [0.5, 0]
    assert scores[0] == scores[5] == 0
    assert -1e-40 < scores[1] == scores[4] < 0  # lowered by the least step
    # Scores fall strictly, also as float32 of other tools.
    retrieval_set = random_set(5, 150, seed=8)
    (ranking,) = vectors_with_ties(retrieval_set, seed=9).rank(np.arange(5), 100)
    trec.write_ranking(path, retrieval_set, *vars(ranking).values())
    lines = np.array([line.split() for line in path.read_text().splitlines()])
    assert lines[:, 3].tolist() == 5 * [str(rank) for rank in range(1, 101)]
    assert (np.diff(lines[:, 4].astype(np.float32).reshape(5, 100)) < 0).all()
    # Qrels hold sampled documents as grade 0, or the judgments of the split.
    lists = candidate_lists(small_set, "train", negatives=40, seed=1)
    trec.write_qrels(tmp_path / "qrels", small_set, lists)
    lines = (tmp_path / "qrels").read_text().splitlines()
    assert len(lines) == 3 * 12
    judged = {line for line in lines if not line.endswith(" 0")}
    assert judged == {"q1 0 d2 2", "q1 0 d3 1", "q2 0 d4 2", "q2 0 d5 1", "q3 0 d6 2"}
    lists = candidate_lists(small_set, "validation", negatives=0, seed=1)
    trec.write_qrels(tmp_path / "qrels", small_set, lists)
    assert (tmp_path / "qrels").read_text() == "q4 0 d8 1\nq8 0 d1 0\n"


def written(tmp_path, content):
    path = tmp_path / "file.trec"
    path.write_text(content, "utf-8", newline="")
    return path


def test_metrics_of_a_run_by_hand():
    qrels = {"q1": {"a": 2, "b": 1, "c": 0}, "q2": {"a": 1}, "q3": {"a": 2}, "q4": {"a": 0}}
    run = {"q1": {"x": 3, "b": 2, "a": 1}, "q2": {"a": 0.5}, "q4": {"a": 1}, "q5": {"a": 1}}
    found, log3 = run_metrics(run, qrels).per_query, math.log2(3)
    gain = (1 / log3 + 2 / 2) / (2 + 1 / log3)  # of the grades 0, 1, 2; the best order is 2, 1
    nan = math.nan
    for names, expected in {
        ("nDCG@10", "NDCG@5"): [gain, 1, 0, nan],
        ("MRR@10", "MRR_mr"): [1 / 3, nan, 0, nan],
        ("Recall@100", "P_mr@5"): [1, nan, 0, nan],
        ("P_mr@1",): [0, nan, 0, nan],
        ("P_r@5",): [2 / 5, 1 / 5, 0, nan],
        ("MAP",): [(1 / 2 + 2 / 3) / 2, 1, 0, nan],
        ("MRR_r",): [1 / 2, 1, 0, nan],
    }.items():
        for name in names:
            np.testing.assert_allclose(found[name], expected, err_msg=name)
    assert list(found) == list(COMPARED)


def test_what_the_run_or_the_judgments_lack_is_counted():
    approx = functools.partial(pytest.approx, rel=1e-6, nan_ok=True)
    qrels = {"q1": {"a": 2}, "q2": {"a": 2}, "q3": {"a": 0}}
    found = run_metrics({"q1": {"a": 1.0, "x": 0.5}, "q4": {"b": 1.0}}, qrels)
    assert found.query_ids == ("q1", "q2", "q3")
    assert (found.missing_queries, found.unjudged_queries, found.unjudged_documents) == (2, 1, 1)
    for name in METRICS:
        best = 1 / 5 if name == "P_r@5" else 1
        assert found.per_query[name].tolist() == approx([best, 0, math.nan]), name
    # The highest grade is that of all queries.
    qrels = {"q1": {"a": 1}, "q2": {"a": 3, "b": 1}}
    assert highest_grade(qrels) == 3
    found = run_metrics({"q1": {"a": 1.0}, "q2": {"a": 1.0}}, qrels)
    assert found.per_query["P_mr@1"].tolist() == approx([math.nan, 1])


@settings(max_examples=40)
@given(
    st.dictionaries(DOCUMENTS, st.sampled_from([-math.inf, 0.0, 1.0, math.inf]), min_size=1),
    st.dictionaries(DOCUMENTS, st.integers(0, 2)),
)
def test_ties_are_ordered_by_hash_and_never_by_file(run, grades):
    hashes = dict(zip(run, hash_ids(list(run))))
    order = sorted(run, key=lambda document: (-run[document], hashes[document]))
    strict = {document: -float(rank) for rank, document in enumerate(order)}
    found, backwards, expected = (
        run_metrics({"q": one}, {"q": {**grades, "best": 2}}).per_query
        for one in (run, dict(reversed(run.items())), strict)
    )
    assert found == backwards == expected


@cases(
    "read, content, expected",
    (read_run, "q1\tQ0\td1\t1\t2.5\tme\r\nq1\tQ0\td2\t2\t-1e-3\tme\r\n", RECORDS),
    (read_run, "q1  Q0 \t d1 1 2.5 me\nq1 Q0 d2 7 -0.001 me", RECORDS),
    (read_run, "\ufeffq1 Q0 d1 1 2.5 me\nq1 Q0 d2 2 -.001 me\n", RECORDS),
    (read_qrels, "q1 0 d1 2\nq1 0 d2 -99999999999\n", JUDGMENTS),
)
def test_layouts_of_files(read, content, expected, tmp_path):
    assert read(written(tmp_path, content)) == expected


def test_negative_grades_are_as_0_but_not_for_measures_that_leave_them_out(tmp_path):
    grades, scores = {"a": 1, "b": 0, "c": -1, "d": 2, "e": -7}, [5, 1, 4, 3, 2]
    path = written(tmp_path, "".join(f"q 0 {id_} {grade}\n" for id_, grade in grades.items()))
    run, names = {"q": dict(zip(grades, map(float, scores)))}, ["Bpref", "infAP"]
    found = run_metrics(run, read_qrels(path), names).per_query
    for name in names:
        (expected,) = ir_measures.iter_calc([ir_measures.parse_measure(name)], {"q": grades}, run)
        assert found[name] == [expected.value]
    clipped = run_metrics(run, {"q": {id_: max(grade, 0) for id_, grade in grades.items()}}, names)
    # Judged not relevant is b alone, behind both relevant ones; else c too, which is before d.
    assert (found["Bpref"], clipped.per_query["Bpref"]) == ([(1 + 1) / 2], [(1 + (1 - 1 / 2)) / 2])
    assert {name: found[name] for name in COMPARED} == {n: clipped.per_query[n] for n in COMPARED}


def test_scores_are_numbers_as_c_prints_them(tmp_path):
    expected = {"-1": -1, "+.5": 0.5, "2.": 2, "1.5E-03": 0.0015, "-inf": -math.inf, "1e5": 1e5}
    lines = [f"q1 Q0 d{text} 1 {text} me\n" for text in expected]
    found = read_run(written(tmp_path, "".join(lines)))
    assert found == {"q1": {f"d{text}": score for text, score in expected.items()}}


@cases("read, content, reason, remedy", *BAD.values(), ids=BAD)
def test_bad_file_is_an_error_with_place_and_remedy(read, content, reason, remedy, tmp_path):
    path = written(tmp_path, content)
    with pytest.raises(InputError, match=f"^{re.escape(f'{path}{reason}')}.*{remedy}"):
        read(path)
