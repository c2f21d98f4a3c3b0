"""Converts Polyglot embeddings (Al-Rfou et al. 2013), which are Python 2 pickles.

A pickle is a program. This reader lets it call nothing but inert stand-ins for the functions that
rebuild a NumPy array; NumPy's own code never sees the file.
"""

from __future__ import annotations

import io
import math
import os
import pickle
import reprlib
from typing import ClassVar

import numpy as np

from tf_smoothclir.storage.files import write_text
from tf_smoothclir.text.vocabulary import UNKNOWN
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.paths import local_path

MAX_FILE_BYTES = 1 << 30  # the published files have 30 MB for 100,000 words
MAX_ARRAY_BYTES = 1 << 29

# Texts have no sentence marks here, and padding is always the zero vector.
RENAMED = {"<UNK>": UNKNOWN}
DROPPED = ("<S>", "</S>", "<PAD>")

_QUOTED = 200  # characters of a file in an error

REMEDY = "Give the .pkl file as Polyglot published it"


def convert_polyglot(
    pkl_path: str | os.PathLike,
    vectors_path: str | os.PathLike,
    words_path: str | os.PathLike | None = None,
) -> tuple[int, int]:
    """Writes the embeddings of a Polyglot pickle, `(words, [words, dim])`, as text."""
    # Words with a space or a line break, which no vocabulary has, are left out. `<UNK>` becomes
    # `[UNK]`; `<S>`, `</S>` and `<PAD>` are dropped. Each output is written whole or not at all.
    try:
        pkl_path = local_path(pkl_path)
        size = os.path.getsize(pkl_path)
        if size > MAX_FILE_BYTES:
            reason = f"the file has {size} bytes, more than {MAX_FILE_BYTES}"
            raise input_error(pkl_path, reason, REMEDY)
        with open(pkl_path, "rb") as file:
            data = file.read(MAX_FILE_BYTES)
    except OSError as error:
        reason = f"the file cannot be read ({error})"
        raise input_error(pkl_path, reason, "Check the path") from error
    try:
        words, embeddings = _Unpickler(pkl_path, data).load()
        vectors = embeddings.values()
    except InputError:
        raise
    except Exception as error:  # a damaged pickle may fail in any way
        said = f"{type(error).__name__}: {error}"[:_QUOTED]
        reason = f"this is not a pickle of words and embeddings ({said})"
        raise input_error(pkl_path, reason, REMEDY) from error

    if vectors.ndim != 2 or not isinstance(words, (list, tuple)) or len(vectors) != len(words):
        reason = f"the embeddings {vectors.shape} do not have one row per word"
        raise input_error(pkl_path, reason, REMEDY)
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if bad.size:
        raise input_error(pkl_path, f"the embedding of word {bad[0] + 1} is not finite", REMEDY)
    tokens = [_text(pkl_path, place, word) for place, word in enumerate(words, start=1)]
    keep = [
        row
        for row, token in enumerate(tokens)
        if token not in DROPPED and not {" ", "\n", "\r"} & {*token}
    ]
    kept = [RENAMED.get(tokens[row], tokens[row]) for row in keep]
    dim = vectors.shape[1]
    numbers = " %.9g" * dim + "\n"  # nine digits give the same float32 back
    rows = (word + numbers % tuple(vectors[row].tolist()) for word, row in zip(kept, keep))
    write_text(local_path(vectors_path), f"{len(keep)} {dim}\n" + "".join(rows))
    if words_path is not None:
        single = (f"{word}\n" for word in kept if len(word.split()) == 1)
        write_text(local_path(words_path), "".join(single))
    return len(keep), dim


def _text(path: str | os.PathLike, place: int, word) -> str:
    """A word as text; a Python 2 `str` comes as bytes, `unicode` as str."""
    try:
        text = word.decode("utf-8") if isinstance(word, bytes) else word
        text.encode()
        return text
    except (UnicodeError, AttributeError) as error:
        raise input_error(path, f"word {place} is not text ({error})", REMEDY) from error


class _Dtype:
    """Stands in for `numpy.dtype`: a name and a byte order."""

    def __init__(self, name, *_):
        self.name = name if isinstance(name, str) else name.decode("ascii")
        self.order = "<"

    def __setstate__(self, state):
        order = state[1]
        self.order = order if isinstance(order, str) else order.decode("ascii")


class _Array:
    """Stands in for `numpy.ndarray`: keeps its state until `values` checks and reads it."""

    def __setstate__(self, state):
        _, self.shape, self.dtype, self.fortran, self.data = state

    def values(self) -> np.ndarray:
        if self.dtype.name not in ("f2", "f4", "f8"):
            raise ValueError(f"numbers of type {self.dtype.name}")
        dtype = np.dtype(self.dtype.order + self.dtype.name)
        if not (isinstance(self.shape, tuple) and isinstance(self.data, bytes)):
            raise ValueError("an array without shape or data")
        shown = reprlib.repr(self.shape)  # repr could run for ever
        if len(self.shape) > 8 or not all(type(n) is int and n >= 0 for n in self.shape):
            raise ValueError(f"shape {shown}")
        if not dtype.itemsize * math.prod(self.shape) == len(self.data) <= MAX_ARRAY_BYTES:
            raise ValueError(
                f"{len(self.data)} bytes for shape {shown}, at most {MAX_ARRAY_BYTES} allowed"
            )
        array = np.frombuffer(self.data, dtype)
        return array.reshape(self.shape, order="F" if self.fortran else "C").astype(np.float32)


def _reconstruct(*_) -> _Array:
    """Stands in for `numpy.core.multiarray._reconstruct`; the state that follows is enough."""
    return _Array()


def _encode(text: str, encoding: str) -> bytes:
    """Stands in for `_codecs.encode`, which Python 3 uses for bytes in protocol 2."""
    if encoding != "latin1":
        raise ValueError(f"encoding {reprlib.repr(encoding)}")
    return text.encode("latin1")


_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
}


_HASHING = {pickle.DICT, pickle.SETITEM, pickle.SETITEMS, pickle.ADDITEMS, pickle.FROZENSET}


def _refuse(_) -> None:
    raise ValueError("dictionaries or sets, which Polyglot's files do not have")


# The Python version: in the C version, a few bytes of a pickle reserve gigabytes for its memo.
class _Unpickler(pickle._Unpickler):
    """Refuses every global except the stand-ins, and dictionaries and sets."""

    # Their keys are hashed, which takes for ever for tuples that contain each other many times.

    dispatch: ClassVar = {
        code: _refuse if bytes([code]) in _HASHING else method
        for code, method in pickle._Unpickler.dispatch.items()
    }

    def __init__(self, path: str | os.PathLike, data: bytes):
        # Unlike "latin1", "bytes" keeps a Python 2 `str` (UTF-8 here) apart from a `unicode`.
        super().__init__(io.BytesIO(data), fix_imports=False, encoding="bytes")
        self._path = path

    def find_class(self, module: str, name: str):
        if (module, name) not in _ALLOWED:
            referred = f"{module}.{name}"[:_QUOTED]
            reason = f"the pickle refers to {referred}, which is refused and not run"
            raise input_error(self._path, reason, REMEDY)
        return _ALLOWED[module, name]
