"""Documents as impacts of words, and queries as words: what all formats write."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.index.document_collections import Collection
from tf_smoothclir.lexical.sparse_tables import largest_of_groups
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.text.vocabulary import read_vocabulary

DOCUMENTS_AT_ONCE = 4096


def words_of(lexical: LexicalParts) -> list[str]:
    """The words by their ids in queries."""
    files = (lexical.vocabulary_dir / f"{role}.txt" for role in ROLES)
    return [word for file in files for word in read_vocabulary(file)]


def impacts_of(
    lexical: LexicalParts | None, collection: Collection
) -> Iterator[tuple[list[Text], sp.csr_array | None]]:
    """Yields some documents at a time, with their impacts `[documents, query words]`."""
    documents = collection.documents()
    while part := list(itertools.islice(documents, DOCUMENTS_AT_ONCE)):
        impacts = None
        if lexical is not None:
            # The engines know no passages: scores are upper bounds of those of the best one.
            passages = lexical.model.passages(lexical.document_words(part))
            of_passages = lexical.model.impacts(passages, lexical.spelling)
            impacts = largest_of_groups(of_passages, passages.firsts)
        yield part, impacts


def query_words(lexical: LexicalParts, texts: Iterable[str]) -> list[np.ndarray]:
    """The ids of the known words of each query, as often as they stand in it."""
    read = lexical.query_reader.words(texts)
    bounds = zip(read.offsets[:-1], read.offsets[1:])
    return [ids[ids != NO_WORD] for ids in (read.ids[begin:end] for begin, end in bounds)]
