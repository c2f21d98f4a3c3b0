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
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from absl import logging

from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.extras.lucene.bulk_files import impacts_of, query_words, words_of
from tf_smoothclir.index.document_collections import Collection
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.storage.files import new_directory, open_text_to_write, write_json

DOCUMENTS_PER_FILE = 100_000


@dataclasses.dataclass(frozen=True)
class Written:
    """What was written."""

    documents: int
    topics: int  # queries that have a known word
    bits: int  # of the largest integer
    step: float  # the score that an integer of 1 stands for
    words_per_document: float

    def __str__(self) -> str:
        return (
            f"{self.documents:,} documents of {self.words_per_document:g} words, {self.topics:,}"
            f" topics; an impact of 1 is a score of {self.step:.4g}"
        )


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
    maxima = (impacts.data.max(initial=0) for _, impacts in impacts_of(lexical, collection))
    largest = max(maxima, default=0)
    step = float(largest) / (2**bits - 1) or 1.0
    words, number, entries = words_of(lexical), 0, 0
    with new_directory(directory) as temporary:
        (temporary / "documents").mkdir()
        for texts, impacts in impacts_of(lexical, collection):
            integers = quantized(impacts, step)
            part = f"part-{number // DOCUMENTS_PER_FILE:05}.jsonl"
            with open_text_to_write(temporary / "documents" / part, append=True) as file:
                file.writelines(_records(texts, integers, words))
            number, entries = number + len(texts), entries + integers.nnz
        topics = _write_topics(temporary / "topics.tsv", lexical, queries, words)
        written = Written(number, topics, bits, step, round(entries / max(1, number), 1))
        write_json(temporary / "anserini.json", dataclasses.asdict(written))
    return written


def quantized(impacts: sp.csr_array, step: float) -> sp.csr_array:
    """Impacts in steps, rounded to integers, without zeros; int32."""
    integers = np.rint(impacts.data / step).astype(np.int32)
    result = sp.csr_array((integers, impacts.indices, impacts.indptr), shape=impacts.shape)
    result.eliminate_zeros()
    return result


def _records(texts: list[Text], integers: sp.csr_array, words: list[str]) -> Iterator[str]:
    for text, begin, end in zip(texts, integers.indptr[:-1], integers.indptr[1:]):
        ids, values = integers.indices[begin:end], integers.data[begin:end].tolist()
        vector = dict(zip([words[id_] for id_ in ids], values))
        record = {"id": text.id, "contents": text.text, "vector": vector}
        yield json.dumps(record, ensure_ascii=False) + "\n"


def _write_topics(
    path: Path, lexical: LexicalParts, queries: Iterable[Text], words: list[str]
) -> int:
    """Writes the queries; those without a known word, which Anserini cannot read, are counted."""
    texts = list(queries)
    read = query_words(lexical, (text.text for text in texts))
    lines = [
        f"{text.id}\t{' '.join(words[id_] for id_ in ids)}\n"
        for text, ids in zip(texts, read)
        if len(ids)
    ]
    if len(lines) < len(texts):
        logging.warning("%d queries have no known word", len(texts) - len(lines))
    if lines:
        with open_text_to_write(path) as file:
            file.writelines(lines)
    return len(lines)
