"""Settings of an index of vectors."""

from __future__ import annotations

import dataclasses

KINDS = ("flat", "int8", "binary", "hnsw")
SCANNED = ("flat", "int8", "binary")  # in memory, read as a whole for every query
OF_INT8 = ("int8", "binary")  # keep no other vectors than those of int8
LARGEST_FLAT = 1_000_000  # with more, one query takes tens of milliseconds
HNSW_NEIGHBOURS = 32
# Among a million documents encoded by trained towers, HNSW finds 0.97 to 0.98 of the best ten with
# an effort of 32, at 50 times the speed of flat, and 0.98 to 0.99 with 64, at 40 times. Among more
# documents it finds less, and flat takes longer (benchmarks/README.md).
_LITTLE_EFFORT_UP_TO = 2_000_000
_LITTLE_EFFORT, _EFFORT = 32, 64


@dataclasses.dataclass(frozen=True)
class IndexSettings:
    """Settings of an index: how it is built and searched.

    Attributes:
        kind: One of `KINDS`, or "auto" to choose by the number of documents.
        hnsw_neighbours: Links per document in the HNSW graph; twice as many on its lowest layer.
        search_effort: HNSW: candidates kept during the search (efSearch); 0 is the default for
            the number of documents.
    """

    kind: str = "auto"
    hnsw_neighbours: int = HNSW_NEIGHBOURS
    search_effort: int = 0

    def differences(self, there: IndexSettings) -> str:
        """The settings of an index that differ from these, such as "kind flat".

        Defaults match anything.
        """
        return ", ".join(
            f"{field.name} {getattr(there, field.name)}"
            for field in dataclasses.fields(self)
            if getattr(self, field.name) not in (field.default, getattr(there, field.name))
            and (field.name != "hnsw_neighbours" or there.kind == "hnsw")
        )

    def resolved(self, documents: int) -> IndexSettings:
        """The settings for a number of documents, with "auto" and 0 replaced."""
        kind = self.kind
        if kind == "auto":
            kind = "flat" if documents <= LARGEST_FLAT else "hnsw"
        effort = self.search_effort or _default_effort(kind, documents)
        return dataclasses.replace(self, kind=kind, search_effort=effort)


def _default_effort(kind: str, documents: int) -> int:
    if kind in SCANNED:
        return 0
    return _LITTLE_EFFORT if documents <= _LITTLE_EFFORT_UP_TO else _EFFORT
