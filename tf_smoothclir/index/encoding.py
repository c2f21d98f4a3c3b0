"""Encoding a collection, segment by segment, so that an interrupted run continues.

A segment is encoded into a directory of the work directory, whole or not at all: `documents/` and
a directory for each half of the index.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import operator
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from absl import logging

from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.index.document_collections import Collection
from tf_smoothclir.index.documents import DOCUMENTS, DocumentWriter
from tf_smoothclir.index.halves import Half
from tf_smoothclir.index.work_directory import COMPLETE
from tf_smoothclir.text.batches import text_batches
from tf_smoothclir.utils.digests import check_digests, file_digests, files_below
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.files import new_directory, read_json, write_json
from tf_smoothclir.utils.parallel import map_in_threads
from tf_smoothclir.utils.progress import progress_bar
from tf_smoothclir.utils.records import record_from_json

DOCUMENTS_PER_SEGMENT = 1 << 16
_SEGMENT_NOTE = "segment.json"  # written last
_TEXTS_PER_CALL = 1024

Encode = Callable[..., dict]


@dataclasses.dataclass(frozen=True)
class _SegmentNote:
    """Content of `_SEGMENT_NOTE` of an encoded segment.

    Attributes:
        files: Relative path -> hex SHA-256.
    """

    documents: int
    files: dict[str, str]

    @classmethod
    def read(cls, segment: Path) -> _SegmentNote:
        """Reads the note of a segment; raises `OSError` or `ValueError` if it is damaged."""
        return record_from_json(cls, read_json(segment / _SEGMENT_NOTE))

    def write(self, segment: Path) -> None:
        """Writes the note of a segment."""
        write_json(segment / _SEGMENT_NOTE, dataclasses.asdict(self))


def encode_segments(work: Path, collection: Collection, halves: Sequence[Half]) -> list[Path]:
    """Encodes the segments of a collection that are not there yet."""
    if (work / COMPLETE).exists():
        return _checked_segments(work)
    segments = []
    with progress_bar(None, "Encode the collection", "documents") as bar:
        documents = collection.documents()
        while True:
            segment = work / f"segment-{len(segments):06}"
            size = size_if_whole(segment)
            if size:
                # The source checks what is skipped here, so defects are found wherever they are.
                skipped = sum(1 for _ in itertools.islice(documents, size))
                logging.info("%s: %d documents are already encoded", segment.name, skipped)
            else:
                some = itertools.islice(documents, DOCUMENTS_PER_SEGMENT)
                size = write_segment(segment, some, halves, bar.update)
            if not size:
                break
            segments.append(segment)
            if size < DOCUMENTS_PER_SEGMENT:
                break
    return mark_complete(work, segments)


def write_segment(
    path: Path,
    documents: Iterable[Text],
    halves: Sequence[Half],
    update: Callable[[int], object],
) -> int:
    """Encodes documents on all cores and writes them as a segment, whole or not at all."""

    def encoded(batch: Sequence[Text]) -> tuple[Sequence[Text], list]:
        texts = [document.text for document in batch]
        return batch, [half.encode(texts) for half in halves]

    text = operator.attrgetter("text")
    batches = text_batches(documents, size=_TEXTS_PER_CALL, text=text)
    first = next(batches, None)
    if first is None:
        return 0
    size = 0
    with new_directory(path) as temporary:
        with contextlib.ExitStack() as stack:
            writer = stack.enter_context(DocumentWriter(temporary / DOCUMENTS))
            of_halves = [stack.enter_context(half.writer(temporary / half.name)) for half in halves]
            for batch, rows in map_in_threads(encoded, itertools.chain([first], batches)):
                writer.add(batch)
                for of_half, own in zip(of_halves, rows):
                    of_half.add(own)
                size += len(batch)
                update(len(batch))
        _SegmentNote(size, file_digests(temporary, files_below(temporary))).write(temporary)
    return size


def encode_texts(encode: Encode, texts: Sequence[str]) -> np.ndarray:
    """The vectors of texts by a loaded tower, `[texts, dim]` float32."""
    import tensorflow as tf  # here, because searches need it no earlier, if at all

    return encode(text=tf.constant(list(texts), tf.string))["vector"].numpy()


def mark_complete(work: Path, segments: list[Path]) -> list[Path]:
    """Notes that these are all segments of the claimed collection; returns them."""
    write_json(work / COMPLETE, {"segments": [segment.name for segment in segments]})
    return segments


def _checked_segments(work: Path) -> list[Path]:
    segments = [work / name for name in read_json(work / COMPLETE)["segments"]]
    for segment in segments:
        if not size_if_whole(segment):
            (work / COMPLETE).unlink()
            raise input_error(
                segment,
                "its files are not the ones that were written",
                "Repeat the command that encoded the collection",
            )
    return segments


def size_if_whole(segment: Path) -> int:
    """The number of documents of an encoded segment; deletes a damaged one, returns 0."""
    if not segment.is_dir():
        return 0
    try:
        note = _SegmentNote.read(segment)
        check_digests(segment, note.files, "")
        return note.documents
    except (OSError, ValueError):
        logging.warning("%s is damaged; encoding it again", segment)
        shutil.rmtree(segment)
        return 0
