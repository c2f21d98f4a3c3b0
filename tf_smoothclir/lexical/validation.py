"""Quality of a retriever on validation queries, as one number."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.evaluation.metrics import mean_metrics, ranked_grades, ranked_metric
from tf_smoothclir.lexical.feedback import Feedback, with_feedback
from tf_smoothclir.protocols.scorer import ScoreRows, query_chunks
from tf_smoothclir.utils.parallel import map_in_threads

FEEDBACK_WEIGHTS = (0.0, 12.5, 25.0, 50.0, 100.0, 200.0, 400.0)
_MOST_QUERIES = 1000
_NEGATIVES = 40
_DEPTH = 10
_COUNTED, _GUARDED = (0, 1), 3  # columns of `Validation.per_query`


class Validation:
    """Measures retrievers on the same validation queries; ties count against a document."""

    # The measure is the mean of NDCG@5 over candidate lists with 40 sampled documents and of MRR@10
    # over the whole collection, in [0, 1].

    def __init__(self, retrieval_set: RetrievalSet, most_queries: int | None = _MOST_QUERIES):
        lists = candidate_lists(retrieval_set, "validation", negatives=_NEGATIVES, seed=13)
        hashes = hash_ids([retrieval_set.query_ids[row] for row in lists.query_rows])
        self._chosen = np.sort(np.argsort(hashes, kind="stable")[:most_queries])
        self.query_rows = lists.query_rows[self._chosen]  # of the queries that are measured
        self._lists, self._set = lists, retrieval_set

    def __call__(self, rows: ScoreRows) -> float:
        """Measures one ranking, by the scores of all documents."""
        (measured,) = self.per_query(lambda query_rows: [rows(query_rows)])
        return quality(measured)

    def per_query(self, variants: Callable[[np.ndarray], Iterable[np.ndarray]]) -> list[np.ndarray]:
        """Measures each query, `[queries, 3]` float64 for each of several rankings."""
        # Threads call `variants`, from `[queries]` rows to the scores of all documents by each
        # ranking, `[queries, documents]` float32. The measures are NDCG@5, NaN for a query without
        # a relevant document; reciprocal rank up to 10; and 1 for a mate on the first rank, else 0.

        def of_chunk(chosen: np.ndarray) -> list[list]:
            rankings = variants(self._lists.query_rows[chosen])
            return [list(map(self._of_list, chosen, scores)) for scores in rankings]

        measured = zip(*map_in_threads(of_chunk, self._chunks()))
        return [self._metrics(list(itertools.chain(*lists))) for lists in measured]

    def deviation(self, rows: ScoreRows) -> float:
        """The standard deviation of the scores of a query, the mean over the queries."""

        def of_chunk(chosen: np.ndarray) -> np.ndarray:
            return rows(self._lists.query_rows[chosen]).std(axis=1)

        return float(np.concatenate(list(map_in_threads(of_chunk, self._chunks()))).mean())

    def _chunks(self) -> Iterator[np.ndarray]:
        for _, chosen in query_chunks(self._chosen, len(self._set.document_ids)):
            yield chosen

    def _of_list(self, number: int, row: np.ndarray) -> tuple[slice, np.ndarray, float]:
        """Pairs of a list, their scores, and 1 / rank of its best document."""
        part = slice(*self._lists.offsets[number : number + 2])
        documents, grades = self._lists.document_rows[part], self._lists.grades[part]
        mates = documents[(grades == grades.max()) & (grades > 0)]
        rank = np.count_nonzero(row >= row[mates].max()) if len(mates) else np.inf
        return part, row[documents], 1 / rank if rank <= _DEPTH else 0.0

    def _metrics(self, measured: Sequence[tuple[slice, np.ndarray, float]]) -> np.ndarray:
        parts, scores, reciprocals = zip(*measured)
        pairs = np.concatenate([np.arange(part.start, part.stop) for part in parts])
        offsets = np.cumsum([0, *map(len, scores)])
        ties = self._set.tie_order[self._lists.document_rows[pairs]]
        ranked = ranked_grades(np.concatenate(scores), self._lists.grades[pairs], offsets, ties)
        ndcg = np.where((ranked > 0).any(axis=1), ranked_metric("ndcg", ranked, 5), np.nan)
        return np.stack([ndcg, reciprocals, np.equal(reciprocals, 1)], axis=1)


def quality(measured: np.ndarray) -> float:
    """The measure of a ranking from `[queries, metrics]`, what `per_query` says of its queries."""
    means = mean_metrics({str(metric): measured[:, metric] for metric in _COUNTED})
    return float(np.mean(list(means.values())))


def is_better(measured: np.ndarray, other: np.ndarray, counted: Sequence[int] = _COUNTED) -> bool:
    """Whether a ranking is better than another beyond chance, by `[queries, metrics]` of each."""
    gains = measured - other
    gains = gains[np.isfinite(gains).all(axis=1)]
    if not len(gains):
        return False
    gains = np.column_stack([gains[:, list(counted)].mean(axis=1), gains[:, :_GUARDED]])
    mean, error = gains.mean(axis=0), gains.std(axis=0) / np.sqrt(len(gains))
    return bool(mean[0] > error[0] and (mean >= -error).all())


def best_of_better(measured: Sequence[np.ndarray], may_fall: bool) -> int:
    """The best of rankings that are better than the first beyond chance; else 0."""
    # Of two that differ by chance, both may be much better than the first.
    best = 0
    for number, other in enumerate(measured):
        falls = not may_fall and (np.nanmean(other - measured[0], axis=0) < 0).any()
        if not falls and is_better(other, measured[0]) and quality(other) > quality(measured[best]):
            best = number
    return best


def feedback_variants(feedback: Feedback, scores: np.ndarray) -> Iterator[np.ndarray]:
    """Yields scores with feedback of each of `FEEDBACK_WEIGHTS`, `[queries, documents]` float32."""
    similarities = feedback.similarities(scores)
    for weight in FEEDBACK_WEIGHTS:
        yield with_feedback(scores, similarities, weight)


def best_weight(measured: Sequence[np.ndarray]) -> float:
    """The best of `FEEDBACK_WEIGHTS` by `[queries, metrics]` of each; 0 if that is by chance."""
    best = int(np.argmax([quality(of_one) for of_one in measured]))
    return FEEDBACK_WEIGHTS[best] if is_better(measured[best], measured[0]) else 0.0
