"""Kinds of index of vectors, and which one suits a number of documents."""

AUTO, FLAT, HNSW = "auto", "flat", "hnsw"
KINDS = (FLAT, HNSW)
LARGEST_FLAT = 1_000_000  # with more, one query takes tens of milliseconds
HNSW_NEIGHBOURS = 32  # links per document in the graph; twice as many on its lowest layer
HNSW_CONSTRUCTION = 200
# Among a million documents encoded by trained towers, HNSW finds 0.97 to 0.98 of the best ten with
# an effort of 32, at 50 times the speed of flat, and 0.98 to 0.99 with 64, at 40 times. Among more
# documents it finds less, and flat takes longer (benchmarks/README.md).
_LITTLE_EFFORT_UP_TO = 2_000_000
LITTLE_EFFORT, EFFORT = 32, 64


def kind_for(documents: int, kind: str = AUTO) -> str:
    """The kind of an index of so many documents."""
    if kind != AUTO:
        return kind
    return FLAT if documents <= LARGEST_FLAT else HNSW


def search_effort(documents: int) -> int:
    """Candidates that a search of HNSW keeps (efSearch)."""
    return LITTLE_EFFORT if documents <= _LITTLE_EFFORT_UP_TO else EFFORT
