"""The search model: both towers and an encoded collection in one SavedModel, for small collections.

A model server that loads it answers a query string with document ids, scores and grades, without a
separate index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.losses.grades import predicted_grades
from tf_smoothclir.ops.top_k import top_k
from tf_smoothclir.publishing.exported_tower import ExportedTower
from tf_smoothclir.text.batches import text_batches
from tf_smoothclir.utils.parallel import map_in_threads
from tf_smoothclir.utils.progress import progress_bar

# Bounds the memory of a request of any size: 51 MB of scores for 200,000 documents.
_QUERIES_PER_STEP = 64


class SearchModel(tf.Module):
    """Exact search by SCS, as a model server loads it; consists of core operations.

    Signatures:

    * `serving_default` takes `text`, `[batch]` string, and returns the best documents, best first,
      equal scores by a hash of the id: `ids`, `[batch, depth]` string, `scores`, `[batch, depth]`
      float32 (SCS), and `grades`, `[batch, depth]` int32;
    * `score` takes pairs, `query` and `document`, both `[batch]` string, and returns `score`,
      `[batch]` float32 (SCS), and `grade`, `[batch]` int32. The documents need not be in the
      collection.

    Texts may be any bytes. A grade is the number of thresholds below the score.
    """

    def __init__(
        self,
        towers: dict[str, ExportedTower],
        ids: Sequence[str],
        vectors: np.ndarray,
        *,
        thresholds: Sequence[float],
        depth: int,
    ):
        """Combines two towers and an encoded collection.

        Args:
            towers: "query" and "document" -> tower.
            ids: Ids of the documents.
            vectors: `[documents, dim]`, from the document tower.
            thresholds: Scores at which the grade changes.
            depth: Documents per query; fewer if the collection is smaller.
        """
        super().__init__(name="search")
        self.depth = min(depth, len(ids))
        self._query_tower, self._document_tower = towers["query"], towers["document"]
        # Sorted by the tie rule, because top_k puts the lower position first among equal scores.
        order = np.argsort(hash_ids(ids), kind="stable")
        self._ids = tf.Variable([ids[row] for row in order], trainable=False, dtype=tf.string)
        self._vectors = tf.Variable(vectors[order], trainable=False)
        self._thresholds = tuple(thresholds)

    @property
    def num_documents(self) -> int:
        """The number of documents in the collection."""
        return self._vectors.shape[0]

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def serve(self, text):
        """Searches the collection."""
        scores, positions = self._best(self._query_tower.serve(text)["vector"])
        ids = tf.gather(self._ids, positions)
        return {"ids": ids, "scores": scores, "grades": predicted_grades(scores, self._thresholds)}

    @tf.function(
        autograph=False,
        input_signature=[
            tf.TensorSpec([None], tf.string, "query"),
            tf.TensorSpec([None], tf.string, "document"),
        ],
    )
    def score(self, query, document):
        """Scores pairs of a query and a document."""
        sizes = [tf.size(query), tf.size(document)]
        message = "query and document must have the same number of rows."
        checked = tf.debugging.Assert(tf.equal(*sizes), [message, *sizes])
        with tf.control_dependencies([checked]):  # otherwise one row would be broadcast
            query = tf.identity(query)
        queries = self._query_tower.serve(query)["vector"]
        documents = self._document_tower.serve(document)["vector"]
        scores = tf.reduce_sum(queries * documents, axis=-1)
        return {"score": scores, "grade": predicted_grades(scores, self._thresholds)}

    @property
    def signatures(self) -> dict:
        """Signature name -> function."""
        return {"serving_default": self.serve, "score": self.score}

    def save(self, path: str) -> None:
        """Writes the SavedModel."""
        tf.saved_model.save(self, path, signatures=self.signatures)

    def _best(self, queries) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the best scores and their positions, `[queries, depth]` each, best first."""

        def search_some(begin, scores, positions):
            some = queries[begin : begin + _QUERIES_PER_STEP]
            best_scores, best = top_k(some, [self._vectors], self.depth)
            scores = tf.concat([scores, best_scores], axis=0)
            positions = tf.concat([positions, best], axis=0)
            return begin + _QUERIES_PER_STEP, scores, positions

        shape = tf.TensorShape([None, self.depth])
        _, scores, positions = tf.while_loop(
            lambda begin, *_: begin < tf.shape(queries)[0],
            search_some,
            (0, tf.zeros([0, self.depth]), tf.zeros([0, self.depth], tf.int32)),
            shape_invariants=(tf.TensorShape([]), shape, shape),
        )
        return scores, positions


def encode_collection(
    documents: Iterable[Text], number: int, tower: ExportedTower
) -> tuple[list[str], np.ndarray]:
    """Encodes a collection that fits in memory.

    Args:
        documents: The collection; its texts are streamed.
        number: How many documents there are, for the progress bar.
        tower: The document tower.

    Returns:
        The ids, and `[documents, dim]` float32.
    """
    ids, vectors = [], []

    def texts():
        for document in documents:
            ids.append(document.id)
            yield document.text

    def encoded(batch):
        return tower.serve(tf.constant(batch, tf.string))["vector"].numpy()

    with progress_bar(number, "Encode the collection", "documents") as bar:
        for some in map_in_threads(encoded, text_batches(texts())):
            vectors.append(some)
            bar.update(len(some))
    return ids, np.concatenate(vectors)
