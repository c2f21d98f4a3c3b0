"""Halves of an index: each keeps one kind of evidence about the documents, such as vectors.

An index has a directory for each half, next to `documents/`, which they share. A half encodes them
into rows, writes the rows, and turns them into what is searched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.index.documents import DocumentStore


class RowWriter(Protocol):
    """Writes the rows of documents."""

    def add(self, rows: Any) -> None:
        """Appends what `Half.encode` returned for the next documents."""


class Half(Protocol):
    """Builder of one half of an index.

    Attributes:
        name: Its directory in an index, and its entry in the manifest.
    """

    name: str

    def encode(self, documents: Sequence[Text]) -> Any:
        """A row for each document. Called in several threads."""

    def writer(self, directory: Path) -> contextlib.AbstractContextManager[RowWriter]:
        """Writer of the rows of all documents into a new directory."""

    def finish(self, directory: Path, documents: DocumentStore) -> Any:
        """Turns the rows into what is searched, and checks it; its entry in the manifest."""

    def differences(self, there: Any) -> str:
        """Difference of an index from the one that this half would build, or ""."""
