"""Choosing the weights of a fusion on validation queries."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence

import numpy as np
from absl import logging

from tf_smoothclir.hybrid.fusion import Fusion
from tf_smoothclir.lexical.feedback import Feedback
from tf_smoothclir.lexical.learning import FEEDBACK_WEIGHTS, feedback_variants
from tf_smoothclir.lexical.retriever import ScoreRows
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.validation import Validation

SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
_BEST_SHARES = 3  # feedback is tried with them


def learn_fusion(texts: LexicalTexts, lexical: ScoreRows, dense: ScoreRows) -> Fusion:
    """Chooses the share of the towers, and the weight of feedback over the sum.

    Feedback is tried with the three shares that are best without it, and with the lexical model
    alone. So no part alone does better on the validation queries.

    Args:
        texts: The set.
        lexical: Scores of the lexical model, without feedback.
        dense: Scores of the towers.

    Returns:
        The fusion of the best mean of NDCG@5 of candidate lists and MRR@10 of full retrieval.
    """
    begin = time.monotonic()
    validation = Validation(texts.retrieval_set)
    start = Fusion(0.0, validation.deviation(lexical), validation.deviation(dense))
    feedback = Feedback.of(texts.vectors, 1.0)

    def fused(shares: Sequence[float], query_rows: np.ndarray) -> Iterator[np.ndarray]:
        scores = lexical(query_rows), dense(query_rows)
        for share in shares:
            yield dataclasses.replace(start, share=share).fused(*scores)

    qualities = validation.of_variants(lambda query_rows: fused(SHARES, query_rows))
    best_first = np.argsort(-np.asarray(qualities), kind="stable")
    shares = sorted({0.0, *(SHARES[place] for place in best_first[:_BEST_SHARES])})
    qualities = validation.of_variants(
        lambda query_rows: (
            variant
            for scores in fused(shares, query_rows)
            for variant in feedback_variants(feedback, scores)
        )
    )
    share, weight = divmod(int(np.argmax(qualities)), len(FEEDBACK_WEIGHTS))
    found = dataclasses.replace(
        start,
        share=shares[share],
        feedback=FEEDBACK_WEIGHTS[weight],
        seconds=round(time.monotonic() - begin, 3),
    )
    logging.info("Hybrid: %s (%.1f s)", found, found.seconds)
    return found
