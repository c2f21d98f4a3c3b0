"""Batches of triplets: a query with its translation, a relevant document, another document."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.candidate_lists import is_among, pair_key
from tf_smoothclir.data.hashing import mix, permutation
from tf_smoothclir.data.pipeline import (
    mapped_tensors,
    ngram_tensors,
    prefetched,
    stored_tokens,
    tower_tokens,
    traced_once,
)
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.papers.li2018.opening_queries import NONE_FOUND, OpeningQueries
from tf_smoothclir.papers.li2018.translations import TokenRows
from tf_smoothclir.protocols.task import Batches, Epoch
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.utils.errors import input_error

_BATCHES_SORTED = 32
_DRAWS = 64


class TripletBatch(NamedTuple):
    """A batch; tokens as towers take them."""

    query: Any  # `[batch]` texts
    translation: Any  # `[batch]` texts
    documents: Any  # `[2 * batch]` texts: the relevant ones, then the others
    grades: tf.Tensor  # `[batch]` int32, of the relevant ones


@dataclasses.dataclass(frozen=True)
class Triplets:
    """The triplets of an epoch, in its order; all fields `[triplets]`."""

    queries: np.ndarray  # rows of queries, those made of documents after those of the set
    relevant: np.ndarray  # rows of the relevant documents
    others: np.ndarray  # rows of the other documents
    grades: np.ndarray  # int32, of the relevant documents

    def __getitem__(self, rows) -> Triplets:
        return Triplets(*(getattr(self, f.name)[rows] for f in dataclasses.fields(self)))


class TripletBatches(Batches):
    """Every judged pair of a training query and a relevant document once an epoch."""

    # The other document of a triplet is drawn again in each epoch, from all that are not judged for
    # the query, as in the paper. The first `opening_epochs` have queries made of documents.

    def __init__(
        self,
        tokenized_set: TokenizedSet,
        translations: TokenRows,
        settings: TrainingSettings,
        *,
        openings: OpeningQueries | None = None,
        opening_epochs: int = 0,
        best_only: bool = False,
    ):
        self._set = tokenized_set.retrieval_set
        self._settings = settings
        self._opening_epochs = opening_epochs
        self._openings = openings
        self._judged = self._judged_pairs(best_only)
        self._check(best_only)
        store = tokenized_set.tokens("query")
        queries = TokenRows(np.asarray(store.values), np.asarray(store.offsets))
        if openings is not None:
            queries = queries.followed_by(openings.queries)
            translations = translations.followed_by(openings.translations)
        documents = tokenized_set.tokens("document")
        self._lengths = np.asarray(documents.lengths)
        self._texts = {
            "query": _constants(queries),
            "translation": _constants(translations),
            "documents": mapped_tensors(documents),
        }
        self._ngrams = {role: ngram_tensors(tokenized_set, role) for role in ROLES}
        rows = np.sort(pair_key(self._set.query_rows, self._set.document_rows))
        self._known_pairs = rows
        self._latest: tuple[int, Triplets | None] = -1, None

    def epoch(self, number: int) -> Epoch:
        """The batches of an epoch, from 0: a function of seed and number."""
        triplets, size = self.triplets(number), self._settings.batch_size
        steps = -(-len(triplets.queries) // size)
        arrays = tuple(
            tf.constant(getattr(triplets, field.name)) for field in dataclasses.fields(triplets)
        )
        return Epoch(
            steps=steps,
            pairs=len(triplets.queries),
            batches=lambda start: prefetched(
                tf.data.Dataset.range(start, steps), lambda step: self._batch(step, *arrays), 8
            ),
            rows=lambda step: self._rows(triplets[step * size : (step + 1) * size]),
        )

    def triplets(self, epoch: int) -> Triplets:
        """The triplets of an epoch, from 0, in its order."""
        if self._latest[0] != epoch:
            pairs = self._opening_pairs() if epoch < self._opening_epochs else self._judged
            self._latest = epoch, self._ordered(self._with_others(pairs, epoch), epoch)
        return self._latest[1]

    def _check(self, best_only: bool) -> None:
        """Checks that each stage has a pair of a query and a relevant document."""
        if not len(self._judged.queries):
            grade = "a document of the highest grade" if best_only else "a relevant document"
            raise input_error(
                self._set.source.name,
                f"no query of the train split has {grade}",
                "Judge some: this objective learns from them",
            )
        if self._openings is not None and not len(self._opening_pairs().queries):
            raise input_error(
                self._set.source.name,
                "no document makes a query: all are too short, share no words with others, or"
                " validation or test queries are judged with them",
                "Leave --opening_epochs out, or add documents",
            )

    def _judged_pairs(self, best_only: bool) -> Triplets:
        """All pairs of training queries and relevant documents, without other documents."""
        judged = self._set
        of_training = judged.splits[judged.query_rows] == SPLITS.index("train")
        least = judged.num_grades - 1 if best_only else 1
        chosen = np.flatnonzero(of_training & (judged.grades >= least))
        return _without_others(
            judged.query_rows[chosen], judged.document_rows[chosen], judged.grades[chosen]
        )

    def _opening_pairs(self) -> Triplets:
        relevant = self._openings.relevant
        queries, places = np.nonzero(relevant != NONE_FOUND)
        return _without_others(
            queries + len(self._set.query_ids),
            relevant[queries, places],
            np.ones(len(queries), np.int32),
        )

    def _with_others(self, pairs: Triplets, epoch: int) -> Triplets:
        """Draws the other document of each triplet; drops triplets for which there is none."""
        others = np.zeros(len(pairs.queries), np.int64)
        documents = np.uint64(len(self._set.document_ids))
        todo = np.arange(len(others))
        for draw in range(_DRAWS):
            key = mix(mix(np.asarray(self._settings.seed)) ^ np.asarray(epoch, np.uint64))
            drawn = mix(mix(key ^ np.asarray(draw, np.uint64)) ^ todo.astype(np.uint64)) % documents
            others[todo] = drawn.astype(np.int64)
            is_judged = is_among(self._known_pairs, pair_key(pairs.queries[todo], others[todo]))
            todo = todo[is_judged | (others[todo] == pairs.relevant[todo])]
        kept = np.ones(len(others), bool)
        kept[todo] = False
        return dataclasses.replace(pairs, others=others)[kept]

    def _ordered(self, triplets: Triplets, epoch: int) -> Triplets:
        """Shuffles; with --batching=bucketed, documents of a batch have about the same length."""
        settings, size = self._settings, self._settings.batch_size
        order = permutation(len(triplets.queries), settings.seed, epoch)
        if settings.batching == "bucketed":
            both = self._lengths[triplets.relevant[order]], self._lengths[triplets.others[order]]
            window = np.arange(len(order)) // (size * _BATCHES_SORTED)
            order = order[np.lexsort((np.maximum(*both), window))]
            full = len(order) // size
            shuffled = permutation(full, settings.seed, epoch)
            batches = order[: full * size].reshape(full, size)[shuffled]
            order = np.concatenate([batches.ravel(), order[full * size :]])
        return triplets[order]

    @traced_once
    def _batch(self, step, queries, relevant, others, grades):
        size = self._settings.batch_size
        part = slice(step * size, (step + 1) * size)
        rows = {
            "query": queries[part],
            "translation": queries[part],
            "documents": tf.concat([relevant[part], others[part]], axis=0),
        }
        ngrams = {name: "query" if name == "query" else "document" for name in rows}
        texts = {
            name: tower_tokens(stored_tokens(*self._texts[name], rows[name]), self._ngrams[role])
            for name, role in ngrams.items()
        }
        return TripletBatch(**texts, grades=grades[part])

    def _rows(self, triplets: Triplets) -> list[tuple[str, str, int]]:
        ids, documents = self._set.query_ids, self._set.document_ids
        names = [ids[row] if row < len(ids) else "made of a document" for row in triplets.queries]
        relevant = [documents[row] for row in triplets.relevant]
        return list(zip(names, relevant, triplets.grades.tolist()))


def _without_others(queries: np.ndarray, relevant: np.ndarray, grades: np.ndarray) -> Triplets:
    """Triplets whose other documents are still to be drawn."""
    others = np.zeros(len(queries), np.int64)
    return Triplets(
        queries.astype(np.int64), relevant.astype(np.int64), others, grades.astype(np.int32)
    )


def _constants(rows: TokenRows) -> tuple[tf.Tensor, tf.Tensor]:
    return tf.constant(rows.values, tf.int32), tf.constant(rows.offsets, tf.int64)
