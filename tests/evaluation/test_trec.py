"""Run and qrels files: their form, and that an independent tool computes our figures from them."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from ir_measures import AP, RR, P, R, Success, nDCG

from tests.small_world import random_set, vectors_with_ties
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.evaluation import trec
from tf_smoothclir.evaluation.encoding import EncodedSet
from tf_smoothclir.evaluation.full_retrieval import retrieval_metrics, top_documents
from tf_smoothclir.evaluation.reranking import list_metrics, score_lists

LIST_MEASURES = {
    "P_mr@1": P(rel=2) @ 1,
    "P_mr@5": Success(rel=2) @ 5,
    "P_r@5": P(rel=1) @ 5,
    "NDCG@5": nDCG @ 5,
    "MAP": AP(rel=1),
    "MRR_mr": RR(rel=2),
    "MRR_r": RR(rel=1),
}
FULL_MEASURES = {
    "full/MRR@10": RR(rel=2) @ 10,
    "full/Recall@1": R(rel=2) @ 1,
    "full/Recall@10": R(rel=2) @ 10,
    "full/Recall@100": R(rel=2) @ 100,
}


def without_ties(retrieval_set, seed):
    generator = np.random.default_rng(seed)
    encoded = vectors_with_ties(retrieval_set, seed=seed)
    vectors = [generator.normal(size=(len(v), 8)) / 8 for v in (encoded.queries, encoded.documents)]
    return EncodedSet(*(v.astype(np.float32) for v in vectors), encoded.tie_order)


@pytest.fixture(
    scope="module", params=["small set with ties", "random with ties", "random without ties"]
)
def case(request, small_set):
    """(set, vectors, split)"""
    if request.param.startswith("small"):
        return small_set, vectors_with_ties(small_set, seed=1), "train"
    retrieval_set = random_set(60, 150, seed=2)
    make = without_ties if request.param.endswith("without ties") else vectors_with_ties
    return retrieval_set, make(retrieval_set, seed=3), "test"


def measured(run, qrels, measures):
    """Measure -> query id -> value, by ir-measures."""
    found = {measure: {} for measure in measures}
    qrels = list(ir_measures.read_trec_qrels(str(qrels)))
    run = list(ir_measures.read_trec_run(str(run)))
    for value in ir_measures.iter_calc(list(measures), qrels, run):
        found[value.measure][value.query_id] = value.value
    return found


def check(per_query, query_ids, found, measures):
    for name, measure in measures.items():
        counted = np.isfinite(per_query[name])
        assert counted.any()
        theirs = [found[measure][query_ids[i]] for i in np.flatnonzero(counted)]
        np.testing.assert_allclose(per_query[name][counted], theirs, atol=1e-6, err_msg=name)
        # Of what we leave out, the other tool has no value above 0.
        left_out = [found[measure].get(query_ids[i], 0.0) for i in np.flatnonzero(~counted)]
        assert not any(left_out)


@pytest.mark.parametrize("negatives", [0, 1, 40])
def test_ir_measures_agrees_on_judged_lists(case, negatives, tmp_path):
    retrieval_set, encoded, split = case
    lists = candidate_lists(retrieval_set, split, negatives=negatives, seed=5)
    scores = score_lists(encoded, lists)
    run, qrels = tmp_path / "run.trec", tmp_path / "qrels.trec"
    trec.write_list_run(run, retrieval_set, encoded, lists, scores, "tag")
    trec.write_list_qrels(qrels, retrieval_set, lists)
    per_query = list_metrics(encoded, lists, scores, 3)
    query_ids = [retrieval_set.query_ids[row] for row in lists.query_rows]
    check(per_query, query_ids, measured(run, qrels, LIST_MEASURES.values()), LIST_MEASURES)


def test_ir_measures_agrees_on_full_retrieval(case, tmp_path):
    retrieval_set, encoded, split = case
    queries = retrieval_set.queries_in(split)
    top = top_documents(encoded, queries)
    run, qrels = tmp_path / "full.run.trec", tmp_path / "full.qrels.trec"
    trec.write_top_run(run, retrieval_set, top, "tag")
    trec.write_qrels(qrels, retrieval_set, queries)
    per_query = retrieval_metrics(retrieval_set, top)
    query_ids = [retrieval_set.query_ids[row] for row in queries]
    check(per_query, query_ids, measured(run, qrels, FULL_MEASURES.values()), FULL_MEASURES)


def test_run_file_by_hand_ties_are_written_in_our_order(small_set, tmp_path):
    documents = np.array([[0.0], [0.5], [0.25], *[[0.0]] * 9], np.float32)
    lists = candidate_lists(small_set, "train", negatives=0, seed=1)
    tie_order = np.arange(12)[::-1]
    encoded = EncodedSet(np.ones((8, 1), np.float32), documents, tie_order)
    path = tmp_path / "run.trec"
    trec.write_list_run(path, small_set, encoded, lists, score_lists(encoded, lists), "me")
    lines = [line.split(" ") for line in path.read_text().splitlines()]
    assert [line[:4] + line[5:] for line in lines] == [
        ["q1", "Q0", "d2", "1", "me"],
        ["q1", "Q0", "d3", "2", "me"],
        ["q2", "Q0", "d2", "1", "me"],
        ["q2", "Q0", "d5", "2", "me"],  # d4 and d5 both have 0; d5 is earlier in the tie order
        ["q2", "Q0", "d4", "3", "me"],
        ["q3", "Q0", "d6", "1", "me"],
    ]
    scores = [float(line[4]) for line in lines]
    assert scores[:4] == [0.5, 0.25, 0.5, 0.0]
    assert -1e-40 < scores[4] < 0  # lowered by the least step


def test_scores_fall_strictly_also_as_float32_of_other_tools(tmp_path):
    retrieval_set = random_set(5, 150, seed=8)
    encoded = vectors_with_ties(retrieval_set, seed=9)
    path = tmp_path / "run.trec"
    trec.write_top_run(path, retrieval_set, top_documents(encoded, np.arange(5)), "me")
    lines = [line.split() for line in path.read_text().splitlines()]
    assert len(lines) == 5 * 100
    for query in range(5):
        part = lines[100 * query : 100 * (query + 1)]
        assert [line[3] for line in part] == [str(rank) for rank in range(1, 101)]
        scores = np.array([np.float32(line[4]) for line in part])
        assert (np.diff(scores) < 0).all()


def test_qrels_of_lists_hold_the_sampled_documents_as_grade_0(small_set, tmp_path):
    lists = candidate_lists(small_set, "train", negatives=40, seed=1)
    trec.write_list_qrels(tmp_path / "qrels", small_set, lists)
    lines = (tmp_path / "qrels").read_text().splitlines()
    assert len(lines) == 3 * 12
    assert {line for line in lines if not line.endswith(" 0")} == {
        "q1 0 d2 2",
        "q1 0 d3 1",
        "q2 0 d4 2",
        "q2 0 d5 1",
        "q3 0 d6 2",
    }


def test_qrels_hold_the_judgments_of_the_split_alone(small_set, tmp_path):
    trec.write_qrels(tmp_path / "qrels", small_set, small_set.queries_in("validation"))
    assert (tmp_path / "qrels").read_text() == "q4 0 d8 1\nq8 0 d1 0\n"
