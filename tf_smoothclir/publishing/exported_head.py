"""The head of a foreign encoder as a SavedModel: the encoder's vectors in, those to rank by out."""

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.foreign_encoders.head import EPSILON, NEAREST, Head
from tf_smoothclir.foreign_encoders.student import MAX_TOKENS, NGRAMS, Student
from tf_smoothclir.publishing.exported_tower import ExportedTower
from tf_smoothclir.publishing.saved_model import write_saved_model
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text.evidence import Evidence, word_evidence
from tf_smoothclir.text.subwords import SubwordTextEncoder
from tf_smoothclir.towers.average_pooling import AveragePoolingTower
from tf_smoothclir.two_tower.similarity import smooth_normalize

_REQUESTED = 32  # rows of a request that compares the written head, and warms a server up


class ExportedHead(tf.Module):
    """A head as a model server loads it.

    The signatures `query` and `document` take `vector`, `[batch, dim]` float32 as the encoder gives
    it, of any length, and return `vector`, `[batch, dim + 1]` float32. The inner product of one of
    each is the score. With a student, `query` takes `text` instead, `[batch]` string; without a
    head, vectors have their length of 1 and no further number.
    """

    def __init__(self, head: Head | None, student: Student | None):
        """Takes one of the two at least."""
        super().__init__(name="encoder_head")
        self.pair_id = ""
        arrays = {} if head is None else head.arrays
        self._arrays = {name: tf.Variable(array) for name, array in arrays.items()}
        self._dim = (arrays["query"] if head else student.arrays["embeddings"]).shape[-1]
        spec = tf.TensorSpec([None, self._dim], tf.float32, "vector")
        self._functions = {
            role: tf.function(self._of(role), autograph=False, input_signature=[spec])
            for role in ROLES
        }
        self._words: list[str] = []
        if student is not None:
            self._student, self._words = _tower_of(student), student.arrays["words"].tolist()
            self.encoder = self._student.encoder  # splits queries, and numbers their words
            by_head = self._of("query")
            self._functions["query"] = tf.function(
                lambda text: by_head(self._student.serve(text)["vector"]),
                autograph=False,
                input_signature=[tf.TensorSpec([None], tf.string, "text")],
            )

    def read(self, words: tf.RaggedTensor) -> tuple[tf.Tensor, Evidence]:
        """The vectors of queries by the student and what it knows of them, in a graph."""
        vectors, known = self._student.read(words)
        return self._of("query")(vectors)["vector"], known

    def _of(self, role: str):
        def function(vector: tf.Tensor) -> dict[str, tf.Tensor]:
            vectors = smooth_normalize(vector, 0.0)
            if not self._arrays:
                return {"vector": vectors}
            centred = vectors - self._arrays[role]
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
        """Signature name -> input name -> rows of a request: some that are as good as any other."""
        requests = {role: {"vector": np.eye(self._dim)[:_REQUESTED].tolist()} for role in ROLES}
        if self._words:
            words = [word.encode() for word in self._words[:_REQUESTED]]
            requests["query"] = {"text": [b"", b"\xff", *words]}
        return requests

    def save(self, path: str) -> None:
        """Writes the SavedModel."""
        write_saved_model(self, path)


def _tower_of(student: Student) -> ExportedTower:
    """The student as a query tower, strings in."""
    settings = TextSettings(
        ngram_buckets=NGRAMS.buckets, min_ngram=NGRAMS.shortest, max_ngram=NGRAMS.longest
    )
    size, dim = student.arrays["embeddings"].shape
    tower = AveragePoolingTower(size, dim, token_weights="idf", ngram_buckets=NGRAMS.buckets)
    tower.build()
    tower.start_token_weights(np.logaddexp(0, student.arrays["token_weights"][:, 0]))
    for name, table in tower.tables().items():
        table.assign(student.arrays[name])
    vocabulary = student.vocabulary
    encoder = SubwordTextEncoder(vocabulary, MAX_TOKENS, settings)
    evidence = word_evidence(vocabulary, encoder, settings)
    return ExportedTower(tower, encoder, epsilon=0.0, name="student", evidence=evidence)
