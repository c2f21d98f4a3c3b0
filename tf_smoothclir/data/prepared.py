"""Preparing a retrieval set: vocabularies and token stores, made once and cached."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import tensorflow as tf
from absl import logging

from tf_smoothclir.data.ragged_store import RaggedStore, RaggedWriter
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.source import SPLITS, Text
from tf_smoothclir.files import make_directory, new_directory
from tf_smoothclir.progress import progress_bar
from tf_smoothclir.settings import TextSettings
from tf_smoothclir.text.vocabulary import (
    TEXTS_PER_CALL,
    TextEncoder,
    TokenCounter,
    in_batches,
    read_vocabulary,
    write_vocabulary,
)

ROLES = ("query", "document")
_FORMAT = 1  # part of the cache key; count up when the tokeniser or the files change


@dataclasses.dataclass(frozen=True)
class PreparedSet:
    """A retrieval set with its texts as token ids.

    Attributes:
        retrieval_set: Ids, judgments, splits.
        directory: Holds the token stores `query` and `document`.
        vocabulary_dir: Holds `query.txt` and `document.txt`, by which the ids were looked up.
    """

    retrieval_set: RetrievalSet
    directory: Path
    vocabulary_dir: Path

    def tokens(self, role: str) -> RaggedStore:
        """Returns the token ids of every "query" or "document", by row."""
        return RaggedStore(self.directory, role, "<i4")

    def vocabulary(self, role: str) -> list[str]:
        """Returns the tokens of a role; the position is the id."""
        return read_vocabulary(self.vocabulary_dir / f"{role}.txt")


def default_cache_dir() -> Path:
    """Returns `tf_smoothclir` in the user's cache directory (XDG_CACHE_HOME or ~/.cache)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tf_smoothclir")


def prepare(
    retrieval_set: RetrievalSet,
    settings: TextSettings,
    cache_dir: str | os.PathLike = "",
    vocabulary_dir: str | os.PathLike | None = None,
) -> PreparedSet:
    """Tokenises a set, or finds it in the cache.

    Args:
        retrieval_set: The set.
        settings: Lengths and vocabulary sizes.
        cache_dir: Where prepared sets are kept; empty for `default_cache_dir()`.
        vocabulary_dir: Vocabularies of an earlier run; None counts this set's own: the query
            vocabulary on the training queries, the document vocabulary on the whole collection,
            which is known before any query is.

    Raises:
        InputError: Where a vocabulary would be empty or the cache cannot be written to.
    """
    cache = make_directory(cache_dir or default_cache_dir(), "--cache_dir")
    vocabulary_dir = Path(vocabulary_dir or _vocabularies(retrieval_set, settings, cache))
    source = retrieval_set.source
    parts = [source.fingerprint(), settings.max_query_tokens, settings.max_document_tokens]
    parts += [_digest((vocabulary_dir / f"{role}.txt").read_bytes()) for role in ROLES]
    directory = cache / f"{source.name}-tokens-{_key(parts)}"
    if directory.is_dir():
        logging.info("Token store: found in %s", directory)
        return PreparedSet(retrieval_set, directory, vocabulary_dir)
    with new_directory(directory) as temporary:
        for role, texts, total in (
            ("query", source.queries(), len(retrieval_set.query_ids)),
            ("document", source.documents(), len(retrieval_set.document_ids)),
        ):
            encoder = TextEncoder(vocabulary_dir / f"{role}.txt", settings.max_tokens(role))
            with RaggedWriter(temporary, role, "<i4") as writer:
                for batch in in_batches(_ticking(texts, total, f"Encode {role}s"), TEXTS_PER_CALL):
                    encoded = encoder(tf.constant(batch, tf.string))
                    writer.add(encoded["ids"].numpy(), encoded["lengths"].numpy())
    logging.info("Token store: written to %s", directory)
    return PreparedSet(retrieval_set, directory, vocabulary_dir)


def _vocabularies(retrieval_set: RetrievalSet, settings: TextSettings, cache: Path) -> Path:
    source = retrieval_set.source
    splits = np.ascontiguousarray(retrieval_set.splits)
    key = _key([source.fingerprint(), _digest(splits), dataclasses.asdict(settings)])
    directory = cache / f"{source.name}-vocabulary-{key}"
    if directory.is_dir():
        return directory
    training = retrieval_set.splits == SPLITS.index("train")
    queries = (text for text, keep in zip(source.queries(), training) if keep)
    with new_directory(directory) as temporary:
        for role, texts, total in (
            ("query", queries, int(training.sum())),
            ("document", source.documents(), len(retrieval_set.document_ids)),
        ):
            counter = TokenCounter(settings.max_tokens(role))
            counter.add(_ticking(texts, total, f"Count the words of {role}s"))
            tokens = counter.vocabulary(
                max_size=settings.vocabulary_size, min_count=settings.min_count, role=role
            )
            write_vocabulary(temporary / f"{role}.txt", tokens)
            logging.info("Vocabulary of the %s side: %d entries", role, len(tokens))
    return directory


def _ticking(texts: Iterable[Text], total: int, description: str) -> Iterable[str]:
    with progress_bar(total, description, "texts") as bar:
        for text in texts:
            bar.update()
            yield text.text


def _key(parts: list) -> str:
    return _digest(json.dumps([_FORMAT, *parts]).encode())[:16]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
