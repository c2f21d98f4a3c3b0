"""Preparing a retrieval set: vocabularies and token stores, made once and cached."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
from absl import logging

from tf_smoothclir.data.ragged_store import RaggedStore, RaggedWriter
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.source import SPLITS
from tf_smoothclir.files import make_directory, new_directory, write_json
from tf_smoothclir.progress import progress_bar
from tf_smoothclir.text.vocabulary import (
    TextEncoder,
    TokenCounter,
    in_batches,
    read_vocabulary,
    write_vocabulary,
)

ROLES = ("query", "document")
_FORMAT = 1  # part of the cache key; count up when the tokeniser or the files change
_TEXTS_PER_CALL = 4096


@dataclasses.dataclass(frozen=True)
class TextSettings:
    """How texts become token ids.

    Attributes:
        max_query_tokens: Longer queries are cut.
        max_document_tokens: Longer documents are cut (paper: 200).
        vocabulary_size: Most entries of each vocabulary (paper: 100,000).
        min_count: Tokens seen less often are unknown.
    """

    max_query_tokens: int = 200
    max_document_tokens: int = 200
    vocabulary_size: int = 100_000
    min_count: int = 1

    def max_tokens(self, role: str) -> int:
        """Returns the longest text of a role, in tokens."""
        return self.max_query_tokens if role == "query" else self.max_document_tokens


@dataclasses.dataclass(frozen=True)
class PreparedSet:
    """A retrieval set with its texts as token ids.

    Attributes:
        retrieval_set: Ids, judgments, splits.
        directory: Holds `query.vocabulary.txt`, `document.vocabulary.txt` and the token stores.
        settings: How the texts were turned into ids.
    """

    retrieval_set: RetrievalSet
    directory: Path
    settings: TextSettings

    def tokens(self, role: str) -> RaggedStore:
        """Returns the token ids of every "query" or "document", by row."""
        return RaggedStore(self.directory, role, "<i4")

    def vocabulary_path(self, role: str) -> Path:
        """Returns the vocabulary file of a role."""
        return self.directory / f"{role}.vocabulary.txt"

    def vocabulary(self, role: str) -> list[str]:
        """Returns the tokens of a role; the position is the id."""
        return read_vocabulary(self.vocabulary_path(role))


def default_cache_dir() -> Path:
    """Returns `tf_smoothclir` in the user's cache directory (XDG_CACHE_HOME or ~/.cache)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tf_smoothclir")


def prepare(
    retrieval_set: RetrievalSet, settings: TextSettings, cache_dir: str | os.PathLike = ""
) -> PreparedSet:
    """Tokenises a set, or finds it in the cache.

    The query vocabulary is counted on the training queries, the document vocabulary on the whole
    collection, which is known before any query is.

    Args:
        retrieval_set: The set.
        settings: Lengths and vocabulary sizes.
        cache_dir: Where prepared sets are kept; empty for `default_cache_dir()`.

    Raises:
        InputError: Where a vocabulary would be empty or the cache cannot be written to.
    """
    cache = make_directory(cache_dir or default_cache_dir(), "--cache_dir")
    directory = cache / f"{retrieval_set.source.name}-{_key(retrieval_set, settings)[:16]}"
    prepared = PreparedSet(retrieval_set, directory, settings)
    if directory.is_dir():
        logging.info("Prepared texts: found in %s", directory)
        return prepared
    with new_directory(directory) as temporary:
        source = retrieval_set.source
        training = retrieval_set.splits == SPLITS.index("train")
        queries = (text.text for text in source.queries())
        training_queries = (t.text for t, keep in zip(source.queries(), training) if keep)
        documents = (text.text for text in source.documents())
        counted_documents = (text.text for text in source.documents())
        sizes = len(retrieval_set.query_ids), len(retrieval_set.document_ids)
        partial = PreparedSet(retrieval_set, temporary, settings)
        _prepare_role(partial, "query", training_queries, queries, (int(training.sum()), sizes[0]))
        _prepare_role(partial, "document", counted_documents, documents, (sizes[1], sizes[1]))
        write_json(temporary / "settings.json", dataclasses.asdict(settings))
    logging.info("Prepared texts: written to %s", directory)
    return prepared


def _prepare_role(
    prepared: PreparedSet,
    role: str,
    counted: Iterable[str],
    texts: Iterable[str],
    totals: Sequence[int],
) -> None:
    settings = prepared.settings
    counter = TokenCounter(settings.max_tokens(role))
    with progress_bar(sum(totals), f"Tokenise, {role} side", "texts") as bar:
        counter.add(_ticking(counted, bar))
        tokens = counter.vocabulary(
            max_size=settings.vocabulary_size, min_count=settings.min_count, role=role
        )
        write_vocabulary(prepared.vocabulary_path(role), tokens)
        encoder = TextEncoder(prepared.vocabulary_path(role), settings.max_tokens(role))
        with RaggedWriter(prepared.directory, role, "<i4") as writer:
            for batch in in_batches(_ticking(texts, bar), _TEXTS_PER_CALL):
                encoded = encoder(tf.constant(batch, tf.string))
                writer.add(encoded["ids"].numpy(), encoded["lengths"].numpy())


def _ticking(texts: Iterable[str], bar) -> Iterable[str]:
    for text in texts:
        bar.update()
        yield text


def _key(retrieval_set: RetrievalSet, settings: TextSettings) -> str:
    parts = {
        "format": _FORMAT,
        "content": retrieval_set.source.fingerprint(),
        "splits": hashlib.sha256(np.ascontiguousarray(retrieval_set.splits)).hexdigest(),
        "settings": dataclasses.asdict(settings),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
