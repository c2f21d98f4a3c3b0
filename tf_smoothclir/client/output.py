"""What `smoothclir-client` prints: each record as JSON and as text for people."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from tf_smoothclir.client.serving_client import SEARCH_MODEL, ServingClient
from tf_smoothclir.protocols.text_search import DOUBTS
from tf_smoothclir.utils.errors import input_error
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


def scored(client: ServingClient, texts: Sequence[bytes], *, role: str) -> Printed:
    """Yields the score and grade of pairs: query and document in turn, or separated by a tab."""
    del role
    parts = [part for text in texts for part in text.split(b"\t")]
    if len(parts) % 2:
        reason = f"{len(parts)} texts cannot be paired as queries and documents"
        remedy = "Give a query and a document in turn, or both on each line with a tab between them"
        raise input_error("arguments", reason, remedy)
    pairs = list(zip(parts[::2], parts[1::2]))
    for (query, document), (score, grade) in zip(pairs, client.score(pairs)):
        record = {"query": _shown(query), "document": _shown(document)}
        yield {**record, "score": score, "grade": grade}, f"{score:.4f}  {grade}"


def status(client: ServingClient, texts: Sequence[bytes], *, role: str) -> Printed:
    """Yields the status of the versions of models; without names, of those of an export."""
    del role
    names = [text.decode("utf-8", "replace") for text in texts]
    for name in names or ("query_tower", "document_tower", SEARCH_MODEL):
        for version in client.status(name):
            shown = f"{name} {version.version} {version.state} {version.error_message}"
            yield {"model": name, **dataclasses.asdict(version)}, visible(shown.rstrip())


PRINTERS = {"encode": encoded, "search": searched, "score": scored, "status": status}


def _shown(text: bytes) -> str:
    return text.decode("utf-8", "replace")
