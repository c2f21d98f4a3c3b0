"""Full retrieval: every query against the whole collection."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.candidate_lists import pair_key
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.evaluation.encoding import EncodedSet
from tf_smoothclir.ops.top_k import DOCUMENTS_PER_CHUNK, in_chunks, top_k

DEPTH = 100  # how deep a ranking is kept and measured
_SCORES_PER_CHUNK = 1 << 25  # 128 MB of float32


@dataclasses.dataclass(frozen=True)
class TopDocuments:
    """The best documents of each query, best first.

    Attributes:
        query_rows: `[queries]` int.
        document_rows: `[queries, depth]` int.
        scores: `[queries, depth]` float32.
    """

    query_rows: np.ndarray
    document_rows: np.ndarray
    scores: np.ndarray


def top_documents(encoded: EncodedSet, query_rows: np.ndarray, depth: int = DEPTH) -> TopDocuments:
    """Ranks the collection for each query, exactly, in chunks of bounded memory.

    Args:
        encoded: The vectors.
        query_rows: `[queries]`, the queries to answer.
        depth: Documents a query; fewer where the collection is smaller.
    """
    chunks = list(ranked_in_chunks(encoded, query_rows, depth))
    return TopDocuments(
        query_rows,
        np.concatenate([chunk.document_rows for chunk in chunks]),
        np.concatenate([chunk.scores for chunk in chunks]),
    )


def ranked_in_chunks(
    encoded: EncodedSet, query_rows: np.ndarray, depth: int
) -> Iterator[TopDocuments]:
    """Yields what `top_documents` returns, some queries at a time."""
    # In the order of the tie rule, so that top_k, which prefers lower positions, applies it.
    by_tie_order = np.argsort(encoded.tie_order)
    documents = tf.constant(encoded.documents[by_tie_order])
    depth = min(depth, len(by_tie_order))
    step = max(1, _SCORES_PER_CHUNK // min(DOCUMENTS_PER_CHUNK, len(by_tie_order)))
    for begin in range(0, len(query_rows), step):
        rows = query_rows[begin : begin + step]
        scores, positions = top_k(tf.constant(encoded.queries[rows]), in_chunks(documents), depth)
        yield TopDocuments(rows, by_tie_order[positions.numpy()], scores.numpy())


def retrieval_metrics(
    retrieval_set: RetrievalSet, top: TopDocuments, prefix: str = "full/"
) -> dict[str, np.ndarray]:
    """Measures full retrieval; relevant are the documents of the highest grade.

    Args:
        retrieval_set: The judgments.
        top: The ranking.
        prefix: Set before each name.

    Returns:
        `MRR@10`, `Recall@1`, `Recall@10`, `Recall@100` -> `[queries]` float64; NaN for a query
        without a document of the highest grade.
    """
    mates = retrieval_set.grades == retrieval_set.num_grades - 1
    keys = pair_key(retrieval_set.query_rows[mates], retrieval_set.document_rows[mates])
    found = np.isin(pair_key(top.query_rows[:, None], top.document_rows), keys)
    number = np.bincount(
        retrieval_set.query_rows[mates], minlength=len(retrieval_set.query_ids)
    ).astype(np.float64)[top.query_rows]
    number[number == 0] = np.nan
    first = np.where(found[:, :10].any(axis=1), found[:, :10].argmax(axis=1) + 1.0, np.inf)
    values = {"MRR@10": np.where(np.isnan(number), np.nan, 1.0 / first)}
    for depth in (1, 10, 100):
        values[f"Recall@{depth}"] = found[:, :depth].sum(axis=1) / number
    return {prefix + name: value for name, value in values.items()}
