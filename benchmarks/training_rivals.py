"""The same model and loss in plain Keras and in PyTorch, as their users would write them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.common import use_threads
from benchmarks.workload import Workload, tokenized_set_of
from tf_smoothclir.data.candidate_lists import CandidateLists, candidate_lists
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet

_THRESHOLDS = (0.2, 0.7)
_WARM_UP = 5


def keras_adam(workload: Workload, steps: int, threads: int) -> dict[str, float]:
    """Trains `Embedding` and `GlobalAveragePooling1D` with Keras's Adam on padded batches."""
    use_threads(threads)
    import tensorflow as tf
    from tensorflow import keras

    from tf_smoothclir.losses.ordinal import SmoothOrdinalSearchLoss
    from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity

    def tower(name):
        tokens = keras.Input([None], dtype="int32", name=name)
        vectors = keras.layers.Embedding(
            workload.vocabulary,
            workload.dim,
            mask_zero=True,
            embeddings_initializer=keras.initializers.RandomNormal(stddev=1.0),
        )(tokens)
        means = keras.layers.GlobalAveragePooling1D()(vectors)
        return tokens, keras.layers.Activation("tanh")(means)

    with tempfile.TemporaryDirectory() as directory:
        tokenized_set, lists = _training_pairs(workload, Path(directory))
        padded = {role: tf.constant(_padded(tokenized_set, role)) for role in ROLES}
    rows = (lists.pair_query_rows, lists.document_rows, lists.grades)
    batches = (
        tf.data.Dataset.from_tensor_slices(rows)
        .shuffle(len(lists.grades), seed=13)
        .repeat()
        .batch(workload.batch_size)
        .map(
            lambda query, document, grade: (
                {
                    "query": tf.gather(padded["query"], query),
                    "document": tf.gather(padded["document"], document),
                },
                grade,
            ),
            num_parallel_calls=tf.data.AUTOTUNE,
        )
        .prefetch(tf.data.AUTOTUNE)
    )
    (query, query_vectors), (document, document_vectors) = tower("query"), tower("document")
    model = keras.Model(
        {"query": query, "document": document},
        SmoothCosineSimilarity(epsilon=1.0)([query_vectors, document_vectors]),
    )
    model.compile(keras.optimizers.Adam(0.01), SmoothOrdinalSearchLoss(_THRESHOLDS))
    model.fit(batches, steps_per_epoch=_WARM_UP, verbose=0)
    begin = time.perf_counter()
    model.fit(batches, steps_per_epoch=steps, verbose=0)
    return speed(workload, steps, time.perf_counter() - begin)


def torch_sparse_adam(workload: Workload, steps: int, threads: int) -> dict[str, float]:
    """Trains `EmbeddingBag(sparse=True)` with `SparseAdam` on flat ids and offsets."""
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(13)
    with tempfile.TemporaryDirectory() as directory:
        tokenized_set, lists = _training_pairs(workload, Path(directory))
        stores = {role: _in_memory(tokenized_set, role) for role in ROLES}
    rows = {"query": lists.pair_query_rows, "document": lists.document_rows}
    bags = {
        role: torch.nn.EmbeddingBag(workload.vocabulary, workload.dim, mode="mean", sparse=True)
        for role in ROLES
    }
    optimizer = torch.optim.SparseAdam([bag.weight for bag in bags.values()], lr=0.01)

    def step(pairs):
        vectors = {}
        for role in ROLES:
            ids, offsets = _flat(*stores[role], rows[role][pairs])
            mean = bags[role](torch.from_numpy(ids), torch.from_numpy(offsets))
            vectors[role] = torch.tanh(mean)
        optimizer.zero_grad(set_to_none=True)
        _torch_sosl(*vectors.values(), lists.grades[pairs]).backward()
        optimizer.step()

    return _torch_speed(workload, steps, len(lists.grades), step)


def torch_as_published(workload: Workload, steps: int, threads: int) -> dict[str, float]:
    """Trains as the paper's authors do: padded batches, dense tables, AdamW, clipped gradients.

    Their code: https://github.com/JiapengL/multi_ling_search. Batches here are padded in NumPy, not
    in Python, so that models are compared and not their input.
    """
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(13)
    with tempfile.TemporaryDirectory() as directory:
        tokenized_set, lists = _training_pairs(workload, Path(directory))
        texts = {role: (_padded(tokenized_set, role), tokenized_set.tokens(role)) for role in ROLES}
        lengths = {role: np.diff(store.offsets) for role, (_, store) in texts.items()}
    rows = {"query": lists.pair_query_rows, "document": lists.document_rows}
    parts = {role: _published_parts(workload) for role in ROLES}
    modules = torch.nn.ModuleList(module for of_role in parts.values() for module in of_role)
    optimizer = torch.optim.AdamW(modules.parameters(), lr=0.01)

    def vectors(role, pairs):
        chosen = rows[role][pairs]
        ids = torch.from_numpy(texts[role][0][chosen, : lengths[role][chosen].max()])
        embeddings, *layers = parts[role]
        words = embeddings(ids)
        if workload.tower == "average_pooling":
            return torch.tanh(words.mean(1))
        reader, dropout, dense = layers
        words = dropout(words)
        if workload.tower == "cnn":
            return dense(torch.tanh(reader(words.transpose(1, 2))).max(2).values)
        return torch.tanh(dense(reader(words)[0][:, 0]))

    def step(pairs):
        optimizer.zero_grad()
        _torch_sosl(*(vectors(role, pairs) for role in ROLES), lists.grades[pairs]).backward()
        torch.nn.utils.clip_grad_norm_(modules.parameters(), 5.0)
        optimizer.step()

    return _torch_speed(workload, steps, len(lists.grades), step)


def _published_parts(workload: Workload) -> list:
    """The layers of a tower: a table and, after it, what reads it, dropout and a dense layer."""
    from torch import nn

    dim = workload.dim
    table = nn.Embedding(workload.vocabulary, dim)
    if workload.tower == "average_pooling":
        return [table]
    if workload.tower == "cnn":
        return [table, nn.Conv1d(dim, 300, 3), nn.Dropout(0.4), nn.Linear(300, dim)]
    lstm = nn.LSTM(dim, 64, batch_first=True, bidirectional=True)
    return [table, lstm, nn.Dropout(0.4), nn.Linear(128, dim)]


def _torch_sosl(of_query, of_document, grades: np.ndarray):
    """The mean SOSL of pairs of vectors, `[pairs, dim]` each, with ε = 1."""
    import torch

    lower, upper = torch.tensor((-1.0, *_THRESHOLDS)), torch.tensor((*_THRESHOLDS, 1.0))
    norms = (of_query.norm(dim=1) + 1.0) * (of_document.norm(dim=1) + 1.0)
    scores = (of_query * of_document).sum(1) / norms
    of_pairs = torch.from_numpy(grades).long()
    above = torch.relu(scores - upper[of_pairs]) ** 2
    below = torch.relu(lower[of_pairs] - scores) ** 2
    return (above + below).mean()


def _torch_speed(
    workload: Workload, steps: int, pairs: int, step: Callable[[np.ndarray], None]
) -> dict[str, float]:
    """Times steps on batches of shuffled pairs, after some that warm up."""
    generator, size = np.random.default_rng(13), workload.batch_size
    epochs = 1 + (_WARM_UP + steps) * size // pairs
    order = np.concatenate([generator.permutation(pairs) for _ in range(epochs)])
    for number in range(_WARM_UP + steps):
        if number == _WARM_UP:
            begin = time.perf_counter()
        step(order[number * size : (number + 1) * size])
    return speed(workload, steps, time.perf_counter() - begin)


def speed(workload: Workload, steps: float, seconds: float) -> dict[str, float]:
    """Pairs per second and milliseconds per step."""
    return {
        "pairs/s": steps * workload.batch_size / seconds,
        "ms/step": 1000 * seconds / steps,
    }


def _training_pairs(workload: Workload, directory: Path) -> tuple[TokenizedSet, CandidateLists]:
    tokenized_set = tokenized_set_of(workload, directory)
    settings = workload.settings().training
    negatives, seed = settings.negatives, settings.seed
    return tokenized_set, candidate_lists(
        tokenized_set.retrieval_set, "train", negatives=negatives, seed=seed
    )


def _in_memory(tokenized_set: TokenizedSet, role: str) -> tuple[np.ndarray, np.ndarray]:
    store = tokenized_set.tokens(role)
    return np.array(store.values), store.offsets


def _flat(
    values: np.ndarray, offsets: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The concatenated ids of some rows, and the offset of each row."""
    lengths = offsets[rows + 1] - offsets[rows]
    starts = np.cumsum(lengths) - lengths
    places = np.arange(lengths.sum()) + np.repeat(offsets[rows] - starts, lengths)
    return values[places], starts


def _padded(tokenized_set: TokenizedSet, role: str) -> np.ndarray:
    values, offsets = _in_memory(tokenized_set, role)
    lengths = np.diff(offsets)
    padded = np.zeros((len(lengths), lengths.max()), np.int32)
    padded[np.arange(lengths.max()) < lengths[:, None]] = values
    return padded
