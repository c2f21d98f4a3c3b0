"""A small two-tower model without training, and a batch for it in all forms."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

import tf_smoothclir as sc
from tf_smoothclir.data import model_inputs
from tf_smoothclir.text.tokens import Tokens

SIZE, DIM = 9, 4
INPUTS = {
    "query": {"ids": [2, 3, 4, 5], "lengths": [2, 0, 1, 1]},
    "document": {"ids": [6, 7, 8, 2, 2], "lengths": [1, 2, 2, 0]},
}
GRADES = [2, 0, 1, 0]
LENGTHS = {"lists": [2, 1, 1, 0], "in_batch": [1, 1, 1, 1]}


def tensors(inputs=INPUTS):
    return {
        role: {name: tf.constant(value, tf.int32) for name, value in tokens.items()}
        for role, tokens in inputs.items()
    }


def make_tower(seed, size=SIZE, **kwargs):
    initializer = keras.initializers.RandomNormal(stddev=1.0, seed=seed)
    return sc.AveragePoolingTower(size, DIM, embeddings_initializer=initializer, **kwargs)


def make_model(*, shared=False, epsilon=0.5, clip=0.0, rate=0.05, size=SIZE, in_batch=False, **own):
    query_tower = make_tower(1, size, **own)
    document_tower = query_tower if shared else make_tower(2, size)
    similarity = sc.SmoothCosineSimilarity(epsilon)
    model = sc.TwoTower(query_tower, document_tower, similarity, clip_norm=clip, in_batch=in_batch)
    model.build()
    model.compile(sc.LazyAdam(rate), sc.SmoothOrdinalSearchLoss((0.2, 0.7)))
    return model


def batches(inputs=None, grades=GRADES):
    return tf.data.Dataset.from_tensors((inputs or tensors(), tf.constant(grades)))


def apart():
    return model_inputs.SeparateTexts(*(Tokens.of(**tokens) for tokens in tensors().values()))


def together():
    ids, lengths = [2, 3, 4, 5, 6, 7, 8, 2, 2], [2, 0, 1, 1, 1, 2, 2, 0]
    return model_inputs.JoinedTexts(Tokens.of(tf.constant(ids), tf.constant(lengths)))


def as_lists(texts):
    return model_inputs.ListInputs(texts, tf.constant(LENGTHS["lists"]), tf.constant([0, 0, 1, 2]))


# Grades as the batching has them, and its inputs.
FORMS = {
    "pairs": (GRADES, model_inputs.PairInputs),
    "lists": (GRADES, as_lists),
    "in_batch": (
        np.diag(GRADES),
        lambda texts: model_inputs.InBatchInputs(texts, tf.ones([4], tf.int32)),
    ),
}
