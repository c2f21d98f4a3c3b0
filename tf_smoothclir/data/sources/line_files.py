"""Lines of UTF-8 files, perhaps compressed by gzip: every defect is an error with file and line."""

import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from tf_smoothclir.utils.errors import input_error

_BOM = b"\xef\xbb\xbf"
_LONGEST_LINE = 1 << 28  # bytes of a compressed file, few of which can stand for gigabytes


def is_compressed(path: Path) -> bool:
    """Whether the name of a file says that gzip wrote it."""
    return path.suffix.lower() == ".gz"


def suffix_of(path: Path) -> str:
    """The suffix of the name of a file before ".gz", in small letters."""
    return Path(path.stem if is_compressed(path) else path).suffix.lower()


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yields (number from 1, line without its ending); drops a BOM, and blank lines at the end."""
    return without_blank(path, any_lines(path))


def any_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yields what `read_lines` does, and blank lines."""
    offset = 0
    try:
        with gzip.open(path) if is_compressed(path) else open(path, "rb") as file:
            longest = _LONGEST_LINE if is_compressed(path) else -1
            lines = iter(lambda: file.readline(longest), b"")
            for line, raw in enumerate(lines, start=1):
                if len(raw) == longest:
                    reason = f"the line has more than {longest:,} bytes"
                    raise input_error(path, reason, "Decompress the file", line=line)
                if line == 1 and b"\r" in raw.rstrip(b"\r\n") and not raw.endswith(b"\n"):
                    reason = "all lines end in carriage returns alone"
                    remedy = "Make them line feeds, for example with tr '\\r' '\\n'"
                    raise input_error(path, reason, remedy, line=line)
                text = _decode(raw, path, line, offset)
                offset += len(raw)
                yield line, text
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        remedy = "Write it again, or name it without .gz if it is not compressed"
        raise input_error(path, f"cannot be read: {error}", remedy) from None
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise input_error(path, reason, "Check the path") from None


def without_blank(path: Path, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Leaves out blank lines at the end; others are an error, and so is a file of them alone."""
    line, blank = 0, 0
    for line, text in lines:
        if text.strip() and blank:
            raise input_error(path, "the line is blank", "Remove it", line=blank)
        if text.strip():
            yield line, text
        else:
            blank = blank or line
    if not line or blank == 1:
        raise empty_file(path)


def empty_file(path: Path):
    """The error of a file without records."""
    return input_error(path, "the file is empty", "Give it one record per line")


def _decode(raw: bytes, path: Path, line: int, offset: int) -> str:
    start = len(_BOM) if line == 1 and raw.startswith(_BOM) else 0
    end = len(raw) - raw.endswith(b"\n")
    end -= raw.endswith(b"\r", start, end)
    try:
        text = raw[start:end].decode("utf-8")
    except UnicodeDecodeError as error:
        at = start + error.start
        reason = f"byte 0x{raw[at]:02x} at offset {offset + at} of the file is not UTF-8"
        remedy = "Convert the file to UTF-8, for example with iconv"
        raise input_error(path, reason, remedy, line=line) from None
    return text
