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
    split: str
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
    format_version: int = FORMAT_VERSION

    def __str__(self) -> str:
        """For people: how much there is."""
        megabytes = sum(shard.bytes for shard in self.shards) / 1e6
        return (
            f"{len(self.shards)} shards, {self.queries:,} queries, {self.pairs:,} pairs,"
            f" {megabytes:,.1f} MB"
        )

    def to_dict(self) -> dict:
        """The content of `manifest.json`."""
        return {"format_version": self.format_version, **dataclasses.asdict(self)}

    def fingerprint(self) -> str:
        """A hex SHA-256 that changes with the content of any file of the directory."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()


def parse_manifest(content: bytes, path: str) -> ShardManifest:
    """The manifest in the bytes of a `manifest.json`."""
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
