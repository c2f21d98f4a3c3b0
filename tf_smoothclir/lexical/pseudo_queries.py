"""Pseudo-queries: generated queries for documents that no training query looks for.

Judgments of validation and test queries play no part: what they look for has pseudo-queries as any
other document of the collection.

A document is translated by a translation table, word by word, over as many words as a training
query has: each word t becomes a query word w, drawn with probability T(w | t). Towers learn from
such a query and its document as from a judged pair of the highest grade: words of documents that
no training query has met, and what the table knows of translations.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.tokenized_set import ROLES, RaggedStore, RaggedWriter, TokenizedSet
from tf_smoothclir.lexical.model import LexicalModel
from tf_smoothclir.utils import sparse as sp
from tf_smoothclir.utils.ranges import ranges

_NO_TOKEN = -1
_DOCUMENTS = "documents"  # name of the store of their document rows


def write_pseudo_queries(
    directory: Path, tokenized_set: TokenizedSet, model: LexicalModel, *, number: int, seed: int
) -> None:
    """Writes pseudo-queries of documents that are no training query's mate."""
    retrieval_set, random = tokenized_set.retrieval_set, np.random.default_rng(seed)
    queries, documents = map(tokenized_set.tokens, ROLES)
    vocabularies = tuple(map(tokenized_set.vocabulary, ROLES))
    rows = _without_query(retrieval_set, number, seed)
    of_training = queries.lengths[retrieval_set.queries_in("train")]
    lengths = np.minimum(random.choice(of_training, len(rows)), documents.lengths[rows])
    begins = np.zeros(len(rows), np.int64)
    if not model.fields[0].height:  # all positions count alike
        begins = random.integers(0, documents.lengths[rows] - lengths + 1)
    offsets = np.append(0, np.cumsum(lengths))
    places = ranges(documents.offsets[rows] + begins, lengths)
    drawn = _translated(np.asarray(documents.values)[places], vocabularies, model.table, random)
    number_of_words = np.add.reduceat(np.append(drawn != _NO_TOKEN, 0), offsets)[:-1]
    number_of_words[lengths == 0] = 0  # reduceat gives the next word
    kept = number_of_words > 0
    with RaggedWriter(directory, "query", queries.dtype) as writer:
        writer.add(queries.values, queries.lengths)
        writer.add(drawn[drawn != _NO_TOKEN], number_of_words[kept])
    with RaggedWriter(directory, _DOCUMENTS, "<i4") as writer:
        writer.add(rows[kept], np.ones(kept.sum()))


def with_pseudo_queries(tokenized_set: TokenizedSet, directory: Path) -> TokenizedSet:
    """A set with pseudo-queries as further training queries, after its own queries."""
    rows = np.asarray(RaggedStore(directory, _DOCUMENTS, "<i4").values)
    return dataclasses.replace(
        tokenized_set,
        retrieval_set=tokenized_set.retrieval_set.with_training_queries(rows),
        query_directory=directory,
    )


def _without_query(retrieval_set: RetrievalSet, number: int, seed: int) -> np.ndarray:
    """The rows of the documents that get a pseudo-query, sorted."""
    is_best = retrieval_set.grades == retrieval_set.num_grades - 1
    of_training = np.isin(retrieval_set.query_rows, retrieval_set.queries_in("train"))
    mates = retrieval_set.document_rows[is_best & of_training]
    rows = np.setdiff1d(np.arange(len(retrieval_set.document_ids)), mates)
    ids = [retrieval_set.document_ids[row] for row in rows]
    return np.sort(rows[np.argsort(hash_ids(ids, f"pseudo-queries {seed}"))[:number]])


def _translated(
    tokens: np.ndarray,
    vocabularies: Sequence[list[str]],
    table: sp.csr_array,
    random: np.random.Generator,
) -> np.ndarray:
    """Draws a query word for each document token, `_NO_TOKEN` where there is none."""
    # A word without a translation stays as it is where both languages share a vocabulary, or else
    # becomes the query word that is spelled like it.
    query_words, document_words = vocabularies
    if query_words == document_words:
        # Words after the vocabulary too: towers know them by their n-grams.
        translated = tokens.copy()
    else:
        ids = {word: id_ for id_, word in enumerate(query_words)}
        spelled_alike = np.array(
            [*(ids.get(word, _NO_TOKEN) for word in document_words), _NO_TOKEN]
        )
        translated = spelled_alike[np.minimum(tokens, len(document_words))]
    row = np.minimum(tokens, table.shape[0])
    bounds = np.append(table.indptr, table.indptr[-1])  # of a row without entries, at the end
    begins, ends = bounds[row], bounds[row + 1]
    sums = np.append(0.0, np.cumsum(table.data, dtype=np.float64))
    drawn = sums[begins] + random.random(len(tokens)) * (sums[ends] - sums[begins])
    entries = np.clip(np.searchsorted(sums, drawn, side="right") - 1, begins, ends - 1)
    has_entry = ends > begins
    translated[has_entry] = table.indices[entries[has_entry]]
    return translated
