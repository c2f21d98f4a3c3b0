"""Encoder of texts by an exported tower, with NumPy alone: for clients without TensorFlow."""

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from tf_smoothclir.encoder.chunk_table import ChunkTable
from tf_smoothclir.encoder.description import DESCRIPTION, TowerDescription, version_directory
from tf_smoothclir.encoder.tokenizer import tokens_of
from tf_smoothclir.encoder.word_evidence import WordEvidence, WordsRead, ngram_buckets
from tf_smoothclir.storage.folder import Folder
from tf_smoothclir.utils.parallel import text_batches
from tf_smoothclir.utils.paths import local_path
from tf_smoothclir.utils.ranges import ranges

_UNKNOWN_ID = 1
_NUMBERS_PER_STEP = 1 << 21  # of rows of a table, 8 MB: they stay in the cache of the processor
_MOST_REMEMBERED = 1 << 20  # chunks and tokens
_LEAST_OF_THREADS = 9_216  # numbers of a matrix that OpenBLAS multiplies in threads

Text = str | bytes


class TokenVectors(NamedTuple):
    """Token vectors whose mean, after tanh and smooth-normalisation, is the vector of a text."""

    words: list[str]  # the tokens, in order, with repetitions
    # `[words, dim]` float32, times the weight of each over the mean weight of the text.
    vectors: np.ndarray


class _Read(NamedTuple):
    """The tokens of texts."""

    words: list[str]  # different ones
    numbers: np.ndarray  # `[tokens]`, the place of each token in `words`
    vectors: np.ndarray  # `[rows, dim]` float32
    rows: np.ndarray  # `[tokens]`, the row of each token in `vectors`
    weights: np.ndarray  # `[tokens]` float32
    ends: np.ndarray  # `[texts]`, where the tokens of each text end

    def texts(self) -> Iterator[slice]:
        """Yields where the tokens of each text are."""
        ends = self.ends.tolist()
        return map(slice, [0, *ends[:-1]], ends)


class Encoder:
    """An exported tower of average pooling, as `load_part` has it, without TensorFlow.

    Its vectors are those of the SavedModel, up to rounding (1e-6). The inner product of a query
    vector and a document vector is their score.

    Attributes:
        dim: Length of the vectors.
        pair_id: Equal for the towers and the index that belong together.
        version: Version of the export.
        epsilon: ε of the similarity.
    """

    def __init__(self, export_dir: str | os.PathLike, role: str, version: int | None = None):
        """Loads a tower, after checking its files against its manifest.

        Args:
            export_dir: Where `smoothclir-export` wrote, or a copy of it. A copy of `query_tower`
                alone, or `document_tower` alone, will do.
            role: "query" or "document".
            version: None for the latest complete one.

        Raises:
            InputError: There is no such version, the tower is not one of average pooling, or a file
                is not the one that was written.
        """
        self._load(version_directory(Path(local_path(export_dir)), role, version), role)

    @staticmethod
    def can_load(directory: Path) -> bool:
        """Returns whether the directory of a version has a tower that needs no TensorFlow."""
        return (directory / DESCRIPTION).exists()

    @classmethod
    def of_version(cls, directory: Path, role: str, *, is_checked: bool = False) -> Self:
        """Loads a tower from the directory of its version, perhaps of checked files."""
        encoder = cls.__new__(cls)
        encoder._load(directory, role, is_checked)
        return encoder

    def _load(self, directory: Path, role: str, is_checked: bool = False) -> None:
        folder = Folder.read(directory, role)
        if not is_checked:
            folder.check("Copy the export again")
        tower = TowerDescription.read(directory)
        self.version, self.pair_id = folder.facts["version"], folder.facts["pair_id"]
        vocabulary = (directory / tower.vocabulary).read_text(encoding="utf-8").split("\n")[:-1]
        self._use(tower, vocabulary, {name: tower.array(directory, name) for name in tower.arrays})

    @classmethod
    def of_arrays(
        cls, tower: TowerDescription, vocabulary: Sequence[str], arrays: Mapping[str, np.ndarray]
    ) -> Self:
        """A tower that no file has; of `tower`, the arrays and the vocabulary do not count."""
        encoder = cls.__new__(cls)
        encoder._use(tower, vocabulary, arrays)
        return encoder

    def _use(
        self, tower: TowerDescription, vocabulary: Sequence[str], arrays: Mapping[str, np.ndarray]
    ) -> None:
        self._tower, self.epsilon, self._arrays = tower, tower.epsilon, dict(arrays)
        self._ids = _Ids(zip(vocabulary, itertools.count()))
        self._evidence = WordEvidence(frozenset(vocabulary[_UNKNOWN_ID + 1 :]), tower.ngrams)
        self._token_weights = None
        if "token_weights" in self._arrays:
            raw = self._arrays.pop("token_weights")[:, 0]
            self._token_weights = np.logaddexp(0, np.float32(tower.pace) * raw)
        self._profile = _profile(tower, self._arrays.pop("position_weights", None))
        self._chunks = self._empty_table()
        self.dim = self._arrays["embeddings"].shape[1]

    def _empty_table(self) -> ChunkTable:
        return ChunkTable(self._ids, self._tower.pretokenized)

    def encode(self, texts: Iterable[Text]) -> np.ndarray:
        """Returns the smooth-normalised vectors of texts, `[texts, dim]` float32.

        Args:
            texts: Any texts: empty ones and bytes that are not UTF-8 have finite vectors too. They
                are cut as in training.

        Raises:
            TypeError: `texts` is a single text, or something in it is no text.
        """
        texts = _listed(texts)
        vectors, begin = np.empty([len(texts), self.dim], np.float32), 0
        for batch in text_batches(texts):
            vectors[begin : begin + len(batch)] = self._encoded(batch)
            begin += len(batch)
        return vectors

    def known(self, texts: Iterable[Text]) -> list[WordsRead]:
        """Returns the evidence of each text: one without a known word finds anything.

        Args:
            texts: Any texts.
        """
        most, as_is = self._tower.max_tokens, self._tower.pretokenized
        tokens = [tokens_of(_characters(text), as_is) for text in _listed(texts)]
        cut = (max(0, len(of_text) - most) for of_text in tokens)
        read = (self._evidence.of_tokens(of_text[:most]) for of_text in tokens)
        return [of_text._replace(cut=number) for of_text, number in zip(read, cut)]

    def token_vectors(self, texts: Iterable[Text]) -> list[TokenVectors]:
        """Returns the tokens of each text with their vectors; `explain` is made of them.

        Args:
            texts: Any texts.
        """
        read = self._read(_listed(texts))
        vectors_of_texts = []
        for tokens in read.texts():
            weights = read.weights[tokens, np.newaxis]
            vectors = read.vectors[read.rows[tokens]]
            if len(weights):
                vectors *= weights / weights.mean()
            words = [read.words[number] for number in read.numbers[tokens]]
            vectors_of_texts.append(TokenVectors(words, vectors))
        return vectors_of_texts

    def _encoded(self, texts: list[Text]) -> np.ndarray:
        read = self._read(texts)
        pooled = np.zeros([len(texts), self.dim], np.float32)
        for row, tokens in enumerate(read.texts()):
            vectors = read.vectors.take(read.rows[tokens], axis=0)  # faster than in brackets
            pooled[row] = _product(read.weights[tokens], vectors)
        begins = np.append(0, read.ends[:-1])
        # A zero, because texts at the end may be empty; for any such, reduceat takes the next sum.
        sums = np.add.reduceat(np.append(read.weights, np.float32(0)), begins)
        sums = np.where(read.ends > begins, sums, 0)[:, np.newaxis]
        pooled = np.divide(pooled, sums, out=pooled, where=sums > 0)
        pooled = np.tanh(pooled, out=pooled)
        norms = np.linalg.norm(pooled, axis=1, keepdims=True) + self.epsilon
        return np.divide(pooled, norms, out=np.zeros_like(pooled), where=norms > 0)

    def _read(self, texts: list[Text]) -> _Read:
        # Chunks of earlier calls are remembered, but not without bound.
        if self._chunks.size > _MOST_REMEMBERED:
            self._chunks = self._empty_table()
        table = self._chunks  # another thread may begin a new one
        words, ends = table.read(list(map(_characters, texts)))
        begins = np.concatenate([[0], ends])[:-1]
        lengths = np.minimum(ends - begins, self._tower.max_tokens)  # cut as in training
        if lengths.sum() < len(words):
            words = words[ranges(begins, lengths)]
        ends = np.cumsum(lengths)
        # The position of each token in its text chooses its weight.
        weights = self._profile[np.arange(len(words)) - np.repeat(ends - lengths, lengths)]
        ids = table.ids.take(words)
        if self._token_weights is not None:
            weights = weights * self._token_weights[ids]
        if not self._tower.ngrams:
            return _Read(table.words, words, self._arrays["embeddings"], ids, weights, ends)
        different, rows = np.unique(words, return_inverse=True)
        vectors = self._word_vectors(
            [table.words[word] for word in different], table.ids[different]
        )
        return _Read(table.words, words, vectors, rows, weights, ends)

    def _word_vectors(self, words: Sequence[str], ids: np.ndarray) -> np.ndarray:
        """`[words, dim]` float32, with n-grams; see `towers/word_table.py`."""
        settings = self._tower.ngrams
        buckets, numbers = ngram_buckets(
            words, settings.buckets, settings.shortest, settings.longest
        )
        vectors = np.zeros([len(words), self.dim], np.float32)
        # Rows are copied before they are summed: a few words at a time, so that they stay in cache.
        for part, of_part in _steps(numbers, _NUMBERS_PER_STEP // self.dim):
            rows = self._arrays["ngram_embeddings"][buckets[of_part]]
            has_some = numbers[part] > 0  # reduceat would give an empty run the next row
            counts = numbers[part][has_some]
            sums = np.add.reduceat(rows, np.cumsum(counts) - counts) if counts.size else rows
            vectors[part][has_some] = sums / np.sqrt(counts)[:, np.newaxis]
        has_own = np.flatnonzero(ids > _UNKNOWN_ID)
        vectors[has_own] += self._arrays["embeddings"][ids[has_own]]
        return vectors


class _Ids(dict):
    """Word -> id; other words are unknown."""

    def __missing__(self, word: str) -> int:
        return _UNKNOWN_ID


def _listed(texts: Iterable[Text]) -> list[Text]:
    is_table = isinstance(texts, Mapping) or hasattr(texts, "columns")  # its names would be read
    if isinstance(texts, (str, bytes)) or is_table or not isinstance(texts, Iterable):
        kind = type(texts).__name__
        raise TypeError(f"texts is no list of texts, but a {kind}: write [text] for a single one.")
    texts = list(texts)
    for place, text in enumerate(texts):
        if not isinstance(text, (str, bytes)):
            kind = type(text).__name__
            raise TypeError(f"texts[{place}] is {text!r}, a {kind}: give a string, '' for none.")
    return texts


def _product(weights: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """`weights @ vectors`, without threads: they spin for longer than so small a product takes."""
    if vectors.size < _LEAST_OF_THREADS:
        return np.dot(weights, vectors)
    return np.einsum("t,td->d", weights, vectors)


def _characters(text: Text) -> str:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


def _steps(numbers: np.ndarray, most: int) -> Iterator[tuple[slice, slice]]:
    """Yields slices of words and of their n-grams, about `most` n-grams at a time."""
    ends = np.concatenate([[0], np.cumsum(numbers)])
    begin = 0
    while begin < len(numbers):
        end = max(begin + 1, int(np.searchsorted(ends, ends[begin] + most, side="right")) - 1)
        yield slice(begin, end), slice(ends[begin], ends[end])
        begin = end


def _profile(tower: TowerDescription, logs: np.ndarray | None) -> np.ndarray:
    """The weight of each position, `[max_tokens]` float32."""
    if logs is None:
        return np.ones(tower.max_tokens, np.float32)
    positions = np.arange(tower.max_tokens)
    parts = np.searchsorted(tower.part_begins, positions, side="right") - 1
    return np.exp(logs - logs.max())[parts]
