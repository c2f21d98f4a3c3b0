"""The work directory of an index: where encoded segments are kept until the index is complete."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from tf_smoothclir.index.document_collections import Collection
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.files import flush_to_disk, locked, read_json, write_json

COMPLETE = "complete.json"
_KEY = "key.json"


def work_directory(index_dir: Path) -> Path:
    """The work directory of the index at `index_dir`."""
    return index_dir.with_name(f"{index_dir.name}.building")


@contextlib.contextmanager
def locked_work_directory(index_dir: Path) -> Iterator[Path]:
    """Yields the work directory of an index to one process at a time; deletes it on success."""
    directory = work_directory(index_dir)
    directory.mkdir(parents=True, exist_ok=True)
    reason, remedy = "another process is working on this index", "Wait until it has finished"
    with locked(directory / "lock", directory, reason, remedy):
        try:
            yield directory
        except BaseException:
            if not any(path.is_dir() for path in directory.iterdir()):  # nothing to continue from
                shutil.rmtree(directory)
            raise
        # First, and on disk: segments that are half deleted must not pass for complete.
        (directory / COMPLETE).unlink(missing_ok=True)
        flush_to_disk(directory)
        shutil.rmtree(directory)


@contextlib.contextmanager
def claimed(
    work: Path, pair_id: str, collection: Collection, halves: Sequence[str], *, start_over: bool
) -> Iterator[None]:
    """Claims a work directory for the segments of this export and these documents.

    The segments stay if the process fails or is killed, so that the next one continues. They are
    deleted after an `InputError`: once the user has mended the collection, it is another one.
    """
    key = {"pair_id": pair_id, "collection": collection.fingerprint(), "halves": [*halves]}
    if not (work / _KEY).exists() or read_json(work / _KEY) != key:
        if (work / _KEY).exists() and not start_over:
            raise input_error(
                work,
                "it holds segments of another export, of another collection, or of another state of"
                " the collection",
                "Repeat the command that was interrupted, or delete the directory",
            )
        _clear(work)
        write_json(work / _KEY, key)
    try:
        yield
    except InputError:
        _clear(work)
        raise


def _clear(work: Path) -> None:
    for name in (COMPLETE, _KEY):
        (work / name).unlink(missing_ok=True)
    for path in work.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
