"""The word vectors of an experiment, made once for each set, split and kind."""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
from pathlib import Path

import numpy as np

from tf_smoothclir.data.bilingual_vectors import occurrences
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.interaction.texts import InteractionTexts
from tf_smoothclir.lexical.word_vectors import WordVectors, given_vectors
from tf_smoothclir.papers.laboratory.code_version import sources_digest
from tf_smoothclir.papers.yu2020.alignment import aligned, mined_dictionary
from tf_smoothclir.papers.yu2020.options import MAPPED, PAIRS
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.storage.files import make_directory, open_to_write, read_arrays
from tf_smoothclir.utils.errors import input_error

_DIM = 300  # as in the paper: unrelated words have a cosine of 1 / √300 = 0.06 or so
_LEAST_PAIRS = 2


def word_vectors(
    kind: str,
    settings: RunSettings,
    tokenized_set: TokenizedSet,
    texts: InteractionTexts,
    directory: Path,
) -> WordVectors:
    """The vectors of both vocabularies; zeros for words without one.

    Only training queries and their judgments are used, and texts of documents.
    """
    model = settings.model
    if kind != PAIRS and not (model.query_embeddings and model.document_embeddings):
        raise input_error(
            f"--word_vectors={kind}",
            "there are no vectors",
            "Give --query_embeddings and --document_embeddings, and their --dim",
        )
    make_directory(directory, "--output_dir")
    path = directory / f"{kind}-{_digest(kind, settings, tokenized_set)}.npz"
    with open(path.with_suffix(".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.is_file():
            found = _made(kind, settings, tokenized_set, texts)
            partial = path.with_name(f"unfinished-{path.name}")
            with open_to_write(partial) as file:
                np.savez(file, query=found.queries, document=found.documents)
            partial.rename(path)
    kept = read_arrays(path, "query", "document")
    return WordVectors(kept["query"], kept["document"])


def _digest(kind: str, settings: RunSettings, tokenized_set: TokenizedSet) -> str:
    retrieval_set = tokenized_set.retrieval_set
    content = [
        *(dataclasses.asdict(group) for group in (settings.model, settings.text)),
        *(settings.training.seed, retrieval_set.source.fingerprint(), sources_digest()),
        hashlib.sha256(np.ascontiguousarray(retrieval_set.splits)).hexdigest(),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:10]


def _made(kind, settings, tokenized_set: TokenizedSet, texts) -> WordVectors:
    if kind == PAIRS:
        return WordVectors(*(_of_pairs(settings, tokenized_set, role) for role in ROLES))
    found = given_vectors(settings, tokenized_set)
    if kind != MAPPED:
        return found
    sizes = len(found.queries), len(found.documents)
    return aligned(found, mined_dictionary(tokenized_set.retrieval_set, texts, sizes))


def _of_pairs(settings: RunSettings, tokenized_set: TokenizedSet, role: str) -> np.ndarray:
    """Random indexing of the training pairs; zeros for words that too few pairs have.

    Two words that stand in one pair alone, and in the same, would be the same word.
    """
    size, seed = len(tokenized_set.vocabulary(role)), settings.training.seed
    found = occurrences(tokenized_set, (role,), size=size, dim=_DIM, seed=seed)
    return np.where(found.counts[:, np.newaxis] >= _LEAST_PAIRS, found.vectors(), 0)
