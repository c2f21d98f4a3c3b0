"""Encoding: documents per second from raw text to vectors, compared with plain Keras.

python -m benchmarks.encoding
"""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from absl import flags

from benchmarks import common
from benchmarks.workload import Workload, two_tower, zipf_ranks

PACKAGE, KERAS = "tf_smoothclir", "Keras"
_SYLLABLES = [c + v for c in "bdfglmnprst" for v in ("a", "e", "i", "o", "u", "é", "è", "an", "ou")]
_MAX_TOKENS = 200
_BATCH = 1024


def words(count: int) -> list[str]:
    """Returns `count` different words of two to four syllables; frequent ones are short."""
    base = len(_SYLLABLES)
    spelled = []
    for number in range(base, base + count):  # at least two syllables
        syllables = []
        while number:
            number, digit = divmod(number, base)
            syllables.append(_SYLLABLES[digit])
        spelled.append("".join(syllables))
    return list(dict.fromkeys(spelled))


def texts(count: int, tokens: int, vocabulary: list[str]) -> list[str]:
    """Returns documents of about `tokens` tokens, every tenth of them a comma.

    Lengths are uniform between 2/3 and 4/3 of `tokens`; words are Zipf-distributed. The first
    letter is a capital.
    """
    generator = np.random.default_rng(13)
    lengths = generator.integers(tokens * 2 // 3, tokens * 4 // 3 + 1, count) * 10 // 11
    spelled = np.array(vocabulary, object)[
        zipf_ranks(generator, lengths.sum(), len(vocabulary))
    ].tolist()
    spelled[9::10] = [f"{word}," for word in spelled[9::10]]
    ends = np.cumsum(lengths)
    return [" ".join(spelled[end - n : end]).capitalize() for end, n in zip(ends, lengths)]


def package(documents: int, tokens: int, vocabulary: int, threads: int) -> dict[str, float]:
    """Times the exported document tower's graph, batch by batch."""
    common.use_threads(threads)
    import tensorflow as tf

    from tf_smoothclir.publishing.exported_tower import ExportedTower
    from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN, TextEncoder, write_vocabulary

    known = words(vocabulary)
    workload = Workload(vocabulary=len(known) + 3)
    model = two_tower(workload, workload.settings())
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "document.txt")
        write_vocabulary(path, [PADDING, UNKNOWN, ",", *known])
        tower = ExportedTower(
            model.document_tower, TextEncoder(path, _MAX_TOKENS), epsilon=1.0, name="document_tower"
        )
        batches = (
            tf.data.Dataset.from_tensor_slices(texts(documents, tokens, known))
            .batch(_BATCH)
            .map(lambda text: tower.serve(text)["vector"], num_parallel_calls=threads)
            .prefetch(2)
        )
        lengths = tower.encoder(tf.constant(texts(_BATCH, tokens, known))).lengths.numpy()
        return {**_speed(batches, documents), "tokens a document": float(lengths.mean())}


def keras_tower(documents: int, tokens: int, vocabulary: int, threads: int) -> dict[str, float]:
    """Times the same model in plain Keras, on padded ids from the input pipeline."""
    common.use_threads(threads)
    import tensorflow as tf
    from tensorflow import keras

    known = words(vocabulary)
    vectorize = keras.layers.TextVectorization(output_sequence_length=_MAX_TOKENS, vocabulary=known)
    model = keras.Sequential(
        [
            keras.layers.Embedding(vectorize.vocabulary_size(), Workload.dim, mask_zero=True),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Activation("tanh"),
        ]
    )
    batches = (
        tf.data.Dataset.from_tensor_slices(texts(documents, tokens, known))
        .batch(_BATCH)
        .map(vectorize, num_parallel_calls=threads)
        .map(model, num_parallel_calls=threads)
        .prefetch(2)
    )
    lengths = tf.math.count_nonzero(vectorize(texts(_BATCH, tokens, known)), axis=1).numpy()
    return {**_speed(batches, documents), "tokens a document": float(lengths.mean())}


def measure(
    *, documents: int, tokens: int, vocabulary: int, rounds: int, threads: int
) -> list[dict]:
    """Returns the table for `documents` documents of about `tokens` tokens each."""
    sizes = (documents, tokens, vocabulary, threads)
    rivals = {
        PACKAGE: partial(package, *sizes),
        KERAS: partial(keras_tower, *sizes),
    }
    return [
        common.table(
            f"Encoding {documents:,} documents from text, {threads} threads",
            common.interleaved(rivals, rounds),
            ratio_of="documents/s",
            references=[KERAS],
        )
    ]


def _speed(batches, documents: int) -> dict[str, float]:
    for _ in batches.take(1):  # traces, and touches the table
        pass
    begin = time.perf_counter()
    for batch in batches:
        batch.numpy()
    return {"documents/s": documents / (time.perf_counter() - begin)}


def _define_flags() -> None:
    flags.DEFINE_integer("documents", 20_480, "Number of documents.", lower_bound=1)
    flags.DEFINE_integer("tokens", 130, "Mean length of a document in tokens.", lower_bound=3)
    flags.DEFINE_integer("vocabulary", 100_000, "Number of different words.", lower_bound=100)
    flags.DEFINE_integer("threads", 2, "Threads of TensorFlow.", lower_bound=1)


def _measure(values: flags.FlagValues) -> list[dict]:
    return measure(
        documents=values.documents,
        tokens=values.tokens,
        vocabulary=values.vocabulary,
        rounds=values.rounds,
        threads=values.threads,
    )


if __name__ == "__main__":
    common.run(_define_flags, _measure)
