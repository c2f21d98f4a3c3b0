"""A connection to Milvus: a server, a cluster, or Milvus Lite in a file. All have one API.

`pymilvus` is imported here only, when a connection is opened.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
from collections.abc import Iterator
from typing import ClassVar

from tf_smoothclir.publishing.export_directory import VersionFacts
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.records import record_from_json

TOKEN = "MILVUS_TOKEN"  # environment variable: user:password, or an API key
_PROPERTY = "tf_smoothclir"  # of a collection: its note


@dataclasses.dataclass(frozen=True, kw_only=True)
class CollectionNote(VersionFacts):
    """Facts of a collection in an engine."""

    halves: tuple[str, ...]  # names of the halves of an index, each in a field of this name
    kind: str  # of the index of vectors, one of `index_kind.KINDS`
    role: ClassVar[str] = "collection"


@dataclasses.dataclass(frozen=True)
class Address:
    """Address of a collection in an engine."""

    uri: str
    collection: str
    filter: str = ""  # only documents for which it holds are found; empty for all


class Milvus:
    """A connection; what the engine refuses is an `InputError` inside `with explained(...)`."""

    def __init__(self, uri: str):
        self.api = _load()
        self._uri = uri
        remedy = (
            "Start Milvus there, or give a file ending in .db for Milvus Lite, which one process"
            " at a time has open"
        )
        with self.explained(f"--uri={uri}", remedy):
            self.client = self.api.MilvusClient(uri, token=os.environ.get(TOKEN, ""))

    def __enter__(self) -> Milvus:
        return self

    def __exit__(self, *exc) -> None:
        self.client.close()

    @contextlib.contextmanager
    def explained(self, where: str = "", remedy: str = "Check the log of the engine") -> Iterator:
        """A context in which a refusal of the engine becomes an `InputError`."""
        try:
            yield
        except (self.api.MilvusException, OSError) as error:
            reason = " ".join(str(getattr(error, "message", "") or error).split()).rstrip(".")
            where = where or f"--uri={self._uri}"
            raise input_error(where, f"Milvus refuses: {reason}", remedy) from None

    def has(self, name: str) -> bool:
        """Whether there is a collection of this name."""
        with self.explained():
            return self.client.has_collection(name)

    def note(self, name: str) -> CollectionNote:
        """Metadata of a collection."""
        where = f"--engine_collection={name}"
        if not self.has(name):
            with self.explained():
                there = ", ".join(sorted(self.client.list_collections())) or "none"
            reason = f"there is no such collection at {self._uri} (there: {there})"
            raise input_error(where, reason, "Write it with smoothclir-index --engine=milvus")
        with self.explained():
            properties = self.client.describe_collection(name).get("properties") or {}
        try:
            return record_from_json(CollectionNote, json.loads(properties[_PROPERTY]))
        except (KeyError, ValueError):
            reason = "smoothclir-index did not write this collection"
            raise input_error(where, reason, "Choose another name") from None

    def properties(self, note: CollectionNote) -> dict[str, str]:
        """A note as the properties of a collection."""
        return {_PROPERTY: json.dumps(dataclasses.asdict(note))}


def _load():
    try:
        import pymilvus
    except ImportError as error:  # missing, or built for another protobuf
        raise input_error(
            "--engine=milvus",
            f"it needs the package pymilvus ({error})",
            "pip install '.[milvus]' in the checkout, on Python 3.12 or 3.13: its protobuf does"
            " not go with TensorFlow 2.15",
        ) from None
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # its errors become ours
    return pymilvus
