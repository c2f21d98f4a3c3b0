"""Batches of triplets: a query with its translation, a relevant document, another document."""

from __future__ import annotations

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
from tf_smoothclir.papers.li2018.translations import NONE_FOUND, OpeningQueries
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


class Triplets(NamedTuple):
    """Triplets, in some order; all fields `[triplets]`."""

    queries: np.ndarray  # rows of queries, those made of documents after those of the set
    relevant: np.ndarray  # rows of the relevant documents
    grades: np.ndarray  # int32, of the relevant documents
    others: np.ndarray  # rows of the other documents

    @classmethod
    def of_pairs(cls, queries: np.ndarray, relevant: np.ndarray, grades: np.ndarray) -> Triplets:
        """Triplets whose other documents are still to be drawn."""
        rows = queries.astype(np.int64), relevant.astype(np.int64), grades.astype(np.int32)
        return cls(*rows, np.zeros(len(queries), np.int64))

    def some(self, rows) -> Triplets:
        """The triplets of some rows."""
        return Triplets(*(of_all[rows] for of_all in self))


class TripletBatches(Batches):
    """Every judged pair of a training query and a relevant document once an epoch."""

    # The other document of a triplet is drawn again in each epoch, from all that are not judged for
    # the query, as in the paper. The first `opening_epochs` have queries made of documents.

    def __init__(
        self,
        tokenized_set: TokenizedSet,
        translations: tf.RaggedTensor | None,
        settings: TrainingSettings,
        *,
        openings: OpeningQueries | None = None,
        opening_epochs: int = 0,
        best_only: bool = False,
    ):
        """Reads `[queries, words]` translations, none for None; `best_only`: the highest grade."""
        self._set, self._settings = tokenized_set.retrieval_set, settings
        self._opening_epochs, self._openings = opening_epochs, openings
        self._judged = self._judged_pairs(best_only)
        store, documents = (tokenized_set.tokens(role) for role in ROLES)
        queries = tf.RaggedTensor.from_row_splits(np.asarray(store.values), store.offsets)
        if translations is None:
            translations = queries[:, :0]
        if openings is not None:
            self._opening = self._opening_pairs(openings.relevant)
            queries = tf.concat([queries, openings.queries], axis=0)
            translations = tf.concat([translations, openings.translations], axis=0)
        self._lengths = np.asarray(documents.lengths)
        self._texts = {
            "query": (queries.values, queries.row_splits),
            "translation": (translations.values, translations.row_splits),
            "documents": mapped_tensors(documents),
        }
        self._ngrams = {role: ngram_tensors(tokenized_set, role) for role in ROLES}
        self._known_pairs = np.sort(pair_key(self._set.query_rows, self._set.document_rows))
        self._latest: tuple[int, Triplets | None] = -1, None

    def epoch(self, number: int) -> Epoch:
        """The batches of an epoch, from 0: a function of seed and number."""
        triplets, size = self.triplets(number), self._settings.batch_size
        steps = -(-len(triplets.queries) // size)
        arrays = tuple(map(tf.constant, triplets))
        return Epoch(
            steps=steps,
            pairs=len(triplets.queries),
            batches=lambda start: prefetched(
                tf.data.Dataset.range(start, steps), lambda step: self._batch(step, *arrays), 8
            ),
            rows=lambda step: self._rows(triplets.some(slice(step * size, (step + 1) * size))),
        )

    def triplets(self, epoch: int) -> Triplets:
        """The triplets of an epoch, from 0, in its order."""
        if self._latest[0] != epoch:
            pairs = self._opening if epoch < self._opening_epochs else self._judged
            self._latest = epoch, self._ordered(self._with_others(pairs, epoch), epoch)
        return self._latest[1]

    def _judged_pairs(self, best_only: bool) -> Triplets:
        """All pairs of training queries and relevant documents, without other documents."""
        judged = self._set
        of_training = judged.splits[judged.query_rows] == SPLITS.index("train")
        least = judged.num_grades - 1 if best_only else 1
        chosen = np.flatnonzero(of_training & (judged.grades >= least))
        if not len(chosen):
            grade = "a document of the highest grade" if best_only else "a relevant document"
            raise input_error(
                judged.source.name,
                f"no query of the train split has {grade}",
                "Judge some: this objective learns from them",
            )
        pairs = judged.query_rows, judged.document_rows, judged.grades
        return Triplets.of_pairs(*(of_all[chosen] for of_all in pairs))

    def _opening_pairs(self, relevant: np.ndarray) -> Triplets:
        """The pairs of queries made of documents, and what was found for them."""
        queries, places = np.nonzero(relevant != NONE_FOUND)
        if not len(queries):
            raise input_error(
                self._set.source.name,
                "no document makes a query: all are too short, share no words with others, or"
                " validation or test queries are judged with them",
                "Leave --opening_epochs out, or add documents",
            )
        rows = queries + len(self._set.query_ids)
        return Triplets.of_pairs(rows, relevant[queries, places], np.ones(len(queries)))

    def _with_others(self, pairs: Triplets, epoch: int) -> Triplets:
        """Draws the other document of each triplet; drops triplets for which there is none."""
        others = np.zeros(len(pairs.queries), np.int64)
        documents = np.uint64(len(self._set.document_ids))
        key = mix(mix(np.asarray(self._settings.seed)) ^ np.asarray(epoch, np.uint64))
        todo = np.arange(len(others))
        for draw in range(_DRAWS):
            drawn = mix(mix(key ^ np.asarray(draw, np.uint64)) ^ todo.astype(np.uint64)) % documents
            others[todo] = drawn.astype(np.int64)
            is_judged = is_among(self._known_pairs, pair_key(pairs.queries[todo], others[todo]))
            todo = todo[is_judged | (others[todo] == pairs.relevant[todo])]
        kept = np.ones(len(others), bool)
        kept[todo] = False
        return pairs._replace(others=others).some(kept)

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
        return triplets.some(order)

    @traced_once
    def _batch(self, step, *arrays):
        size = self._settings.batch_size
        part = Triplets(*arrays).some(slice(step * size, (step + 1) * size))
        rows = {
            "query": part.queries,
            "translation": part.queries,
            "documents": tf.concat([part.relevant, part.others], axis=0),
        }
        texts = {name: stored_tokens(*self._texts[name], rows[name]) for name in rows}
        ngrams = {name: self._ngrams["query" if name == "query" else "document"] for name in rows}
        towers = {name: tower_tokens(texts[name], ngrams[name]) for name in rows}
        return TripletBatch(**towers, grades=part.grades)

    def _rows(self, triplets: Triplets) -> list[tuple[str, str, int]]:
        ids, documents = self._set.query_ids, self._set.document_ids
        names = [ids[row] if row < len(ids) else "made of a document" for row in triplets.queries]
        relevant = [documents[row] for row in triplets.relevant]
        return list(zip(names, relevant, triplets.grades.tolist()))
