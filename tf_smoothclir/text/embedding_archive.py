"""Embeddings as an `.npz` of ours, written and read without pickle."""

from __future__ import annotations

import contextlib
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.text.embedding_records import MAX_TOKEN_BYTES, Record, wrong_dim
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.files import flush_to_disk, open_to_write, scratch_directory

CONVERT = "smoothclir-convert-polyglot --input=FILE.pkl --output=FILE.npz"
_CHUNK_ROWS = 1024
# What zipfile and NumPy raise where bytes are damaged, encrypted or of a later format.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    AttributeError,
    EOFError,
    KeyError,
    IndexError,
    MemoryError,
    OverflowError,
    RuntimeError,  # encrypted; NotImplementedError, an unknown compression, and RecursionError
    SyntaxError,
    TypeError,
    ValueError,
)


def save_embeddings(path: str | os.PathLike, tokens: Sequence[str], vectors: np.ndarray) -> None:
    """Writes an `.npz` for `load_embeddings`, under a temporary name that is then renamed.

    The file contains `tokens` (uint8, the UTF-8 of all tokens one after the other), `offsets`
    (int64, `[len(tokens) + 1]`, where each token begins) and `vectors`.
    """
    encoded = [token.encode("utf-8") for token in tokens]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    target = Path(path).absolute()
    try:
        with scratch_directory(target.parent, target.name) as scratch:
            temporary = scratch / target.name
            with open_to_write(temporary) as file:
                np.savez(
                    file,
                    tokens=np.frombuffer(b"".join(encoded), np.uint8),
                    offsets=offsets,
                    vectors=np.ascontiguousarray(vectors, dtype="<f4"),
                )
            flush_to_disk(temporary)
            os.replace(temporary, target)
            flush_to_disk(target.parent)
    except OSError as error:
        reason = f"the file cannot be written ({error})"
        raise input_error(path, reason, "Check the path") from error


def archive_records(path, file, dim: int) -> Iterator[tuple[int, Record, str]]:
    """Yields what `embedding_formats.records` does, of an open `.npz`."""
    try:
        with contextlib.ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(file))
            members, shapes = {}, {}
            for name, dtype in (("tokens", "u1"), ("offsets", "<i8"), ("vectors", "<f4")):
                member = members[name] = stack.enter_context(archive.open(f"{name}.npy"))
                if np.lib.format.read_magic(member) != (1, 0):
                    raise ValueError(f"{name} is not an array of format 1.0")
                shapes[name], fortran, found = np.lib.format.read_array_header_1_0(member)
                if fortran or found != np.dtype(dtype):
                    raise ValueError(f"{name} is not a plain array of {dtype}")
            count, file_dim = shapes["vectors"]
            if file_dim != dim:
                raise wrong_dim(path, file_dim, dim)
            if shapes["offsets"] != (count + 1,):
                raise ValueError(f"there are {shapes['offsets']} offsets for {count} vectors")
            yield from _rows(members, count, dim)
            for name, member in members.items():
                if member.read(1):
                    raise ValueError(f"{name} has more bytes than belong to {count} vectors")
    except InputError:
        raise
    except _DAMAGE as error:
        reason = f"the file is not a whole embedding archive ({error or type(error).__name__})"
        raise input_error(path, reason, f"Write it again: {CONVERT}") from error


def _rows(members, count: int, dim: int) -> Iterator[tuple[int, Record, str]]:
    """Yields the records of open members, chunk by chunk."""
    begin = _read(members["offsets"], 1, "<i8")[0]
    for first in range(0, count, _CHUNK_ROWS):
        rows = min(_CHUNK_ROWS, count - first)
        offsets = np.append(begin, _read(members["offsets"], rows, "<i8"))
        lengths = np.diff(offsets)
        if begin < 0 or lengths.min() < 0 or lengths.max() > MAX_TOKEN_BYTES:
            raise ValueError(f"offsets from row {first + 1} on do not fit")
        tokens = _read(members["tokens"], int(lengths.sum()), "u1").tobytes()
        vectors = _read(members["vectors"], rows * dim, "<f4").reshape(rows, dim)
        for row, start in enumerate(offsets[:-1] - begin):
            token = tokens[start : start + lengths[row]]
            yield first + row + 1, Record(token, vectors[row]), "record"
        begin = offsets[-1]


def _read(member, count: int, dtype: str) -> np.ndarray:
    data = member.read(count * np.dtype(dtype).itemsize)
    return np.frombuffer(data, dtype, count)  # ValueError if the data end early
