"""What a slow reader of the formulas computes: losses, similarities, metrics, towers."""

import math

import numpy as np

PADDING = -1


def norm(vector) -> float:
    """‖x‖, by `math.hypot`, which scales by itself."""
    return math.hypot(*map(float, vector))


def smooth_normalize(vector, epsilon: float) -> np.ndarray:
    """x / (‖x‖ + ε); zero for the zero vector."""
    length = norm(vector) + epsilon
    return np.array([float(entry) / length if length else 0.0 for entry in vector])


def smooth_cosine(query, document, epsilon: float) -> float:
    """Liu et al., 2020, eq. 1."""
    pairs = zip(smooth_normalize(query, epsilon), smooth_normalize(document, epsilon))
    return math.fsum(a * b for a, b in pairs)


def smooth_cosine_gradient(query, document, epsilon: float) -> np.ndarray:
    """∂r/∂f_q as in appendix A.1: v_d / (‖f_q‖+ε) - r f_q / ((‖f_q‖+ε) ‖f_q‖); v_d / ε at 0."""
    length = norm(query)
    gradient = smooth_normalize(document, epsilon) / (length + epsilon)
    if length:
        direction = np.array([float(entry) / length for entry in query])
        score = smooth_cosine(query, document, epsilon)
        gradient = gradient - score * direction / (length + epsilon)
    return gradient


def segment(grade: int, thresholds) -> tuple[float, float]:
    """(θ_{y-1}, θ_y) for y = grade + 1, with θ_0 = -1 and θ_K = 1."""
    edges = [-1.0, *thresholds, 1.0]
    return edges[grade], edges[grade + 1]


def sosl(score: float, grade: int, thresholds) -> float:
    """Liu et al., 2020, eq. 2."""
    low, high = segment(grade, thresholds)
    if score > high:
        return (high - score) ** 2
    if score < low:
        return (score - low) ** 2
    return 0.0


def mse(score: float, grade: int, thresholds) -> float:
    """Squared distance to the middle of the segment."""
    low, high = segment(grade, thresholds)
    return (score - (low + high) / 2) ** 2


def proportional_odds(score: float, grade: int, thresholds) -> float:
    """-log σ(θ_y - r) - log(1 - σ(θ_{y-1} - r)), as it stands."""
    edges = [-1, *thresholds, 1]
    upper, lower = (1 / (1 + math.exp(score - edge)) for edge in (edges[grade + 1], edges[grade]))
    return -math.log(upper) - math.log(1 - lower)


def cumulative_logits(score: float, grade: int, thresholds, temperature: float = 1.0) -> float:
    """-log(σ((θ_y - r) / T) - σ((θ_{y-1} - r) / T)), the difference taken as it stands."""
    edges = [-math.inf, *thresholds, math.inf]
    upper = sigmoid((edges[grade + 1] - score) / temperature)
    lower = sigmoid((edges[grade] - score) / temperature)
    return -math.log(upper - lower)


def three_part_l2(score: float, grade: int, cut_points=(0.2, 0.55, 0.9)) -> float:
    """Nigam et al., 2019."""
    if grade < 2:
        return max(0.0, score - cut_points[grade]) ** 2
    return max(0.0, cut_points[2] - score) ** 2


def mean_loss(loss, labels, scores, weights=None) -> float:
    """Weighted sum of `loss(score, grade)` over the real labels, divided by their number."""
    total, real = 0.0, 0
    labels, scores = np.asarray(labels), np.asarray(scores)
    weights = np.ones(scores.shape) if weights is None else np.asarray(weights)
    for index in np.ndindex(scores.shape):
        if labels[index] != PADDING:
            total += weights[index] * loss(float(scores[index]), int(labels[index]))
            real += 1
    return total / real if real else 0.0


def softmax(scores, grades) -> float:
    """-Σ_i g_i log(exp(s_i) / Σ_j exp(s_j))."""
    log_sum = math.log(math.fsum(map(math.exp, scores)))
    return -sum(grade * (s - log_sum) for s, grade in zip(scores, grades))


def ordinal_softmax(scores, grades, weight=0.1) -> float:
    """Σ_i w^(highest - g_i) log(1 + Σ_j exp(s_j - s_i)), g_i > 0, j of lower grades."""
    total = 0.0
    for s, grade in zip(scores, grades):
        if grade > 0:
            odds = sum(math.exp(t - s) for t, other in zip(scores, grades) if other < grade)
            total += weight ** (max(grades) - grade) * math.log1p(odds)
    return total


def cnn(words, filters, biases, kernel, bias, as_published=False) -> np.ndarray:
    """DSSM-CNN of one text; as published, windows lie inside it and there is no tanh at the end.

    Words `[tokens, dim]`, filters `[3 * dim, filters]` of windows, kernel `[filters, dim]`.
    """
    words = np.asarray(words, "f8")
    if not len(words):
        return np.zeros(len(bias))
    edge = np.zeros(words.shape[1])
    words = [*words, *([edge] * (3 - len(words)))] if as_published else [edge, *words, edge]
    windows = [np.concatenate(words[start : start + 3]) for start in range(len(words) - 2)]
    responses = [np.tanh(window @ np.asarray(filters, "f8") + biases) for window in windows]
    vector = np.max(responses, axis=0) @ np.asarray(kernel, "f8") + bias
    return vector if as_published else np.tanh(vector)


def bidirectional_lstm(words, forward, backward, kernel, bias, as_published=False) -> np.ndarray:
    """DSSM-LSTM of one text; `forward` and `backward` are the weights that `lstm` takes.

    As published, both states are read at the first word.
    """
    if not len(words):
        return np.zeros(len(bias))
    read = words[:1] if as_published else words
    states = [lstm(read, *forward), lstm(words[::-1], *backward)]
    return np.tanh(np.concatenate(states) @ np.asarray(kernel, "f8") + bias)


def lstm(words, kernel, recurrent_kernel, bias) -> np.ndarray:
    """Last state of an LSTM (Hochreiter and Schmidhuber 1997, with forget gates), gates i f c o."""
    units = len(bias) // 4
    state, cell = np.zeros(units), np.zeros(units)
    for word in np.asarray(words, "f8"):
        gates = word @ np.asarray(kernel, "f8") + state @ np.asarray(recurrent_kernel, "f8") + bias
        entrance, forget, candidate, exit_ = np.split(gates, 4)
        cell = sigmoid(forget) * cell + sigmoid(entrance) * np.tanh(candidate)
        state = sigmoid(exit_) * np.tanh(cell)
    return state


def sigmoid(x):
    return 1 / (1 + np.exp(-x))
