"""Pre-trained word embeddings, read from the usual files for the tokens of a vocabulary.

Readers stream: memory grows with the vocabulary, not with the file. Formats, told apart by content:

    word2vec text, fastText `.vec`   first line `<tokens> <dim>`, then `token v1 ... vdim`
    GloVe text                       the same, without the first line
    word2vec binary                  the same first line, then `token `, dim little-endian float32
    `.npz`                           ours, from `save_embeddings`; opened without pickle
"""

from __future__ import annotations

import contextlib
import math
import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tf_smoothclir.utils.errors import InputError, input_error

FIRST_WORD = 2  # id of the first word, after padding and unknown
CONVERT = "python -m trainers.convert_polyglot --input=FILE.pkl --output=FILE.npz"
MAX_LINE_BYTES = 1 << 20  # longer lines and tokens are damage, not text
MAX_TOKEN_BYTES = 1 << 14
CHUNK_BYTES = 1 << 18
CHUNK_ROWS = 1024


class EmbeddingInit(NamedTuple):
    """Initial embeddings of a vocabulary.

    Attributes:
        matrix: `[len(tokens), dim]` float32, one row per token id.
        found: Number of words of the vocabulary that are in the file.
        total: Number of words of the vocabulary: its tokens except padding and unknown.
        in_file: `[len(tokens)]` bool, the tokens that the file has.
    """

    matrix: np.ndarray
    found: int
    total: int
    in_file: np.ndarray


class _Record(NamedTuple):
    """One token of a file. `values` are dim numbers: an array, or the bytes of each."""

    token: bytes
    values: np.ndarray | list[bytes]


def load_embeddings(
    path: str | os.PathLike, vocabulary_tokens: Sequence[str], *, dim: int, seed: int
) -> EmbeddingInit:
    """Reads the rows of a vocabulary from a file of pre-trained embeddings.

    A token takes the row of the first equal token in the file, or else of the first that is equal
    when lower-cased. Rows that are not in the file are drawn from N(0, s²), where s is the standard
    deviation of all numbers found; a draw depends on the seed and the token's id alone. Row 0,
    padding, is zero; row 1, unknown, is the file's `[UNK]` or drawn. The numbers of tokens outside
    the vocabulary are counted, but not parsed.

    Args:
        path: File in one of the formats of this module.
        vocabulary_tokens: Tokens by id; the first two are padding and unknown.
        dim: Length of an embedding.
        seed: Seed of the drawn rows.

    Raises:
        InputError: The file is missing, damaged, of another dimension, a pickle, or has no word of
            the vocabulary.
    """
    ids = {token.encode("utf-8"): i for i, token in enumerate(vocabulary_tokens) if i > 0}
    matrix = np.random.default_rng(seed).standard_normal((len(vocabulary_tokens), dim), np.float32)
    exact = np.zeros(len(vocabulary_tokens), bool)
    any_case = np.zeros_like(exact)
    for number, record, unit in _records(path, dim):
        token_id = ids.get(record.token)
        is_exact = token_id is not None
        if not is_exact:
            lowered = record.token.decode("utf-8", "replace").lower().encode("utf-8")
            token_id = ids.get(lowered)
        if token_id is None or exact[token_id] or (any_case[token_id] and not is_exact):
            continue
        matrix[token_id] = _parse(path, number, record, unit)
        any_case[token_id] = True
        exact[token_id] = is_exact

    found, total = int(any_case[FIRST_WORD:].sum()), max(len(vocabulary_tokens) - FIRST_WORD, 0)
    if not found:
        raise input_error(
            path,
            f"the file contains none of the {total} words of the vocabulary",
            "Check that both are in the same language",
        )
    matrix[~any_case] *= np.std(matrix[any_case], dtype=np.float64)
    matrix[0] = 0
    return EmbeddingInit(matrix, found, total, any_case)


def save_embeddings(path: str | os.PathLike, tokens: Sequence[str], vectors: np.ndarray) -> None:
    """Writes an `.npz` for `load_embeddings`, under a temporary name that is then renamed.

    Args:
        path: The file to write.
        tokens: One token per row.
        vectors: `[len(tokens), dim]`, written as float32.

    The file contains `tokens` (uint8, the UTF-8 of all tokens one after the other), `offsets`
    (int64, `[len(tokens) + 1]`, where each token begins) and `vectors`.

    Raises:
        InputError: The file cannot be written.
    """
    encoded = [token.encode("utf-8") for token in tokens]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    temporary = f"{os.fspath(path)}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:
            np.savez(
                file,
                tokens=np.frombuffer(b"".join(encoded), np.uint8),
                offsets=offsets,
                vectors=np.ascontiguousarray(vectors, dtype="<f4"),
            )
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)
        if isinstance(error, OSError):
            reason = f"the file cannot be written ({error})"
            raise input_error(path, reason, "Check the path") from error
        raise


def _parse(path, number: int, record: _Record, unit: str) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):
            values = np.array(record.values, dtype=np.float64).astype(np.float32)
    except ValueError as error:
        raise _damaged(path, number, unit, f"has a bad number ({error})") from None
    if not np.isfinite(values).all():
        raise _damaged(path, number, unit, "has a number that is not finite in float32")
    return values


def _damaged(path, number: int, unit: str, what: str) -> InputError:
    if unit == "line":
        return input_error(path, what, "Correct the line, or download the file again", line=number)
    return input_error(path, f"{unit} {number} {what}", "Download or convert the file again")


def _wrong_dim(path, found: int, dim: int, *, line: int | None = None) -> InputError:
    reason = f"the embeddings have dimension {found}, but the model has {dim}"
    return input_error(path, reason, f"Give --dim={found}, or another file", line=line)


def _records(path: str | os.PathLike, dim: int) -> Iterator[tuple[int, _Record, str]]:
    """Yields (number from 1, record, "line" or "record") of a file in any of the formats."""
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
            file.seek(0)
            if os.fspath(path).endswith((".pkl", ".pickle")) or head[:1] == b"\x80":
                raise input_error(
                    path, "the file is a pickle, which may run code", f"First run {CONVERT}"
                )
            if not head:
                raise input_error(path, "the file is empty", "Download it again")
            if head.startswith(b"PK"):
                yield from _npz_records(path, file, dim)
            elif head.startswith((b"\xba\x16\x4f\x2f", b"\x1f\x8b")):  # fastText model, gzip
                raise input_error(
                    path,
                    "the file is a fastText model or compressed",
                    "Give the .vec file, uncompressed",
                )
            elif _header(head) and _is_binary(head):
                yield from _binary_records(path, file, dim)
            else:
                yield from _text_records(path, file, dim)
    except OSError as error:
        raise input_error(path, f"the file cannot be read ({error})", "Check the path") from error


def _header(head: bytes) -> tuple[int, int] | None:
    """Returns (number of tokens, dim) if the first line states them."""
    fields = head.split(b"\n", 1)[0].split()
    if len(fields) == 2 and all(field.isdigit() and len(field) < 19 for field in fields):
        return int(fields[0]), int(fields[1])
    return None


def _is_binary(head: bytes) -> bool:
    """Returns whether bytes are floats, not text: some are control characters or not UTF-8."""
    _, _, body = head.partition(b"\n")
    if any(byte < 32 and byte not in b"\t\n\r" for byte in body):
        return True
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start < len(body) - 3  # otherwise only the last character is cut
    return False


def _text_records(path, file, dim: int) -> Iterator[tuple[int, _Record, str]]:
    stated, number = None, 0
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        if len(line) == MAX_LINE_BYTES:
            raise _damaged(path, number, "line", f"is longer than {MAX_LINE_BYTES} bytes")
        fields = line.rstrip(b" \r\n").split(b" ")
        if number == 1:
            stated = _header(line)
            file_dim = stated[1] if stated else len(fields) - 1
            if file_dim != dim and file_dim > 0:
                raise _wrong_dim(path, file_dim, dim, line=1)
            if stated:
                continue
        # A token may contain spaces, as some of GloVe's do, but not numbers after a space.
        extra = fields[1:-dim]
        if len(fields) <= dim or any(map(_is_number, extra)):
            raise _damaged(
                path, number, "line", f"has {len(fields) - 1} numbers after its token, not {dim}"
            )
        yield number, _Record(b" ".join(fields[:-dim]), fields[-dim:]), "line"
    if stated and number - 1 != stated[0]:
        raise input_error(
            path,
            f"the first line states {stated[0]} tokens, but the file has {number - 1}",
            "Download the file again, or correct its first line",
        )


def _is_number(field: bytes) -> bool:
    try:
        return math.isfinite(float(field))
    except ValueError:
        return False


def _binary_records(path, file, dim: int) -> Iterator[tuple[int, _Record, str]]:
    count, file_dim = _header(file.readline(MAX_LINE_BYTES))
    if file_dim != dim:
        raise _wrong_dim(path, file_dim, dim, line=1)
    buffer, start = b"", 0
    for number in range(1, count + 1):
        while True:
            space = buffer.find(b" ", start)
            end = space + 1 + 4 * dim
            if space >= 0 and end <= len(buffer):
                break
            more = file.read(CHUNK_BYTES)
            if not more or (space < 0 and len(buffer) - start > MAX_TOKEN_BYTES):
                what = f"is cut off, but the first line states {count} records"
                raise _damaged(path, number, "record", what)
            buffer, start = buffer[start:] + more, 0
        values = np.frombuffer(buffer, "<f4", dim, space + 1)
        yield number, _Record(buffer[start:space].lstrip(b"\n"), values), "record"
        start = end


def _npz_records(path, file, dim: int) -> Iterator[tuple[int, _Record, str]]:
    try:
        with contextlib.ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(file))
            members = {}
            for name, dtype in (("tokens", "u1"), ("offsets", "<i8"), ("vectors", "<f4")):
                member = members[name] = stack.enter_context(archive.open(f"{name}.npy"))
                if np.lib.format.read_magic(member) != (1, 0):
                    raise ValueError(f"{name} is not an array of format 1.0")
                shape, fortran, found = np.lib.format.read_array_header_1_0(member)
                if fortran or found != np.dtype(dtype):
                    raise ValueError(f"{name} is not a plain array of {dtype}")
            if len(shape) == 2 and shape[1] != dim:
                raise _wrong_dim(path, shape[1], dim)
            yield from _npz_rows(members, *shape)
    except InputError:
        raise
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, EOFError) as error:
        reason = f"the file is not a whole embedding archive ({error})"
        raise input_error(path, reason, f"Write it again: {CONVERT}") from error


def _npz_rows(members, count: int, dim: int) -> Iterator[tuple[int, _Record, str]]:
    """Yields the records of open members, chunk by chunk."""
    begin = _read(members["offsets"], 1, "<i8")[0]
    for first in range(0, count, CHUNK_ROWS):
        rows = min(CHUNK_ROWS, count - first)
        offsets = np.append(begin, _read(members["offsets"], rows, "<i8"))
        lengths = np.diff(offsets)
        if begin < 0 or lengths.min() < 0 or lengths.max() > MAX_TOKEN_BYTES:
            raise ValueError(f"offsets from row {first + 1} on do not fit")
        tokens = _read(members["tokens"], int(lengths.sum()), "u1").tobytes()
        vectors = _read(members["vectors"], rows * dim, "<f4").reshape(rows, dim)
        for row, start in enumerate(offsets[:-1] - begin):
            token = tokens[start : start + lengths[row]]
            yield first + row + 1, _Record(token, vectors[row]), "record"
        begin = offsets[-1]


def _read(member, count: int, dtype: str) -> np.ndarray:
    data = member.read(count * np.dtype(dtype).itemsize)
    return np.frombuffer(data, dtype, count)  # ValueError if the data end early
