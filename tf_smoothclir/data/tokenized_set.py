"""Preparing a retrieval set: vocabularies and token stores, made once and cached."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf
from absl import logging

from tf_smoothclir.data.ragged_store import RaggedStore, RaggedWriter, copy_mapped
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.settings.run import TextSettings
from tf_smoothclir.text.batches import text_batches
from tf_smoothclir.text.subwords import ngrams
from tf_smoothclir.text.vocabulary import (
    TextEncoder,
    TokenCounter,
    read_vocabulary,
    write_vocabulary,
)
from tf_smoothclir.utils.digests import file_digest
from tf_smoothclir.utils.files import make_directory, new_directory, scratch_directory
from tf_smoothclir.utils.parallel import map_in_threads
from tf_smoothclir.utils.progress import progress_bar

ROLES = ("query", "document")
_FORMAT = 1  # part of the cache key; count up when the tokeniser or the files change
_NGRAM_SETTINGS = ("ngram_buckets", "min_ngram", "max_ngram")


@dataclasses.dataclass(frozen=True)
class TokenizedSet:
    """A retrieval set with its texts as token ids.

    Attributes:
        retrieval_set: Ids, judgments, splits.
        directory: Holds the token stores `query` and `document`.
        vocabulary_dir: Holds `query.txt` and `document.txt`, by which the ids were looked up.
        has_ngrams: Whether each different word has an id: those outside of the vocabulary come
            behind it, and `ngrams` knows their spelling.
    """

    retrieval_set: RetrievalSet
    directory: Path
    vocabulary_dir: Path
    has_ngrams: bool = False

    def tokens(self, role: str) -> RaggedStore:
        """Returns the token ids of every "query" or "document", by row."""
        return RaggedStore(self.directory, role, "<i4")

    def ngrams(self, role: str) -> RaggedStore | None:
        """Returns the n-gram buckets of every word of a role, by id, or None."""
        return RaggedStore(self.directory, _ngrams_name(role), "<i4") if self.has_ngrams else None

    def vocabulary(self, role: str) -> list[str]:
        """Returns the tokens of a role; the position is the id."""
        return read_vocabulary(self.vocabulary_dir / f"{role}.txt")


def default_cache_dir() -> Path:
    """Returns `tf_smoothclir` in the user's cache directory (XDG_CACHE_HOME or ~/.cache)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tf_smoothclir")


def tokenize_set(
    retrieval_set: RetrievalSet,
    settings: TextSettings,
    cache_dir: str | os.PathLike = "",
    vocabulary_dir: str | os.PathLike | None = None,
) -> TokenizedSet:
    """Tokenises a set, or finds it in the cache.

    Args:
        retrieval_set: The set.
        settings: Lengths and vocabulary sizes.
        cache_dir: Where tokenized sets are kept; empty for `default_cache_dir()`.
        vocabulary_dir: Vocabularies of an earlier run; None counts this set's own: the query
            vocabulary on the training queries, the document vocabulary on the whole collection,
            which is known before any query is; a shared one on both.

    Raises:
        InputError: Where a vocabulary would be empty or the cache cannot be written to.
    """
    cache = make_directory(cache_dir or default_cache_dir(), "--cache_dir")
    has_ngrams = settings.ngram_buckets > 0
    if not vocabulary_dir:
        vocabulary_dir = vocabulary_directory(retrieval_set, settings, cache)
        if not vocabulary_dir.is_dir():
            directory = _count_and_encode(retrieval_set, settings, cache, vocabulary_dir)
            return TokenizedSet(retrieval_set, directory, vocabulary_dir, has_ngrams)
    vocabulary_dir = Path(vocabulary_dir)
    directory = token_directory(retrieval_set, settings, cache, vocabulary_dir)
    if directory.is_dir():
        logging.info("Token store: found in %s", directory)
    elif has_ngrams:  # which are those of words that no vocabulary holds
        _count_and_encode(retrieval_set, settings, cache, vocabulary_dir)
    else:
        _encode(retrieval_set, settings, directory, vocabulary_dir)
    return TokenizedSet(retrieval_set, directory, vocabulary_dir, has_ngrams)


def vocabulary_directory(retrieval_set: RetrievalSet, settings: TextSettings, cache: Path) -> Path:
    """Returns where in the cache the vocabularies of a set are, or will be."""
    source = retrieval_set.source
    splits = np.ascontiguousarray(retrieval_set.splits)
    counting = dataclasses.asdict(settings)
    for name in _NGRAM_SETTINGS:
        del counting[name]
    key = _key([source.fingerprint(), _digest(splits), counting])
    return cache / f"{source.name}-vocabulary-{key}"


def token_directory(
    retrieval_set: RetrievalSet, settings: TextSettings, cache: Path, vocabulary_dir: Path
) -> Path:
    """Returns where in the cache the tokens of a set are, or will be, by these vocabularies."""
    source = retrieval_set.source
    parts = [source.fingerprint(), settings.max_query_tokens, settings.max_document_tokens]
    parts += [file_digest(vocabulary_dir / f"{role}.txt") for role in ROLES]
    if settings.ngram_buckets:
        parts.append([getattr(settings, name) for name in _NGRAM_SETTINGS])
        parts.append(settings.shared_vocabulary)  # one row of numbers for both roles, or two
    return cache / f"{source.name}-tokens-{_key(parts)}"


def _encode(
    retrieval_set: RetrievalSet, settings: TextSettings, directory: Path, vocabulary_dir: Path
) -> None:
    """Writes a token store by vocabularies that are known."""
    with new_directory(directory) as temporary:
        for role in ROLES:
            encode_role(role, retrieval_set, settings, temporary, vocabulary_dir)
    logging.info("Token store: written to %s", directory)


def encode_role(
    role: str,
    retrieval_set: RetrievalSet,
    settings: TextSettings,
    directory: Path,
    vocabulary_dir: Path,
) -> None:
    """Writes the token store of a role into a directory, by vocabularies that are known."""
    encoder = TextEncoder(vocabulary_dir / f"{role}.txt", settings.max_tokens(role))
    batches = map(tf.constant, _batches(retrieval_set, role))
    with RaggedWriter(directory, role, "<i4") as writer:
        for encoded in map_in_threads(encoder, batches):
            writer.add(encoded["ids"].numpy(), encoded["lengths"].numpy())


def _count_and_encode(
    retrieval_set: RetrievalSet, settings: TextSettings, cache: Path, vocabulary_dir: Path
) -> Path:
    """Writes a token store, and vocabularies where there are none, from one pass over the texts.

    The pass stores provisional numbers, which become ids when the vocabulary is known. Returns the
    directory of the store.
    """
    counters = {role: TokenCounter() for role in ROLES}
    if settings.shared_vocabulary:
        counters["document"] = counters["query"]
    with scratch_directory(cache, "numbers") as numbers:
        for role in ROLES:
            _store_numbers(counters[role], retrieval_set, settings, numbers, role)
        if not vocabulary_dir.is_dir():
            _write_vocabularies(counters, settings, vocabulary_dir)
        directory = token_directory(retrieval_set, settings, cache, vocabulary_dir)
        if not directory.is_dir():
            with new_directory(directory) as temporary:
                for role in ROLES:
                    vocabulary = read_vocabulary(vocabulary_dir / f"{role}.txt")
                    if settings.ngram_buckets:
                        ids, others = counters[role].distinct_ids(vocabulary)
                        _write_ngrams(temporary, role, vocabulary[2:] + others, settings)
                    else:
                        ids = counters[role].ids(vocabulary)
                    copy_mapped(numbers, temporary, role, ids)
            logging.info("Token store: written to %s", directory)
    return directory


def _write_vocabularies(
    counters: dict[str, TokenCounter], settings: TextSettings, vocabulary_dir: Path
) -> None:
    with new_directory(vocabulary_dir) as temporary:
        for role in ROLES:
            tokens = counters[role].vocabulary(
                max_size=settings.vocabulary_size,
                min_count=settings.min_count,
                role="shared" if settings.shared_vocabulary else role,
            )
            write_vocabulary(temporary / f"{role}.txt", tokens)
            logging.info("Vocabulary of the %s side: %d entries", role, len(tokens))


def _write_ngrams(directory: Path, role: str, words: list[str], settings: TextSettings) -> None:
    """Writes the n-grams of all words by their ids; padding and unknown have none."""

    def encode(words):
        return ngrams(
            tf.constant(words), settings.ngram_buckets, settings.min_ngram, settings.max_ngram
        )

    with RaggedWriter(directory, _ngrams_name(role), "<i4") as writer:
        writer.add(np.zeros(0), np.zeros(2, np.int64))
        for found in map_in_threads(encode, text_batches(words)):
            writer.add(found.flat_values.numpy(), found.row_lengths().numpy())


def _ngrams_name(role: str) -> str:
    return f"{role}.ngrams"


def _store_numbers(
    counter: TokenCounter,
    retrieval_set: RetrievalSet,
    settings: TextSettings,
    directory: Path,
    role: str,
) -> None:
    row, training = 0, retrieval_set.splits == SPLITS.index("train")
    split = functools.partial(counter.split, max_tokens=settings.max_tokens(role))
    with RaggedWriter(directory, role, "<i4") as writer:
        for texts in map_in_threads(split, _batches(retrieval_set, role)):
            end = row + len(texts.lengths)
            numbers = counter.add(texts, training[row:end] if role == "query" else None)
            writer.add(numbers, texts.lengths)
            row = end


def _batches(retrieval_set: RetrievalSet, role: str) -> Iterator[list[str]]:
    source = retrieval_set.source
    texts, total, description = {
        "query": (source.queries, len(retrieval_set.query_ids), "Tokenise queries"),
        "document": (source.documents, len(retrieval_set.document_ids), "Tokenise documents"),
    }[role]
    with progress_bar(total, description, "texts") as bar:
        for batch in text_batches(text.text for text in texts()):
            yield batch
            bar.update(len(batch))


def _key(parts: list) -> str:
    return _digest(json.dumps([_FORMAT, *parts]).encode())[:16]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
