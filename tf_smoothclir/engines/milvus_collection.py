"""A collection in Milvus: documents by id, their vectors and impacts; written and searched.

Fields: `id` (primary key), `title`, `text`, and one for each half of an index: `vectors` (float32,
inner product) and `impacts` (sparse, inner product). Milvus keeps at most 65,535 bytes of a text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.engines.milvus import Address, CollectionNote, Milvus
from tf_smoothclir.index.dense_half import DenseHalf
from tf_smoothclir.index.vector_index import IndexSettings
from tf_smoothclir.losses.grades import predicted_grades
from tf_smoothclir.protocols.text_search import SearchHit
from tf_smoothclir.text.batches import in_batches
from tf_smoothclir.utils.errors import input_error

MOST_HITS = 16_384  # Milvus gives no more
_MOST_BYTES = 65_535  # of a string field
_ROWS_PER_CALL = 256  # texts of the longest kind stay below 64 MB, the limit of a request
_IDS_PER_CALL = 1000
_HNSW_CONSTRUCTION = 200


class MilvusCollection:
    """A collection that is open.

    Attributes:
        manifest: What the collection remembers.
    """

    def __init__(self, milvus: Milvus, name: str, filter_: str = ""):
        """Opens a collection and has Milvus load it.

        Args:
            milvus: The connection.
            name: Of the collection.
            filter_: Only documents for which this expression of Milvus holds are found.

        Raises:
            InputError: There is no such collection, or something else wrote it.
        """
        self._milvus, self._name, self._filter = milvus, name, filter_
        self.manifest = milvus.note(name)
        with milvus.explained():
            milvus.client.load_collection(name)

    @classmethod
    def create(cls, milvus: Milvus, name: str, note: CollectionNote, dim: int) -> MilvusCollection:
        """Creates an empty collection.

        Args:
            milvus: The connection.
            name: Of the collection; there is none of this name.
            note: What it is to remember.
            dim: Length of the vectors.
        """
        kinds, client = milvus.api.DataType, milvus.client
        schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", kinds.VARCHAR, is_primary=True, max_length=_MOST_BYTES)
        for field in ("title", "text"):
            schema.add_field(field, kinds.VARCHAR, max_length=_MOST_BYTES)
        indexes = client.prepare_index_params()
        if DenseHalf.name in note.halves:
            schema.add_field(DenseHalf.name, kinds.FLOAT_VECTOR, dim=dim)
            indexes.add_index(DenseHalf.name, metric_type="IP", **_index(note.settings))
        with milvus.explained(f"--engine_collection={name}"):
            client.create_collection(
                name,
                schema=schema,
                properties=milvus.properties(note),
                consistency_level="Bounded",
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

    def write(
        self, documents: Sequence[Text], columns: dict[str, Sequence[Any]], *, replace: bool
    ) -> None:
        """Writes documents.

        Args:
            documents: The documents.
            columns: Name of a half -> what the field holds for each document.
            replace: Ids may be in the collection already; these documents are replaced.
        """
        rows = [
            {field: _cut(value) for field, value in document._asdict().items()}
            for document in documents
        ]
        for name, values in columns.items():
            for row, value in zip(rows, values):
                row[name] = value
        client = self._milvus.client
        write = client.upsert if replace else client.insert
        for batch in in_batches(rows, _ROWS_PER_CALL):
            with self._milvus.explained():
                write(self._name, batch)

    def delete(self, ids: Sequence[str]) -> None:
        """Deletes documents; an id that is not there is no error."""
        for batch in in_batches(ids, _IDS_PER_CALL):
            with self._milvus.explained():
                self._milvus.client.delete(self._name, filter=_one_of(batch))

    def known(self, ids: Sequence[str]) -> set[str]:
        """Returns those of some ids that are in the collection."""
        found = set()
        for batch in in_batches(ids, _IDS_PER_CALL):
            with self._milvus.explained():
                rows = self._milvus.client.query(
                    self._name,
                    filter=_one_of(batch),
                    output_fields=["id"],
                    consistency_level="Strong",
                )
            found |= {row["id"] for row in rows}
        return found

    def flush(self) -> None:
        """Has Milvus write everything to its storage."""
        with self._milvus.explained():
            self._milvus.client.flush(self._name)

    def search(self, query_vectors: np.ndarray, depth: int) -> list[list[SearchHit]]:
        """Returns the best documents of each query by their vectors.

        Among the documents that Milvus returns, equal scores are ordered by a hash of the id.

        Args:
            query_vectors: `[queries, dim]`, from the query tower of the same training run.
            depth: Documents per query.

        Raises:
            InputError: `depth` is more than Milvus gives, or it refuses the filter.
        """
        check_depth(depth)
        effort = max(self.manifest.settings.search_effort, depth)
        with self.refusing_filter():
            found = self._milvus.client.search(
                self._name,
                data=list(np.asarray(query_vectors, np.float32)),
                anns_field=DenseHalf.name,
                limit=depth,
                filter=self._filter,
                output_fields=["title", "text"],
                search_params={"metric_type": "IP", "params": {"ef": effort}},
            )
        return [self._hits(row) for row in found]

    def refusing_filter(self):
        """Returns a context in which a refusal names the filter, if there is one."""
        where = f"--filter={self._filter}" if self._filter else ""
        return self._milvus.explained(where, "See milvus.io/docs/boolean.md for the syntax")

    def _hits(self, found) -> list[SearchHit]:
        scores = np.array([hit["distance"] for hit in found], np.float32)
        hashes = hash_ids([hit["id"] for hit in found])
        grades = predicted_grades(scores, self.manifest.thresholds).numpy()
        return [
            SearchHit(
                rank,
                float(scores[place]),
                int(grades[place]),
                found[place]["id"],
                found[place]["entity"]["title"],
                found[place]["entity"]["text"],
            )
            for rank, place in enumerate(np.lexsort((hashes, -scores)), start=1)
        ]


def check_depth(depth: int) -> None:
    """Checks that Milvus can return so many documents.

    Raises:
        InputError: It cannot.
    """
    if depth > MOST_HITS:
        raise input_error(
            f"--top_k={depth}", f"Milvus returns at most {MOST_HITS} documents", "Ask for fewer"
        )


def _index(settings: IndexSettings) -> dict:
    if settings.kind == "flat":
        return {"index_type": "FLAT"}
    parameters = {"M": settings.hnsw_neighbours, "efConstruction": _HNSW_CONSTRUCTION}
    return {"index_type": "HNSW", "params": parameters}


def _one_of(ids: Sequence[str]) -> str:
    """Returns the expression for documents with these ids; it has JSON's strings."""
    return f"id in {json.dumps(list(ids), ensure_ascii=False)}"


def _cut(value: str) -> str:
    """Returns as much of a string as Milvus keeps."""
    return value.encode()[:_MOST_BYTES].decode(errors="ignore")
