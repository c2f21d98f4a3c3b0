"""A retrieval set that fits on a page: 8 queries, 12 documents, 11 judgments."""

import hashlib
from collections.abc import Iterable

import numpy as np

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import Judgment, Source, Text
from tf_smoothclir.two_tower.scorer import DenseRetriever

QUERIES = {
    "q1": "a red apple",
    "q2": "the blue sea",
    "q3": "an old house, a cat",
    "q4": "a green tree",
    "q5": "white snow",
    "q6": "",  # without a token: all its scores are 0
    "q7": "nobody judged this",
    "q8": "judged, but nothing is relevant",
}
DOCUMENTS = {
    "d1": "",
    "d2": "ein roter Apfel",
    "d3": "Obst: rot, gelb, grün",
    "d4": "das blaue Meer",
    "d5": "die Küste am Meer",
    "d6": "ein altes Haus mit einer Katze",
    "d7": "日本の家",
    "d8": "der Wald",
    "d9": "weißer Schnee",
    "d10": "Schnee und Eis",
    "d11": "!",
    "d12": " \t ",  # without a token, as the first
}
JUDGMENTS = (  # q4 has no document of the highest grade
    *(("q1", "d2", 2), ("q1", "d3", 1), ("q2", "d4", 2), ("q2", "d5", 1), ("q2", "d2", 0)),
    *(("q3", "d6", 2), ("q4", "d8", 1), ("q5", "d9", 2), ("q5", "d10", 2), ("q6", "d11", 2)),
    ("q8", "d1", 0),
)
SPLITS = dict.fromkeys(("q1", "q2", "q3"), "train")
SPLITS |= {"q4": "validation", "q8": "validation", "q5": "test", "q6": "test"}


class SmallWorld(Source):
    """The set above, or a variant of it; record i of a stream stands at `<stream>.tsv:<i + 1>`."""

    name = "small-en-de"
    query_language = "en"
    document_language = "de"

    def __init__(
        self,
        *,
        queries: Iterable = tuple(QUERIES.items()),
        documents: Iterable = tuple(DOCUMENTS.items()),
        judgments: Iterable = JUDGMENTS,
        splits: dict[str, str] | None = SPLITS,
    ):
        self._parts = (tuple(queries), tuple(documents), tuple(judgments), splits)

    def queries(self):
        return (Text(id_, "", text) for id_, text in self._parts[0])

    def documents(self):
        return (Text(id_, "", text) for id_, text in self._parts[1])

    def judgments(self):
        return (Judgment(*judgment) for judgment in self._parts[2])

    def splits(self):
        return self._parts[3]

    def place(self, stream, index):
        return f"{stream}.tsv:{index + 1}"

    def fingerprint(self):
        return hashlib.sha256(repr(self._parts).encode()).hexdigest()


def numbered_set(queries, documents, judgments, *, splits, grades=3) -> RetrievalSet:
    """Queries q0, q1, …, in one split after the other, documents d0, …, and numbers judged."""
    world = SmallWorld(
        queries=[(f"q{query}", f"query {query}") for query in range(queries)],
        documents=[(f"d{document}", f"document {document}") for document in range(documents)],
        judgments=[(f"q{query}", f"d{document}", grade) for query, document, grade in judgments],
        splits={f"q{query}": splits[query % len(splits)] for query in range(queries)},
    )
    return RetrievalSet.load(world, num_grades=grades)


def random_set(queries, documents, *, seed, grades=3, split="test") -> RetrievalSet:
    """A set whose queries are all in one split, each with up to 8 random judgments."""
    generator = np.random.default_rng(seed)
    judgments = [
        (query, document, int(generator.integers(grades)))
        for query in range(queries)
        for document in generator.permutation(documents)[: generator.integers(1, 9)]
    ]
    return numbered_set(queries, documents, judgments, splits=[split], grades=grades)


def vectors_with_ties(retrieval_set: RetrievalSet, *, seed: int) -> DenseRetriever:
    """A retriever with vectors of three eighths: every sum is exact, many scores are equal."""
    generator = np.random.default_rng(seed)

    def vectors(count):
        return (generator.integers(-1, 2, (count, 3)) / 8).astype(np.float32)

    ids = retrieval_set.query_ids, retrieval_set.document_ids
    return DenseRetriever(*(vectors(len(own)) for own in ids), retrieval_set.tie_order)
