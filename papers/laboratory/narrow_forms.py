"""What a dense run finds with narrow tables of words, and with narrow vectors of documents."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np

from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.evaluation.evaluate import evaluate_splits
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.index.vector_index import IndexSettings, VectorIndex
from tf_smoothclir.papers.laboratory.systems import (
    BINARY_VECTORS,
    INT8_TABLES,
    INT8_VECTORS,
    NARROW_FORMS,
)
from tf_smoothclir.protocols.scorer import Ranking, Retriever
from tf_smoothclir.publishing.exported_tables import ExportedTables
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.retrievers import load_models
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_report import EVALUATED_SPLITS
from tf_smoothclir.training.train import tokenized_set_of
from tf_smoothclir.two_tower.int8_vectors import Int8Vectors

_KINDS = {INT8_VECTORS: "int8", BINARY_VECTORS: "binary"}  # of an index


@dataclasses.dataclass(frozen=True)
class IndexedVectors:
    """Ranks by the kind of index that `smoothclir-index` builds; scores are those of its vectors.

    Attributes:
        exact: Ranks by the vectors as they are.
        ranker: Over the documents of `exact`.
        inexact: Scores pairs by the documents as the index keeps them.
    """

    exact: Retriever
    ranker: Ranker
    inexact: Retriever

    @classmethod
    def of(cls, exact: Retriever, kind: str, retrieval_set: RetrievalSet) -> IndexedVectors:
        """Puts the documents of a `DenseRetriever` into an index of a kind."""
        vectors = Int8Vectors.of(exact.documents)
        settings = IndexSettings(kind).resolved(len(vectors))
        order = retrieval_set.tie_order.astype(np.uint64)
        ranker = Ranker(VectorIndex.scan(settings, vectors), vectors, order)
        return cls(exact, ranker, dataclasses.replace(exact, documents=vectors[:]))

    def score(self, lists: CandidateLists) -> np.ndarray:
        """`[pairs]` float32, the score of each pair of the lists."""
        return self.inexact.score(lists)

    def rank(self, query_rows: np.ndarray, depth: int) -> Iterator[Ranking]:
        """Ranks the collection for each query; see `Retriever.rank`."""
        found = self.ranker.rank(self.exact.queries[query_rows], depth)
        rows = np.stack([positions for positions, _ in found])
        yield Ranking(query_rows, rows, np.stack([scores for _, scores in found]))


def evaluate_forms(run: RunDirectory, settings: RunSettings) -> dict[str, dict]:
    """Evaluates the towers of a run in each of `NARROW_FORMS`, with TREC files for each."""
    tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, EVALUATED_SPLITS)
    models = load_models(run)
    exact = models.retrievers(tokenized_set)["dense"]
    retrieval_set = tokenized_set.retrieval_set
    retrievers = {
        form: IndexedVectors.of(exact, kind, retrieval_set) for form, kind in _KINDS.items()
    }
    with contextlib.ExitStack() as stack:
        for role in ROLES:
            tower = getattr(models.towers, f"{role}_tower")
            stack.enter_context(ExportedTables(tower, "int8").read_by(tower))
        retrievers[INT8_TABLES] = models.retrievers(tokenized_set)["dense"]
    return {
        form: _metrics(run, settings, retrieval_set, retrievers[form], form)
        for form in NARROW_FORMS
    }


def _metrics(
    run: RunDirectory,
    settings: RunSettings,
    retrieval_set: RetrievalSet,
    retriever: Retriever,
    form: str,
) -> dict[str, Mapping[str, float]]:
    found = evaluate_splits(
        retrieval_set,
        retriever,
        EVALUATED_SPLITS,
        negatives=settings.training.negatives,
        trec_dir=run.evaluation_of(form),
    )
    return {split: evaluation.metrics for split, evaluation in found.items()}
