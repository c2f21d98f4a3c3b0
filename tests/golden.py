"""Numbers that both stacks must give: metrics, losses, gradients, vectors, steps of optimizers.

`python -m tests.golden` writes them to `tests/golden.json` as this stack has them. Inputs and
weights are made by a formula, because the random numbers of the two Keras differ for one seed.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf

from tf_smoothclir import SmoothCosineSimilarity, TwoTower
from tf_smoothclir._compat.keras_api import tf_variable, tf_weights
from tf_smoothclir.evaluation.metrics import per_query_metrics
from tf_smoothclir.optimizers import OPTIMIZERS, make_optimizer
from tf_smoothclir.papers import li2018 as li2018  # its towers have golden numbers too
from tf_smoothclir.plugins import LOSSES, TOWERS
from tf_smoothclir.text.tokens import DistinctTokens, SubwordTokens, Tokens

PATH = Path(__file__).with_name("golden.json")
_WORDS, _DIM, _BUCKETS, _STEPS = 12, 5, 7, 4
_TEXTS = [[2, 3, 2], [], [5, 6, 4, 7, 11], [1], [8, 9]]
_NGRAMS = [[], [], [0, 1, 2], [2, 2], [], [3, 4, 0], [6], [5], [1, 3], [0], [4], [2, 5, 6]]
_GRADES = [2, 0, 1, 0, 2]
_LISTWISE = [name for name, loss in LOSSES.items() if loss.needs_lists]
_ORDINAL = [name for name in LOSSES if name not in _LISTWISE]
# Grades as they are ranked, best first, of lists of many kinds; 0 is padding too.
_RANKED = [
    [2, 1, 0, 0, 1, 0, 2, 0],
    [0, 0, 0, 0, 0, 2, 1, 0],
    [1, 0, 1, 0, 0, 0, 0, 0],
    [0, 0, 0, 0, 0, 0, 0, 0],
    [2, 0, 0, 0, 0, 0, 0, 0],
    [0, 2, 2, 2, 1, 1, 1, 0],
]


def wave(*shape: int, phase: float = 0.0) -> np.ndarray:
    """Returns float32 numbers in (-1, 1), all different, in no order."""
    places = np.arange(np.prod(shape, dtype=int), dtype=np.float64)
    return np.sin(1.7 * places**1.1 + phase).reshape(shape).astype(np.float32)


def _ordinal_loss(name: str) -> dict:
    # Scores in each segment, and on the thresholds themselves.
    scores = np.append(wave(21, phase=0.3), [0.2, 0.7, -1.0, 1.0]).astype(np.float32)
    grades = tf.constant(np.arange(len(scores)) % 4 - 1)  # -1 is padding
    loss = LOSSES[name]()
    return _value_and_gradients(lambda x: loss(grades, x), scores)


def _list_loss(name: str) -> dict:
    lists = [[2, 0, 1, 0, 1, 0], [2], [0, 1, 0, 2], [0, 0, 0], [1, 1, 1, 1, 1]]
    grades = [grade for grades in lists for grade in grades]
    scores = wave(len(grades), phase=1.1)
    scores[7:9] = scores[9]  # ties
    grades, lengths = tf.constant(grades), tf.constant([len(grades) for grades in lists])
    mean, each = LOSSES[name](), LOSSES[name](reduction="none")
    found = _value_and_gradients(lambda x: mean(*mean.laid_out(grades, x, lengths)), scores)
    return {**found, "per_list": each(*each.laid_out(grades, tf.constant(scores), lengths))}


def _value_and_gradients(function: Callable, at: np.ndarray) -> dict:
    variable = tf.Variable(at)
    with tf.GradientTape() as tape:
        value = function(variable)
    return {"value": value, "gradient": tf.convert_to_tensor(tape.gradient(value, variable))}


def _flat(rows: list[list[int]]) -> DistinctTokens:
    lengths = tf.constant([len(row) for row in rows], tf.int32)
    values = tf.constant([value for row in rows for value in row], tf.int32)
    return DistinctTokens.of(Tokens.of(values, lengths))


def _tokens(texts: list[list[int]]) -> SubwordTokens:
    tokens = _flat(texts)
    return SubwordTokens(*tokens, _flat([_NGRAMS[word] for word in tokens.distinct.numpy()]))


def _tower(kind: str, phase: float, **options):
    tower = TOWERS[kind](_WORDS, _DIM, **options)
    tower.build()
    for number, weight in enumerate(tf_weights(tower)):
        if weight.dtype.is_floating:  # sums of hundreds of inputs are kept near 1
            size = 1 if weight.shape[0] == _WORDS else weight.shape[0]
            weight.assign(wave(*weight.shape, phase=phase + number) / size**0.5)
    return tower


def _vectors(kind: str, **options) -> dict:
    tower = _tower(kind, 0.5, **options)
    with tf.GradientTape() as tape:
        vectors = tower(_tokens(_TEXTS))
        total = tf.reduce_sum(vectors * wave(len(_TEXTS), _DIM, phase=2.0))
    table = tf_variable(tower.embeddings)
    return {"vectors": vectors, "table_gradient": tf.convert_to_tensor(tape.gradient(total, table))}


def _scores() -> dict:
    pair = [wave(4, _DIM, phase=0.1), 9 * wave(4, _DIM, phase=0.9)]
    pair[1][2] = 0
    return {f"epsilon {e}": SmoothCosineSimilarity(e)(pair) for e in (0.0, 0.5, 1.0)}


def _steps(optimizer: str, kind: str = "average_pooling", clip_norm: float = 0.0, **options):
    query, document = _tower(kind, 0.5, **options), _tower(kind, 3.5, **options)
    model = TwoTower(query, document, clip_norm=clip_norm)
    model.build()
    model.compile(make_optimizer(optimizer, 0.1), LOSSES["sosl"]())
    model.optimizer.build(model.trainable_variables)
    batch = ({"query": _tokens(_TEXTS), "document": _tokens(_TEXTS[::-1])}, tf.constant(_GRADES))
    logs = [model.logged_step(batch) for _ in range(_STEPS)]
    return {
        **{name: [step[name] for step in logs] for name in ("batch_loss", "gradient_norm")},
        "query_table": tf_variable(query.embeddings),
        "scores": model(batch[0]),
    }


CASES: dict[str, Callable[[], dict]] = {
    "metrics": lambda: per_query_metrics(np.array(_RANKED, np.int32), num_grades=3),
    "similarity": _scores,
    **{f"loss {name}": lambda name=name: _ordinal_loss(name) for name in _ORDINAL},
    **{f"list loss {name}": lambda name=name: _list_loss(name) for name in _LISTWISE},
    **{f"tower {kind}": lambda kind=kind: _vectors(kind) for kind in TOWERS},
    "tower with n-grams": lambda: _vectors("average_pooling", ngram_buckets=_BUCKETS),
    "tower with weights": lambda: _vectors("average_pooling", token_weights="learned"),
    "tower with positions": lambda: _vectors("average_pooling", position_weights="learned"),
    **{f"steps of {name}": lambda name=name: _steps(name) for name in OPTIMIZERS},
    "steps, clipped": lambda: _steps("rmsprop", clip_norm=0.02),
    "steps with n-grams": lambda: _steps("rmsprop", ngram_buckets=_BUCKETS),
    # Without dropout, which each stack draws from the same hash but not from the same bits.
    "steps of an LSTM": lambda: _steps("lazy_adam", "lstm", dropout=0.0),
    # Adam divides each gradient near zero by itself. Of these there are many here, so its steps
    # would follow the last bits of matrix products, which are not those of every processor.
    "steps of a CNN": lambda: _steps("row_rmsprop", "cnn", dropout=0.0),
}


def plain(value):
    """Returns a value for JSON; None for NaN, the metric of a list without relevant documents."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list):
        value = np.array([float(part) for part in value])
    array = np.asarray(value, np.float64)
    rounded = [None if np.isnan(x) else float(f"{x:.9g}") for x in array.ravel()]
    return {"shape": list(array.shape), "numbers": rounded}


def main() -> None:
    numbers = {name: plain(case()) for name, case in CASES.items()}
    made = {"tensorflow": tf.__version__, "python": sys.version.split()[0]}
    text = json.dumps({"made_with": made, "cases": numbers})
    PATH.write_text(text.replace('}, "', '},\n"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
