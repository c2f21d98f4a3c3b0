"""A collection and queries for Elasticsearch and OpenSearch, for users of these engines.

    mapping.json                 the body that creates the index
    documents/part-00000.ndjson  requests for `_bulk`
    new_words.txt                words of the documents that the model never met
    queries.ndjson               requests for `_msearch`

The field `words` holds what each word of the query language adds to the score of a document, as a
`sparse_vector` (Elasticsearch, from 8.15 on) or as `rank_features` (OpenSearch, from 2.11 on), and
a query is its words with how often each stands in it. New words of documents stand for themselves.
So the engine ranks as the lexical model does, up to the 9 significant bits that it keeps of a
number. Of a run with towers, `vector` holds
the vector of a document, and its inner product with that of the query is added with the weight
that the fusion gives it. Feedback is no part of it, and a document is one passage. Further columns
of documents are fields of the object `metadata`, with their types.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from absl import logging

from tf_smoothclir.data.sources.source import Source, Text
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.hybrid.fusion import times_counted
from tf_smoothclir.index.metadata import typed_columns
from tf_smoothclir.lexical.new_words import BYTES, hashes
from tf_smoothclir.lexical.plain_reader import PlainReader
from tf_smoothclir.lexical.sparse_tables import largest_of_groups
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.publishing.exported_models import ExportedModels
from tf_smoothclir.search.query_reading import QueryBatch, read_with
from tf_smoothclir.storage.files import new_directory, open_text_to_write, write_json
from tf_smoothclir.text.vocabulary import read_vocabulary
from tf_smoothclir.utils import sparse as sp
from tf_smoothclir.utils.errors import input_error

if TYPE_CHECKING:
    import pyarrow as pa

ENGINES = ("elasticsearch", "opensearch")
DOCUMENTS_PER_FILE = 5_000  # so that a file is below the 100 MB that engines take at once
_DOCUMENTS_AT_ONCE = 4096
_DECIMALS = 5
_LONGEST_KEYWORD = 8191  # characters: Lucene refuses documents with terms above 32,766 bytes
_NEAREST = 100  # documents by their vectors that are among the candidates


@dataclasses.dataclass(frozen=True)
class BulkWritten:
    """What was written."""

    documents: int
    queries: int  # those with a known word, or with a vector
    engine: str

    def __str__(self) -> str:
        return f"{self.documents:,} documents and {self.queries:,} queries for {self.engine}"


class BulkFormat:
    """Requests of an engine for an export."""

    def __init__(self, engine: str, models: ExportedModels, new_words: Iterable[str] = ()):
        """Takes what ranks: a lexical model, towers, or the weighted sum of both.

        Args:
            engine: One of `ENGINES`.
            models: The export.
            new_words: Those of the documents that the engine has, of `new_words.txt`; queries find
                them as they are spelled. `documents` adds those that it writes.

        Raises:
            InputError: The export ranks by something else.
        """
        self.engine, self._models = engine, models
        self.lexical = models.get("lexical")
        self.of_lexical, self.of_dense = 1.0, 1.0 if "dense" in models else 0.0
        if self.lexical is None and "dense" not in models:
            reason = f"{models.retriever} models have neither impacts of words nor vectors"
            raise input_error(f"--format={engine}", reason, "Export towers or a lexical model")
        if self.lexical is not None and self.lexical.fusion is not None:
            weights = self.lexical.fusion.weights
            self.of_lexical, self.of_dense = weights["lexical"], weights["dense"]
        if self.lexical is not None and self.lexical.feedback:
            logging.warning("%s will rank without the feedback of this model", engine)
        self.new_words = set(new_words)
        self._words: list[str] = []  # by their ids in queries
        if self.lexical is not None:
            files = (self.lexical.vocabulary_dir / f"{role}.txt" for role in ROLES)
            self._words = [word for file in files for word in read_vocabulary(file)]

    def mapping(self, columns: Mapping[str, pa.Array] | None = None) -> dict[str, Any]:
        """Body of the request that creates an index, of documents with these further columns."""
        is_elastic = self.engine == "elasticsearch"
        fields: dict[str, Any] = {"title": {"type": "text"}, "text": {"type": "text"}}
        of_export = {name: getattr(self._models.manifest, name) for name in ("pair_id", "version")}
        body: dict[str, Any] = {"mappings": {"_meta": of_export, "properties": fields}}
        if columns:
            types = {_field(name): _type(column) for name, column in columns.items()}
            fields["metadata"] = {"properties": types}
        if self.lexical is not None:
            fields["words"] = {"type": "sparse_vector" if is_elastic else "rank_features"}
        if self.of_dense:
            dim = self._models.manifest.dim
            of_elastic = {"dims": dim, "similarity": "max_inner_product"}
            of_other = {"dimension": dim, "space_type": "innerproduct"}
            name = "dense_vector" if is_elastic else "knn_vector"
            fields["vector"] = {"type": name, **(of_elastic if is_elastic else of_other)}
            if not is_elastic:
                body["settings"] = {"index": {"knn": True}}
        return body

    def documents(
        self, collection: Source, columns: Mapping[str, pa.Array] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yields two lines for `_bulk` for each document."""
        number = itertools.count()
        for texts, impacts, names in self._impacts_of(collection):
            vectors = None
            if self.of_dense:
                vectors = self._models.vectors("document", [text.text for text in texts])
            for row, text in enumerate(texts):
                record: dict[str, Any] = {"title": text.title, "text": text.text}
                if columns:
                    record["metadata"] = _metadata(columns, next(number))
                if impacts is not None:
                    part = slice(*impacts.indptr[row : row + 2])
                    values = impacts.data[part].round(_DECIMALS).tolist()
                    pairs = zip(map(names.__getitem__, impacts.indices[part]), values)
                    record["words"] = {
                        _field(name): value for name, value in pairs if name and value
                    }
                if vectors is not None:
                    record["vector"] = vectors[row].round(_DECIMALS).tolist()
                yield {"index": {"_id": text.id}}
                yield record

    def query(
        self, text: str, size: int = 10, filter: Mapping[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """Body of the request that searches; None for a query that nothing is known of.

        Args:
            text: The query.
            size: How many hits.
            filter: A query of the engine that hits have to match, without a part in the score,
                such as `{"range": {"metadata.year": {"gte": 2020}}}`.
        """
        read = self._read([text])
        if not read.readings[0].says_something:
            return None
        parts, nearest, known = [], None, collections.Counter()
        if read.words is not None:
            known.update(read.words[0][read.words[0] != NO_WORD].tolist())
        if known and self.of_lexical:
            parts.append(self._by_words(known))
        if read.vectors is not None and read.vectors[0].any():
            boost = self.of_dense * float(times_counted(known.total()))
            nearest = {"k": max(size, _NEAREST), "boost": boost}
            nearest |= {"filter": filter} if filter else {}
            vector = read.vectors[0].round(_DECIMALS).tolist()
        body: dict[str, Any] = {"size": size, "_source": ["title"]}
        if nearest is not None and self.engine == "elasticsearch":
            body["knn"] = {"field": "vector", "query_vector": vector, **nearest}
            body["knn"]["num_candidates"] = 10 * nearest["k"]
        elif nearest is not None:
            parts.append({"knn": {"vector": {"vector": vector, **nearest}}})
        if parts:
            body["query"] = parts[0] if len(parts) == 1 else {"bool": {"should": parts}}
            if filter:
                body["query"] = {"bool": {"must": body["query"], "filter": filter}}
        return body

    def _by_words(self, read: collections.Counter[int]) -> dict[str, Any]:
        counts = {self._feature(id_): float(number) for id_, number in read.items()}
        if self.engine == "elasticsearch":
            asked = {"field": "words", "query_vector": counts, "prune": False}
            return {"sparse_vector": {**asked, "boost": self.of_lexical}}
        return {"neural_sparse": {"words": {"query_tokens": counts, "boost": self.of_lexical}}}

    def _feature(self, id_: int) -> str:
        """Name of a word of a query."""
        is_new = id_ >= len(self._words)
        return _field(_cut(self._reader.names[id_]) if is_new else self._words[id_])

    def _read(self, texts: list[str]) -> QueryBatch:
        encode = self._models["dense"].read_queries() if self.of_dense else None
        return read_with(self._reader, encode, texts, self._hashes)

    @property
    def _reader(self) -> PlainReader | None:
        return self.lexical and self.lexical.plain_query_reader

    @functools.cached_property
    def _hashes(self) -> np.ndarray:
        """The hashes of the new words, sorted."""
        return np.unique(hashes(list(self.new_words), len(self._words)))

    def _impacts_of(
        self, collection: Source
    ) -> Iterator[tuple[list[Text], sp.csr_array | None, list[str]]]:
        """Yields some documents at a time, their impacts `[documents, words]`, and these words."""
        documents, lexical = collection.documents(), self.lexical
        while part := list(itertools.islice(documents, _DOCUMENTS_AT_ONCE)):
            if lexical is None:
                yield part, None, []
                continue
            words, new = lexical.all_document_words(part)
            # The engines know no passages: scores are upper bounds of those of the best one.
            passages = lexical.model.passages(words)
            of_passages = lexical.model.impacts(passages, lexical.spelling)
            names = self._words + self._names_of(part, new)
            yield part, largest_of_groups(of_passages, passages.firsts), names

    def _names_of(self, documents: list[Text], new: np.ndarray) -> list[str]:
        """The new words of documents, as they are spelled; "" for words of queries alone."""
        if not len(new):
            return []
        reader, of_queries = self.lexical.plain_document_reader, set(self._words)
        self.lexical.plain_document_words(documents, new)
        names = [_cut(reader.names[number]) for number in (reader.size + new).tolist()]
        self.new_words.update(names)
        vars(self).pop("_hashes", None)
        return ["" if name in of_queries else name for name in names]


def write_bulk_files(
    directory: Path,
    models: ExportedModels,
    collection: Source,
    queries: Iterable[Text],
    engine: str,
) -> BulkWritten:
    """Writes a new directory, whole or not at all."""
    form, asked, number = BulkFormat(engine, models), 0, 0
    place = functools.partial(collection.place, "documents")
    count = sum(1 for _ in collection.documents())
    columns = typed_columns(collection.metadata(), count, place)
    with new_directory(directory) as temporary:
        write_json(temporary / "mapping.json", form.mapping(columns))
        (temporary / "documents").mkdir()
        lines = form.documents(collection, columns)
        while part := list(itertools.islice(lines, 2 * DOCUMENTS_PER_FILE)):
            name = f"part-{number // DOCUMENTS_PER_FILE:05}.ndjson"
            _write_lines(temporary / "documents" / name, part)
            number += len(part) // 2
        with open_text_to_write(temporary / "new_words.txt") as file:
            file.writelines(f"{word}\n" for word in sorted(form.new_words))
        bodies = [form.query(query.text) for query in queries]
        if known := [body for body in bodies if body is not None]:
            asked = len(known)
            _write_lines(temporary / "queries.ndjson", [x for body in known for x in ({}, body)])
        if asked < len(bodies):
            logging.warning("%d queries have no known word", len(bodies) - asked)
    return BulkWritten(number, asked, engine)


def _type(column: pa.Array) -> dict[str, Any]:
    """The type of a field with the values of a column."""
    from pyarrow import types

    kind = column.type.value_type if types.is_list(column.type) else column.type
    kinds = {types.is_boolean: "boolean", types.is_integer: "long", types.is_floating: "double"}
    kinds |= {types.is_date: "date", types.is_timestamp: "date"}
    named = next((name for is_kind, name in kinds.items() if is_kind(kind)), "")
    return {"type": named} if named else {"type": "keyword", "ignore_above": _LONGEST_KEYWORD}


def _metadata(columns: Mapping[str, pa.Array], row: int) -> dict[str, Any]:
    """The further columns of a document, without those that it does not have."""
    values = {_field(name): column[row].as_py() for name, column in columns.items()}
    none = None, math.inf, -math.inf  # JSON has no infinity
    return {name: value for name, value in values.items() if value not in none}


def _field(name: str) -> str:
    """A name that engines do not take for a field within a field."""
    return name.replace(".", "<dot>")


def _cut(word: str) -> str:
    """As much of a new word as tells it from others, however long it is."""
    return word.encode()[:BYTES].decode(errors="ignore")


def _write_lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    with open_text_to_write(path) as file:
        file.writelines(
            json.dumps(record, ensure_ascii=False, default=_text) + "\n" for record in records
        )


def _text(value: Any) -> str:
    """A value that JSON does not know, such as a date."""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
