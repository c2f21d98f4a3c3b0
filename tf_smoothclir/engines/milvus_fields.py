"""The fields of a collection in Milvus that hold the halves of an index."""

from __future__ import annotations

from typing import Any

import numpy as np

from tf_smoothclir.engines.milvus import CollectionNote, Milvus
from tf_smoothclir.index.index_settings import IndexSettings
from tf_smoothclir.lexical.sparse_tables import largest_of_groups
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.utils import sparse as sp

MOST_BYTES = 65_535  # of a string
_HNSW_CONSTRUCTION = 200
# Milvus refuses an empty sparse vector; no query asks for this word.
_EMPTY = {NO_WORD: 1.0}


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
        indexes.add_index("dense", metric_type="IP", **_index(note.settings))
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
    """A sparse vector as Milvus takes it.

    Args:
        words: `[words]` int.
        weights: `[words]` float32.
    """
    return dict(zip(words.tolist(), weights.tolist())) or _EMPTY


def _rows(matrix: sp.csr_array):
    ends = zip(matrix.indptr[:-1], matrix.indptr[1:])
    return ((matrix.indices[begin:end], matrix.data[begin:end]) for begin, end in ends)


def _index(settings: IndexSettings) -> dict:
    if settings.kind == "flat":
        return {"index_type": "FLAT"}
    parameters = {"M": settings.hnsw_neighbours, "efConstruction": _HNSW_CONSTRUCTION}
    return {"index_type": "HNSW", "params": parameters}
