"""Documents that rank high for a training query without being judged, beside its mates."""

import numpy as np

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.lexical.postings import Postings, highest
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.training_pairs import Pairs
from tf_smoothclir.protocols.scorer import query_chunks


def hard_candidates(
    texts: LexicalTexts, mates: Pairs, postings: Postings, number: int
) -> np.ndarray:
    """`[pairs, 1 + number]` rows of `postings`, of each document the best passage."""
    # The first one is of the mate, the others are of the best documents that nobody judged.
    queries, documents = mates
    candidates = np.empty((len(queries), 1 + number), np.int64)
    for _, chunk in query_chunks(np.unique(queries), postings.rows):
        of_rows = postings.of_queries(texts.queries[chunk])
        scores = np.stack(list(map(postings.best, of_rows)))
        top = unjudged_top(scores, texts.retrieval_set, chunk, number)
        for pair in np.flatnonzero(np.isin(queries, chunk)):
            place = np.searchsorted(chunk, queries[pair])
            of_pair = np.append(documents[pair], top[place])
            candidates[pair] = postings.best_rows(of_rows[place], of_pair)
    return candidates


def unjudged_top(
    scores: np.ndarray, retrieval_set: RetrievalSet, query_rows: np.ndarray, number: int
) -> np.ndarray:
    """The best documents of sorted queries that nobody judged, `[queries, number]` in no order."""
    # In `scores`, `[queries, documents]` float32, those of judged documents are lost.
    judged = np.isin(retrieval_set.query_rows, query_rows)
    places = np.searchsorted(query_rows, retrieval_set.query_rows[judged])
    scores[places, retrieval_set.document_rows[judged]] = -np.inf
    best = (highest(row, number) for row in scores)  # and all that equal the last
    return np.stack([rows[np.argsort(-row[rows])[:number]] for row, rows in zip(scores, best)])
