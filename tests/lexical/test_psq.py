"""PSQ against the formula, word by word, and against package fast-psq where it is installed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from tests.lexical.helpers import counts, shares
from tf_smoothclir.lexical.psq import PsqSettings, background, impacts

TABLE = np.array([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0.75, 0.25], [0, 0, 0, 0.5]])
SPELLING = np.array([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]])


def test_background_counts_unseen_words_a_little():
    found = background(counts([2, 2, 3], size=5))
    # 2.1 + 1.1 of words that occur, and room of 0.1 for each of these two.
    assert found == pytest.approx(np.array([0.1, 0.1, 2.1, 1.1, 0.1]) / (3.2 + 0.2))


@pytest.mark.parametrize("settings", [PsqSettings(), PsqSettings(alpha=0.5, beta=0.0)])
def test_impacts_are_those_of_the_formula(settings):
    documents, known = [[2, 3, 3, 0], [3], []], background(counts([2, 3, 3], size=4))
    found = impacts(
        shares(*documents, size=4), sp.csr_array(TABLE), sp.csr_array(SPELLING), known, settings
    ).toarray()
    alpha, beta = settings.alpha, settings.beta
    for row, document in enumerate(documents):
        for word in range(4):
            translated = sum(TABLE[t, word] for t in document) / max(1, len(document))
            same = sum(SPELLING[t, word] for t in document) / max(1, len(document))
            probability = (1 - beta) * translated + beta * same
            expected = math.log(1 + (1 - alpha) * probability / (alpha * known[word]))
            assert found[row, word] == pytest.approx(expected, rel=1e-5)
