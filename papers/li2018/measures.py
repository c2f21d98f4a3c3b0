"""What the tables of Li and Cheng 2018 measure: MAP over the collection, and a view without mates.

Their MON has human queries in the language of the documents. Where a set has none, a document's
best query in its own language is the mate of a query, its translation. It would find itself, so in
this view the mate is taken out of every ranking, and documents of lower grades alone are relevant.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import scipy.sparse as sp
from absl import logging

from tf_smoothclir.data.sources.columns import TITLED_TEXTS
from tf_smoothclir.data.sources.tables import read_table
from tf_smoothclir.data.sources.wikiclir_files import WikiClirDirectory
from tf_smoothclir.evaluation.evaluate import run_and_qrels
from tf_smoothclir.evaluation.metrics import DEPTH
from tf_smoothclir.evaluation.trec import read_qrels, read_run, run_metrics
from tf_smoothclir.lexical.text_reader import TextReader
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.papers.laboratory.cells import opened_set
from tf_smoothclir.papers.laboratory.experiment import Study
from tf_smoothclir.papers.laboratory.system_metrics import SPLIT, SystemMetrics
from tf_smoothclir.papers.laboratory.translated import Bm25, collection_of
from tf_smoothclir.protocols.scorer import Ranking, RowRetriever

MAP, LIST_MAP, FULL_MRR, GRADE_1 = "MAP, collection", "MAP, lists", "MRR@10, collection", "grade 1"
COLUMNS = (MAP, LIST_MAP, FULL_MRR, GRADE_1)


@dataclasses.dataclass(frozen=True)
class Measured:
    """A system by the measures of the paper; NaN where one is not defined for a query."""

    system: SystemMetrics
    per_query: dict[str, np.ndarray]  # measure -> `[queries]`, means over the seeds

    def mean(self, measure: str) -> float:
        """The mean over the queries."""
        return float(np.nanmean(self.per_query[measure]))


def measured(system: SystemMetrics) -> Measured:
    """The measures of a system; MAP over the collection is that of the first 100 documents."""
    of_seeds = []
    for cell in system.cells:
        lists, full = (
            (read_run(run), read_qrels(qrels))
            for run, qrels in (cell.trec_files(SPLIT), cell.trec_files(SPLIT, full=True))
        )
        of_lists = {LIST_MAP: run_metrics(*lists).per_query["MAP"]}
        of_seeds.append({**of_lists, GRADE_1: _without_mates(*full), **_of_collection(*full)})
    return _measured(system.name, system.cells, of_seeds)


def _measured(name: str, cells, of_seeds: Sequence[dict[str, np.ndarray]]) -> Measured:
    seeds = {
        measure: np.stack([of_seed[measure] for of_seed in of_seeds]) for measure in of_seeds[0]
    }
    means = {measure: np.nanmean(of, axis=1) for measure, of in seeds.items()}
    queries = {measure: int(np.isfinite(of[0]).sum()) for measure, of in seeds.items()}
    per_query = {measure: np.mean(of, axis=0) for measure, of in seeds.items()}
    return Measured(SystemMetrics(name, cells, means, queries), per_query)


def monolingual(name: str, study: Study) -> tuple[Measured, bool]:
    """BM25 (k1 = 1.2, b = 0.75) in the documents' language, and whether people translated."""
    # Else the queries are the mates, and there is nothing but `GRADE_1`.
    texts = LexicalTexts(opened_set(study.settings), study.settings.text.max_query_tokens)
    retrieval_set, collection = texts.retrieval_set, collection_of(texts)
    if (translated := _translated_queries(texts)) is None:
        # A document of the highest grade of each query; the first of all for one without.
        mates = np.zeros(len(retrieval_set.query_ids), np.int64)
        best = retrieval_set.grades == retrieval_set.num_grades - 1
        mates[retrieval_set.query_rows[best]] = retrieval_set.document_rows[best]
    bags = collection.counts[mates] if translated is None else translated
    retriever = RowRetriever(Bm25()(collection).rows(bags), retrieval_set.tie_order)
    ranking = Ranking.joined(retriever.rank(retrieval_set.queries_in(SPLIT), DEPTH + 1))
    run, grades = run_and_qrels(retrieval_set, ranking)
    measured = {GRADE_1: _without_mates(run, grades)}
    if translated is not None:
        cut = {query: dict(list(of.items())[:DEPTH]) for query, of in run.items()}
        measured |= _of_collection(cut, grades)
    return _measured(name, (), [measured]), translated is not None


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


def _translated_queries(texts: LexicalTexts) -> sp.csr_array | None:
    """The set's own translations, `[queries, document words]`, on which nothing is trained."""
    source, ids = texts.retrieval_set.source, texts.retrieval_set.query_ids
    if not isinstance(source, WikiClirDirectory):
        return None
    path = source.files["documents"][0].with_name(f"wiki_{source.document_language}.queries")
    if not path.is_file():
        return None
    translated = {id_: text for _, (id_, text, *_) in read_table(path, TITLED_TEXTS)}
    if missing := sum(id_ not in translated for id_ in ids):
        logging.warning("%s: %d queries have no translation", source.name, missing)
    reader = TextReader(texts.vocabulary_dir, "document", texts.max_query_tokens)
    return reader.words(translated.get(id_, "") for id_ in ids).matrix() if translated else None
