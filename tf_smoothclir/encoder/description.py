"""Description of an exported tower for the encoder without TensorFlow: settings and arrays.

`assets.extra/encoder.json` stands in the SavedModel of a tower. The arrays are not written twice: a
SavedModel has the bytes of its variables one after the other in one file, and the description says
where each begins.
"""

import dataclasses
import json
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np

from tf_smoothclir.storage.files import open_text_to_write, read_record
from tf_smoothclir.storage.folder import versions_in
from tf_smoothclir.utils.errors import input_error

DESCRIPTION = "assets.extra/encoder.json"
_VARIABLES = "variables/variables.data-00000-of-00001"
_BYTES_TO_COMPARE = 1 << 16


@dataclasses.dataclass(frozen=True)
class StoredArray:
    """Place of an array of little-endian float32 in the file of the variables."""

    offset: int  # bytes before it
    shape: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Ngrams:
    """Character n-grams, as in `settings/text.py`."""

    buckets: int
    shortest: int
    longest: int


@dataclasses.dataclass(frozen=True)
class TowerDescription:
    """Settings by which a tower of average pooling makes vectors from texts."""

    # Arrays: `embeddings`, `[words, dim]`, and as far as the tower has them `ngram_embeddings`,
    # `[buckets, dim]`; `token_weights`, `[words, 1]`, softplus after multiplication by `pace`;
    # `position_weights`, `[parts]`, logarithms.

    vocabulary: str  # relative path
    max_tokens: int  # of a text, the first ones
    epsilon: float
    arrays: dict[str, StoredArray]
    part_begins: tuple[int, ...]  # first position of each part that is weighed
    pace: float
    ngrams: Ngrams | None  # None for words alone
    pretokenized: bool = False  # words are what stands between white space

    def write(self, directory: Path) -> None:
        """Writes the description into the directory of a SavedModel, which is not published yet."""
        path = directory / DESCRIPTION
        path.parent.mkdir(exist_ok=True)
        with open_text_to_write(path) as file:
            file.write(json.dumps(dataclasses.asdict(self), indent=2) + "\n")

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Reads the description of a tower."""
        if (path := directory / DESCRIPTION).exists():
            return read_record(path, cls, "Export the run again")
        reason = "without TensorFlow, only towers of average pooling can be computed"
        raise input_error(directory, reason, "Load the tower as a SavedModel")

    def array(self, directory: Path, name: str) -> np.ndarray:
        """An array, mapped from the file of the variables."""
        stored = self.arrays[name]
        path = directory / _VARIABLES
        size = 4 * int(np.prod(stored.shape, dtype=np.int64))
        if not size:
            return np.zeros(stored.shape, np.float32)
        if not 0 < size <= path.stat().st_size - stored.offset:
            raise input_error(path, f"it has no array {name!r}", "Export the run again")
        # Mapped, because a query needs a few rows of hundreds of megabytes.
        return np.asarray(np.memmap(path, "<f4", "r", stored.offset, stored.shape))


def stored_arrays(directory: Path, arrays: Mapping[str, np.ndarray]) -> dict[str, StoredArray]:
    """Finds arrays by their bytes among the variables of a SavedModel."""
    with (
        open(directory / _VARIABLES, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        return {name: _stored(data, name, array) for name, array in arrays.items()}


def _stored(data: mmap.mmap, name: str, array: np.ndarray) -> StoredArray:
    content = memoryview(np.ascontiguousarray(array)).cast("B")
    start = bytes(content[:_BYTES_TO_COMPARE])
    offset = data.find(start)
    while offset >= 0:
        if _is_at(data, offset, content):
            return StoredArray(offset, array.shape)
        offset = data.find(start, offset + 1)
    raise ValueError(f"{name}: the variables of the SavedModel do not hold it.")


def _is_at(data: mmap.mmap, offset: int, content: memoryview) -> bool:
    for begin in range(0, len(content), _BYTES_TO_COMPARE):
        piece = bytes(content[begin : begin + _BYTES_TO_COMPARE])
        if data[offset + begin : offset + begin + len(piece)] != piece:
            return False
    return True


ROLES = ("query", "document")


def version_directory(export_dir: Path, role: str, version: int | None) -> Path:
    """The directory of a complete version of a tower, the latest without `version`."""
    if role not in ROLES:
        raise input_error("role", f"it is {role!r}", "Give 'query' or 'document'")
    versions = set(versions_in(export_dir / f"{role}_tower"))
    others = versions_in(export_dir / "query_tower")
    if others:  # published last: where it is, everything is
        versions &= {*others}
    if version is not None:
        versions &= {version}
    if not versions:
        wanted = "" if version is None else f" of version {version}"
        reason = f"there is no complete {role} tower{wanted}"
        raise input_error(export_dir, reason, "Give the directory that smoothclir-export wrote")
    return export_dir / f"{role}_tower" / str(max(versions))
