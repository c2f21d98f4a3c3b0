"""Vectors that somebody made already, in a file, by the ids of the texts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.foreign_encoders.protocol import PLURALS, unit_vectors
from tf_smoothclir.storage.files import read_arrays
from tf_smoothclir.utils.errors import input_error

_ARRAYS = ("query_ids", "queries", "document_ids", "documents")


class VectorFile:
    """An `.npz` file: strings `query_ids` and `document_ids`, `[texts]`; `queries`, `documents`."""

    def __init__(self, path: str | Path):
        """Reads and checks the file."""
        self.name, self._path = Path(path).stem, path
        arrays = read_arrays(path, *_ARRAYS)
        query_ids, queries, document_ids, documents = (arrays[name] for name in _ARRAYS)
        fits = queries.ndim == documents.ndim == 2 and queries.shape[1] == documents.shape[1]
        fits &= queries.dtype.kind in "fiu" and documents.dtype.kind in "fiu"
        if not fits or (len(query_ids), len(document_ids)) != (len(queries), len(documents)):
            shapes = ", ".join(f"{name} {a.dtype}{a.shape}" for name, a in arrays.items())
            reason = f"its arrays do not fit each other: {shapes}"
            raise input_error(path, reason, "Write one vector of numbers for each id, all as long")
        self._of_roles = {
            role: ({str(id_): row for row, id_ in enumerate(ids)}, unit_vectors(vectors, path))
            for role, ids, vectors in zip(ROLES, (query_ids, document_ids), (queries, documents))
        }

    def vectors(self, role: str, ids: Sequence[str]) -> np.ndarray:
        """Unit vectors of queries or documents, `[ids, dim]` float32."""
        rows, vectors = self._of_roles[role]
        missing = [id_ for id_ in ids if id_ not in rows]
        if missing:
            raise input_error(
                self._path,
                f"it has no vector for {len(missing)} of {len(ids)} {PLURALS[role]}, such as"
                f" {missing[0]!r}",
                "Write vectors for all texts of the set",
            )
        return vectors[[rows[id_] for id_ in ids]]
