"""Search by what scores texts as they are: it reads the documents of an index, and their words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tf_smoothclir.encoder.tokenizer import tokens_of
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.protocols.text_search import (
    Explanation,
    QueryReading,
    SearchedCollection,
    SearchHit,
    WordShare,
)

# From documents, and then from queries, to `[queries, documents]` float32.
ScoreTexts = Callable[[Sequence[str]], Callable[[Sequence[str]], np.ndarray]]


class WholeTextSearch:
    """A `TextSearch` over all documents of an index, in memory."""

    def __init__(
        self,
        retriever: str,
        score_texts: ScoreTexts,
        index: DocumentIndex,
        collection: SearchedCollection,
    ):
        self.collection = collection
        self._index, self._score_texts = index, score_texts
        self._score = score_texts([index.documents[place].text for place in range(len(index))])
        is_whole = retriever == index.manifest.retriever
        self._cut_points = index.manifest.cut_points if is_whole else None

    def search(self, queries: Sequence[str], depth: int) -> list[list[SearchHit]]:
        """The best `depth` documents of each query, best first; see `TextSearch`."""
        hits, hashes = [], self._index.documents.hashes
        for query in queries:
            (scores,) = np.asarray(self._score([query]), np.float32)
            order = np.lexsort((hashes, -scores))[:depth]
            hits.append(self._index.hits(order, scores[order], self._cut_points))
        return hits

    def read(self, queries: Sequence[str]) -> list[QueryReading]:
        """Evidence of each query: its words, whatever they are."""
        return [QueryReading("words" if tokens_of(query) else "nothing") for query in queries]

    def explain(
        self, query: str, hits: Sequence[SearchHit], role: str = "document"
    ) -> list[Explanation]:
        """Splits the score of each hit into the shares of words; see `TextSearch.explain`."""
        return [
            explain_by_leaving_out(self._score_texts, query, hit.text, role, hit.score)
            for hit in hits
        ]


def explain_by_leaving_out(
    score_texts: ScoreTexts, query: str, document: str, role: str, score: float | None = None
) -> Explanation:
    """Splits a score into what it loses without each word, and a remainder.

    Args:
        score: The score in a collection; by default that of the two texts alone.
    """
    tokens = tokens_of(document if role == "document" else query)
    words = list(dict.fromkeys(tokens))
    texts = [document if role == "document" else query]
    texts += [" ".join(token for token in tokens if token != word) for word in words]
    if role == "document":  # each alone, as scores may depend on the others
        found = [score_texts([text])([query])[0, 0] for text in texts]
    else:
        found = score_texts([document])(texts)[:, 0]
    whole = float(found[0]) if score is None else score
    losses = [float(found[0] - without) for without in found[1:]]
    shares = [WordShare(word, loss) for word, loss in zip(words, losses) if loss]
    shares.sort(key=lambda word: -word.share)
    return Explanation(whole, tuple(shares), whole - sum(word.share for word in shares))
