"""Where the time goes between raw texts and vectors: each stage of the graph of a tower alone.

python -m benchmarks.encoding_stages --rounds=5

Time of one core (CPU time of the process, TensorFlow held to one thread) for each document, the
least of all rounds. Documents have 128 tokens, from a vocabulary of 100,000 made-up words as
frequent as words of texts are (Zipf). With --data_dir, the documents of a set are read instead.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from absl import flags

from benchmarks import common

_WORDS, _TOKENS = 100_000, 128


def made_up(documents: int) -> tuple[list[str], list[str]]:
    """A vocabulary and texts."""
    random = np.random.default_rng(13)
    letters = random.integers(97, 123, (_WORDS, 10), np.uint8)
    lengths = random.integers(2, 11, _WORDS)
    words = [row[:length].tobytes().decode() for row, length in zip(letters, lengths)]
    shares = 1 / np.arange(1, _WORDS + 1)
    drawn = random.choice(_WORDS, (documents, _TOKENS), p=shares / shares.sum())
    return list(dict.fromkeys(words)), [" ".join(words[id_] for id_ in row) for row in drawn]


def of_set(data_dir: str, language: str, documents: int) -> tuple[list[str], list[str]]:
    """The words and the first documents of a set."""
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.settings.data import DataSettings
    from tf_smoothclir.text.tokenizer import tokenize

    source = source_of(DataSettings(data_dir=data_dir, document_language=language))
    texts = [text.text for text in itertools.islice(source.documents(), documents)]
    tokens = tokenize(tf.constant(texts), _TOKENS).flat_values.numpy()
    return sorted({token.decode() for token in tokens}), texts


def measure(vocabulary: list[str], texts: list[str], rounds: int) -> list[dict]:
    """A table with a row for each stage: microseconds for each document."""
    from tf_smoothclir.text import tokenizer

    ids = tf.range(len(vocabulary), dtype=tf.int64)
    found = tf.lookup.KeyValueTensorInitializer(tf.constant(vocabulary), ids)
    table = tf.lookup.StaticHashTable(found, 0)
    raw = tf.constant(texts)
    normal = tokenizer.normalize(raw)
    tokens = tokenizer.tokenize(raw, _TOKENS)
    numbers, rows = table.lookup(tokens.flat_values), tokens.value_rowids()

    def mean(vectors: tf.Tensor) -> Callable[[], tf.Tensor]:
        return lambda: tf.sparse.segment_mean(vectors, numbers, rows, num_segments=len(texts))

    stages = {
        "normalisation": lambda: tokenizer.normalize(raw),
        "splitting": lambda: tf.raw_ops.StringSplit(input=normal, delimiter=" ").values,
        "look-up": lambda: table.lookup(tokens.flat_values),
        "mean of 64 numbers": mean(tf.random.normal([len(vocabulary), 64])),
        "mean of 512 numbers": mean(tf.random.normal([len(vocabulary), 512])),
    }
    measured = {name: [_least(stage, len(texts), rounds)] for name, stage in stages.items()}
    title = f"{len(texts):,} documents, {len(numbers) / len(texts):.0f} tokens each"
    references = ["normalisation"]
    return [common.table(title, measured, ratio_of="µs/document", references=references)]


def _least(stage: Callable[[], tf.Tensor], documents: int, rounds: int) -> dict[str, float]:
    compiled, seconds = tf.function(stage, autograph=False), []
    compiled()
    for _ in range(rounds):
        begin = time.process_time()
        compiled()
        seconds.append(time.process_time() - begin)
    return {"µs/document": 1e6 * min(seconds) / documents}


def _define_flags() -> None:
    flags.DEFINE_integer("documents", 4096, "Number of documents.", lower_bound=1)
    flags.DEFINE_string("data_dir", "", "Retrieval set to read; empty: made-up texts.")
    flags.DEFINE_string("document_language", "fr", "Document language of the set.")


def _measure(values: flags.FlagValues) -> list[dict]:
    common.use_threads(1)
    if values.data_dir:
        texts = of_set(values.data_dir, values.document_language, values.documents)
    else:
        texts = made_up(values.documents)
    return measure(*texts, values.rounds)


if __name__ == "__main__":
    common.run(_define_flags, _measure)
