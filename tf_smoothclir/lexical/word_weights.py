"""Weights of query words, learned for ranking.

A score is a sum over query words and fields (profiles of positions),

    score(q, d) = Σ_f Σ_w n(w, q) a_f exp(θ_f,w) impact_f(w, d),

and the weights minimise, over training queries with one relevant document d+ and a number of
documents that rank high without being judged,

    Σ_q -log(exp(score(q, d+)) / Σ_d exp(score(q, d))) + λ/2 (Σ θ² + Σ_f log² (a_f / a_f0)),

where a_f0 is where a_f begins. The penalty keeps a word near the weight of its field until many
queries speak for another one, so a few hundred queries do no harm. The table stays as it is.
"""

import functools
from collections.abc import Sequence

import numpy as np
import scipy.optimize

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.lexical.postings import Postings, highest
from tf_smoothclir.lexical.sparse_tables import entry_rows
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.training_pairs import Pairs
from tf_smoothclir.protocols.scorer import query_chunks
from tf_smoothclir.utils import sparse as sp
from tf_smoothclir.utils.parallel import map_in_threads

PENALTY = 10.0
_FIRST_SCALE = 0.3  # of the opening field; scores are sums of logarithms of odds, some too large
_ITERATIONS = 60
_QUERIES_AT_ONCE = 500  # of one thread


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


def candidate_features(
    queries: sp.csr_array, impacts: sp.csr_array, candidates: np.ndarray
) -> np.ndarray:
    """What query words add to scores of candidates, `[words of all queries, candidates]`."""
    # float32, in the order of the data of `queries`. Candidates are rows of impacts.
    by_word, rows = impacts.tocsc(), entry_rows(queries)
    features = np.empty((len(rows), candidates.shape[1]), np.float32)
    order = np.argsort(queries.indices, kind="stable")
    words, begins = np.unique(queries.indices[order], return_index=True)
    of_word = np.zeros(impacts.shape[0], np.float32)
    for word, places in zip(words, np.split(order, begins[1:])):
        entries = slice(*by_word.indptr[word : word + 2])
        of_word[by_word.indices[entries]] = by_word.data[entries]
        features[places] = of_word[candidates[rows[places]]]
        of_word[by_word.indices[entries]] = 0
    features *= queries.data[:, None]
    return features


def learn_word_weights(
    queries: sp.csr_array,
    features: Sequence[np.ndarray],
    penalty: float = PENALTY,
    former: np.ndarray | None = None,
    is_new: np.ndarray | None = None,
) -> np.ndarray:
    """Learns `[fields, words]` float64: a_f exp(θ_f,w), or a_f for words of no training query."""
    # `features` of each field are those of `candidate_features`, the relevant document first. Words
    # that are new begin at the `former` weights, `[fields, words]`; others stay.
    fields, (used, words) = len(features), np.unique(queries.indices, return_inverse=True)
    ends, of_parts = queries.indptr, range(0, queries.shape[0], _QUERIES_AT_ONCE)
    parts = [slice(begin, min(begin + _QUERIES_AT_ONCE, len(ends) - 1)) for begin in of_parts]
    if former is None:
        starts = np.log([[_FIRST_SCALE * 0.1**field] for field in range(fields)])
        starts, moves = np.repeat(starts, queries.shape[1], axis=1), 1
    else:
        # A sign of no query counted nothing. Where new ones have it, it begins like padding.
        former = np.where(is_new & (former == 0), former[:, :1], former).astype(float)
        with np.errstate(divide="ignore"):  # other such signs stay at 0
            starts = np.log(former)
        moves = np.append(np.zeros(fields), np.tile(is_new[used], fields))

    def weights_of(parameters: np.ndarray) -> np.ndarray:
        scales, of_words = parameters[:fields], parameters[fields:].reshape(fields, len(used))
        return np.exp(starts[:, used] + scales[:, None] + of_words)

    def of_part(of_entries: np.ndarray, part: slice) -> tuple[np.ndarray, list[np.ndarray]]:
        """Losses of some queries, and their slopes by the weight of each of their words."""
        entries = slice(ends[part.start], ends[part.stop])
        numbers = np.arange(entries.stop - entries.start)
        own_ends, scores = ends[part.start : part.stop + 1] - entries.start, 0.0
        own_features = [field[entries] for field in features]
        shape = len(own_ends) - 1, len(numbers)
        for field, of_field in zip(own_features, of_entries[:, entries]):
            sums_of_words = sp.csr_array((of_field, numbers, own_ends), shape=shape)
            scores = scores + (sums_of_words @ field).astype(float)
        scores -= scores.max(axis=1, keepdims=True)
        odds = np.exp(scores)
        totals = odds.sum(axis=1, keepdims=True)
        errors = odds / totals
        errors[:, 0] -= 1
        errors = np.repeat(errors.astype(np.float32), np.diff(own_ends), axis=0)
        slopes = [np.einsum("wc,wc->w", field, errors) for field in own_features]
        return np.log(totals[:, 0]) - scores[:, 0], slopes

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        weights = weights_of(parameters)
        of_entries = weights.astype(np.float32)[:, words]
        losses, slopes = zip(*map_in_threads(functools.partial(of_part, of_entries), parts))
        value = np.sum(np.concatenate(losses)) + penalty / 2 * parameters @ parameters
        of_fields = map(np.concatenate, zip(*slopes))
        slopes = weights * [np.bincount(words, of_field, len(used)) for of_field in of_fields]
        slope = np.concatenate([slopes.sum(axis=1), slopes.ravel()])
        return value, (slope + penalty * parameters) * moves

    best = scipy.optimize.minimize(
        loss,
        np.zeros(fields * (1 + len(used))),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _ITERATIONS},
    ).x
    result = np.exp(starts + best[:fields, None])
    result[:, used] = weights_of(best)
    return result
