"""The constants and the generalization bound of Liu et al., 2020, section 4.

Source: "Cross-Lingual Document Retrieval with Smooth Learning": Proposition 1, Lemma 2, Theorem 3
and their proofs in the appendix. Norms are Euclidean, those of matrices spectral. Where a statement
of the paper is loose or has a slip, the docstring says so and proves what is computed instead.
Scores and losses have no unit; a step is an SGD step on one pair.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from tf_smoothclir.losses.sosl import SmoothOrdinalSearchLoss


@dataclasses.dataclass(frozen=True)
class Constants:
    """How fast a function and its gradient can change (definitions A.1 and A.2).

    |f(u) - f(v)| <= lipschitz ‖u - v‖ and ‖∇f(u) - ∇f(v)‖ <= smoothness ‖u - v‖.
    """

    lipschitz: float
    smoothness: float


def sosl(thresholds: Sequence[float] | None = None) -> Constants:
    """The constants of SOSL in the score r in [-1, 1], over all grades (Proposition 1).

    |∂SOSL/∂r| = 2 (r - θ_y) above the segment and 2 (θ_{y-1} - r) below it: at most 2 (1 - θ_1) and
    2 (1 + θ_{K-1}), both reached, and below 4 for any thresholds. Its own slope is 0 or 2.
    """
    return Constants(4.0 if thresholds is None else 2 * _largest_excess(thresholds), 2.0)


def sosl_maximum(thresholds: Sequence[float] | None = None) -> float:
    """M, the largest value of SOSL over r in [-1, 1]; 4 without thresholds."""
    return 4.0 if thresholds is None else _largest_excess(thresholds) ** 2


def _largest_excess(thresholds) -> float:
    edges = SmoothOrdinalSearchLoss(thresholds).thresholds
    return max(1 - edges[0], 1 + edges[-1])


def scs_of_paper(epsilon: float) -> float:
    """2/ε, the Lipschitz constant of SCS in one vector that Lemma 2's proof states."""
    return 2 / _positive("epsilon", epsilon)


def scs_gradient_bound(query_norm: float, document_norm: float, epsilon: float) -> float:
    """‖v_d‖ / (‖f_q‖ + ε), which ‖∂r/∂f_q‖ never exceeds; below 1/ε.

    With n = ‖f_q‖, u = f_q / n and v_d = f_d / (‖f_d‖ + ε), the gradient is

        ∂r/∂f_q = (I - n/(n + ε) u uᵀ) v_d / (n + ε),

    and the matrix has the eigenvalues 1 and ε/(n + ε) <= 1. Equality where f_q is orthogonal to f_d
    or zero. The paper adds the two parts by the triangle inequality, hence its factor 2.
    """
    _positive("epsilon", epsilon)
    return document_norm / (document_norm + epsilon) / (query_norm + epsilon)


def scs(epsilon: float) -> Constants:
    """The constants of SCS in both vectors together, (f_q, f_d): 1/ε and 2/ε².

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
    """The constants of tanh(Wᵀm) in the embeddings W, m being the mean one-hot token.

    ‖m‖ <= 1, |tanh'| <= 1 and |tanh''| <= 4/(3 √3), reached at tanh² = 1/3. Two towers that share
    nothing have the same constants together.
    """
    return Constants(1.0, 4 / (3 * math.sqrt(3)))


def compose(outer: Constants, inner: Constants) -> Constants:
    """The constants of outer ∘ inner (lemmas A.1 and A.2).

    ‖∇(g∘f)(u) - ∇(g∘f)(v)‖ <= L_g β_f ‖u - v‖ + L_f β_g ‖f(u) - f(v)‖ and the last norm is at most
    L_f ‖u - v‖: the smoothness is L_g β_f + L_f² β_g. Lemma A.2 has L_f in place of L_f², which
    g(r) = r² after f(x) = 10 x, |x| <= 1, refutes: 100 x² is 200-smooth, not 20.
    """
    return Constants(
        outer.lipschitz * inner.lipschitz,
        outer.lipschitz * inner.smoothness + inner.lipschitz**2 * outer.smoothness,
    )


def model(epsilon: float, thresholds: Sequence[float] | None = None) -> Constants:
    """Α and γ: the constants of SOSL ∘ SCS ∘ towers in all embeddings (Lemma 2)."""
    return compose(compose(sosl(thresholds), scs(epsilon)), average_pooling())


def sgd_stability(
    *, pairs: int, steps: int, step_constant: float, constants: Constants, loss_maximum: float
) -> float:
    """Β(n), the uniform stability of SGD with steps α_t <= c/t (Theorem A.4).

        β = M (1 + 1/(γ c)) / (n - 1) · (2 c L² / M)^(1/(γ c + 1)) · T^(γ c/(γ c + 1))

    Theorem A.4 (Hardt et al., 2015, Theorem 3.8) wants a loss in [0, 1]; SGD on l with c is SGD on
    l/M with M c, which gives the factors M. Its exponent of T is 1 - 1/(γ c + 1); Theorem 3 prints
    1 - 1/(γ c), which would make the bound fall with T for γ c < 1. By the same token T may grow
    like n while the gap closes for γ c < 1, not γ c < 2.
    """
    if pairs < 2 or steps < 1:
        raise ValueError(f"pairs must be >= 2 and steps >= 1, got {pairs!r} and {steps!r}")
    c, maximum = _positive("step_constant", step_constant), _positive("loss_maximum", loss_maximum)
    lipschitz = _positive("constants.lipschitz", constants.lipschitz)
    gamma_c = _positive("constants.smoothness", constants.smoothness) * c
    growth = (2 * c * lipschitz**2 / maximum) ** (1 / (gamma_c + 1))
    return maximum * (1 + 1 / gamma_c) / (pairs - 1) * growth * steps ** (gamma_c / (gamma_c + 1))


def generalization_bound(beta: float, *, pairs: int, loss_maximum: float, delta: float) -> float:
    """What L_E - L_S stays below with probability 1 - δ (Theorem 3).

        2 β(n) + (4 n β(n) + M) sqrt(ln(1/δ) / (2 n))

    L_E is the expected loss of a new pair, L_S the mean loss of the training pairs. The theorem is
    about SGD, not about the paper's own training, which is Adam at a constant learning rate on
    batches.
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
