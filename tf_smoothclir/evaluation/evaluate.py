"""Evaluating a scorer: metrics of a split, predicted grades, files for other tools."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.evaluation import metrics, trec
from tf_smoothclir.evaluation.compare import bootstrap_interval
from tf_smoothclir.evaluation.metrics import DEPTH, depth_for
from tf_smoothclir.protocols.scorer import Ranking, Retriever, Scorer
from tf_smoothclir.protocols.text_search import NEVER_RELEVANT, CutPoints

# The lists of an evaluation are the same for every run, whatever the seed of its training.
NEGATIVES_SEED = 13
_QUERIES_AT_ONCE = 256  # of dicts for `ir_measures`, which take much memory
HITS = 10  # of each query, whose grades are predicted as those of search results
_GRADES = (
    "a predicted grade is the number of cut points below the score; hits, the first"
    f" {HITS} documents of each query in the whole collection, have grade 0 where nobody judged"
    " them, cut points of their own, and a lower grade where they score much lower than the first"
    " one; macro_accuracy counts each grade alike, so it does not depend on how many documents of"
    " grade 0 are sampled"
)


@dataclasses.dataclass(frozen=True)
class Hits:
    """The first documents of each query in the whole collection, best first."""

    scores: np.ndarray  # `[queries, HITS]` float32, fewer for a smaller collection
    grades: np.ndarray  # the same shape, int; 0 where nobody judged
    query_rows: np.ndarray | None = None  # `[queries]` int
    document_rows: np.ndarray | None = None  # the shape of the scores, int
    words: np.ndarray | int = 1  # `[queries]` int, the known words of each

    @classmethod
    def of(cls, ranking: Ranking, retrieval_set: RetrievalSet, retriever: Retriever) -> Self:
        """The first hits of rankings by a retriever."""
        grades = ranking.grades(retrieval_set)[:, :HITS]
        rows = ranking.query_rows, ranking.document_rows[:, :HITS]
        words = retriever.known_words(ranking.query_rows)
        return cls(ranking.scores[:, :HITS], grades, *rows, words)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Metrics and rankings of a split.

    Attributes:
        metrics: Metric -> mean; full retrieval as `full/...`.
        intervals: Metric -> (low, high), 95% bootstrap interval.
        counts: Metric -> number of queries in the mean.
        scores_by_grade: The scores of the candidate lists, one array per grade.
        hits: The first documents of full retrieval; None without it.
        confusion: `[K, K]` counts of the candidate lists, true grade by predicted grade; None as
            long as no grades are predicted.
        query_ids: `[queries]`, whose values `per_query` has.
        per_query: Metric -> `[queries]` float64, NaN where a query has no relevant document.
        languages: Figures by language, of `language_figures`; empty for a set of one.
    """

    metrics: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    counts: dict[str, int]
    scores_by_grade: list[np.ndarray]
    hits: Hits | None = None
    confusion: np.ndarray | None = None
    hit_confusion: np.ndarray | None = None
    query_ids: Sequence[str] = ()
    per_query: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    languages: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of_queries(cls, per_query: dict[str, np.ndarray], **others: Any) -> Self:
        """The means and intervals of the values of queries."""
        return cls(
            metrics=metrics.mean_metrics(per_query),
            intervals={name: bootstrap_interval(v, seed=13) for name, v in per_query.items()},
            counts=metrics.counts(per_query),
            per_query=per_query,
            **others,
        )

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The evaluation of the queries of several, each of which another model ranks."""
        return cls.of_queries(
            {
                name: np.concatenate([part.per_query[name] for part in parts])
                for name in parts[0].per_query
            },
            scores_by_grade=[],
            query_ids=[id_ for part in parts for id_ in part.query_ids],
        )

    def __str__(self):
        return "\n".join(
            f"{name:16} {value:.4f} ({low:.4f} to {high:.4f}), {self.counts[name]:,} queries"
            for (name, value), (low, high) in zip(self.metrics.items(), self.intervals.values())
        )

    def graded(self, cut_points: CutPoints | None) -> Self:
        """An evaluation with predicted grades; itself where none are predicted."""
        if cut_points in (None, NEVER_RELEVANT) or not self.scores_by_grade:
            return self
        num_grades = len(self.scores_by_grade)
        true = np.repeat(np.arange(num_grades), [*map(len, self.scores_by_grade)])
        predicted = cut_points.of_lists(np.concatenate(self.scores_by_grade))
        confusion = metrics.confusion_matrix(true, predicted, num_grades)
        graded = dataclasses.replace(self, confusion=confusion)
        if self.hits is None:
            return graded
        predicted = cut_points.of_hits(self.hits.scores, self.hits.words)
        grades = self.hits.grades.ravel()
        confusion = metrics.confusion_matrix(grades, predicted.ravel(), num_grades)
        return dataclasses.replace(graded, hit_confusion=confusion)

    def grade_metrics(self) -> dict[str, dict[str, float]]:
        """Metrics of the predicted grades of lists and of hits, by name."""
        counts = {"candidate lists": self.confusion, "hits": self.hit_confusion}
        return {name: metrics.grade_metrics(of) for name, of in counts.items() if of is not None}


NOTHING_MEASURED = Evaluation({}, {}, {}, [])  # of a set without judgments


def evaluate_splits(
    retrieval_set: RetrievalSet,
    scorer: Scorer,
    splits: Sequence[str],
    *,
    trec_dir: Path,
    **options: Any,
) -> dict[str, Evaluation]:
    """Evaluates several splits; the files of each go to `trec_dir/<split>/`."""
    return {
        split: evaluate_split(retrieval_set, scorer, split, trec_dir=trec_dir / split, **options)
        for split in splits
    }


def evaluate_split(
    retrieval_set: RetrievalSet,
    scorer: Scorer,
    split: str,
    *,
    negatives: int,
    trec_dir: Path | None = None,
    measures: Sequence[str] = (),
) -> Evaluation:
    """Measures candidate lists and, of a retriever, full retrieval, by `measures` too."""
    depth = depth_for(measures)
    lists = candidate_lists(retrieval_set, split, negatives=negatives, seed=NEGATIVES_SEED)
    ranking, hits, languages = None, None, {}
    if isinstance(scorer, Retriever):
        scores, ranking = scorer.score_and_rank(lists, depth)
    else:
        scores = scorer.score(lists)
    per_query = metrics.list_metrics(retrieval_set, lists, scores)
    if ranking is not None:
        first, further = ranking.cut(DEPTH), _further(retrieval_set, ranking, measures)
        per_query = metrics.retrieval_metrics(retrieval_set, first) | further | per_query
        hits = Hits.of(first, retrieval_set, scorer)
        languages = metrics.language_figures(retrieval_set, first)
    ids = [retrieval_set.query_ids[row] for row in lists.query_rows]
    if trec_dir is not None:
        trec_dir.mkdir(parents=True, exist_ok=True)
        trec.write_list_run(trec_dir / "run.trec", retrieval_set, lists, scores)
        trec.write_qrels(trec_dir / "qrels.trec", retrieval_set, lists)
        trec.write_per_query(trec_dir / trec.PER_QUERY, ids, per_query)
        if ranking is not None:
            rows = ranking.query_rows, ranking.document_rows, ranking.scores
            trec.write_ranking(trec_dir / "full.run.trec", retrieval_set, *rows)
            judged = candidate_lists(retrieval_set, split, negatives=0, seed=NEGATIVES_SEED)
            trec.write_qrels(trec_dir / "full.qrels.trec", retrieval_set, judged)
    return Evaluation.of_queries(
        per_query,
        query_ids=ids,
        scores_by_grade=by_grade(scores, lists.grades, retrieval_set.num_grades),
        hits=hits,
        languages=languages,
    )


def _further(
    retrieval_set: RetrievalSet, ranking: Ranking, measures: Sequence[str]
) -> dict[str, np.ndarray]:
    """`full/` and the name of each of `measures` -> `[queries]` float64, of all that is ranked."""
    if not measures:
        return {}
    names, parts = {f"full/{name}": name for name in measures}, []
    for begin in range(0, len(ranking.query_rows), _QUERIES_AT_ONCE):
        some = slice(begin, begin + _QUERIES_AT_ONCE)
        part = Ranking(*(values[some] for values in vars(ranking).values()))
        run, qrels = run_and_qrels(retrieval_set, part)
        parts.append(metrics.named_measures(names, run, qrels, list(run)))
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def run_and_qrels(
    retrieval_set: RetrievalSet, ranking: Ranking
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """A ranking and the judgments of its queries: query id -> document id -> score, or grade."""
    query_ids, document_ids = retrieval_set.query_ids, retrieval_set.document_ids
    run = {
        query_ids[query]: {document_ids[row]: score for row, score in zip(rows, scores)}
        for query, rows, scores in zip(
            ranking.query_rows, ranking.document_rows, ranking.scores.tolist()
        )
    }
    qrels: dict[str, dict[str, int]] = {query: {} for query in run}
    are_ranked = np.isin(retrieval_set.query_rows, ranking.query_rows)
    judged = retrieval_set.query_rows, retrieval_set.document_rows, retrieval_set.grades
    for query, document, grade in zip(*(values[are_ranked].tolist() for values in judged)):
        qrels[query_ids[query]][document_ids[document]] = grade
    return run, qrels


def by_grade(values: np.ndarray, grades: np.ndarray, num_grades: int) -> list[np.ndarray]:
    """The values of each grade 0..K-1; `values` and `grades` have one shape."""
    return [values[grades == grade] for grade in range(num_grades)]


def metrics_content(
    evaluations: Mapping[str, Evaluation], negatives: int, depth: int = DEPTH
) -> dict:
    """Content of `metrics.json`: means, intervals, counts, rules of evaluations."""
    # Rankings are `depth` documents deep for measures by name.
    has_full = any(name.startswith("full/") for e in evaluations.values() for name in e.metrics)
    graded = {split: e for split, e in evaluations.items() if e.confusion is not None}
    several = {split: e.languages for split, e in evaluations.items() if e.languages}
    return {
        **{split: e.metrics for split, e in evaluations.items()},
        "intervals": {split: e.intervals for split, e in evaluations.items()},
        "counts": {split: e.counts for split, e in evaluations.items()},
        "confusion": {split: e.confusion.tolist() for split, e in graded.items()},
        "grades": {split: e.grade_metrics() for split, e in graded.items()},
        "rules": {
            **rules(negatives, full=has_full, depth=depth),
            **({"grades": _GRADES} if graded else {}),
            **({"languages": metrics.LANGUAGES} if several else {}),
        },
        **({"languages": several} if several else {}),
    }


def rules(negatives: int, *, full: bool = True, depth: int = DEPTH) -> dict[str, str]:
    """Rules of all metrics, for reports; `full` adds those of full retrieval."""
    of_full = (
        f"ranking of the whole collection, {DEPTH} documents deep; nDCG@10: the gain"
        " is the grade; MAP: relevant is grade 1 or more; MRR@10 and Recall: the highest grade"
    ) + f"; further measures: {depth} documents deep" * (depth > DEPTH)
    return {
        **metrics.RULES,
        "lists": f"the judged documents and {negatives} sampled ones of grade 0,"
        f" drawn with seed {NEGATIVES_SEED}",
        **({"full": of_full} if full else {}),
        "intervals": "95% percentile bootstrap over queries, 1,000 resamples",
    }
