"""TREC run and qrels files: written as trec_eval and ir-measures read them, read, and measured."""

import dataclasses
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.cells import grade_of, in_file
from tf_smoothclir.data.sources.line_files import read_lines
from tf_smoothclir.evaluation.metrics import named_measures, parsed
from tf_smoothclir.settings.training import COMPARED
from tf_smoothclir.storage.files import write_text
from tf_smoothclir.utils.errors import input_error

PER_QUERY = "per_query.tsv"
_TAG = "tf_smoothclir"  # of the system
MAX_GRADE = 1 << 24  # up to here, float32 holds every integer
# Numbers as C reads them. Python's float also takes 1_0 and the digits of other scripts.
_NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?)", re.IGNORECASE)
Run = Mapping[str, Mapping[str, float]]
Qrels = Mapping[str, Mapping[str, int]]


def write_list_run(
    path: str | os.PathLike, retrieval_set: RetrievalSet, lists: CandidateLists, scores: np.ndarray
) -> None:
    """Writes candidate lists in the order of their `[pairs]` scores."""
    list_of_pair = np.repeat(np.arange(len(lists.query_rows)), np.diff(lists.offsets))
    order = np.lexsort((retrieval_set.tie_order[lists.document_rows], -scores, list_of_pair))
    bounds = lists.offsets[1:-1]
    ranked = (np.split(values[order], bounds) for values in (lists.document_rows, scores))
    write_ranking(path, retrieval_set, lists.query_rows, *ranked)


def write_ranking(path, retrieval_set: RetrievalSet, query_rows, document_rows, scores) -> None:
    """Writes documents and scores of each query, of `Ranking` or of any number for each."""
    query_ids, document_ids = retrieval_set.query_ids, retrieval_set.document_ids
    rankings = (
        (query_ids[query], [document_ids[row] for row in rows], values)
        for query, rows, values in zip(query_rows, document_rows, scores)
    )
    write_run(path, rankings)


def write_run(
    path: str | os.PathLike, rankings: Iterable[tuple[str, Sequence[str], Sequence[float]]]
) -> None:
    """Writes rankings of any system, all of them or, after an error, none."""
    of_queries = []  # one string for each: lines of deep rankings would take much memory
    for query, document_ids, scores in rankings:
        ranked = enumerate(zip(document_ids, _strictly_falling(scores)), start=1)
        lines = (f"{query} Q0 {id_} {rank} {score:.9g} {_TAG}\n" for rank, (id_, score) in ranked)
        of_queries.append("".join(lines))
    write_text(path, "".join(of_queries))


def write_per_query(
    path: str | os.PathLike, query_ids: Sequence[str], per_query: Mapping[str, np.ndarray]
) -> None:
    """Writes a table of the metrics of each query, `[queries]`; empty where it has none."""
    rows = zip(query_ids, *(values.tolist() for values in per_query.values()))
    lines = [
        "\t".join([query, *("" if value != value else f"{value:.6g}" for value in values)])
        for query, *values in rows
    ]
    write_text(path, "\n".join(["\t".join(["query_id", *per_query]), *lines, ""]))


def write_qrels(
    path: str | os.PathLike, retrieval_set: RetrievalSet, lists: CandidateLists
) -> None:
    """Writes the grades of candidate lists; sampled documents have grade 0."""
    query_ids, document_ids = retrieval_set.query_ids, retrieval_set.document_ids
    pairs = lists.pair_query_rows, lists.document_rows, lists.grades
    lines = (
        f"{query_ids[query]} 0 {document_ids[document]} {grade}\n"
        for query, document, grade in zip(*pairs)
    )
    write_text(path, "".join(lines))


def join_files(parts: Sequence[Path], directory: Path) -> None:
    """Writes the files of evaluations of some queries each as those of one of all queries."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in sorted(path.name for path in parts[0].iterdir()):
        first, *others = ((part / name).read_text("utf-8") for part in parts)
        if name == PER_QUERY:  # has a header
            others = [text.partition("\n")[2] for text in others]
        write_text(directory / name, "".join([first, *others]))


def _strictly_falling(scores: np.ndarray) -> np.ndarray:
    """Lowers equal float32 scores by the least step: other tools sort by score alone."""
    scores = np.array(scores, np.float32)
    if (np.diff(scores) < 0).all():
        return scores
    for i in range(1, len(scores)):
        if scores[i] >= scores[i - 1]:
            scores[i] = np.nextafter(scores[i - 1], np.float32(-np.inf))
    return scores


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
    depth: int = 0  # number of documents of the longest ranking


def read_run(path: Path) -> Run:
    """Reads lines `query Q0 document rank score tag`; the score alone decides, not the rank."""
    # As in trec_eval, but for equal scores: it orders them by the id, `named_measures` by its hash.
    run: dict[str, dict[str, float]] = {}
    columns = ("query", "Q0", "document", "rank", "score", "tag")
    for line, (query, _, document, _, score, _) in _read_columns(path, columns):
        if not _NUMBER.fullmatch(score):
            remedy = "Give a number, higher for a better document"
            raise input_error(path, f"score {score!r} is not a number", remedy, line=line)
        _add(run, query, document, float(score), path, line)
    return run


def read_qrels(path: Path) -> Qrels:
    """Reads lines `query iteration document grade`; negative grades are kept."""
    # For most measures they are as 0; for Bpref, such documents are not judged.
    qrels: dict[str, dict[str, int]] = {}
    columns = ("query", "iteration", "document", "grade")
    for line, (query, _, document, text) in _read_columns(path, columns):
        grade = grade_of(text, in_file(path), line)
        if grade > MAX_GRADE:
            reason = f"grade {grade} is beyond {MAX_GRADE}"
            raise input_error(path, reason, "Give a grade such as 0, 1 or 2", line=line)
        _add(qrels, query, document, max(grade, -MAX_GRADE), path, line)
    if highest_grade(qrels) < 1:
        remedy = "Judge at least one document relevant"
        raise input_error(path, "no document has grade 1 or more", remedy)
    return qrels


def highest_grade(qrels: Qrels) -> int:
    """The highest grade of any judgment; the `mr` metrics count the documents with it."""
    return max(max(judged.values()) for judged in qrels.values())


def run_metrics(run: Run, qrels: Qrels, measures: Sequence[str] = ()) -> RunMetrics:
    """Computes `COMPARED`, and further measures by name, of each judged query."""
    # As trec_eval does, but for the order of equal scores.
    # Relevant documents that the run lacks count in the ideal ranking of NDCG and in the divisor of
    # MAP.
    query_ids, names = tuple(sorted(qrels)), dict(zip(measures, measures))
    return RunMetrics(
        query_ids,
        named_measures(names | _compared(highest_grade(qrels)), run, qrels, query_ids),
        missing_queries=len(qrels.keys() - run.keys()),
        unjudged_queries=len(run.keys() - qrels.keys()),
        unjudged_documents=sum(
            len(run[query].keys() - qrels[query].keys()) for query in qrels.keys() & run.keys()
        ),
        depth=max(map(len, run.values()), default=0),
    )


def cutoff(name: str) -> int | None:
    """How many documents a measure of a comparison counts from the top; None for all."""
    return parsed(_compared(1).get(name, name)).params.get("cutoff")


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


def _add(table: dict[str, dict], query: str, document: str, value, path: Path, line: int) -> None:
    of_query = table.setdefault(query, {})
    if document in of_query:
        reason = f"query {query!r} has document {document!r} a second time"
        raise input_error(path, reason, "Keep one of the lines", line=line)
    of_query[sys.intern(document)] = value  # one string object for all queries
