"""Reading TFRecord shards of candidate lists: from remote storage, by several workers.

A directory of shards contains `manifest.json`, `vocabulary/query.txt`, `vocabulary/document.txt`,
and files such as `train-00000-of-00008.tfrecord` with one tf.train.Example per candidate list. A
worker needs nothing else. Shards are written locally, and read from wherever `tf.io.gfile` reads,
such as gs://.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tf_smoothclir.data.model_inputs import ListInputs, SeparateTexts
from tf_smoothclir.data.pipeline import list_inputs, row_numbers, traced_once
from tf_smoothclir.text.tokens import Tokens
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.parallel import map_in_threads
from tf_smoothclir.utils.records import record_from_json

MANIFEST = "manifest.json"
# Of the Example of a list; `query_id` and `document_ids` are there too, for people and other tools.
_FEATURES = {
    "query": tf.io.RaggedFeature(tf.int64, value_key="query_tokens"),
    "documents": tf.io.RaggedFeature(
        tf.int64,
        value_key="document_tokens",
        partitions=[tf.io.RaggedFeature.RowLengths("document_lengths")],
        validate=True,
    ),
    "grades": tf.io.RaggedFeature(tf.int64),
}
READ_BUFFER_BYTES = 4 << 20
_REMEDY = "Copy the shards again, or write them again with smoothclir-shards --overwrite"
_FAILED_READS = (
    tf.errors.DataLossError,
    tf.errors.FailedPreconditionError,  # of assert_cardinality
    tf.errors.InvalidArgumentError,
    tf.errors.NotFoundError,
)


@dataclasses.dataclass(frozen=True)
class ShardEntry:
    """One TFRecord file, with a record for each candidate list."""

    file: str
    queries: int
    pairs: int
    bytes: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class ShardManifest:
    """How shards were made and what they contain: totals are those of all shards."""

    name: str  # of the retrieval set
    negatives: int  # sampled documents per query
    seed: int  # of the sampling
    num_grades: int
    queries: int
    pairs: int
    query_tokens: int
    document_tokens: int
    text: dict[str, Any]  # the `TextSettings` that the texts were tokenised with
    vocabularies: dict[str, str]  # role -> hex SHA-256 of `vocabulary/<role>.txt`
    shards: tuple[ShardEntry, ...]

    def __str__(self) -> str:
        """For people: how much there is."""
        megabytes = sum(shard.bytes for shard in self.shards) / 1e6
        return (
            f"{len(self.shards)} shards, {self.queries:,} queries, {self.pairs:,} pairs,"
            f" {megabytes:,.1f} MB"
        )

    def fingerprint(self) -> str:
        """A hex SHA-256 that changes with the content of any file of the directory."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


class Shards:
    """A directory of shards, local or remote, and its manifest."""

    def __init__(self, directory: str, manifest: ShardManifest):
        self.directory = directory
        self.manifest = manifest
        self._paths = [self.path(shard.file) for shard in manifest.shards]

    @classmethod
    def open(cls, directory: str | os.PathLike) -> Shards:
        """Opens a directory, and checks that every file exists and has its size."""
        directory = os.fspath(directory)
        path = tf.io.gfile.join(directory, MANIFEST)
        shards = cls(directory, _parse_manifest(_read(path), path))
        sizes = map_in_threads(_size, shards._paths)
        for shard, path, size in zip(shards.manifest.shards, shards._paths, sizes):
            if size != shard.bytes:
                reason = f"the file has {size} bytes, but {shard.bytes} were written"
                raise input_error(path, reason, _REMEDY)
        return shards

    def vocabulary(self, role: str) -> list[str]:
        """The tokens of a role; the position is the id."""
        path = self.path(f"vocabulary/{role}.txt")
        content = _read(path)
        if hashlib.sha256(content).hexdigest() != self.manifest.vocabularies.get(role):
            raise input_error(path, "the file is not the one that was written", _REMEDY)
        return content.decode().split("\n")[:-1]

    def find_defect(self) -> InputError | None:
        """Reads the shards one after the other up to the first record that cannot be used."""
        for shard, path in zip(self.manifest.shards, self._paths):
            number, reason = 0, ""
            try:
                records = tf.data.TFRecordDataset(path)
                for _ in records.map(lambda record: decode_lists(record[None])):
                    number += 1
            except tf.errors.OpError as error:
                reason = f"the record cannot be used ({_message(error)})"
            if not reason and number != shard.queries:  # tf.data takes half a record for the end
                reason = f"the file has {number} whole records, but {shard.queries} were written"
            if reason:
                place = f"{path}, record {min(number, shard.queries) + 1}"
                return input_error(place, reason, _REMEDY)
        return None

    @contextlib.contextmanager
    def explaining_defects(self) -> Iterator[None]:
        """Turns an error while reading shards into one that names file and record."""
        try:
            yield
        except _FAILED_READS as error:
            defect = self.find_defect()
            if defect is None:
                raise
            raise defect from error

    def path(self, file: str) -> str:
        """The path of a file in the directory."""
        return tf.io.gfile.join(self.directory, file)


@traced_once
def decode_lists(records: tf.Tensor) -> tuple[ListInputs, tf.Tensor]:
    """Inputs and `[pairs]` int32 grades of `[lists]` serialised Examples."""
    lists = tf.io.parse_example(records, _FEATURES)
    documents, grades = lists["documents"], lists["grades"]
    is_judged = tf.reduce_all(documents.row_lengths() == grades.row_lengths())
    check = tf.debugging.Assert(is_judged, ["there are more or fewer grades than documents"])
    with tf.control_dependencies([check]):
        texts = SeparateTexts(_tokens(lists["query"]), _tokens(documents.values))
    list_lengths = tf.cast(grades.row_lengths(), tf.int32)
    return list_inputs(texts, list_lengths), tf.cast(grades.values, tf.int32)


def _tokens(texts: tf.RaggedTensor) -> Tokens:
    lengths = tf.cast(texts.row_lengths(), tf.int32)
    return Tokens(tf.cast(texts.values, tf.int32), lengths, row_numbers(lengths))


def _parse_manifest(content: bytes, path: str) -> ShardManifest:
    """The manifest in the bytes of a `manifest.json`."""
    try:
        return record_from_json(ShardManifest, json.loads(content))
    except (ValueError, TypeError, RecursionError) as error:
        reason = f"this is no manifest of shards, or a damaged one: {error}"
        remedy = "Give the --output_dir of smoothclir-shards, or write them again with --overwrite"
        raise input_error(path, reason, remedy) from None


def _size(path: str) -> int:
    with _readable(path):
        return tf.io.gfile.stat(path).length


def _read(path: str) -> bytes:
    with _readable(path), tf.io.gfile.GFile(path, "rb") as file:
        return file.read()


@contextlib.contextmanager
def _readable(path: str) -> Iterator[None]:
    try:
        yield
    except tf.errors.NotFoundError as error:
        raise input_error(path, "there is no such file", _REMEDY) from error
    except tf.errors.OpError as error:
        raise input_error(path, f"the file cannot be read ({_message(error)})", _REMEDY) from error


def _message(error: tf.errors.OpError) -> str:
    """What TensorFlow says, without where in the graph."""
    return re.sub(r"^{{.*?}} |\n.*| \[Op:.*", "", error.message, flags=re.DOTALL)
