"""Search in two stages: a ranker finds documents, and a re-ranker orders the first ones."""

import collections
import dataclasses
import hashlib
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf_smoothclir.interaction.inputs import padded
from tf_smoothclir.protocols.text_search import Explanation, MatchedPair, SearchHit
from tf_smoothclir.publishing.exported_reranker import SecondStage
from tf_smoothclir.search.query_reading import QueryBatch
from tf_smoothclir.search.text_search import HitRanker

_REMEMBERED = 100_000  # documents whose words are kept, in less than 1 kB each


class SecondStageRanker(HitRanker):
    """Adds scores of a re-ranker to those of the first hits, which stay before others."""

    def __init__(self, first: HitRanker, stage: SecondStage):
        self._first, self._stage = first, stage
        self._score = stage.reranker.network.list_scorer()
        self._known: collections.OrderedDict[bytes, np.ndarray] = collections.OrderedDict()
        self._changing = threading.Lock()  # servers search in several threads

    @property
    def facets(self) -> Mapping[str, Sequence[Any]]:
        return self._first.facets

    def read(self, queries: Sequence[str]) -> QueryBatch:
        return self._first.read(queries)

    def hits(self, batch: QueryBatch, depth: int, filter: str) -> list[list[SearchHit]]:
        ranked = self._first.hits(batch, max(depth, self._stage.settings.depth), filter)
        return [self._ordered(query, hits)[:depth] for query, hits in zip(batch.texts, ranked)]

    def explain(self, query: str, hits: Sequence[SearchHit], role: str) -> list[Explanation]:
        """Explains the scores of the first stage, and names the word pairs behind the others."""
        explained = self._first.explain(query, hits, role)
        return [
            dataclasses.replace(
                explanation,
                score=hit.score,
                reranker=hit.score - explanation.score,
                pairs=self._pairs(query, hit.text),
            )
            for hit, explanation in zip(hits, explained)
        ]

    def _ordered(self, query: str, hits: list[SearchHit]) -> list[SearchHit]:
        top = hits[: self._stage.settings.depth]
        if not top:
            return hits
        (words,) = self._ids("query", [query])
        added = self._score(words, self._documents([hit.text for hit in top]))
        scores = np.array([hit.score for hit in hits], np.float32)
        scores[: len(top)] += np.float32(self._stage.reranker.weight) * added
        rest = scores[len(top) :]
        if len(rest):  # they stay after the others
            rest -= np.maximum(0, rest[0] - scores[: len(top)].min())
        order = np.argsort(-scores, kind="stable")
        grades = self._stage.settings.cut_points.of_hits(scores[order]).tolist()
        return [
            dataclasses.replace(hits[place], rank=rank, score=float(scores[place]), grade=grade)
            for rank, (place, grade) in enumerate(zip(order.tolist(), grades), 1)
        ]

    def _documents(self, texts: Sequence[str]) -> np.ndarray:
        """`[texts, m]` ids; those of texts that were seen before are remembered."""
        keys = [hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts]
        known = {key: self._known.get(key) for key in keys}
        missing = {key: text for key, text in zip(keys, texts) if known[key] is None}
        if missing:
            new = dict(zip(missing, self._ids("document", list(missing.values()))))
            known.update(new)
            with self._changing:
                self._known.update(new)
                while len(self._known) > _REMEMBERED:
                    self._known.popitem(last=False)
        rows = [known[key] for key in keys]
        return padded(np.concatenate(rows), np.array([*map(len, rows)]))

    def _ids(self, role: str, texts: Sequence[str]) -> list[np.ndarray]:
        tokens = self._stage.encoders[role](tf.constant(list(texts), tf.string))
        return np.split(tokens.ids.numpy(), np.cumsum(tokens.lengths.numpy())[:-1])

    def _pairs(self, query: str, text: str) -> tuple[MatchedPair, ...]:
        """The best matches, the largest first."""
        ids, words = [], []
        for role, one in (("query", query), ("document", text)):
            ids += self._ids(role, [one])
            tokens = self._stage.encoders[role].words(tf.constant([one])).flat_values.numpy()
            words.append([token.decode() for token in tokens.tolist()])
        pairs = self._stage.reranker.network.explain(*ids)
        matched = [
            MatchedPair(
                words[0][pair.query_position],
                words[1][pair.document_position],
                pair.similarity,
                pair.weight * self._stage.reranker.weight,
            )
            for pair in pairs
        ]
        matched.sort(key=lambda pair: -pair.share)
        return tuple(matched)
