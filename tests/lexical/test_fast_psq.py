"""PSQ against the public implementation of its authors, package fast-psq."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tests.lexical.helpers import words
from tf_smoothclir.lexical.postings import Postings
from tf_smoothclir.lexical.psq import PsqSettings, impacts

SIZE = 6
TABLE = {"2": {"3": 0.7, "4": 0.2}, "3": {"3": 0.1, "5": 0.9}, "4": {"4": 1.0}}
DOCUMENTS = [[2, 3, 3, 4], [4, 4], [3, 2]]
QUERIES = [[3, 4, 4], [5], [4, 5]]
COUNTS = {"3": 7, "4": 2, "5": 30}


def test_scores_are_those_of_fast_psq(tmp_path):
    fast_psq = pytest.importorskip("fast_psq", reason="of extra rivals")
    alpha = 0.1
    (tmp_path / "counts").write_text("".join(f"{n} {word}\n" for word, n in COUNTS.items()))
    theirs = fast_psq.PSQVectorizer.from_dict(
        TABLE, source_tokenizer=str.split, target_tokenizer=str.split, alpha=alpha
    )
    theirs.load_query_term_importance(str(tmp_path / "counts"))
    documents = theirs.translate([" ".join(map(str, document)) for document in DOCUMENTS])
    queries = theirs.make_target_vectors([" ".join(map(str, query)) for query in QUERIES])
    expected = (queries @ documents).toarray()

    table = np.zeros((SIZE, SIZE), np.float32)
    for word, translations in TABLE.items():
        for other, probability in translations.items():
            table[int(word), int(other)] = probability
    # Its P(w): every word once more than counted, over the sum of the counts and one.
    total = 1 + sum(COUNTS.values())
    background = np.array([(1 + COUNTS.get(str(word), 0)) / total for word in range(SIZE)])
    found = impacts(
        words(*DOCUMENTS, size=SIZE).matrix(np.ones_like),
        sp.csr_array(table),
        sp.csr_array((SIZE, SIZE), dtype=np.float32),
        background,
        PsqSettings(alpha=alpha, beta=0.0),
    )
    ours = Postings.of(found).sums(words(*QUERIES, size=SIZE).matrix())
    assert ours == pytest.approx(expected, rel=1e-5)
