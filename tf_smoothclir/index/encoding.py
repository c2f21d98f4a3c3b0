"""Encoding a collection shard by shard into a work directory, so that nothing is done twice."""

from __future__ import annotations

import contextlib
import itertools
import operator
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
from absl import logging

from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.index.document_collections import Collection
from tf_smoothclir.index.segments import SegmentWriter
from tf_smoothclir.text.batches import text_batches
from tf_smoothclir.utils.digests import check_digests, file_digests
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.files import locked, new_directory, read_json, write_json
from tf_smoothclir.utils.parallel import map_in_threads
from tf_smoothclir.utils.progress import progress_bar

DOCUMENTS_PER_SHARD = 1 << 16
SHARD = "shard.json"  # last file of a shard; not part of the segment
_KEY = "key.json"
_COMPLETE = "complete.json"
_TEXTS_PER_CALL = 1024

Encode = Callable[..., dict]


def work_directory(index_dir: Path) -> Path:
    """Returns where the shards of an index are kept until it is whole."""
    return index_dir.with_name(f"{index_dir.name}.building")


@contextlib.contextmanager
def locked_work_directory(index_dir: Path) -> Iterator[Path]:
    """Yields the work directory of an index, for one process at a time; deletes it on success.

    Raises:
        InputError: Another process is at work on the same index.
    """
    directory = work_directory(index_dir)
    directory.mkdir(parents=True, exist_ok=True)
    reason, remedy = "another process works on this index", "Wait until it has finished"
    with locked(directory / "lock", directory, reason, remedy):
        try:
            yield directory
        except BaseException:
            if not any(path.is_dir() for path in directory.iterdir()):  # nothing to go on with
                shutil.rmtree(directory)
            raise
        shutil.rmtree(directory)


@contextlib.contextmanager
def claimed(
    work: Path, pair_id: str, collection: Collection, *, start_over: bool
) -> Iterator[None]:
    """Makes sure that the shards in a work directory are those of these towers and documents.

    They are kept whatever happens, but for an error of the user's: what is to be encoded will be
    another collection then.

    Args:
        work: The directory.
        pair_id: Of the document tower.
        collection: The documents.
        start_over: Delete the shards of something else.

    Raises:
        InputError: They are of something else.
    """
    key = {"pair_id": pair_id, "collection": collection.fingerprint()}
    if not (work / _KEY).exists() or read_json(work / _KEY) != key:
        if (work / _KEY).exists() and not start_over:
            raise input_error(
                work,
                "it holds vectors of other towers, or of another collection or state of it",
                "Repeat the command that was broken off, or delete the directory",
            )
        _clear(work)
        write_json(work / _KEY, key)
    try:
        yield
    except InputError:
        _clear(work)
        raise


def _clear(work: Path) -> None:
    for name in (_COMPLETE, _KEY):
        (work / name).unlink(missing_ok=True)
    for path in work.iterdir():
        if path.is_dir():
            shutil.rmtree(path)


def encode_shards(work: Path, collection: Collection, encode: Encode) -> list[Path]:
    """Writes the shards of a collection that are not there yet.

    Args:
        work: Claimed for the collection.
        collection: The documents, streamed; no more than a few batches are in memory.
        encode: Of `load_tower`.

    Returns:
        All shards, in order.
    """
    if (work / _COMPLETE).exists():
        return _checked_shards(work)
    shards = []
    with progress_bar(None, "Encode the collection", "documents") as bar:
        documents = collection.documents()
        while True:
            shard = work / f"shard-{len(shards):06}"
            size = size_if_whole(shard)
            if size:
                # The source checks what it skips, so that a defect is found wherever it stands.
                skipped = sum(1 for _ in itertools.islice(documents, size))
                logging.info("%s: %d documents are encoded already", shard.name, skipped)
            else:
                part = itertools.islice(documents, DOCUMENTS_PER_SHARD)
                size = write_shard(shard, part, encode, bar.update)
            if not size:
                break
            shards.append(shard)
            if size < DOCUMENTS_PER_SHARD:
                break
    return finish(work, shards)


def write_shard(
    path: Path, documents: Iterable[Text], encode: Encode, update: Callable[[int], object]
) -> int:
    """Encodes documents by all cores and writes them as a shard, whole or not at all.

    Args:
        path: Directory of the shard.
        documents: Streamed.
        encode: Of `load_tower`.
        update: Told how many more documents are done.

    Returns:
        How many there were; for none, nothing is written.
    """

    def encoded(batch: Sequence[Text]) -> tuple[Sequence[Text], np.ndarray]:
        return batch, encode_texts(encode, [document.text for document in batch])

    text = operator.attrgetter("text")
    batches = text_batches(documents, size=_TEXTS_PER_CALL, text=text)
    first = next(batches, None)
    if first is None:
        return 0
    size = 0
    with new_directory(path) as temporary:
        with SegmentWriter(temporary) as writer:
            for batch, vectors in map_in_threads(encoded, itertools.chain([first], batches)):
                writer.add(batch, vectors)
                size += len(batch)
                update(len(batch))
        files = sorted(file.name for file in temporary.iterdir())
        write_json(temporary / SHARD, {"documents": size, "files": file_digests(temporary, files)})
    return size


def encode_texts(encode: Encode, texts: Sequence[str]) -> np.ndarray:
    """Returns `[texts, dim]` float32 vectors by a loaded tower."""
    return encode(text=tf.constant(list(texts), tf.string))["vector"].numpy()


def finish(work: Path, shards: list[Path]) -> list[Path]:
    """Notes that these are all shards of the claimed collection; returns them."""
    write_json(work / _COMPLETE, {"shards": [shard.name for shard in shards]})
    return shards


def _checked_shards(work: Path) -> list[Path]:
    shards = [work / name for name in read_json(work / _COMPLETE)["shards"]]
    for shard in shards:
        if not size_if_whole(shard):
            (work / _COMPLETE).unlink()
            raise input_error(
                shard,
                "its files are not those that were written",
                "Repeat the command that encoded the collection",
            )
    return shards


def size_if_whole(shard: Path) -> int:
    """Returns the number of documents of a finished shard; of a damaged one, 0: it is deleted."""
    if not shard.is_dir():
        return 0
    try:
        written = read_json(shard / SHARD)
        check_digests(shard, written["files"], "")
        return written["documents"]
    except (InputError, OSError, ValueError, KeyError, TypeError):
        logging.warning("%s is damaged; it is encoded again", shard)
        shutil.rmtree(shard)
        return 0
