"""The seven metrics, one list at a time in plain Python, from their definitions.

Each function takes the grades of one candidate list, best first. None means that the query
does not count.
"""

import math


def ranking(scores, grades, tie_order) -> list[int]:
    """Returns the grades, the highest score first; among equal scores the lower tie_order."""
    places = sorted(range(len(scores)), key=lambda i: (-scores[i], tie_order[i]))
    return [grades[i] for i in places]


def seven_metrics(grades: list[int], num_grades: int) -> dict[str, float | None]:
    """Returns metric name -> value of one ranked list."""
    best = [grade == num_grades - 1 for grade in grades]
    relevant = [grade >= 1 for grade in grades]
    return {
        "P_mr@1": float(best[0]) if any(best) else None,
        "P_mr@5": float(any(best[:5])) if any(best) else None,
        "P_r@5": sum(relevant[:5]) / 5 if any(relevant) else None,
        "NDCG@5": dcg(grades, 5) / dcg(sorted(grades)[::-1], 5) if any(relevant) else None,
        "MAP": average_precision(relevant),
        "MRR_mr": reciprocal_rank(best),
        "MRR_r": reciprocal_rank(relevant),
    }


def dcg(grades: list[int], depth: int) -> float:
    """Returns the discounted cumulative gain; the gain is the grade."""
    return sum(grade / math.log2(1 + rank) for rank, grade in enumerate(grades[:depth], start=1))


def average_precision(relevant: list[bool]) -> float | None:
    """Returns the mean, over the relevant documents, of the precision at their ranks."""
    ranks = [rank for rank, yes in enumerate(relevant, start=1) if yes]
    if not ranks:
        return None
    return sum(found / rank for found, rank in enumerate(ranks, start=1)) / len(ranks)


def reciprocal_rank(relevant: list[bool]) -> float | None:
    """Returns 1 / rank of the first relevant document."""
    return 1 / (1 + relevant.index(True)) if any(relevant) else None
