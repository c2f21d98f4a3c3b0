"""Narrow tables and vectors of a run: measured is what an export and an index have."""

import dataclasses

import numpy as np
import pytest

from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.papers.laboratory.cells import Cell, CellDirectory
from tf_smoothclir.papers.laboratory.narrow_forms import IndexedVectors
from tf_smoothclir.papers.laboratory.system_metrics import (
    FULL_MRR,
    per_query_means,
    read_system_metrics,
)
from tf_smoothclir.papers.laboratory.systems import (
    BINARY_VECTORS,
    INT8_TABLES,
    INT8_VECTORS,
    NARROW_FORMS,
)
from tf_smoothclir.protocols.scorer import Ranking
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.two_tower.scorer import DenseRetriever

DOCUMENTS, DIM = 900, 32
SETTINGS = {
    "toy_entities": 300,
    "epochs": 1,
    "negatives": 3,
    "dim": 16,
    "matryoshka_dims": (8,),
    "loss": "ordinal_softmax",
    "batching": "in_batch",
}


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    output_dir = tmp_path_factory.mktemp("cells")
    settings = changed(RunSettings(), {**SETTINGS, "cache_dir": str(output_dir / "cache")})
    cell = CellDirectory(output_dir, Cell(settings, "toy", "content", narrow=True))
    cell.path.parent.mkdir()
    cell.complete()
    return cell


@pytest.fixture(scope="module")
def dense():
    random = np.random.default_rng(3)
    queries, documents = (random.normal(size=(n, DIM)).astype("f4") for n in (4, DOCUMENTS))
    return DenseRetriever(queries, documents, random.permutation(DOCUMENTS))


def rounded(documents):
    """Whole multiples of a 127th of the largest number of each column, up to rounding."""
    steps = np.abs(documents).max(axis=0) / 127
    return np.round(documents / steps) * steps


def indexed(dense, kind):
    of_order = dataclasses.make_dataclass("Set", ["tie_order"])(dense.tie_order)
    return IndexedVectors.of(dense, kind, of_order)


@pytest.mark.parametrize("kind", ["int8", "binary"])
def test_scores_of_pairs_are_those_of_rounded_documents(dense, kind):
    lists = CandidateLists(
        query_rows=np.array([2, 0]),
        offsets=np.array([0, 2, 3]),
        document_rows=np.array([5, 899, 7]),
        grades=np.zeros(3, np.int32),
    )
    vectors = rounded(dense.documents)
    expected = [dense.queries[q] @ vectors[d] for q, d in ((2, 5), (2, 899), (0, 7))]
    scores = indexed(dense, kind).score(lists)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    assert np.abs(scores - dense.score(lists)).max() > 1e-4


def test_an_index_of_int8_ranks_as_all_scores_of_rounded_documents_do(dense):
    ranking = Ranking.joined(indexed(dense, "int8").rank(np.array([3, 1]), 20))
    scores = dense.queries[[3, 1]] @ rounded(dense.documents).T
    np.testing.assert_array_equal(ranking.query_rows, [3, 1])
    np.testing.assert_array_equal(ranking.document_rows, np.argsort(-scores, axis=1)[:, :20])
    np.testing.assert_allclose(ranking.scores, -np.sort(-scores, axis=1)[:, :20], rtol=1e-4)


def test_an_index_of_bits_ranks_the_documents_that_share_most_signs(dense):
    depth, looked_at = 20, 400  # of 900
    ranking = Ranking.joined(indexed(dense, "binary").rank(np.arange(4), depth))
    kept = rounded(dense.documents)
    shared = ((dense.queries[:, None] > 0) == (kept > 0)).sum(axis=2)
    scores = dense.queries @ kept.T
    for rows, own, of_query in zip(ranking.document_rows, shared, scores):
        least = np.sort(own)[::-1][looked_at - 1]
        assert own[rows].min() >= least
        surely = np.flatnonzero(own > least)
        best = surely[np.argsort(-of_query[surely])][: depth // 2]
        assert {*best} <= {*rows}


def test_equal_scores_are_ordered_by_the_tie_rule(dense):
    same = dataclasses.replace(dense, documents=np.repeat(dense.documents[:1], DOCUMENTS, axis=0))
    for kind in ("int8", "binary"):
        ranking = Ranking.joined(indexed(same, kind).rank(np.array([0]), 5))
        found = same.tie_order[ranking.document_rows[0]]
        assert found.tolist() == sorted(found)
    ranking = Ranking.joined(indexed(same, "int8").rank(np.array([0]), 5))
    assert same.tie_order[ranking.document_rows[0]].tolist() == [0, 1, 2, 3, 4]


def test_every_form_and_every_cut_is_measured_on_both_splits(cell):
    exact = cell.metrics().splits
    for part in ("dense-8", *NARROW_FORMS):
        splits = cell.metrics(part).splits
        assert splits.keys() == exact.keys() == {"test", "validation"}
        for split, metrics in splits.items():
            assert metrics.keys() == exact[split].keys()
            assert metrics["MAP"] == pytest.approx(exact[split]["MAP"], abs=0.1)


def test_the_files_of_a_part_are_its_own(cell):
    parts = ("", "dense-8", *NARROW_FORMS)
    systems = [read_system_metrics(part or "all", [cell], part) for part in parts]
    means, _ = per_query_means(systems, ["MAP", FULL_MRR])
    for system in systems:
        for metric, values in means[system.name].per_query.items():
            assert np.nanmean(values) == pytest.approx(system.values[metric][0], abs=1e-6)
    scores = [cell.trec_files("test", part)[0].read_text() for part in parts]
    assert scores[parts.index(INT8_VECTORS)] == scores[parts.index(BINARY_VECTORS)]  # few documents
    assert len({*scores}) == len(parts) - 1


def test_tables_of_int8_move_scores_a_little(cell):
    exact, narrow = (
        np.array([float(line.split()[4]) for line in sorted(path.read_text().splitlines())])
        for path in (cell.trec_files("test", part)[0] for part in ("", INT8_TABLES))
    )
    assert exact.shape == narrow.shape
    np.testing.assert_allclose(np.sort(narrow), np.sort(exact), atol=0.02)
    assert np.any(np.sort(narrow) != np.sort(exact))


def test_a_cell_with_narrow_forms_has_a_name_of_its_own(cell):
    plain = dataclasses.replace(cell.cell, narrow=False)
    assert plain.name != cell.cell.name
    assert not CellDirectory(cell.path.parents[1], plain).finished
