"""Networks that read query and document together, as loops over words in plain NumPy."""

import math

import numpy as np


def known(ids, table):
    """The words of a text that have a vector."""
    return [i for i in ids if 1 < i < len(table) and np.any(table[i])]


def cosine(x, y):
    return float(np.dot(x, y) / (np.linalg.norm(x) * np.linalg.norm(y)))


def cosines(query, document, queries, documents):
    """Cosines of all pairs of known words, as a list for each query word."""
    words, others = known(query, queries), known(document, documents)
    return [[cosine(queries[i], documents[j]) for j in others] for i in words]


def knrm_features(similarities, kernels):
    return [
        sum(
            math.log(1 + sum(math.exp(-((s - mean) ** 2) / (2 * width**2)) for s in of_word))
            for of_word in similarities
        )
        for mean, width in kernels
    ]


def drmm_counts(of_word, bins=30):
    counts = [0] * bins
    for s in of_word:
        counts[math.floor((s + 1) / 2 * (bins - 1) + 1e-5)] += 1
    return counts


def drmm_score(query, document, queries, documents, weights):
    """DRMM with its weights by name; word vectors have length 1 in the gate."""
    score = 0.0
    words = known(query, queries)
    if not words:
        return score
    of_words = (queries[i] / np.linalg.norm(queries[i]) for i in words)
    powers = [math.exp(weights["gate"][:, 0] @ vector) for vector in of_words]
    for power, of_word in zip(powers, cosines(query, document, queries, documents)):
        logs = np.log1p(drmm_counts(of_word))
        inner = np.tanh(logs @ weights["hidden"] + weights["hidden_bias"])
        score += power * (inner @ weights["output_weight"] + weights["output_bias"])[0]
    return score / sum(powers)


def interaction_map(similarities, kind, eta):
    cell = {
        "cosine": lambda s: s,
        "gaussian": lambda s: math.exp(-(2 - 2 * s)),  # ‖x - y‖² of vectors of length 1
        "exact": lambda s: float(s >= eta),
    }[kind]
    return np.array([[cell(s) for s in of_word] for of_word in similarities])


def convolved(cells, weights, bias):
    """3 x 3 convolution with zeros around the map, then ReLU."""
    n, m = cells.shape
    around = np.zeros((n + 2, m + 2))
    around[1:-1, 1:-1] = cells
    found = np.zeros((n, m, weights.shape[-1]))
    for i in range(n):
        for j in range(m):
            for k in range(weights.shape[-1]):
                patch = around[i : i + 3, j : j + 3]
                found[i, j, k] = max(0.0, (patch * weights[:, :, 0, k]).sum() + bias[k])
    return found


def match_pyramid_score(maps, convolutions, biases, weights, parts=5):
    """MatchPyramid over one map for each channel, none of them empty."""
    features = []
    for cells, kernel, bias in zip(maps, convolutions, biases):
        found = convolved(cells, kernel, bias)
        for part in range(parts):
            begin, end = part * len(cells) / parts, (part + 1) * len(cells) / parts
            features += list(found[math.floor(begin) : math.ceil(end)].max(axis=(0, 1)))
    inner = np.maximum(0, np.array(features) @ weights["hidden"] + weights["hidden_bias"])
    return (inner @ weights["output_weight"] + weights["output_bias"])[0]
