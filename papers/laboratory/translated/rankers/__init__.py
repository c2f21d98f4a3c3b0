"""Rankers of queries in the language of the documents: one formula each, one file each."""

from __future__ import annotations

from tf_smoothclir.papers.laboratory.translated.rankers.bm25 import Bm25
from tf_smoothclir.papers.laboratory.translated.rankers.query_likelihood import QueryLikelihood

# Values of --ranker besides psq, which needs no translated queries.
RANKERS = {"bm25": Bm25, "ql": QueryLikelihood}
