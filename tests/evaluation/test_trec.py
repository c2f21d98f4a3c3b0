"""Run and qrels files: their form, and that an independent tool computes our metrics from them."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from ir_measures import AP, RR, P, R, Success, nDCG

from tests.small_world import random_set, vectors_with_ties
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.evaluation import trec
from tf_smoothclir.evaluation.full_retrieval import DEPTH, retrieval_metrics
from tf_smoothclir.evaluation.metrics import list_metrics
from tf_smoothclir.protocols.scorer import Ranking
from tf_smoothclir.two_tower.scorer import DenseRetriever

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
    sizes = len(retrieval_set.query_ids), len(retrieval_set.document_ids)
    vectors = [(generator.normal(size=(size, 8)) / 8).astype(np.float32) for size in sizes]
    return DenseRetriever(*vectors, retrieval_set.tie_order)


@pytest.fixture(
    scope="module", params=["small set with ties", "random with ties", "random without ties"]
)
def case(request, small_set):
    """(set, retriever, split)"""
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
def test_ir_measures_agrees_on_candidate_lists(case, negatives, tmp_path):
    retrieval_set, retriever, split = case
    lists = candidate_lists(retrieval_set, split, negatives=negatives, seed=5)
    scores = retriever.score(lists)
    run, qrels = tmp_path / "run.trec", tmp_path / "qrels.trec"
    trec.write_list_run(run, retrieval_set, lists, scores, "tag")
    trec.write_list_qrels(qrels, retrieval_set, lists)
    per_query = list_metrics(retrieval_set, lists, scores)
    query_ids = [retrieval_set.query_ids[row] for row in lists.query_rows]
    check(per_query, query_ids, measured(run, qrels, LIST_MEASURES.values()), LIST_MEASURES)


def test_ir_measures_agrees_on_full_retrieval(case, tmp_path):
    retrieval_set, retriever, split = case
    queries = retrieval_set.queries_in(split)
    ranking = Ranking.joined(retriever.rank(queries, DEPTH))
    run, qrels = tmp_path / "full.run.trec", tmp_path / "full.qrels.trec"
    trec.write_ranking(run, retrieval_set, ranking, "tag")
    trec.write_qrels(qrels, retrieval_set, queries)
    per_query = retrieval_metrics(retrieval_set, ranking)
    query_ids = [retrieval_set.query_ids[row] for row in queries]
    check(per_query, query_ids, measured(run, qrels, FULL_MEASURES.values()), FULL_MEASURES)


def test_run_file_by_hand_ties_are_written_in_our_order(small_set, tmp_path):
    lists = candidate_lists(small_set, "train", negatives=0, seed=1)
    scores = np.where(lists.document_rows == 4, 0.5, 0).astype(np.float32)  # d5 has 0.5
    assert small_set.tie_order[[2, 3, 1]].tolist() == [0, 1, 4]  # d3, d4, d2
    path = tmp_path / "run.trec"
    trec.write_list_run(path, small_set, lists, scores, "me")
    lines = [line.split(" ") for line in path.read_text().splitlines()]
    assert [line[:4] + line[5:] for line in lines] == [
        ["q1", "Q0", "d3", "1", "me"],  # d2 and d3 both have 0; d3 is earlier in the tie order
        ["q1", "Q0", "d2", "2", "me"],
        ["q2", "Q0", "d5", "1", "me"],
        ["q2", "Q0", "d4", "2", "me"],
        ["q2", "Q0", "d2", "3", "me"],
        ["q3", "Q0", "d6", "1", "me"],
    ]
    scores = [float(line[4]) for line in lines]
    assert scores[2:4] == [0.5, 0]
    assert scores[0] == scores[5] == 0
    assert -1e-40 < scores[1] == scores[4] < 0  # lowered by the least step


def test_scores_fall_strictly_also_as_float32_of_other_tools(tmp_path):
    retrieval_set = random_set(5, 150, seed=8)
    (ranking,) = vectors_with_ties(retrieval_set, seed=9).rank(np.arange(5), 100)
    path = tmp_path / "run.trec"
    trec.write_ranking(path, retrieval_set, ranking, "me")
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
