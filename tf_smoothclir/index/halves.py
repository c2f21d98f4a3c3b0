"""Halves of an index: each keeps one kind of evidence about the documents, such as vectors.

An index has a directory for each half, next to `documents/`, which they share. A half encodes texts
into rows, writes the rows of a segment, and joins the segments into what is searched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from tf_smoothclir.index.documents import DocumentStore


class RowWriter(Protocol):
    """Writes the rows of a segment."""

    def add(self, rows: Any) -> None:
        """Appends what `Half.encode` returned for the next documents."""


class Half(Protocol):
    """Builder of one half of an index.

    Attributes:
        name: Its directory in an index and in a segment, and its entry in the manifest.
    """

    name: str

    def encode(self, texts: Sequence[str]) -> Any:
        """A row for each text. Called in several threads."""

    def writer(self, directory: Path) -> contextlib.AbstractContextManager[RowWriter]:
        """Writer of the rows of a segment into a new directory."""

    def join(self, parts: Sequence[Path], directory: Path, documents: DocumentStore) -> Any:
        """Joins the rows of all segments into a new directory, and checks what it wrote."""

    def differences(self, there: Any) -> str:
        """Difference of an index from the one that this half would build, or ""."""
