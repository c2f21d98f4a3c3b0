"""What `smoothclir-client` prints: each record as JSON and as text for people."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from tf_smoothclir.client.serving_client import SEARCH_MODEL, ServingClient
from tf_smoothclir.protocols.text_search import DOUBTS
from tf_smoothclir.utils.terminal import visible

Printed = Iterator[tuple[dict, str]]


def encoded(client: ServingClient, texts: Sequence[bytes], *, role: str) -> Printed:
    """Yields the vector of each text, from the tower of `role`."""
    for text, vector in zip(texts, client.encode(texts, role)):
        # The shortest decimals that are these float32 numbers.
        numbers = [float(str(number)) for number in vector]
        yield {"text": _shown(text), "vector": numbers}, " ".join(map(str, numbers))


def searched(client: ServingClient, texts: Sequence[bytes], *, role: str) -> Printed:
    """Yields the documents found for each query."""
    del role
    for text, documents in zip(texts, client.search(texts)):
        results = [{"rank": n, **dataclasses.asdict(d)} for n, d in enumerate(documents, start=1)]
        lines = ["", _shown(text), "  rank   score  grade  id"]
        lines += ["  {rank:4}  {score:6.3f}  {grade:5}  {id}".format(**r) for r in results]
        if not documents:
            lines = [*lines[:2], f"  {DOUBTS['nothing']}"]
        elif documents[0].evidence in DOUBTS:
            lines.insert(2, f"  {DOUBTS[documents[0].evidence]}")
        yield {"query": _shown(text), "results": results}, "\n".join(map(visible, lines))


def status(client: ServingClient, texts: Sequence[bytes], *, role: str) -> Printed:
    """Yields the status of the versions of models; without names, of those of an export."""
    del role
    names = [text.decode("utf-8", "replace") for text in texts]
    for name in names or ("query_tower", "document_tower", SEARCH_MODEL):
        for version in client.status(name):
            shown = f"{name} {version.version} {version.state} {version.error_message}"
            yield {"model": name, **dataclasses.asdict(version)}, visible(shown.rstrip())


PRINTERS = {"encode": encoded, "search": searched, "status": status}


def _shown(text: bytes) -> str:
    return text.decode("utf-8", "replace")
