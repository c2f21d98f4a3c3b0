"""The formats of embedding files, told apart by their content.

    word2vec text, fastText `.vec`   first line `<tokens> <dim>`, then `token v1 ... vdim`
    GloVe text                       the same, without the first line
    word2vec binary                  the same first line, then `token `, dim little-endian float32
    `.npz`                           ours, from `save_embeddings`; opened without pickle

A file is read as binary only if no line looks like one of text, and every format must add up to
the last byte. Readers stream.
"""

from __future__ import annotations

import codecs
import itertools
import math
import os
from collections.abc import Iterator

import numpy as np

from tf_smoothclir.text.embedding_archive import CONVERT, archive_records
from tf_smoothclir.text.embedding_records import MAX_TOKEN_BYTES, Record, damaged, wrong_dim
from tf_smoothclir.utils.errors import input_error

_MAX_LINE_BYTES = 1 << 20  # longer lines are damage, not text
_CHUNK_BYTES = 1 << 18
_LINES_LOOKED_AT = 8
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def records(path: str | os.PathLike, dim: int) -> Iterator[tuple[int, Record, str]]:
    """Yields (number from 1, record, "line" or "record") of a file in any of the formats."""
    try:
        with open(path, "rb") as file:
            head = file.read(_CHUNK_BYTES)
            _check_kind(path, head)
            file.seek(len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0)
            if head.startswith(b"PK"):
                yield from archive_records(path, file, dim)
            elif _header(head) and _is_binary(head):
                yield from _binary_records(path, file, dim)
            else:
                yield from _text_records(path, file, dim)
    except OSError as error:
        raise input_error(path, f"the file cannot be read ({error})", "Check the path") from error


def _check_kind(path: str | os.PathLike, head: bytes) -> None:
    if os.fspath(path).endswith((".pkl", ".pickle")) or head[:1] == b"\x80":
        raise input_error(path, "the file is a pickle, which may run code", f"First run {CONVERT}")
    if not head:
        raise input_error(path, "the file is empty", "Download it again")
    if head.startswith((b"\xba\x16\x4f\x2f", b"\x1f\x8b")):  # fastText model, gzip
        raise input_error(
            path, "the file is a fastText model or compressed", "Give the .vec file, uncompressed"
        )
    if head.startswith(_UTF_16):
        raise input_error(path, "the file is UTF-16", "Convert it: iconv -f UTF-16 -t UTF-8")


def _header(head: bytes) -> tuple[int, int] | None:
    """(number of tokens, dim) if the first line states them."""
    fields = head.split(b"\n", 1)[0].removeprefix(codecs.BOM_UTF8).split()
    if len(fields) == 2 and all(field.isdigit() and len(field) < 19 for field in fields):
        return int(fields[0]), int(fields[1])
    return None


def _is_binary(head: bytes) -> bool:
    """Whether what follows the first line are floats, not text.

    One line of text is enough for text, whatever characters it has; floats do not look like one.
    """
    _, dim = _header(head)
    lines = head.split(b"\n", _LINES_LOOKED_AT + 1)[1:]
    for line in itertools.islice(lines, _LINES_LOOKED_AT):
        fields = line.rstrip(b" \r").split(b" ")
        if len(fields) > dim > 0 and all(map(_is_number, fields[-dim:])):
            return False
    return any(byte < 32 and byte not in b"\t\n\r" for byte in b"\n".join(lines))


def _text_records(path, file, dim: int) -> Iterator[tuple[int, Record, str]]:
    stated, number = None, 0
    while line := file.readline(_MAX_LINE_BYTES):
        number += 1
        if len(line) == _MAX_LINE_BYTES:
            raise damaged(path, number, "line", f"is longer than {_MAX_LINE_BYTES} bytes")
        fields = line.rstrip(b" \r\n").split(b" ")
        if number == 1:
            stated = _header(line)
            file_dim = stated[1] if stated else len(fields) - 1
            if file_dim != dim and file_dim > 0:
                raise wrong_dim(path, file_dim, dim, line=1)
            if stated:
                continue
        # A token may contain spaces, as some of GloVe's do, but not numbers after a space.
        extra = fields[1:-dim]
        if len(fields) <= dim or any(map(_is_number, extra)):
            raise damaged(
                path, number, "line", f"has {len(fields) - 1} numbers after its token, not {dim}"
            )
        yield number, Record(b" ".join(fields[:-dim]), fields[-dim:]), "line"
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


def _binary_records(path, file, dim: int) -> Iterator[tuple[int, Record, str]]:
    count, file_dim = _header(file.readline(_MAX_LINE_BYTES))
    if file_dim != dim:
        raise wrong_dim(path, file_dim, dim, line=1)
    buffer, start, second = b"", 0, None
    for number in range(1, count + 1):
        while True:
            space = buffer.find(b" ", start)
            end = space + 1 + 4 * dim
            if space >= 0 and end <= len(buffer):
                break
            more = file.read(_CHUNK_BYTES)
            if not more or (space < 0 and len(buffer) - start > MAX_TOKEN_BYTES):
                what = f"is cut off, but the first line states {count} records"
                raise damaged(path, number, "record", what)
            buffer, start = buffer[start:] + more, 0
        token, values = (
            buffer[start:space].lstrip(b"\n"),
            np.frombuffer(buffer, "<f4", dim, space + 1),
        )
        after_newline = buffer.startswith(b"\n", start)
        if number == 2:
            second = after_newline  # all further ones follow a newline, or none does
        is_shifted = number > 2 and after_newline != second
        if is_shifted or b"\n" in token or len(token) > MAX_TOKEN_BYTES:
            what = "does not begin with a token: the records before it have another length"
            raise damaged(path, number, "record", what)
        yield number, Record(token, values), "record"
        start = end
    if (buffer[start:] + file.read(2)).strip(b"\r\n"):
        reason = f"there are more bytes than the {count} records that the first line states"
        raise input_error(path, reason, "Download or convert the file again")
