"""Vectors of a foreign encoder: kept by the digest of their text, or in a file that somebody made.

The directory of a store has, for queries and for documents, `<role>.keys` (16 bytes of a digest
each) and `<role>.vectors` (float32 rows in the same order). Both only grow, vectors first, so after
a kill the whole rows that both have are good.
"""

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from absl import logging

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.foreign_encoders.protocol import PLURALS, ForeignEncoder, unit_vectors
from tf_smoothclir.storage import files
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.progress import progress_bar

_KEY = 16
_TEXTS_AT_ONCE = 256
_SECONDS_BETWEEN_NOTES = 60
_TEXTS_CHECKED, _SAME = 8, 0.1  # distance of two vectors that differ by rounding
_OF_FILE = ("query_ids", "queries", "document_ids", "documents")  # its arrays


class VectorStore:
    """Encodes texts by a foreign encoder, each text once, whatever process asks."""

    def __init__(self, encoder: ForeignEncoder, cache_dir: str | Path):
        """Opens the vectors of an encoder below a directory, which is made if it is missing."""
        self._encoder = encoder
        path = Path(cache_dir, "encoders", encoder.digest[:32])
        self._directory = files.make_directory(path, "--cache_dir")
        self._checked: set[str] = set()

    def vectors(self, role: str, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of queries or documents, `[texts, dim]` float32."""
        keys = [hashlib.sha256(text.encode()).digest()[:_KEY] for text in texts]
        lock = self._directory / f"{role}.lock"
        with files.locked(lock, f"encoder {self._encoder.name}", "others are encoding with it"):
            if not texts:
                return np.zeros((0, self._dim(role)), np.float32)
            rows = self._rows(role)
            if self._encoder.may_change and role not in self._checked:
                rows = self._checked_rows(role, rows, dict(zip(keys, texts)))
            missing = {key: text for key, text in zip(keys, texts) if key not in rows}
            if missing:
                self._encode(role, missing)
                rows = self._rows(role)
            return self._kept(role, rows, keys)

    def _kept(self, role: str, rows: dict[bytes, int], keys: Sequence[bytes]) -> np.ndarray:
        path, shape = self._directory / f"{role}.vectors", (len(rows), self._dim(role))
        return np.memmap(path, "<f4", mode="r", shape=shape)[[rows[key] for key in keys]]

    def _checked_rows(
        self, role: str, rows: dict[bytes, int], texts: dict[bytes, str]
    ) -> dict[bytes, int]:
        """The rows, or none if the encoder gives some of the texts other vectors than it did."""
        keys = [key for key in texts if key in rows]
        keys = keys[:: -(-len(keys) // _TEXTS_CHECKED) or 1]
        if not keys:
            return rows
        kept, now = self._kept(role, rows, keys), self._asked(role, [texts[key] for key in keys])
        self._checked.add(role)
        if kept.shape == now.shape and (np.linalg.norm(kept - now, axis=1) < _SAME).all():
            return rows
        logging.warning(
            f"encoder {self._encoder.name}: its vectors are not those that were kept under this"
            f" name. All {PLURALS[role]} are encoded again."
        )
        for name in ("keys", "dim", "vectors"):  # in this order, a kill leaves none that counts
            (self._directory / f"{role}.{name}").unlink()
        return {}

    def _asked(self, role: str, texts: list[str]) -> np.ndarray:
        """Unit vectors that the encoder gives texts."""
        return unit_vectors(self._encoder.encode(role, texts), f"encoder {self._encoder.name}")

    def _rows(self, role: str) -> dict[bytes, int]:
        """Key of a text -> row of its vector."""
        path = self._directory / f"{role}.keys"
        content = path.read_bytes() if path.is_file() else b""
        whole = len(content) // _KEY
        return {content[row * _KEY : (row + 1) * _KEY]: row for row in range(whole)}

    def _dim(self, role: str) -> int:
        path = self._directory / f"{role}.dim"
        return int(path.read_text()) if path.is_file() else 0

    def _encode(self, role: str, missing: dict[bytes, str]) -> None:
        """Encodes texts, shortest first, and appends their vectors."""
        order = sorted(missing, key=lambda key: len(missing[key]))
        what = f"Encode {len(order)} {PLURALS[role]} with {self._encoder.name}"
        logging.info("%s", what)
        paths = [self._directory / f"{role}.{name}" for name in ("vectors", "keys", "dim")]
        rows, dim = len(self._rows(role)), self._dim(role)
        begin = noted = time.monotonic()
        with (
            progress_bar(len(order), what, "texts") as bar,
            files.open_to_write(paths[0], append=True) as of_vectors,
            files.open_to_write(paths[1], append=True) as of_keys,
        ):
            of_keys.truncate(rows * _KEY)  # what a killed process left
            of_vectors.truncate(rows * dim * 4)
            for start in range(0, len(order), _TEXTS_AT_ONCE):
                keys = order[start : start + _TEXTS_AT_ONCE]
                vectors = self._asked(role, [missing[key] for key in keys])
                if vectors.shape[1] != (dim or vectors.shape[1]):
                    reason = f"it returned {vectors.shape[1]} numbers, after vectors of {dim}"
                    remedy = "Check it; another model needs another name"
                    raise input_error(f"encoder {self._encoder.name}", reason, remedy)
                if not dim:
                    dim = vectors.shape[1]
                    files.write_text(paths[2], str(dim))
                of_vectors.write(vectors.astype("<f4").tobytes())
                of_vectors.flush()
                of_keys.write(b"".join(keys))
                of_keys.flush()
                bar.update(len(keys))
                if time.monotonic() - noted > _SECONDS_BETWEEN_NOTES:
                    noted = time.monotonic()
                    done = start + len(keys)
                    left = (noted - begin) / done * (len(order) - done)
                    rate = done / (noted - begin)
                    logging.info(
                        "%d of %d, %.1f texts/s, about %.0f s left", done, len(order), rate, left
                    )


class VectorFile:
    """An `.npz` file: strings `query_ids` and `document_ids`, `[texts]`; `queries`, `documents`."""

    def __init__(self, path: str | Path):
        """Reads and checks the file."""
        self.name, self._path = Path(path).stem, path
        arrays = files.read_arrays(path, *_OF_FILE)
        query_ids, queries, document_ids, documents = (arrays[name] for name in _OF_FILE)
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
