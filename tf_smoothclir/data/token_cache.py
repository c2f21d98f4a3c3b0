"""Paths in the token cache: vocabularies and tokens of a set.

A directory's name contains a digest of everything that its content depends on, so whatever is
there as it was written can be used.
"""

import dataclasses
import hashlib
import json
import os
from pathlib import Path

import numpy as np
from absl import logging

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.storage.files import discard_directory
from tf_smoothclir.storage.folder import Folder, file_digest
from tf_smoothclir.text.new_vocabulary import vocabulary_digest
from tf_smoothclir.utils.errors import InputError
from tf_smoothclir.utils.paths import local_path

CACHED = "cached"  # the kind of its folders
_FORMAT = 9  # part of every digest; increase it when the tokeniser or the files change
_NGRAM_SETTINGS = ("ngram_buckets", "ngram_rows_per_word", "min_ngram", "max_ngram")
_VOCABULARY_FILES = ("query_vocabulary", "document_vocabulary")


def default_cache_dir() -> Path:
    """`tf_smoothclir` in the user's cache directory ($XDG_CACHE_HOME or ~/.cache)."""
    return Path(local_path(os.environ.get("XDG_CACHE_HOME") or "~/.cache"), "tf_smoothclir")


def vocabulary_directory(retrieval_set: RetrievalSet, settings: TextSettings, cache: Path) -> Path:
    """The directory of the vocabularies that are counted on a set."""
    source = retrieval_set.source
    splits = np.ascontiguousarray(retrieval_set.splits)
    counting = dataclasses.asdict(settings)
    for name in (*_NGRAM_SETTINGS, "passage_words", "text_fields"):
        del counting[name]
    for name in _VOCABULARY_FILES:
        if path := counting.pop(name):
            counting[name] = vocabulary_digest(path)
    key = _key([source.fingerprint(), _digest(splits), counting, *_documents_read(settings)])
    return cache / f"{source.name}-vocabulary-{key}"


def token_directory(
    retrieval_set: RetrievalSet, settings: TextSettings, cache: Path, vocabulary_dir: Path
) -> Path:
    """The directory of the tokens of a set, encoded with these vocabularies."""
    source = retrieval_set.source
    parts = [source.fingerprint(), settings.max_query_tokens, settings.max_document_tokens]
    parts += _documents_read(settings)
    parts += [file_digest(vocabulary_dir / f"{role}.txt") for role in ROLES]
    if settings.ngram_buckets:
        parts.append([getattr(settings, name) for name in _NGRAM_SETTINGS])
        parts.append(settings.shared_vocabulary)  # decides if both roles share the ids of new words
    return cache / f"{source.name}-tokens-{_key(parts)}"


def _documents_read(settings: TextSettings) -> list:
    """What is read of documents besides their first words, and how."""
    read = ["whole"] * bool(settings.passage_words) + ["titles"] * settings.reads_titles
    return read + ["pretokenized"] * settings.pretokenized


def is_usable(directory: Path) -> bool:
    """Whether a directory of the cache is there as it was written; deletes a damaged one."""
    if not directory.is_dir():
        return False
    try:
        Folder.checked(directory, CACHED, "It is made again")
    except InputError as error:
        logging.warning("%s", error)
        discard_directory(directory)
        return False
    return True


def _key(parts: list) -> str:
    return _digest(json.dumps([_FORMAT, *parts]).encode())[:16]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
