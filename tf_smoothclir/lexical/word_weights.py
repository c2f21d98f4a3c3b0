"""Weights of query words, learned for ranking.

A score is a sum over query words and fields (profiles of positions),

    score(q, d) = Σ_f Σ_w n(w, q) a_f exp(θ_f,w) impact_f(w, d),

and the weights minimise, over training queries with one relevant document d+ and a number of
documents that rank high without being judged,

    Σ_q -log(exp(score(q, d+)) / Σ_d exp(score(q, d))) + λ/2 (Σ θ² + Σ_f log² (a_f / a_f0)),

where a_f0 is where a_f begins. The penalty keeps a word near the weight of its field until many
queries speak for another one, so a few hundred queries do no harm. The table stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.optimize
import scipy.sparse as sp

PENALTY = 10.0
_FIRST_SCALE = 0.3  # of the opening field; scores are sums of logarithms of odds, some too large
_QUERIES_AT_ONCE = 256
_ITERATIONS = 60


def candidate_features(
    queries: sp.csr_array, impacts: sp.csr_array, candidates: np.ndarray
) -> sp.csr_array:
    """Features of candidates: what each query word adds to the score of each.

    Args:
        queries: `[queries, words]`, counts.
        impacts: `[documents, words]`.
        candidates: `[queries, candidates]` int, document rows.

    Returns:
        `[queries * candidates, words]` float32, the candidates of a query one after the other.
    """
    parts = []
    for begin in range(0, len(candidates), _QUERIES_AT_ONCE):
        rows = candidates[begin : begin + _QUERIES_AT_ONCE]
        repeated = np.repeat(np.arange(begin, begin + len(rows)), rows.shape[1])
        parts.append(impacts[rows.ravel()].multiply(queries[repeated]).tocsr())
    return sp.csr_array(sp.vstack(parts, format="csr"))


def learn_word_weights(
    features: Sequence[sp.csr_array], candidates: int, penalty: float = PENALTY
) -> np.ndarray:
    """Learns `[fields, words]` float64: a_f exp(θ_f,w), or a_f for words of no training query."""
    fields, words = len(features), features[0].shape[1]
    used = np.flatnonzero(sum(np.diff(field.tocsc().indptr) for field in features))
    joined = sp.csr_array(sp.hstack([field[:, used] for field in features], format="csr"))
    starts = np.log([_FIRST_SCALE * 0.1**field for field in range(fields)])

    def weights_of(parameters: np.ndarray) -> np.ndarray:
        scales, own = parameters[:fields], parameters[fields:].reshape(fields, len(used))
        return np.exp(starts[:, None] + scales[:, None] + own)

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        weights = weights_of(parameters)
        # In the type of the features, or each product would copy them.
        scores = joined @ weights.ravel().astype(joined.dtype)
        scores = scores.reshape(-1, candidates).astype(float)
        scores -= scores.max(axis=1, keepdims=True)
        odds = np.exp(scores)
        totals = odds.sum(axis=1, keepdims=True)
        value = np.sum(np.log(totals[:, 0]) - scores[:, 0]) + penalty / 2 * parameters @ parameters
        errors = odds / totals
        errors[:, 0] -= 1
        slopes = joined.T @ errors.ravel().astype(joined.dtype)
        slopes = slopes.reshape(weights.shape) * weights
        slope = np.concatenate([slopes.sum(axis=1), slopes.ravel()])
        return value, slope + penalty * parameters

    found = scipy.optimize.minimize(
        loss,
        np.zeros(fields * (1 + len(used))),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _ITERATIONS},
    ).x
    result = np.repeat(np.exp(starts + found[:fields])[:, None], words, axis=1)
    result[:, used] = weights_of(found)
    return result
