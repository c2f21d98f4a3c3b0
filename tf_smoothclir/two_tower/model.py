"""The two-tower model: a query tower, a document tower, and the similarity of their vectors."""

from collections.abc import Sequence

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import adopt_layer, make_loss_metric, track_loss
from tf_smoothclir.data.model_inputs import (
    ListInputs,
    ModelInputs,
    PairInputs,
    SeparateTexts,
    model_inputs,
)
from tf_smoothclir.losses.base import ranking_loss
from tf_smoothclir.losses.labels import after, check_grades
from tf_smoothclir.ops.row_sums import take
from tf_smoothclir.optimizers.gradients import clipped, each_row_once
from tf_smoothclir.towers.text_tower import word_table
from tf_smoothclir.towers.word_table import WordTableTower, check_precision
from tf_smoothclir.two_tower.batches import BatchModel, ScoringModel, listed_pairs
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity, smooth_normalize

# Weight of the loss of each cut, relative to that of the whole vectors. With 1, as in Kusupati et
# al. 2022, the whole ones lose. Chosen on validation queries of mdn-en-de.
CUT_WEIGHT = 0.1
LOGGED = ("batch_loss", "gradient_norm", "pairs", "terms")  # beside what Keras logs


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class TwoTower(BatchModel):
    """Scores queries against documents (Liu et al. 2020, section 3).

    A Keras model: compile it with `SmoothOrdinalSearchLoss` and fit it on batches of
    `({"query": texts, "document": texts}, grades)`, where grades are `[batch]` int. Texts are what
    the towers take: `[batch]` string for `TextTower`; for other towers ids, padded with 0 to
    `[batch, length]`, ragged, or flat as `{"ids": [tokens], "lengths": [batch]}`. It returns
    `[batch]` scores.

    A third input, "list_lengths", `[queries]` int, makes candidate lists of the batch, as listwise
    losses need them: the number of documents of each query, whose documents and grades stand one
    list after the other. It then returns `[documents]` scores.
    """

    def __init__(
        self,
        query_tower,
        document_tower,
        similarity=None,
        *,
        clip_norm: float = 0.0,
        in_batch: bool = False,
        matryoshka_dims: Sequence[int] = (),
        **kwargs,
    ):
        """Joins two towers.

        Args:
            query_tower: Layer from tokens to `[batch, dim]`.
            document_tower: Layer of the same kind; pass the same object to share it.
            similarity: Layer from `[query_vectors, document_vectors]` to scores; by default the
                paper's, `SmoothCosineSimilarity(epsilon=1.0)`.
            clip_norm: Training scales gradients down to this joint norm if theirs is larger; 0
                never does. An optimizer's own `global_clipnorm` does the same, but computes the
                norm, which is logged, a second time.
            in_batch: Scores every query of a batch with every document (in-batch negatives), by one
                matrix product.
            matryoshka_dims: Training takes the mean of the losses of the whole vectors and of their
                first so many numbers, each as vectors of their own (Kusupati et al. 2022), weighted
                by 1 and `CUT_WEIGHT`.
            **kwargs: Of the Keras model.

        Raises:
            ValueError: On half precision (`mixed_float16`): sums over tables are in float32.
        """
        super().__init__(**kwargs)
        check_precision(self)
        self.query_tower = query_tower
        self.document_tower = document_tower
        self.similarity = SmoothCosineSimilarity() if similarity is None else similarity
        self.clip_norm = clip_norm
        self.in_batch = in_batch
        self.matryoshka_dims = tuple(matryoshka_dims)

    def build(self, input_shape=None):
        """Creates the variables of the towers."""
        for tower in (self.query_tower, self.document_tower):
            if not tower.built:
                tower.build(None)
        self.built = True

    def compile(self, *args, **kwargs):
        """Compiles the model as Keras does; the weights of its loss are trained too.

        Args:
            *args: Of Keras.
            **kwargs: Of Keras.

        Raises:
            ValueError: `jit_compile` is True; or an optimizer of this package is to train several
                replicas.
        """
        super().compile(*args, **kwargs)
        make_loss_metric(self)
        adopt_layer(self, "loss_layer", ranking_loss(self.loss).layer)
        for tower in self._own_towers():
            tower.names_all_rows = getattr(self.optimizer, "names_all_rows", False)

    def compile_from_config(self, config):
        """Compiles a restored model; Keras calls it."""
        self.compile(**keras.utils.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def call(self, inputs, training=None, each_dim=False):
        """Scores pairs.

        Args:
            inputs: `PairInputs`, `ListInputs` or `InBatchInputs`; or, as Keras users write pairs,
                `{"query": tokens, "document": tokens}`, each in a form that its tower takes. One
                more key, "list_lengths", `[queries]` int, makes them candidate lists: the number of
                documents of each query, one list after the other.
            training: Whether the gradient is wanted.
            each_dim: Returns a list: the scores by the whole vectors, then by their first numbers,
                one for each of `matryoshka_dims`.

        Returns:
            `[documents]` float, the score of each document with its query: the one of the same
            position, or that of its list. With `in_batch`, `[queries, documents]`, all scores.

        Raises:
            ValueError: The dictionary has other keys.
        """
        inputs = self._typed(inputs)
        vectors = self._encoded(inputs)
        scores = self._scores(inputs, *vectors, training)
        if not each_dim:
            return scores
        cut = ((texts[:, :dim] for texts in vectors) for dim in self.matryoshka_dims)
        return [scores, *(self._scores(inputs, *texts, training) for texts in cut)]

    def _scores(self, inputs: ModelInputs, query_vectors, document_vectors, training) -> tf.Tensor:
        """Scores of vectors, as `call` has them."""
        if self.in_batch:
            queries, documents = (
                smooth_normalize(vectors, self.similarity.epsilon)
                for vectors in (query_vectors, document_vectors)
            )
            return tf.matmul(queries, documents, transpose_b=True)
        if isinstance(inputs, ListInputs):
            lengths = tf.cast(inputs.list_lengths, tf.int32)
            given = [tf.shape(vectors)[0] for vectors in (query_vectors, document_vectors)]
            message = "list_lengths: give one for each query, which add up to all documents"
            numbers = [tf.size(lengths), tf.reduce_sum(lengths)]
            checked = tf.debugging.assert_equal(numbers, given, message)
            query_vectors = take(after(checked, query_vectors), inputs.lists, training=training)
        return self.similarity([query_vectors, document_vectors])

    def _typed(self, inputs) -> ModelInputs:
        return model_inputs(inputs, in_batch=self.in_batch)

    def _encoded(self, inputs: ModelInputs) -> tuple[tf.Tensor, tf.Tensor]:
        """The vectors of queries and of documents, `[..., dim]` each."""
        texts = inputs.texts
        if isinstance(texts, SeparateTexts):
            return self.query_tower(texts.query), self.document_tower(texts.document)
        vectors = self.query_tower(texts.tokens)
        number = tf.shape(vectors)[0]
        queries = number // 2 if isinstance(inputs, PairInputs) else tf.size(inputs.list_lengths)
        return tf.split(vectors, [queries, number - queries])

    def vectors(self, role: str, tokens) -> tf.Tensor:
        """Encodes texts for indexing and search.

        Args:
            role: "query" or "document".
            tokens: In a form that the tower takes.

        Returns:
            `[batch, dim]` smooth-normalised vectors, whose inner products are the scores.

        Raises:
            ValueError: There is no such role.
        """
        towers = {"query": self.query_tower, "document": self.document_tower}
        if role not in towers:
            raise ValueError(f"role must be 'query' or 'document', but is {role!r}.")
        tower = towers[role]
        return smooth_normalize(tower(tokens), self.similarity.epsilon)

    def export(self, filepath):
        """Writes a SavedModel, of the scores of pairs, whose signature takes texts of any length.

        Its inputs are `query` and `document`: `[batch]` string for a `TextTower`, `[batch, length]`
        int32 for other towers, where id 0 is padding. It returns `score`, `[batch]`.

        Args:
            filepath: The directory.

        Raises:
            ValueError: A tower needs n-grams, which ids do not have; or there are no weights yet.
        """
        ScoringModel(self).save(filepath)

    def train_step(self, data):
        """Keras's training step; a grade that the loss does not have is an error."""
        inputs, grades, weights = keras.utils.unpack_x_y_sample_weight(data)
        grades = check_grades(grades, ranking_loss(self.loss).num_grades)
        logs = self.logged_step((inputs, grades, weights))
        return {name: logs[name] for name in logs if name not in LOGGED}

    def logged_step(self, data, exchange=None):
        """A training step with four more numbers in its logs than Keras's.

        `batch_loss` is the loss of the batch alone, while `loss` is the mean since the epoch began;
        `gradient_norm` is the joint norm of all gradients, before clipping; `pairs` is the number
        of pairs, `terms` that of losses, such as of lists. With several workers, all four are of
        the joint batch.

        Args:
            data: Inputs, grades, and optionally sample weights.
            exchange: With several workers, a `protocols.task.Exchange`.
        """
        inputs, grades, weights = keras.utils.unpack_x_y_sample_weight(data)
        inputs = self._typed(inputs)
        with tf.GradientTape() as tape:
            scores, *shorter = self(inputs, training=True, each_dim=True)
            loss = self.compute_loss(inputs, grades, scores, weights)
            for of_dim in shorter:
                loss += CUT_WEIGHT * self.compute_loss(inputs, grades, of_dim, weights)
            loss /= 1 + CUT_WEIGHT * len(shorter)
        self.check_trainable()  # only now, because the first batch may have built the model
        gradients = tape.gradient(loss, self.trainable_variables)
        if not self._names_rows_once(inputs):
            gradients = [each_row_once(gradient) for gradient in gradients]
        pairs, terms = listed_pairs(inputs, grades), self.num_terms(inputs, grades)
        if exchange:
            gradients, (loss,), pairs, terms = exchange(gradients, [loss], pairs, terms)
        norm = tf.linalg.global_norm(gradients)
        if self.clip_norm:
            gradients = clipped(gradients, norm, self.clip_norm)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        track_loss(self, loss, terms)
        logs = self.compute_metrics(inputs, grades, scores, weights)
        return {**logs, **dict(zip(LOGGED, (loss, norm, pairs, terms)))}

    def test_step(self, data):
        """Keras's evaluation step, with the loss of `compute_loss` on either Keras."""
        inputs, grades, weights = keras.utils.unpack_x_y_sample_weight(data)
        inputs = self._typed(inputs)
        grades = check_grades(grades, ranking_loss(self.loss).num_grades)
        scores = self(inputs, training=False)
        loss = self.compute_loss(inputs, grades, scores, weights)
        track_loss(self, loss, self.num_terms(inputs, grades))
        return self.compute_metrics(inputs, grades, scores, weights)

    def _names_rows_once(self, inputs: ModelInputs) -> bool:
        """Whether no gradient of this batch names a row of a table twice."""
        if self.is_shared and isinstance(inputs.texts, SeparateTexts):
            return False  # each use of the table names its rows
        return len(self._own_towers()) == 2

    def _own_towers(self) -> list[WordTableTower]:
        """The towers of this package; nothing is known of other layers."""
        towers = map(word_table, (self.query_tower, self.document_tower))
        return [tower for tower in towers if isinstance(tower, WordTableTower)]

    def get_config(self):
        """Returns the arguments of the constructor, serialised."""
        serialize = keras.utils.serialize_keras_object
        return {
            **super().get_config(),
            "query_tower": serialize(self.query_tower),
            "document_tower": None if self.is_shared else serialize(self.document_tower),
            "similarity": serialize(self.similarity),
            "clip_norm": self.clip_norm,
            "in_batch": self.in_batch,
            "matryoshka_dims": self.matryoshka_dims,
        }

    @classmethod
    def from_config(cls, config):
        """Restores a model from `get_config`."""
        config = dict(config)
        for part in ("query_tower", "document_tower", "similarity"):
            if config[part] is not None:
                config[part] = keras.utils.deserialize_keras_object(config[part])
        if config["document_tower"] is None:
            config["document_tower"] = config["query_tower"]
        model = cls(**config)
        model.build()  # Keras restores weights only into existing variables
        return model

    @property
    def is_shared(self) -> bool:
        """Whether one tower encodes both queries and documents."""
        return self.query_tower is self.document_tower

    @property
    def encodes_both_at_once(self) -> bool:
        """Whether a batch costs less with queries and documents together, as `JoinedTexts`.

        A shared tower then reads each row of its tables once instead of twice. A tower that pads
        would make queries as long as documents.
        """
        if not (self.is_shared and self._own_towers()):
            return False
        return not word_table(self.query_tower).pads_texts
