"""The manifest of a directory of shards: how they were made, and the digest of every file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.records import record_from_json

MANIFEST = "manifest.json"
FORMAT_VERSION = 2


@dataclasses.dataclass(frozen=True)
class ShardEntry:
    """One TFRecord file.

    Attributes:
        file: Name in the directory.
        queries: Number of candidate lists, which is the number of records.
        pairs: Number of query-document pairs.
        bytes: Size of the file.
        sha256: Hex digest of the file.
    """

    file: str
    queries: int
    pairs: int
    bytes: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class ShardManifest:
    """How shards were made and what they contain.

    Attributes:
        name: Name of the retrieval set.
        split: "train", "validation" or "test".
        negatives: Sampled documents per query.
        seed: Seed of the sampling.
        num_grades: Number of grades, K.
        queries: Number of candidate lists in all shards.
        pairs: Number of query-document pairs in all shards.
        query_tokens: Number of query tokens in all shards.
        document_tokens: Number of document tokens in all shards.
        text: The `TextSettings` that the texts were tokenised with.
        vocabularies: Role -> hex SHA-256 of `vocabulary/<role>.txt`.
        shards: One entry per file, in the order of their numbers.
        format_version: Version of the layout of the directory.
    """

    name: str
    split: str
    negatives: int
    seed: int
    num_grades: int
    queries: int
    pairs: int
    query_tokens: int
    document_tokens: int
    text: dict[str, Any]
    vocabularies: dict[str, str]
    shards: tuple[ShardEntry, ...]
    format_version: int = FORMAT_VERSION

    def to_dict(self) -> dict:
        """The content of `manifest.json`."""
        return {"format_version": self.format_version, **dataclasses.asdict(self)}

    def fingerprint(self) -> str:
        """A hex SHA-256 that changes with the content of any file of the directory."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()


def parse_manifest(content: bytes, path: str) -> ShardManifest:
    """The manifest in the bytes of a `manifest.json`.

    Args:
        content: The bytes.
    """
    try:
        values = json.loads(content)
        version = values["format_version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        remedy = "Give the --output_dir of smoothclir-shards"
        raise input_error(path, "this is not a manifest of shards", remedy) from None
    if version != FORMAT_VERSION:
        raise input_error(
            path,
            f"the shards have format version {version}, but this release reads {FORMAT_VERSION}",
            "Write them again with smoothclir-shards, or install the release that wrote them",
        )
    try:
        return record_from_json(ShardManifest, values)
    except ValueError as error:
        remedy = "Write the shards again with smoothclir-shards --overwrite"
        raise input_error(path, f"the manifest is damaged: {error}", remedy) from None
