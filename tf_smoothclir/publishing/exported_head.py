"""The head of a foreign encoder as a SavedModel: the encoder's vectors in, those to rank by out."""

from __future__ import annotations

import tensorflow as tf

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.foreign_encoders.head import Head

_REQUESTED = 32  # vectors of a request that compares the written head, and warms a server up


class ExportedHead(tf.Module):
    """A head as a model server loads it.

    The signatures `query` and `document` take `vector`, `[batch, dim]` float32 as the encoder gives
    it, of any length, and return `vector`, `[batch, dim]` float32, smooth-normalised. The inner
    product of one of each is the score.
    """

    def __init__(self, head: Head):
        super().__init__(name="encoder_head")
        self.pair_id = ""
        self._arrays = {name: tf.Variable(array) for name, array in head.arrays.items()}
        self._head = Head(self._arrays)
        (dim,) = head.arrays["query"].shape
        spec = tf.TensorSpec([None, dim], tf.float32, "vector")
        self._functions = {
            role: tf.function(self._of(role), autograph=False, input_signature=[spec])
            for role in ROLES
        }

    def _of(self, role: str):
        return lambda vector: {"vector": self._head(role, tf.math.l2_normalize(vector, axis=1))}

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
