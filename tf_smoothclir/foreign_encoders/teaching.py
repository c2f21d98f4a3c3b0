"""A foreign encoder as a teacher: judgments for queries that nobody judged.

The teacher's first hit for a query counts as its best document, the more so the further it is ahead
of the second. A translation table that learns from these is better than they are: what the teacher
gets wrong does not repeat, translations do.
"""

from collections.abc import Sequence

import numpy as np
from absl import logging

from tf_smoothclir.data.sources.memory import MemorySource, Streamed
from tf_smoothclir.data.sources.source import SPLITS, Judgment, Source, Text
from tf_smoothclir.data.sources.splits import drawn_places, drawn_splits
from tf_smoothclir.encoder.tokenizer import tokens_of
from tf_smoothclir.foreign_encoders.head import FEWEST_QUERIES, Head
from tf_smoothclir.foreign_encoders.opening import EncodedSet
from tf_smoothclir.protocols.scorer import query_chunks
from tf_smoothclir.utils.errors import input_error

# With fewer validation queries that people judged, queries of the teacher join them.
_FEWEST_VALIDATION_QUERIES = 100
_VALIDATION_SHARE = 0.2  # of the queries of the teacher
_LEAST_WEIGHT = 0.5  # of the least certain hit; that of the most certain one is 1 larger


def taught(source: Source, encoded: EncodedSet, split_seed: int) -> tuple[MemorySource, int]:
    """The set with judgments of a teacher for the queries without any, and how many these are."""
    # Queries that people judged stay as they are, in their splits. The others are for
    # training and validation alone, so a test means what people judged.
    queries, judgments = list(source.queries()), list(source.judgments())
    ids = {judgment.query_id for judgment in judgments}
    judged = [text for text in queries if text.id in ids]
    # A query with the words of a judged one may be a test query under another id.
    known = {tuple(tokens_of(text.text)) for text in judged}
    rows = np.flatnonzero(
        [text.id not in ids and tuple(tokens_of(text.text)) not in known for text in queries]
    )
    if not len(rows):
        raise input_error(
            f"--encoder: {encoded.name}",
            f"all {len(queries)} queries of {source.name} have judgments: there is nothing to"
            " teach",
            "Leave --encoder out, or add queries that nobody judged",
        )
    logging.info(
        f"{encoded.name} teaches: {len(rows)} of {len(queries)} queries have no judgment, nor the"
        " words of one that has"
    )
    document_ids = [text.id for text in source.documents()]
    if not (encoded.queries[rows].any() and encoded.documents.any()):
        reason = "the vectors of all queries, or of all documents, are zero"
        raise input_error(f"--encoder: {encoded.name}", reason, "Check what made them")
    if len(rows) >= FEWEST_QUERIES:
        encoded = Head.of(encoded.queries[rows], encoded.documents, split_seed).over(encoded)
    first_hits, margins = _first_hits(encoded, rows)
    grade = max([1, *(judgment.grade for judgment in judgments)])
    from scipy.stats import rankdata  # here, because loading it takes nearly a second

    # By the rank of each margin among all; of equal ones, the middle.
    weights = _LEAST_WEIGHT + (rankdata(margins) - 0.5) / len(margins)
    labels = [
        Judgment(queries[query].id, document_ids[hit], grade, weight)
        for query, hit, weight in zip(rows, first_hits, weights.round(4).tolist())
    ]
    splits = _splits(source, judged, [queries[row] for row in rows], split_seed)
    languages = source.query_language, source.document_language
    documents = Streamed(source.documents)
    taught_set = MemorySource(queries, documents, [*judgments, *labels], splits, *languages)
    taught_set.name, taught_set.others = f"{source.name}-taught", Streamed(source.metadata)
    return taught_set, len(labels)


def _first_hits(encoded: EncodedSet, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`[queries]` each: the row of the first hit, and how far its score is above the second's."""
    hits, margins = [], []
    for _, some in query_chunks(queries, len(encoded.documents)):
        scores = encoded.queries[some] @ encoded.documents.T
        hits.append(scores.argmax(axis=1))
        first_two = np.partition(scores, -2, axis=1)[:, -2:] if scores.shape[1] > 1 else scores
        margins.append(first_two.max(axis=1) - first_two.min(axis=1))
    return np.concatenate(hits), np.concatenate(margins)


def _splits(
    source: Source, judged: Sequence[Text], of_teacher: Sequence[Text], seed: int
) -> dict[str, str]:
    """Query id -> split, of all queries: people's, and those of the teacher by their texts."""
    splits = source.splits()
    if splits is None:
        places = drawn_splits(judged, seed)
        splits = {text.id: SPLITS[place] for text, place in zip(judged, places)}
    splits = {text.id: splits[text.id] for text in judged if text.id in splits}
    share = _VALIDATION_SHARE
    if sum(split == "validation" for split in splits.values()) >= _FEWEST_VALIDATION_QUERIES:
        share = 0.0
    places = drawn_places(of_teacher, f"taught {seed}")
    validating = places < int(share * len(np.unique(places)))
    return {**{q.id: SPLITS[int(v)] for q, v in zip(of_teacher, validating)}, **splits}
