"""A collection in Milvus: documents by id, their vectors and impacts; written and searched.

Fields: `id` (primary key), `title`, `text`, and one for each half of an index: `dense` (float32,
inner product) and `lexical` (sparse, inner product). Milvus keeps at most 65,535 bytes of a text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.engines.milvus import Address, CollectionNote, Milvus
from tf_smoothclir.index.index_kind import EFFORT, FLAT, HNSW_CONSTRUCTION, HNSW_NEIGHBOURS
from tf_smoothclir.lexical.sparse_tables import largest_of_groups
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.protocols.text_search import CutPoints, SearchHit
from tf_smoothclir.utils import sparse as sp
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.parallel import in_batches

MOST_HITS = 16_384  # Milvus gives no more
MOST_BYTES = 65_535  # of a string
_EMPTY = {NO_WORD: 1.0}  # Milvus refuses an empty sparse vector; no query asks for this word
_LEAST_CANDIDATES = 1000  # python -m benchmarks.engine --run_dir shows what more and fewer find
_ROWS_PER_CALL = 256  # texts of the longest kind stay below 64 MB, the limit of a request
_IDS_PER_CALL = 1000


class PartOfQuery(NamedTuple):
    """Part of a query for one half of the index."""

    half: str
    value: Any  # `[dim]` float32, or words of `sparse_value`
    weight: float


class MilvusCollection:
    """A collection that is open."""

    def __init__(self, milvus: Milvus, name: str, filter_: str = ""):
        self._milvus, self._name, self._filter = milvus, name, filter_
        self.manifest = milvus.note(name)
        with milvus.explained():
            milvus.client.load_collection(name)

    @classmethod
    def create(cls, milvus: Milvus, name: str, note: CollectionNote, dim: int) -> MilvusCollection:
        """Creates an empty collection."""
        client = milvus.client
        schema, indexes = schema_and_indexes(milvus, note, dim)
        with milvus.explained(f"--engine_collection={name}"):
            client.create_collection(
                name, schema=schema, properties=milvus.properties(note), consistency_level="Bounded"
            )
            client.create_index(name, indexes, sync=False)  # there is nothing to wait for
        return cls(milvus, name)

    @classmethod
    def at(cls, address: Address) -> MilvusCollection:
        """Connects and opens a collection; see `Milvus` and `__init__`."""
        return cls(Milvus(address.uri), address.collection, address.filter)

    def __len__(self) -> int:
        with self._milvus.explained():
            (row,) = self._milvus.client.query(
                self._name, output_fields=["count(*)"], consistency_level="Strong"
            )
        return row["count(*)"]

    def write(self, documents: Sequence[Text], columns: dict[str, Sequence[Any]]) -> None:
        """Writes documents, in the place of those with the same ids."""
        rows = [
            {field: _cut(value) for field, value in zip(Text._fields[:3], document)}
            for document in documents
        ]
        for name, values in columns.items():
            for row, value in zip(rows, values):
                row[name] = value
        for batch in in_batches(rows, _ROWS_PER_CALL):
            with self._milvus.explained():
                self._milvus.client.upsert(self._name, batch)

    def delete(self, ids: Sequence[str]) -> None:
        """Deletes documents; an id that is not there is no error."""
        for batch in in_batches(ids, _IDS_PER_CALL):
            with self._milvus.explained():
                self._milvus.client.delete(self._name, filter=_one_of(batch))

    def flush(self) -> None:
        """Flushes everything to the storage of Milvus."""
        with self._milvus.explained():
            self._milvus.client.flush(self._name)

    def search(
        self, query_vectors: np.ndarray, depth: int, cut_points: CutPoints | None = None
    ) -> list[list[SearchHit]]:
        """The best documents by `[queries, dim]`; equal scores by a hash of the id."""
        vectors = list(np.asarray(query_vectors, np.float32))
        rows = self._search("dense", vectors, depth)
        return [self._hits(row, 1.0, cut_points) for row in rows]

    def search_sum(self, parts: Sequence[PartOfQuery], depth: int) -> list[SearchHit]:
        """The best documents of a query by a weighted sum, which Milvus computes."""
        # Of the best `candidates(depth)` documents by words and by vectors; one that is among one
        # of them only has nothing of the other score.
        if not parts:
            return []
        if len(parts) == 1:
            ((half, value, weight),) = parts
            (hits,) = self._search(half, [value], depth)
            return self._hits(hits, weight, None)
        api, most = self._milvus.api, max(part.weight for part in parts)
        check_depth(depth)
        requests = [
            api.AnnSearchRequest(
                [part.value],
                part.half,
                self._parameters(part.half, candidates(depth)),
                candidates(depth),
                expr=self._filter or None,
            )
            for part in parts
        ]
        # Weights of Milvus are at most 1; without norm_score, it adds the scores as they are.
        ranker = api.WeightedRanker(*(part.weight / most for part in parts), norm_score=False)
        with self._refusing_filter():
            (hits,) = self._milvus.client.hybrid_search(
                self._name, requests, ranker, limit=depth, output_fields=["title", "text"]
            )
        return self._hits(hits, most, None)

    def values(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        """The fields of the halves of documents, for each of `ids`."""
        with self._milvus.explained():
            rows = self._milvus.client.query(
                self._name, filter=_one_of(ids), output_fields=["id", *self.manifest.halves]
            )
        fields = {row["id"]: row for row in rows}
        return [fields[id_] for id_ in ids]

    def _search(self, half: str, values: list, depth: int):
        check_depth(depth)
        with self._refusing_filter():
            return self._milvus.client.search(
                self._name,
                data=values,
                anns_field=half,
                limit=depth,
                filter=self._filter,
                output_fields=["title", "text"],
                search_params=self._parameters(half, depth),
            )

    def _parameters(self, half: str, depth: int) -> dict:
        of_half = {"ef": max(EFFORT, depth)} if half == "dense" else {}
        return {"metric_type": "IP", "params": of_half}

    def _refusing_filter(self):
        where = f"--filter={self._filter}" if self._filter else ""
        return self._milvus.explained(where, "See milvus.io/docs/boolean.md for the syntax")

    def _hits(self, rows, weight: float, cut_points: CutPoints | None) -> list[SearchHit]:
        scores = np.array([weight * hit["distance"] for hit in rows], np.float32)
        hashes = hash_ids([hit["id"] for hit in rows])
        order = [place for place in np.lexsort((hashes, -scores)) if scores[place]]
        grades: Sequence = [None] * len(order)
        if cut_points is not None:
            grades = cut_points.of_hits(scores[order]).tolist()
        return [
            SearchHit(
                rank,
                float(scores[place]),
                grade,
                rows[place]["id"],
                rows[place]["entity"]["title"],
                rows[place]["entity"]["text"],
            )
            for rank, (place, grade) in enumerate(zip(order, grades), start=1)
        ]


def candidates(depth: int) -> int:
    """Number of documents that each half finds before their scores are added."""
    return min(max(_LEAST_CANDIDATES, 10 * depth), MOST_HITS)


def check_depth(depth: int) -> None:
    """Checks that Milvus can return so many documents."""
    if depth > MOST_HITS:
        raise input_error(
            f"--top_k={depth}", f"Milvus returns at most {MOST_HITS} documents", "Ask for fewer"
        )


def _one_of(ids: Sequence[str]) -> str:
    """The expression for documents with these ids; it has JSON's strings."""
    return f"id in {json.dumps(list(ids), ensure_ascii=False)}"


def _cut(value: str) -> str:
    """As much of a string as Milvus keeps."""
    return value.encode()[:MOST_BYTES].decode(errors="ignore")


def schema_and_indexes(milvus: Milvus, note: CollectionNote, dim: int) -> tuple[Any, Any]:
    """The schema of a collection, and the indexes of its fields."""
    kinds, client = milvus.api.DataType, milvus.client
    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", kinds.VARCHAR, is_primary=True, max_length=MOST_BYTES)
    for field in ("title", "text"):
        schema.add_field(field, kinds.VARCHAR, max_length=MOST_BYTES)
    indexes = client.prepare_index_params()
    if "dense" in note.halves:
        schema.add_field("dense", kinds.FLOAT_VECTOR, dim=dim)
        indexes.add_index("dense", metric_type="IP", **_index(note.kind))
    if "lexical" in note.halves:
        schema.add_field("lexical", kinds.SPARSE_FLOAT_VECTOR)
        indexes.add_index("lexical", metric_type="IP", index_type="SPARSE_INVERTED_INDEX")
    return schema, indexes


def field_values(half: str, rows: Any) -> list:
    """Values of the field of a half, one for each document."""
    if half == "lexical":
        # Milvus has one vector for each document.
        firsts = (
            np.append(0, np.cumsum(rows.passages)) if rows.passages.max(initial=0) > 1 else None
        )
        impacts = largest_of_groups(rows.impacts, firsts)
        return [sparse_value(*row) for row in _rows(impacts)]
    return list(rows)


def sparse_value(words: np.ndarray, weights: np.ndarray) -> dict[int, float]:
    """A sparse vector as Milvus takes it, of `[words]` int and float32 weights."""
    return dict(zip(words.tolist(), weights.tolist())) or _EMPTY


def _rows(matrix: sp.csr_array):
    ends = zip(matrix.indptr[:-1], matrix.indptr[1:])
    return ((matrix.indices[begin:end], matrix.data[begin:end]) for begin, end in ends)


def _index(kind: str) -> dict:
    if kind == FLAT:
        return {"index_type": "FLAT"}
    parameters = {"M": HNSW_NEIGHBOURS, "efConstruction": HNSW_CONSTRUCTION}
    return {"index_type": "HNSW", "params": parameters}
