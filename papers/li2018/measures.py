"""What the tables of Li and Cheng 2018 measure: MAP over the collection, and a view without mates.

Their MON has human queries in the language of the documents. Where a set has none, a document's
best query in its own language is the mate of a query, its translation. It would find itself, so in
this view the mate is taken out of every ranking, and documents of lower grades alone are relevant.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.evaluation.metrics import DEPTH
from tf_smoothclir.evaluation.trec_files import read_qrels, read_run, run_metrics
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.papers.laboratory.plan import StudySet
from tf_smoothclir.papers.laboratory.system_metrics import SPLIT, SystemMetrics
from tf_smoothclir.papers.laboratory.translated.model import human_queries
from tf_smoothclir.papers.laboratory.translated.rankers import Bm25, collection_of
from tf_smoothclir.protocols.scorer import Ranking, RowRetriever
from tf_smoothclir.training.run_data import retrieval_set_of
from tf_smoothclir.utils.errors import InputError

MAP, LIST_MAP, FULL_MRR, GRADE_1 = "MAP, collection", "MAP, lists", "MRR@10, collection", "grade 1"
COLUMNS = (MAP, LIST_MAP, FULL_MRR, GRADE_1)


def measures_of(system: SystemMetrics) -> dict[str, np.ndarray]:
    """Measure -> `[queries]`, means over the seeds of each test query; NaN for undefined.

    MAP over the collection is that of the first 100 documents.
    """
    of_seeds = [_of_files(cell.trec_files) for cell in system.cells]
    return {name: np.mean([one[name] for one in of_seeds], axis=0) for name in COLUMNS}


def seed_means(system: SystemMetrics) -> np.ndarray:
    """The MAP over the collection of each seed, `[seeds]`."""
    return np.array([np.nanmean(_of_files(cell.trec_files)[MAP]) for cell in system.cells])


def monolingual_measures(study_set: StudySet) -> tuple[dict[str, np.ndarray], bool]:
    """What BM25 with k1 = 1.2 and b = 0.75 reaches in the language of the documents.

    Returns:
        Measure -> `[queries]`, and whether the queries are those that people translated. Where
        there are none, they are the mates, and there is nothing but `GRADE_1`.
    """
    settings = study_set.settings
    retrieval_set = retrieval_set_of(source_of(settings.data), settings, SPLITS)
    tokenized_set = tokenize_set(retrieval_set, settings.text, settings.data.cache_dir)
    texts = LexicalTexts(tokenized_set, settings.text.max_query_tokens)
    rows = retrieval_set.queries_in(SPLIT)
    grades = _judgments(retrieval_set, rows)
    translated = _has_translated(retrieval_set)
    bags = (
        human_queries(texts) if translated else collection_of(texts).counts[_mates(retrieval_set)]
    )
    scores = Bm25()(collection_of(texts)).rows(bags)
    ranking = Ranking.joined(RowRetriever(scores, retrieval_set.tie_order).rank(rows, DEPTH + 1))
    run = {
        retrieval_set.query_ids[row]: {
            retrieval_set.document_ids[document]: float(-place)
            for place, document in enumerate(documents)
        }
        for row, documents in zip(ranking.query_rows, ranking.document_rows)
    }
    found = {GRADE_1: _without_mates(run, grades)}
    if translated:
        cut = {query: dict(list(of.items())[:DEPTH]) for query, of in run.items()}
        found |= _of_collection(cut, grades)
    return found, translated


def _of_files(trec_files) -> dict[str, np.ndarray]:
    run, qrels = (reader(path) for reader, path in zip((read_run, read_qrels), trec_files(SPLIT)))
    full, full_qrels = (
        reader(path) for reader, path in zip((read_run, read_qrels), trec_files(SPLIT, full=True))
    )
    return {
        LIST_MAP: run_metrics(run, qrels).per_query["MAP"],
        GRADE_1: _without_mates(full, full_qrels),
        **_of_collection(full, full_qrels),
    }


def _of_collection(run: Mapping, qrels: Mapping) -> dict[str, np.ndarray]:
    per_query = run_metrics(run, qrels).per_query
    reciprocal = per_query["MRR_mr"]
    # Below rank 10 nothing counts; float32 rounds 1/10.
    return {MAP: per_query["MAP"], FULL_MRR: np.where(reciprocal < 1 / 10.5, 0, reciprocal)}


def _without_mates(run: Mapping, qrels: Mapping) -> np.ndarray:
    """Average precisions after the documents of the highest grade are taken out."""
    highest = max((grade for of in qrels.values() for grade in of.values()), default=1)
    kept = {
        query: {
            document: score
            for document, score in run.get(query, {}).items()
            if judged.get(document, 0) < highest
        }
        for query, judged in qrels.items()
    }
    lower = {
        query: {document: int(0 < grade < highest) for document, grade in judged.items()}
        for query, judged in qrels.items()
    }
    return run_metrics(kept, lower).per_query["MAP"]


def _judgments(retrieval_set: RetrievalSet, rows: np.ndarray) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {retrieval_set.query_ids[row]: {} for row in rows}
    for query, document, grade in zip(
        retrieval_set.query_rows, retrieval_set.document_rows, retrieval_set.grades
    ):
        judged = found.get(retrieval_set.query_ids[query])
        if judged is not None:
            judged[retrieval_set.document_ids[document]] = int(grade)
    return found


def _mates(retrieval_set: RetrievalSet) -> np.ndarray:
    """`[queries]`, a document of the highest grade of each query; the first without one."""
    found = np.zeros(len(retrieval_set.query_ids), np.int64)
    best = retrieval_set.grades == retrieval_set.num_grades - 1
    found[retrieval_set.query_rows[best]] = retrieval_set.document_rows[best]
    return found


def _has_translated(retrieval_set: RetrievalSet) -> bool:
    try:
        return next(retrieval_set.source.translated_queries(), None) is not None
    except InputError:
        return False
