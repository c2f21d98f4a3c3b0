"""TREC run and qrels files of any system: reading them, and the metrics of a run."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.data.sources.cells import grade_of, in_file
from tf_smoothclir.data.sources.line_files import read_lines
from tf_smoothclir.evaluation.named_measures import named_measures
from tf_smoothclir.settings.training import COMPARED
from tf_smoothclir.utils.errors import input_error

MAX_GRADE = 1 << 24  # up to here, float32 holds every integer
# Numbers as C reads them. Python's float also takes 1_0 and the digits of other scripts.
_NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?)", re.IGNORECASE)

Run = Mapping[str, Mapping[str, float]]
Qrels = Mapping[str, Mapping[str, int]]


@dataclasses.dataclass(frozen=True)
class RunMetrics:
    """The metrics of a run by the judgments of some qrels."""

    query_ids: tuple[str, ...]
    # Metric -> `[queries]` float64, NaN where the query has no relevant document.
    per_query: dict[str, np.ndarray]
    missing_queries: int  # number of judged queries that the run does not answer; they score 0
    unjudged_queries: int  # number of queries of the run without judgments; they are left out
    # Number of documents without a judgment in the counted rankings; they have grade 0.
    unjudged_documents: int


def read_run(path: Path) -> Run:
    """Reads the lines `query Q0 document rank score tag` of a TREC run.

    Spaces or tabs separate the columns. The score alone decides: the rank is ignored, as in
    trec_eval.
    """
    run: dict[str, dict[str, float]] = {}
    columns = ("query", "Q0", "document", "rank", "score", "tag")
    for line, (query, _, document, _, score, _) in _read_columns(path, columns):
        _add(run, query, document, _checked_score(score, path, line), path, line)
    return run


def read_qrels(path: Path) -> Qrels:
    """Reads lines `query iteration document grade`; as in trec_eval, negative grades count as 0."""
    qrels: dict[str, dict[str, int]] = {}
    columns = ("query", "iteration", "document", "grade")
    for line, (query, _, document, text) in _read_columns(path, columns):
        grade = grade_of(text, in_file(path), line)
        if grade > MAX_GRADE:
            reason = f"grade {grade} is beyond {MAX_GRADE}"
            raise input_error(path, reason, "Give a grade such as 0, 1 or 2", line=line)
        _add(qrels, query, document, max(grade, 0), path, line)
    if highest_grade(qrels) < 1:
        remedy = "Judge at least one document relevant"
        raise input_error(path, "no document has grade 1 or more", remedy)
    return qrels


def highest_grade(qrels: Qrels) -> int:
    """The highest grade of any judgment; the `mr` metrics count the documents with it."""
    return max(max(judged.values()) for judged in qrels.values())


def run_metrics(run: Run, qrels: Qrels, measures: Sequence[str] = ()) -> RunMetrics:
    """Computes `COMPARED`, and further measures by name, of each judged query as trec_eval does.

    Relevant documents that the run lacks count as not retrieved, in the ideal ranking of NDCG and
    in the divisor of MAP. Equal scores are ordered by the hash of the document id.
    """
    query_ids, names = tuple(sorted(qrels)), dict(zip(measures, measures))
    return RunMetrics(
        query_ids,
        named_measures(names | _compared(highest_grade(qrels)), run, qrels, query_ids),
        missing_queries=len(qrels.keys() - run.keys()),
        unjudged_queries=len(run.keys() - qrels.keys()),
        unjudged_documents=sum(
            len(run[query].keys() - qrels[query].keys()) for query in qrels.keys() & run.keys()
        ),
    )


def _compared(best: int) -> dict[str, str]:
    """The names of `COMPARED` for `ir_measures`, in a set of this highest grade."""
    rel = f"(rel={max(best, 1)})"
    names = ("nDCG@10", f"RR{rel}@10", f"R{rel}@100", f"P{rel}@1", f"Success{rel}@5", "P@5")
    return dict(zip(COMPARED, (*names, "nDCG@5", "AP", f"RR{rel}", "RR")))


def _read_columns(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    for line, text in read_lines(path):
        fields = text.split()
        if len(fields) != len(columns):
            reason = f"{len(fields)} columns instead of {len(columns)} ({' '.join(columns)})"
            remedy = "Put one space or tab between columns, and none into an id"
            raise input_error(path, reason, remedy, line=line)
        yield line, fields


def _checked_score(text: str, path: Path, line: int) -> float:
    if not _NUMBER.fullmatch(text):
        remedy = "Give a number, higher for a better document"
        raise input_error(path, f"score {text!r} is not a number", remedy, line=line)
    return float(text)


def _add(table: dict[str, dict], query: str, document: str, value, path: Path, line: int) -> None:
    of_query = table.setdefault(query, {})
    if document in of_query:
        reason = f"query {query!r} has document {document!r} a second time"
        raise input_error(path, reason, "Keep one of the lines", line=line)
    of_query[sys.intern(document)] = value  # one string object for all queries
