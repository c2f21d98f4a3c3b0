"""The constants and the bound of Liu et al., 2020, section 4, and a search for what breaks them.

Source: "Cross-Lingual Document Retrieval with Smooth Learning": Proposition 1, Lemma 2, Theorem 3
and their proofs in the appendix. Norms are Euclidean, those of matrices spectral. Where a statement
there is loose or slips, the docstring here says so and proves what is computed instead. Scores and
losses have no unit; steps are SGD steps of one pair.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from tf_smoothclir.evaluation.report import markdown_table
from tf_smoothclir.losses.ordinal import SmoothOrdinalSearchLoss
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity
from tf_smoothclir.utils.files import write_text

# SCS depends on inner products alone: a rotation turns the three vectors that one check compares,
# two queries and a document, into three dimensions. What is found there is there in all 64.
_DIM = 3
_DELTA = 0.05
_SEED = 0


@dataclasses.dataclass(frozen=True)
class Constants:
    """How fast a function and its gradient change (definitions A.1 and A.2).

    |f(u) - f(v)| <= lipschitz ‖u - v‖ and ‖∇f(u) - ∇f(v)‖ <= smoothness ‖u - v‖.
    """

    lipschitz: float
    smoothness: float


def sosl(thresholds: Sequence[float] | None = None) -> Constants:
    """Returns the constants of SOSL in the score r in [-1, 1], over all grades (Proposition 1).

    |∂SOSL/∂r| = 2 (r - θ_y) above the segment and 2 (θ_{y-1} - r) below it: at most 2 (1 - θ_1) and
    2 (1 + θ_{K-1}), both reached, and below 4 for any thresholds. Its own slope is 0 or 2.

    Args:
        thresholds: θ_1 < ... < θ_{K-1}; None for the 4 of all thresholds.

    Raises:
        ValueError: `thresholds` cannot be used.
    """
    return Constants(4.0 if thresholds is None else 2 * _largest_excess(thresholds), 2.0)


def sosl_maximum(thresholds: Sequence[float] | None = None) -> float:
    """Returns M, the largest value of SOSL over r in [-1, 1]; 4 without thresholds."""
    return 4.0 if thresholds is None else _largest_excess(thresholds) ** 2


def _largest_excess(thresholds) -> float:
    edges = SmoothOrdinalSearchLoss(thresholds).thresholds
    return max(1 - edges[0], 1 + edges[-1])


def scs_of_paper(epsilon: float) -> float:
    """Returns 2/ε, the Lipschitz constant of SCS in one vector that Lemma 2's proof states."""
    return 2 / _positive("epsilon", epsilon)


def scs_gradient_bound(query_norm: float, document_norm: float, epsilon: float) -> float:
    """Returns ‖v_d‖ / (‖f_q‖ + ε), which ‖∂r/∂f_q‖ never exceeds; below 1/ε.

    With n = ‖f_q‖, u = f_q / n and v_d = f_d / (‖f_d‖ + ε), the gradient is

        ∂r/∂f_q = (I - n/(n + ε) u uᵀ) v_d / (n + ε),

    and the matrix has the eigenvalues 1 and ε/(n + ε) <= 1. Equality where f_q is orthogonal to f_d
    or zero. The paper adds the two parts by the triangle inequality, hence its factor 2.
    """
    _positive("epsilon", epsilon)
    return document_norm / (document_norm + epsilon) / (query_norm + epsilon)


def scs(epsilon: float) -> Constants:
    """Returns the constants of SCS in both vectors together, (f_q, f_d): 1/ε and 2/ε².

    Write a = ε/(‖f_q‖ + ε) and b = ε/(‖f_d‖ + ε), both in (0, 1]. By `scs_gradient_bound`,
    ε² ‖∇r‖² <= a² (1 - b)² + b² (1 - a)², convex in a and in b, so at most 1, its largest corner.
    With c = v_d·u and w = v_d - c u, the Hessian in f_q is

        -(a/ε)² (2 a c u uᵀ + u wᵀ + w uᵀ + c (I - u uᵀ)),

    of norm at most 2 (a/ε)² ‖v_d‖ = 2 a² (1 - b)/ε²; the mixed block has norm at most a b/ε². The
    row sums of those norms, 2 a² (1 - b) + a b <= 2 - b and its mirror, bound the whole: 2/ε². The
    gradient is continuous at zero vectors, so the bound holds across them. Both are approached for
    f_q → 0 and ‖f_d‖ → ∞. The paper's N(p)/ε² leaves N open; so N = 2, whatever p.
    """
    _positive("epsilon", epsilon)
    return Constants(1 / epsilon, 2 / epsilon**2)


def average_pooling() -> Constants:
    """Returns the constants of tanh(Wᵀm), m the mean of one-hot tokens, in the embeddings W.

    ‖m‖ <= 1, |tanh'| <= 1 and |tanh''| <= 4/(3 √3), the latter at tanh² = 1/3. Two towers that
    share nothing have the same constants together.
    """
    return Constants(1.0, 4 / (3 * math.sqrt(3)))


def compose(outer: Constants, inner: Constants) -> Constants:
    """Returns the constants of outer ∘ inner (lemmas A.1 and A.2).

    ‖∇(g∘f)(u) - ∇(g∘f)(v)‖ <= L_g β_f ‖u - v‖ + L_f β_g ‖f(u) - f(v)‖ and the last norm is at most
    L_f ‖u - v‖: the smoothness is L_g β_f + L_f² β_g. Lemma A.2 has L_f in place of L_f², which
    g(r) = r² after f(x) = 10 x, |x| <= 1, refutes: 100 x² is 200-smooth, not 20.
    """
    return Constants(
        outer.lipschitz * inner.lipschitz,
        outer.lipschitz * inner.smoothness + inner.lipschitz**2 * outer.smoothness,
    )


def model(epsilon: float, thresholds: Sequence[float] | None = None) -> Constants:
    """Returns α and γ, those of SOSL ∘ SCS ∘ towers in all embeddings (Lemma 2)."""
    return compose(compose(sosl(thresholds), scs(epsilon)), average_pooling())


def sgd_stability(
    *, pairs: int, steps: int, step_constant: float, constants: Constants, loss_maximum: float
) -> float:
    """Returns β(n), the uniform stability of SGD with steps α_t <= c/t (Theorem A.4).

        β = M (1 + 1/(γ c)) / (n - 1) · (2 c L² / M)^(1/(γ c + 1)) · T^(γ c/(γ c + 1))

    Theorem A.4 (Hardt et al., 2015, Theorem 3.8) wants a loss in [0, 1]; SGD on l with c is SGD on
    l/M with M c, which gives the factors M. Its exponent of T is 1 - 1/(γ c + 1); Theorem 3 prints
    1 - 1/(γ c), which would make the bound fall with T for γ c < 1. By the same token T may grow
    like n while the gap closes for γ c < 1, not γ c < 2.

    Args:
        pairs: n, training pairs, at least 2.
        steps: T, SGD steps of one pair, at least 1.
        step_constant: c > 0, step size times step number.
        constants: L and γ of the loss in the parameters; both > 0.
        loss_maximum: M > 0, what the loss never exceeds.

    Raises:
        ValueError: An argument is outside its range.
    """
    if pairs < 2 or steps < 1:
        raise ValueError(f"pairs must be >= 2 and steps >= 1, got {pairs!r} and {steps!r}")
    c, maximum = _positive("step_constant", step_constant), _positive("loss_maximum", loss_maximum)
    lipschitz = _positive("constants.lipschitz", constants.lipschitz)
    gamma_c = _positive("constants.smoothness", constants.smoothness) * c
    growth = (2 * c * lipschitz**2 / maximum) ** (1 / (gamma_c + 1))
    return maximum * (1 + 1 / gamma_c) / (pairs - 1) * growth * steps ** (gamma_c / (gamma_c + 1))


def generalization_bound(beta: float, *, pairs: int, loss_maximum: float, delta: float) -> float:
    """Returns what L_E - L_S stays below with probability 1 - δ (Theorem 3).

        2 β(n) + (4 n β(n) + M) sqrt(ln(1/δ) / (2 n))

    L_E is the expected loss of a new pair, L_S the mean loss of the training pairs. The paper's own
    training, Adam at a constant rate on batches, is not the SGD of the theorem.

    Args:
        beta: β(n), from `sgd_stability` for Theorem 3.
        pairs: n, training pairs.
        loss_maximum: M > 0, what the loss never exceeds.
        delta: δ in (0, 1).

    Raises:
        ValueError: An argument is outside its range.
    """
    if pairs < 1 or not 0 < delta < 1:
        raise ValueError(f"pairs must be >= 1 and 0 < delta < 1, got {pairs!r} and {delta!r}")
    deviation = math.sqrt(math.log(1 / delta) / (2 * pairs))
    weight = 4 * pairs * beta + _positive("loss_maximum", loss_maximum)
    return 2 * beta + weight * deviation


def _positive(argument: str, value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{argument} must be finite and > 0, got {value!r}")
    return float(value)


def found_constants(functions: Sequence[Callable], inputs: Callable, size: int) -> Constants:
    """Returns the largest slope and the largest change of slope that a search finds.

    Random points first, then ever closer around the best. What it finds is attained, so that a
    bound below it is refuted; there may be larger ones. `inputs` turns normal numbers
    `[points, size]` into points `[points, dim]` of the domain, and each of the functions, the
    largest of which counts, those into values `[points]`, all float64.
    """
    found = [_search(function, inputs, size) for function in functions]
    return Constants(max(slope for slope, _ in found), max(bend for _, bend in found))


def _search(function, inputs, size) -> tuple[float, float]:
    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None, None], tf.float64)])
    def gradients(points):
        return tf.gradients(function(points), points)[0]

    def bends(points):
        steps = points[:, size:] ** 3  # many of them small
        first, second = inputs(points[:, :size]), inputs(points[:, :size] + steps)
        distances = _norms(first - second)
        changes = _norms(gradients(first) - gradients(second))
        # Closer points would measure rounding.
        return np.where(distances > 1e-4, changes / np.maximum(distances, 1e-4), 0)

    slope = _largest(lambda points: _norms(gradients(inputs(points))), size)
    return slope, _largest(bends, 2 * size)


def _largest(objective, size) -> float:
    rng = np.random.default_rng(_SEED)
    points = rng.normal(size=(2048, size))
    for spread in 0.9 ** np.arange(60):
        best = points[np.argsort(objective(points))[-32:]]
        points = np.concatenate([best, *(best + spread * rng.normal(size=(8, *best.shape)))])
    return float(objective(points).max())


def _vectors(coordinates: np.ndarray) -> np.ndarray:
    """Returns vectors of any direction, of norms around 1 and far from it on both sides."""
    directions = coordinates[:, :-1] / _norms(coordinates[:, :-1])[:, None]
    return directions * np.exp(np.clip(3 * coordinates[:, -1:], -25, 25))


def _norms(vectors) -> np.ndarray:
    return np.linalg.norm(vectors, axis=-1)


def _losses(thresholds: Sequence[float]) -> list[Callable]:
    loss = SmoothOrdinalSearchLoss(thresholds, reduction="none")
    return [
        lambda scores, grade=grade: loss(tf.fill(tf.shape(scores), grade), scores)
        for grade in range(loss.num_grades)
    ]


def found_in_sosl(thresholds: Sequence[float]) -> Constants:
    """Returns what a search finds for `sosl`, over all grades."""
    by_grade = [lambda r, loss=loss: loss(r[:, 0]) for loss in _losses(thresholds)]
    return found_constants(by_grade, lambda points: np.clip(points, -1, 1), 1)


def found_in_scs(epsilon: float, thresholds: Sequence[float] = (), tower=False) -> Constants:
    """Returns what a search over one vector finds, the other long: of [SOSL ∘] SCS [∘ tanh]."""
    layer = SmoothCosineSimilarity(epsilon, dtype="float64")
    other = tf.constant([[1e6 * epsilon] + [0.0] * (_DIM - 1)], tf.float64)

    def similarity(vectors):
        vectors = tf.tanh(vectors) if tower else vectors
        return layer([vectors, tf.repeat(other, tf.shape(vectors)[0], axis=0)])

    losses = _losses(thresholds) if thresholds else [tf.identity]
    by_grade = [lambda x, loss=loss: loss(similarity(x)) for loss in losses]
    return found_constants(by_grade, _vectors, _DIM + 1)


def found_in_sgd(epsilon: float, thresholds: Sequence[float], sgd: dict) -> tuple[float, float]:
    """Returns stability and gap of SGD on toy data: 8 queries, 8 documents, random grades.

    The stability is how far one other training pair moves the mean loss, over 100 orders, of any
    pair; the gap is what L_E - L_S exceeds in 5% of 100 draws of training pairs. `sgd` has the
    pairs, steps and step_constant of `sgd_stability`.
    """
    rng = np.random.default_rng(_SEED)
    grades = rng.integers(len(thresholds) + 1, size=64)
    one, drawn = rng.integers(64, size=sgd["pairs"]), rng.integers(64, size=(100, sgd["pairs"]))
    other = np.r_[(one[0] + 1) % 64, one[1:]]
    pairs = np.concatenate([np.tile(one, (100, 1)), np.tile(other, (100, 1)), drawn])
    orders = np.tile(rng.integers(sgd["pairs"], size=(100, sgd["steps"])), (3, 1))
    layer = SmoothCosineSimilarity(epsilon, dtype="float64")
    loss = SmoothOrdinalSearchLoss(thresholds, reduction="none")

    def losses(weights, chosen):
        queries, documents = tf.unstack(tf.tanh(weights), axis=1)
        queries = tf.reshape(tf.gather(queries, chosen // 8, batch_dims=1), [-1, _DIM])
        documents = tf.reshape(tf.gather(documents, chosen % 8, batch_dims=1), [-1, _DIM])
        values = loss(tf.reshape(tf.gather(grades, chosen), [-1]), layer([queries, documents]))
        return tf.reshape(values, tf.shape(chosen))

    @tf.function(autograph=False)
    def gradients(weights, chosen):
        return tf.gradients(losses(weights, chosen), weights)[0]

    weights = tf.tile(tf.constant(rng.normal(size=(1, 2, 8, _DIM))), [len(pairs), 1, 1, 1])
    for step, order in enumerate(orders.T, start=1):
        chosen = tf.constant(np.take_along_axis(pairs, order[:, None], 1))
        weights -= sgd["step_constant"] / step * gradients(weights, chosen)
    everywhere = losses(weights, np.tile(np.arange(64), (len(pairs), 1))).numpy()
    gaps = everywhere.mean(axis=1) - np.take_along_axis(everywhere, pairs, 1).mean(axis=1)
    moved = everywhere[:100].mean(axis=0) - everywhere[100:200].mean(axis=0)
    return float(np.abs(moved).max()), float(np.quantile(gaps[200:], 1 - _DELTA))


def _rows(epsilon, thresholds) -> list[tuple[str, str, float, float]]:
    """Returns (constant, formula, bound, largest found) of each line of the table."""
    loss, scores, maximum = sosl(thresholds), scs(epsilon), sosl_maximum(thresholds)
    composed, whole, tower = compose(loss, scores), model(epsilon, thresholds), average_pooling()
    edge, in_loss = found_in_sosl((-0.999, 0.999)), found_in_sosl(thresholds)
    in_scores, in_composed = found_in_scs(epsilon), found_in_scs(epsilon, thresholds)
    in_whole = found_in_scs(epsilon, thresholds, tower=True)
    in_tower = found_constants([lambda x: tf.tanh(x[:, 0])], lambda points: points, 1)
    sgd = {"pairs": 50, "steps": 100, "step_constant": 0.1}
    stability, gap = found_in_sgd(epsilon, thresholds, sgd)
    beta = sgd_stability(**sgd, constants=whole, loss_maximum=maximum)
    bound = generalization_bound(beta, pairs=50, loss_maximum=maximum, delta=_DELTA)
    smoothness, theorem = "L_l (β_s + L_s β_t) + L_s² β_l", "2β + (4nβ+M) √(ln(1/δ)/2n), δ=0.05"
    return [
        ("SOSL slope, any θ (Prop. 1)", "4", sosl().lipschitz, edge.lipschitz),
        ("SOSL slope L_l", "2 max(1-θ_1, 1+θ_{K-1})", loss.lipschitz, in_loss.lipschitz),
        ("SOSL smoothness β_l (Prop. 1)", "2", loss.smoothness, in_loss.smoothness),
        ("SCS slope (Lemma 2)", "2/ε", scs_of_paper(epsilon), in_scores.lipschitz),
        ("SCS slope L_s, ours", "1/ε", scores.lipschitz, in_scores.lipschitz),
        ("SCS smoothness β_s, ours", "2/ε²", scores.smoothness, in_scores.smoothness),
        ("tower smoothness β_t", "4/(3√3)", tower.smoothness, in_tower.smoothness),
        ("SOSL∘SCS slope", "L_l L_s", composed.lipschitz, in_composed.lipschitz),
        ("SOSL∘SCS smoothness", "L_l β_s + L_s² β_l", composed.smoothness, in_composed.smoothness),
        ("model slope α", "L_l L_s", whole.lipschitz, in_whole.lipschitz),
        ("model smoothness γ", smoothness, whole.smoothness, in_whole.smoothness),
        ("stability, toy SGD (Theorem A.4)", "β(n), n=50, T=100, c=0.1", beta, stability),
        ("gap, toy SGD (Theorem 3)", theorem, bound, gap),
    ]


def write_table(output_dir: str | os.PathLike, epsilon: float = 1.0, thresholds=(0.2, 0.7)) -> dict:
    """Writes theory.md and theory.csv; returns {"columns": [...], "rows": [[cell, ...], ...]}."""
    columns = ["constant", "formula", "bound", "largest found", "holds"]
    rows = []
    for name, formula, bound, found in _rows(epsilon, thresholds):
        holds = found <= bound * (1 + 1e-6)  # found as differences of rounded gradients
        rows.append([name, formula, f"{bound:.6g}", f"{found:.6g}", "yes" if holds else "NO"])
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    write_text(Path(output_dir) / "theory.csv", text.getvalue())
    write_text(Path(output_dir) / "theory.md", markdown_table(columns, rows))
    return {"columns": columns, "rows": rows}
