"""Encoding: documents per second from raw text to vectors, of static embeddings of equal size.

The graph of an exported tower, and the same tower without TensorFlow, beside plain Keras,
sentence-transformers' StaticEmbedding and model2vec. All take the mean of the vectors of whole
words out of tables of the same size. A rival that is not installed is left out with its reason.

python -m benchmarks.encoding
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from absl import flags

from benchmarks import common
from benchmarks.workload import Workload, two_tower, zipf_ranks
from tf_smoothclir.encoder import Encoder
from tf_smoothclir.storage.folder import write_manifest

PACKAGE, NUMPY, KERAS = "tf_smoothclir", "tf_smoothclir, NumPy", "Keras"
_SYLLABLES = [c + v for c in "bdfglmnprst" for v in ("a", "e", "i", "o", "u", "é", "è", "an", "ou")]
_MAX_TOKENS = 200
_BATCH = 1024


def words(count: int) -> list[str]:
    """`count` different words of two to four syllables; frequent ones are short."""
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
    """Documents of about `tokens` tokens, every tenth of them a comma.

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


def package(
    documents: int, tokens: int, vocabulary: int, dim: int, threads: int
) -> dict[str, float]:
    """Times the exported document tower's graph, batch by batch."""
    common.use_threads(threads)
    import tensorflow as tf

    known = words(vocabulary)
    with tempfile.TemporaryDirectory() as directory:
        tower = _tower(Path(directory), known, dim)
        batches = (
            _batches(texts(documents, tokens, known), threads)
            .map(lambda text: tower.serve(text)["vector"], num_parallel_calls=threads)
            .prefetch(2)
        )
        lengths = tower.encoder(tf.constant(texts(_BATCH, tokens, known))).lengths.numpy()
        return {**_speed(batches, documents), "tokens a document": float(lengths.mean())}


def numpy_encoder(
    documents: int, tokens: int, vocabulary: int, dim: int, threads: int
) -> dict[str, float]:
    """Times the same tower without TensorFlow, in as many processes as the others have threads."""
    known = words(vocabulary)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "document_tower", "1")
        path.parent.mkdir()
        tower = _tower(Path(directory), known, dim)
        tower.save(str(path))
        write_manifest(path, "document", {"version": 1, "pair_id": ""})
        parts = np.array_split(np.array(texts(documents, tokens, known), object), threads)
        with contextlib.ExitStack() as running:
            # An executor ends with an error where a process does not start; a Pool tries for ever.
            pools = [
                running.enter_context(
                    ProcessPoolExecutor(
                        1, common.PROCESSES, initializer=_load, initargs=(directory, list(part))
                    )
                )
                for part in parts
            ]
            for ready in [pool.submit(_encode, _BATCH) for pool in pools]:
                ready.result()
            begin = time.perf_counter()
            encoded = [pool.submit(_encode, len(part)) for pool, part in zip(pools, parts)]
            of_processor = sum(future.result() for future in encoded)
            speed = _per_second(documents, time.perf_counter() - begin, of_processor)
        lengths = tower.encoder(texts(_BATCH, tokens, known)).lengths.numpy()
        return {**speed, "tokens a document": float(lengths.mean())}


def _load(export_dir: str, part: list[str]) -> None:
    global _encoder, _texts
    _encoder, _texts = Encoder(export_dir, "document"), part


def _encode(count: int) -> float:
    """The seconds of the processor for the first texts of this process."""
    begin = time.process_time()
    _encoder.encode(_texts[:count])
    return time.process_time() - begin


def _tower(directory: Path, known: list[str], dim: int):
    from tf_smoothclir.publishing.exported_tower import ExportedTower
    from tf_smoothclir.text.tokens import TextEncoder
    from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN, write_vocabulary

    workload = Workload(vocabulary=len(known) + 3, dim=dim)
    model = two_tower(workload, workload.settings())
    path = directory / "document.txt"
    write_vocabulary(path, [PADDING, UNKNOWN, ",", *known])
    encoder = TextEncoder(path, _MAX_TOKENS)
    return ExportedTower(model.document_tower, encoder, epsilon=1.0, name="document_tower")


def static_embedding(
    documents: int, tokens: int, vocabulary: int, dim: int, threads: int
) -> dict[str, float]:
    """Times sentence-transformers' StaticEmbedding with a table of the same size, whole words."""
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import StaticEmbedding

    torch.set_num_threads(threads)
    known = words(vocabulary)
    tokenizer = _rust_tokenizer(known)
    module = StaticEmbedding(tokenizer, embedding_weights=_table(known, dim))
    model = SentenceTransformer(modules=[module], device="cpu")

    def encode(part):
        return model.encode(part, batch_size=_BATCH, normalize_embeddings=True)

    return _speed_of(encode, documents, tokens, known, tokenizer)


def model2vec(
    documents: int, tokens: int, vocabulary: int, dim: int, threads: int
) -> dict[str, float]:
    """Times model2vec with a table of the same size, whole words."""
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    from model2vec import StaticModel

    known = words(vocabulary)
    tokenizer = _rust_tokenizer(known)
    model = StaticModel(_table(known, dim), tokenizer, normalize=True)

    def encode(part):  # its processes only pay for many more documents
        return model.encode(
            part, batch_size=_BATCH, max_length=_MAX_TOKENS, use_multiprocessing=False
        )

    return _speed_of(encode, documents, tokens, known, tokenizer)


def _rust_tokenizer(known: list[str]):
    """A tokeniser of the library `tokenizers`: lower case, words and punctuation."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    ids = {word: number for number, word in enumerate(["[UNK]", ",", *known])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _table(known: list[str], dim: int) -> np.ndarray:
    return np.random.default_rng(13).normal(size=(len(known) + 2, dim)).astype(np.float32)


def _speed_of(encode, documents: int, tokens: int, known: list[str], tokenizer) -> dict[str, float]:
    encoded = texts(documents, tokens, known)
    encode(encoded[:_BATCH])
    speed = _timed(lambda: encode(encoded), documents)
    lengths = [len(tokenizer.encode(text).ids) for text in encoded[:_BATCH]]
    return {**speed, "tokens a document": float(np.mean(lengths))}


def keras_tower(
    documents: int, tokens: int, vocabulary: int, dim: int, threads: int
) -> dict[str, float]:
    """Times the same model in plain Keras, on padded ids from the input pipeline."""
    common.use_threads(threads)
    import tensorflow as tf
    from tensorflow import keras

    known = words(vocabulary)
    vectorize = keras.layers.TextVectorization(output_sequence_length=_MAX_TOKENS, vocabulary=known)
    model = keras.Sequential(
        [
            keras.layers.Embedding(vectorize.vocabulary_size(), dim, mask_zero=True),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Activation("tanh"),
        ]
    )
    batches = (
        _batches(texts(documents, tokens, known), threads)
        .map(vectorize, num_parallel_calls=threads)
        .map(model, num_parallel_calls=threads)
        .prefetch(2)
    )
    lengths = tf.math.count_nonzero(vectorize(texts(_BATCH, tokens, known)), axis=1).numpy()
    return {**_speed(batches, documents), "tokens a document": float(lengths.mean())}


_RIVALS = {PACKAGE: package, NUMPY: numpy_encoder, KERAS: keras_tower}
# Name -> what it needs, and its function.
_OPTIONAL = {
    "StaticEmbedding": ("sentence_transformers", static_embedding),
    "model2vec": ("model2vec", model2vec),
}


def measure(
    *, documents: int, tokens: int, vocabulary: int, rounds: int, threads: int, dim: int = 64
) -> list[dict]:
    """The table for `documents` documents of about `tokens` tokens each."""
    functions = dict(_RIVALS)
    for name, (module, function) in _OPTIONAL.items():
        if common.has(module):
            functions[name] = function
        else:
            print(f"{name} is left out: {module} is not installed.", file=sys.stderr)
    sizes = (documents, tokens, vocabulary, dim, threads)
    rivals = {name: partial(function, *sizes) for name, function in functions.items()}
    return [
        common.table(
            f"Encoding {documents:,} documents from text, {dim} dimensions, {threads} threads",
            common.interleaved(rivals, rounds),
            ratio_of="documents/s",
            references=[KERAS],
        )
    ]


def _batches(texts: list[str], threads: int):
    """A dataset of batches. One of single texts, then batched, takes 0.9 µs a text."""
    import tensorflow as tf

    from tf_smoothclir.data.pipeline import plain_options

    all_texts = tf.constant(texts)
    begins = tf.data.Dataset.range(0, len(texts), _BATCH)
    batches = begins.map(lambda n: all_texts[n : n + _BATCH], num_parallel_calls=threads)
    return batches.with_options(plain_options())  # else the clock runs while tf.data sleeps


def _speed(batches, documents: int) -> dict[str, float]:
    for _ in batches.take(1):  # traces, and touches the table
        pass

    def encode():
        for batch in batches:
            batch.numpy()

    return _timed(encode, documents)


def _timed(encode: Callable[[], None], documents: int) -> dict[str, float]:
    begin, of_processor = time.perf_counter(), time.process_time()
    encode()
    return _per_second(documents, time.perf_counter() - begin, time.process_time() - of_processor)


def _per_second(documents: int, seconds: float, of_processor: float) -> dict[str, float]:
    """Speeds; that by the time of the processors says more on a shared machine."""
    return {"documents/s": documents / seconds, "documents/CPU s": documents / of_processor}


def _define_flags() -> None:
    flags.DEFINE_integer("documents", 20_480, "Number of documents.", lower_bound=1)
    flags.DEFINE_integer("tokens", 130, "Mean length of a document in tokens.", lower_bound=3)
    flags.DEFINE_integer("vocabulary", 100_000, "Number of different words.", lower_bound=100)
    flags.DEFINE_integer("dim", 64, "Length of the vectors.", lower_bound=1)
    flags.DEFINE_integer("threads", 2, "Threads, or processes, of each rival.", lower_bound=1)


if __name__ == "__main__":
    common.run(_define_flags, measure)
