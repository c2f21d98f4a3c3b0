"""The judgments of a source as rows: checked, or where the source allows it, cleaned."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from absl import logging

from tf_smoothclir.data.sources.source import Judgment, Source
from tf_smoothclir.utils.errors import InputError, input_error


def checked_judgments(
    source: Source, query_row: Mapping[str, int], document_row: Mapping[str, int], num_grades: int
) -> np.ndarray:
    """`[judgments, 3]` int32: query row, document row, grade; sorted by query.

    A negative grade, such as of spam, counts as 0. Up to the share `source.max_skipped` of them,
    judgments of unknown ids are skipped, and of those that repeat each other all but one of the
    highest grade. A warning counts them.
    """
    judged, indices, unknown = _read(source, query_row, document_row, num_grades)
    # Those that repeat each other stand together, the highest grade first.
    order = np.lexsort((-judged[:, 2], judged[:, 1], judged[:, 0]))
    repeats = 1 + np.flatnonzero((np.diff(judged[order, :2], axis=0) == 0).all(axis=1))
    if unknown or repeats.size:
        if unknown:
            example = _unknown_error(source, *unknown[0], query_row, document_row)
        else:
            pair = sorted(indices[row] for row in order[repeats[0] - 1 : repeats[0] + 1])
            example = _repeat_error(source, *pair)
        _skip(source, example, len(repeats), len(unknown), len(judged) + len(unknown))
        judged = np.delete(judged, order[repeats], axis=0)
    if source.is_judged and not (judged[:, 2] > 0).any():
        raise input_error(
            source.name,
            f"no query has a relevant document ({len(judged)} judgments, none of grade 1 or more)",
            "Add judgments with grade 1 or more: training and evaluation need them",
        )
    return judged[np.argsort(judged[:, 0], kind="stable")]


def known_judgments(source: Source) -> list[Judgment]:
    """The judgments of queries and documents that are there; others are skipped as above."""
    ids = [[text.id for text in stream()] for stream in (source.queries, source.documents)]
    rows = ({id_: row for row, id_ in enumerate(own)} for own in ids)
    judged = checked_judgments(source, *rows, num_grades=1 << 31)
    return [Judgment(ids[0][q], ids[1][d], grade) for q, d, grade in judged.tolist()]


def _read(
    source: Source, query_row: Mapping, document_row: Mapping, num_grades: int
) -> tuple[np.ndarray, list[int], list[tuple[int, Judgment]]]:
    """The judgments of known ids as rows, their indices, and the others by index."""
    judged, indices, unknown = [], [], []
    for index, judgment in enumerate(source.judgments()):
        query_id, document_id, grade = judgment
        if query_id not in query_row or document_id not in document_row:
            unknown.append((index, judgment))
            if not source.max_skipped:
                break  # the first one is an error already
            continue
        if grade >= num_grades:
            reason = f"grade {grade} is outside 0..{num_grades - 1}"
            remedy = "Correct it, or give one more of --thresholds for each further grade"
            raise input_error(source.place("judgments", index), reason, remedy)
        judged.append((query_row[query_id], document_row[document_id], max(grade, 0)))
        indices.append(index)
    return np.array(judged, np.int32).reshape(-1, 3), indices, unknown


def _skip(source: Source, example: InputError, repeats: int, unknown: int, total: int) -> None:
    """Warns of what is skipped; raises `example` if it is more than the source allows."""
    if repeats + unknown > source.max_skipped * total:
        if not source.max_skipped:
            raise example
        raise InputError(
            f"{example} There are more such judgments than --max_skipped={source.max_skipped:g}"
            f" allows: {repeats} of {total} repeat another one, {unknown} ({unknown / total:.1%})"
            " name a query or document that is not there."
        )
    logging.warning(
        "%s: skipped %d of %d judgments (%.1f%%): %d repeat another one, %d name a query or"
        " document that is not there. For example: %s",
        source.name,
        repeats + unknown,
        total,
        100 * (repeats + unknown) / total,
        repeats,
        unknown,
        example,
    )


def _unknown_error(
    source: Source, index: int, judgment: Judgment, query_row: Mapping, document_row: Mapping
) -> InputError:
    role, id_, rows = "query", judgment.query_id, query_row
    if id_ in query_row:
        role, id_, rows = "document", judgment.document_id, document_row
    # Ids that several languages have.
    named = [other for other in rows if other.endswith(f":{id_}")]
    return input_error(
        source.place("judgments", index),
        f"the judged {role} {id_!r} is not among the {len(query_row)} queries"
        f" and {len(document_row)} documents",
        f"Call it {' or '.join(named[:3])}" if named else f"Add the {role}, or remove the judgment",
    )


def _repeat_error(source: Source, first: int, second: int) -> InputError:
    reason = f"the same query and document are already judged at {source.place('judgments', first)}"
    return input_error(source.place("judgments", second), reason, "Keep one of the two")
