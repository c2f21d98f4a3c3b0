"""A collection and queries as Anserini and Pyserini read them, for users of Lucene.

    documents/part-00000.jsonl   {"id": ..., "contents": ..., "vector": {word: integer, ...}}
    topics.tsv                   id, tab, the words of a query; each counts as often as it stands

`vector` holds what each word of the query language adds to the score of a document, in steps of one
integer; what rounds to 0 is left out. So Lucene, which adds up integers (`-impact -pretokenized`),
ranks as the lexical model does, up to half a step for each word of the query. The format is that of
Anserini's JsonVectorCollection; it writes each word as often as its integer says, so 8 bits are the
custom. Feedback is no part of it.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from absl import logging

from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.index.document_collections import Collection
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.text.vocabulary import read_vocabulary
from tf_smoothclir.utils.files import new_directory, open_text_to_write, write_json

DOCUMENTS_PER_FILE = 100_000
_DOCUMENTS_AT_ONCE = 4096


@dataclasses.dataclass(frozen=True)
class Written:
    """What was written.

    Attributes:
        documents: Number of documents.
        topics: Number of queries that have a word with an id.
        bits: Of the largest integer.
        step: Score that an integer of 1 stands for.
        words_per_document: Mean number of words in a vector.
    """

    documents: int
    topics: int
    bits: int
    step: float
    words_per_document: float


def write_anserini(
    directory: Path,
    lexical: LexicalParts,
    collection: Collection,
    queries: Iterable[Text],
    *,
    bits: int = 8,
) -> Written:
    """Writes a new directory, whole or not at all.

    The documents are read twice: the largest impact decides the step.
    """
    if lexical.feedback:
        logging.warning(
            "Lucene will rank without the feedback of this model: scores are those of its first"
            " ranking."
        )
    largest = max(
        (found.data.max(initial=0) for _, found in _impacts(lexical, collection)), default=0
    )
    step = float(largest) / (2**bits - 1) or 1.0
    words = _words(lexical)
    with new_directory(directory) as temporary:
        number, entries = _write_documents(
            temporary / "documents", lexical, collection, words, step
        )
        topics = _write_topics(temporary / "topics.tsv", lexical, queries, words)
        written = Written(number, topics, bits, step, round(entries / max(1, number), 1))
        write_json(temporary / "anserini.json", dataclasses.asdict(written))
    return written


def quantized(impacts: sp.csr_array, step: float) -> sp.csr_array:
    """Impacts in steps, rounded to integers, without zeros; int32."""
    found = sp.csr_array(
        (np.rint(impacts.data / step).astype(np.int32), impacts.indices, impacts.indptr),
        shape=impacts.shape,
    )
    found.eliminate_zeros()
    return found


def _impacts(
    lexical: LexicalParts, collection: Collection
) -> Iterator[tuple[list[Text], sp.csr_array]]:
    """Yields some documents at a time, with their impacts `[documents, query words]`."""
    documents = collection.documents()
    while part := list(itertools.islice(documents, _DOCUMENTS_AT_ONCE)):
        read = lexical.document_reader.words(text.text for text in part)
        yield part, lexical.model.impacts(read, lexical.spelling)


def _words(lexical: LexicalParts) -> list[str]:
    """The words by their ids as query words."""
    return [
        word for role in ROLES for word in read_vocabulary(lexical.vocabulary_dir / f"{role}.txt")
    ]


def _write_documents(
    directory: Path, lexical: LexicalParts, collection: Collection, words: list[str], step: float
) -> tuple[int, int]:
    """The number of documents, and of all entries of their vectors."""
    directory.mkdir()
    number = entries = 0
    for texts, impacts in _impacts(lexical, collection):
        integers = quantized(impacts, step)
        part = directory / f"part-{number // DOCUMENTS_PER_FILE:05}.jsonl"
        with open_text_to_write(part, append=True) as file:
            for text, begin, end in zip(texts, integers.indptr[:-1], integers.indptr[1:]):
                ids, values = integers.indices[begin:end], integers.data[begin:end]
                vector = dict(zip([words[id_] for id_ in ids], values.tolist()))
                record = {"id": text.id, "contents": text.text, "vector": vector}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        number, entries = number + len(texts), entries + integers.nnz
    return number, entries


def _write_topics(
    path: Path, lexical: LexicalParts, queries: Iterable[Text], words: list[str]
) -> int:
    """Writes the queries; those without a known word, which Anserini cannot read, are counted."""
    texts = list(queries)
    read = lexical.query_reader.words(text.text for text in texts)
    lines = []
    for text, begin, end in zip(texts, read.offsets[:-1], read.offsets[1:]):
        known = [words[id_] for id_ in read.ids[begin:end] if id_ != NO_WORD]
        if known:
            lines.append(f"{text.id}\t{' '.join(known)}\n")
    if len(lines) < len(texts):
        logging.warning("%d queries have no known word", len(texts) - len(lines))
    if lines:
        with open_text_to_write(path) as file:
            file.writelines(lines)
    return len(lines)
