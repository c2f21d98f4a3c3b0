"""The paper's seven ranking metrics, per query (Liu et al. 2020, section 5).

Ties never favour a relevant document: equal scores are ordered by a hash of the document id.
"""

import collections
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tf_smoothclir._compat.lists import list_metric
from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.protocols.scorer import Ranking
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.utils.errors import input_error

DEPTH = 100  # documents per query that are measured, and ranked unless a measure asks for more
COLLECTION_METRICS = ("nDCG@10", "MRR@10", "Recall@100", "MAP", "Recall@10", "Recall@1")
RULES = {
    "gain": "NDCG gain is the grade itself (linear), discount log2(1 + rank)",
    "relevance": "mr: the highest grade; r, MAP: grade 1 or more; P_mr@5: a document of the highest"
    " grade is among the first five; P_r@5: share of the first five places",
    "ties": "equal scores are ordered by a hash of the document id, never by file order or grade",
    "left_out": "a query without a relevant document is left out of a metric; counts gives the"
    " number of queries that each metric is the mean of",
}
LANGUAGES = (
    f"all: the first {DEPTH} documents of the ranking of all languages; a document language: those"
    " of them that are in it, as if there were no others; a query language: its queries alone."
    f" MRR@10: the highest grade; MAP, R@{DEPTH} (recall_{DEPTH} of trec_eval): grade 1 or more;"
    " nDCG@20: the gain is the grade."
    " first ten: the share of a language in the first ten places; relevant: its share of the"
    " documents of grade 1 or more"
)
_FIRST, _CUT = 10, 20


def ranked_grades(
    scores: np.ndarray, grades: np.ndarray, offsets: np.ndarray, tie_order: np.ndarray
) -> np.ndarray:
    """`[lists, longest]` int32: the grades of `[pairs]`, best score first, then zeros."""
    # Of equal scores, the smaller of `tie_order`, `[pairs]`, comes first; NaN has no place in an
    # order.
    if np.isnan(scores).any():
        remedy = "Look for NaN in the model, or in the vectors of the encoder"
        raise input_error("scores", f"{np.isnan(scores).sum()} of {len(scores)} are NaN", remedy)
    lengths = np.diff(offsets)
    list_of_pair = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((tie_order, -scores, list_of_pair))
    ranked = np.zeros((len(lengths), max(lengths, default=0)), np.int32)
    rank = np.arange(len(scores)) - offsets[list_of_pair]  # sorting leaves each list in its place
    ranked[list_of_pair, rank] = grades[order]
    return ranked


def ranked_metric(name: str, ranked: np.ndarray, topn: int | None = None) -> np.ndarray:
    """`[lists]` float32: "ndcg", "average_precision" or "reciprocal_rank" of `ranked_grades`."""
    if not ranked.size:  # keras-rs fails on it
        return np.zeros(len(ranked), np.float32)
    return np.asarray(list_metric(name, ranked.astype(np.float32), topn))


def per_query_metrics(ranked: np.ndarray, num_grades: int) -> dict[str, np.ndarray]:
    """Metric -> `[lists]` float64 of `ranked_grades`; NaN where a list has no relevant document."""
    # Precision is computed here: tensorflow-ranking divides by the length of a list shorter than k.
    best, relevant = ranked == num_grades - 1, ranked >= 1
    values = {
        "P_mr@1": best[:, :1].sum(axis=1),
        "P_mr@5": best[:, :5].any(axis=1),
        "P_r@5": relevant[:, :5].sum(axis=1) / 5,
        "NDCG@5": ranked_metric("ndcg", ranked, 5),
        "MAP": ranked_metric("average_precision", ranked),
        "MRR_mr": ranked_metric("reciprocal_rank", best),
        "MRR_r": ranked_metric("reciprocal_rank", ranked),
    }
    needs_best = {"P_mr@1", "P_mr@5", "MRR_mr"}
    counted = {name: (best if name in needs_best else relevant).any(axis=1) for name in METRICS}
    return {
        name: np.where(counted[name], values[name], np.nan).astype(np.float64) for name in METRICS
    }


def list_metrics(
    retrieval_set: RetrievalSet, lists: CandidateLists, scores: np.ndarray
) -> dict[str, np.ndarray]:
    """The seven metrics of the `[pairs]` scores of candidate lists; see `per_query_metrics`."""
    ties = retrieval_set.tie_order[lists.document_rows]
    ranked = ranked_grades(scores, lists.grades, lists.offsets, ties)
    return per_query_metrics(ranked, retrieval_set.num_grades)


def retrieval_metrics(retrieval_set: RetrievalSet, ranking: Ranking) -> dict[str, np.ndarray]:
    """`collection_metrics` of a ranking, by `full/` and the name of each."""
    judged = np.isin(retrieval_set.query_rows, ranking.query_rows)
    queries = np.searchsorted(ranking.query_rows, retrieval_set.query_rows[judged])
    ideal = grades_by_query(queries, retrieval_set.grades[judged], len(ranking.query_rows))
    values = collection_metrics(ranking.grades(retrieval_set), ideal, retrieval_set.num_grades - 1)
    return {f"full/{name}": value for name, value in values.items()}


def grades_by_query(queries: np.ndarray, grades: np.ndarray, num_queries: int) -> np.ndarray:
    """`[number, most]` int32: the grades of ascending queries, the highest first, then zeros."""
    offsets = np.searchsorted(queries, np.arange(num_queries + 1))
    return ranked_grades(grades, grades, offsets, np.zeros(len(grades)))


def collection_metrics(
    ranked: np.ndarray, ideal: np.ndarray, best: int, cut: int = 10
) -> dict[str, np.ndarray]:
    """`[queries]` float64 of ranked `[queries, depth]` and of all judged grades, falling."""
    # `[queries]` float64; NaN without a document of the best grade, in nDCG (at `cut`) and MAP of
    # any grade from 1 on.
    is_best, relevant = ranked == best, ranked > 0
    mates, all_relevant = (
        np.where(known > 0, known, np.nan)
        for known in ((ideal == best).sum(axis=1), (ideal > 0).sum(axis=1))
    )
    top = is_best[:, :10]
    first = np.where(top.any(axis=1), top.argmax(axis=1) + 1.0, np.inf)
    precision = np.cumsum(relevant, axis=1) / np.arange(1, ranked.shape[1] + 1)
    gain, most = (
        (grades[:, :cut] / np.log2(np.arange(2, grades[:, :cut].shape[1] + 2))).sum(axis=1)
        for grades in (ranked, ideal)
    )
    return {
        f"nDCG@{cut}": gain / np.where(most > 0, most, np.nan),
        "MRR@10": np.where(np.isnan(mates), np.nan, 1.0 / first),
        "Recall@100": is_best[:, :100].sum(axis=1) / mates,
        "MAP": (precision * relevant).sum(axis=1) / all_relevant,
        "Recall@10": top.sum(axis=1) / mates,
        "Recall@1": is_best[:, :1].sum(axis=1) / mates,
    }


def mean_metrics(per_query: dict[str, np.ndarray]) -> dict[str, float]:
    """Metric name -> mean over the queries that have it; 0 where none has."""
    return {
        name: float(np.nanmean(values)) if np.isfinite(values).any() else 0.0
        for name, values in per_query.items()
    }


def counts(per_query: dict[str, np.ndarray]) -> dict[str, int]:
    """Metric name -> number of queries in its mean."""
    return {name: int(np.isfinite(values).sum()) for name, values in per_query.items()}


def confusion_matrix(grades: np.ndarray, predicted: np.ndarray, num_grades: int) -> np.ndarray:
    """Pairs counted as `[K, K]` int64: a row for each true, a column for each predicted grade."""
    cells = np.bincount(grades * num_grades + predicted, minlength=num_grades**2)
    return cells.reshape(num_grades, num_grades)


def grade_metrics(confusion: np.ndarray) -> dict[str, float]:
    """Accuracy, macro accuracy and quadratic kappa of predicted grades."""
    true, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
    right, occurs = np.diagonal(confusion), true > 0
    grades = np.arange(len(confusion))
    distances = np.square(grades[:, None] - grades)
    by_chance = (distances * np.outer(true, predicted)).sum() / true.sum()
    disagreement = (distances * confusion).sum() / by_chance if by_chance else 1.0
    return {
        "accuracy": float(right.sum() / true.sum()),
        "macro_accuracy": float(np.mean(right[occurs] / true[occurs])),
        "quadratic_kappa": float(1 - disagreement),
    }


def named_measures(
    names: Mapping[str, str],
    run: Mapping[str, Mapping[str, float]],
    qrels: Mapping[str, Mapping[str, int]],
    query_ids: Sequence[str],
) -> dict[str, np.ndarray]:
    """Our name -> `[queries]` float64, by names for `ir_measures`; 0 for queries not in `run`."""
    # NaN stands for a query without a document that is relevant for the measure. Equal scores are
    # ordered by the hash of the id.
    import ir_measures  # here, because searches need none of it

    ours, values = collections.defaultdict(list), {}
    best = np.array([max(qrels[query].values(), default=0) for query in query_ids])
    for name, theirs in names.items():
        measure = parsed(theirs)
        ours[measure].append(name)
        values[name] = np.where(best < measure.params.get("rel", 1), np.nan, 0.0)
    if not names:  # ir_measures fails without any
        return values
    places = {query: place for place, query in enumerate(query_ids)}
    judged = {query: dict(qrels[query]) for query in query_ids if qrels[query]}
    ranked = {query: _by_rank(scores) for query, scores in run.items() if query in judged}
    for calculated in ir_measures.iter_calc(list(ours), judged, ranked):
        for name in ours[calculated.measure]:
            values[name][places[calculated.query_id]] += calculated.value  # NaN stays
    return values


def parsed(name: str):
    """The measure of `ir_measures` that has a name, if it can be computed here."""
    import ir_measures

    where, remedy = f"--measures={name}", "Give names such as nDCG@10,RR"
    try:
        measure = ir_measures.parse_measure(name)
        is_computed = ir_measures.DefaultPipeline.supports(measure)
    except Exception as error:  # of several kinds, by its parser
        raise input_error(where, "ir_measures has no such measure", remedy) from error
    if measure.params.get("cutoff", 1) < 1:  # trec_eval ends the process
        raise input_error(where, "it counts no document", "Give a cutoff of 1 or more")
    if not is_computed:
        reason = "ir_measures has no library here that computes it from a run and qrels"
        raise input_error(where, reason, remedy)
    return measure


def depth_for(names: Iterable[str]) -> int:
    """Documents per query that rankings need for our metrics and for measures of these names."""
    return max([DEPTH, *(parsed(name).params.get("cutoff", 0) for name in names)])


def _by_rank(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores of the same order without ties, which other tools break by the id."""
    documents = list(scores)
    order = np.lexsort((hash_ids(documents), -np.array(list(scores.values()), np.float64)))
    return {documents[place]: float(-rank) for rank, place in enumerate(order)}


def language_figures(retrieval_set: RetrievalSet, ranking: Ranking) -> dict[str, dict[str, float]]:
    """Row of a table -> column -> figure; rows: "all" and each language of several, else none."""
    of_documents, of_queries = retrieval_set.document_languages, retrieval_set.query_languages
    if max(len(of_documents.codes), len(of_queries.codes)) < 2:
        return {}
    judged = np.isin(retrieval_set.query_rows, ranking.query_rows)
    queries = np.searchsorted(ranking.query_rows, retrieval_set.query_rows[judged])
    documents, grades = retrieval_set.document_rows[judged], retrieval_set.grades[judged]
    ranked = ranking.grades(retrieval_set)
    there = of_documents.rows[ranking.document_rows]
    relevant = of_documents.rows[documents[grades > 0]]

    def figures(languages: np.ndarray, rows: np.ndarray) -> dict[str, float]:
        """Means over some queries of documents of some languages."""
        counted = np.isin(of_documents.rows[documents], languages)
        ideal = grades_by_query(queries[counted], grades[counted], len(ranked))
        # What is of other languages leaves the ranking; the others keep their order.
        kept = np.isin(there, languages)
        order = np.argsort(~kept, axis=1, kind="stable")
        closed_up = np.take_along_axis(np.where(kept, ranked, 0), order, axis=1)
        per_query = collection_metrics(closed_up, ideal, retrieval_set.num_grades - 1, cut=_CUT)
        relevant_ones = (ideal > 0).sum(axis=1)
        of_relevant = (closed_up > 0).sum(axis=1) / np.where(
            relevant_ones > 0, relevant_ones, np.nan
        )
        per_query = {name: per_query[name] for name in ("MRR@10", f"nDCG@{_CUT}", "MAP")}
        per_query[f"R@{DEPTH}"] = of_relevant
        means = {name: values[rows] for name, values in per_query.items()}
        return {"queries": counts(means)["MAP"], **mean_metrics(means)}

    everything = np.arange(len(of_documents.codes)), np.arange(len(ranked))
    table = {"all": figures(*everything)}
    if len(of_documents.codes) > 1:
        for language, code in enumerate(of_documents.codes):
            table[f"documents {code or 'unknown'}"] = {
                **figures(np.array([language]), everything[1]),
                "first ten": float(np.mean(there[:, :_FIRST] == language)),
                "relevant": float(np.mean(relevant == language)),
            }
    if len(of_queries.codes) > 1:
        for language, code in enumerate(of_queries.codes):
            rows = np.flatnonzero(of_queries.rows[ranking.query_rows] == language)
            table[f"queries {code or 'unknown'}"] = figures(everything[0], rows)
    return table
