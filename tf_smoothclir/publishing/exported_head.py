"""The head of a foreign encoder as a SavedModel: the encoder's vectors in, those to rank by out."""

from __future__ import annotations

import tensorflow as tf

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.foreign_encoders.head import EPSILON, NEAREST, Head
from tf_smoothclir.two_tower.similarity import smooth_normalize

_REQUESTED = 32  # vectors of a request that compares the written head, and warms a server up


class ExportedHead(tf.Module):
    """A head as a model server loads it.

    The signatures `query` and `document` take `vector`, `[batch, dim]` float32 as the encoder gives
    it, of any length, and return `vector`, `[batch, dim + 1]` float32. The inner product of one of
    each is the score.
    """

    def __init__(self, head: Head):
        super().__init__(name="encoder_head")
        self.pair_id = ""
        self._arrays = {name: tf.Variable(array) for name, array in head.arrays.items()}
        (dim,) = head.arrays["query"].shape
        spec = tf.TensorSpec([None, dim], tf.float32, "vector")
        self._functions = {
            role: tf.function(self._of(role), autograph=False, input_signature=[spec])
            for role in ROLES
        }

    def _of(self, role: str):
        def function(vector: tf.Tensor) -> dict[str, tf.Tensor]:
            centred = tf.math.l2_normalize(vector, axis=1) - self._arrays[role]
            vectors = smooth_normalize(tf.matmul(centred, self._arrays["matrix"]), EPSILON)
            if role == "query":
                last = tf.ones_like(vectors[:, :1])
            else:
                scores = tf.matmul(vectors, self._arrays["nearest"], transpose_b=True)
                nearest, _ = tf.math.top_k(scores, NEAREST)
                last = tf.reduce_mean(nearest, axis=1, keepdims=True) / -2
            return {"vector": tf.concat([vectors, last], axis=1)}

        return function

    @property
    def signatures(self) -> dict:
        """Signature name -> function."""
        return dict(self._functions)

    @property
    def requests(self) -> dict[str, dict[str, list]]:
        """Signature name -> input name -> rows of a request: some vectors, as good as any other."""
        rows = self._arrays["matrix"].numpy()[:_REQUESTED].tolist()
        return {role: {"vector": rows} for role in ROLES}

    def save(self, path: str) -> None:
        """Writes the SavedModel."""
        tf.saved_model.save(self, path, signatures=self.signatures)
