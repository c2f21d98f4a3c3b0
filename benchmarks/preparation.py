"""Preparation: tokens per second from texts to vocabularies and ids, compared with Python.

python -m benchmarks.preparation
"""

from __future__ import annotations

import collections
import itertools
import re
import tempfile
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
from absl import flags

from benchmarks import common
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS, Text
from tf_smoothclir.data.sources.toy_world import ToyWorld
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.text import TextSettings

PACKAGE, PYTHON = "tf_smoothclir", "plain Python"
_QUERIES = 25_000
_TOKEN = re.compile(r"\w+|[^\w\s]")


def write_toy_world(directory: Path, entities: int, tokens: int = 0) -> None:
    """Writes a toy world as `queries.tsv`, `documents.tsv` and `judgments.tsv`."""
    world = ToyWorld(entities=entities)
    queries = itertools.islice(world.queries(), _QUERIES)
    _write_lines(directory / "queries.tsv", ((text.id, text.text) for text in queries))
    documents = _joined(world.documents(), tokens)
    _write_lines(directory / "documents.tsv", documents)
    known = {f"q{number}" for number in range(_QUERIES)}
    judgments = (judgment[:3] for judgment in world.judgments() if judgment.query_id in known)
    _write_lines(directory / "judgments.tsv", judgments)


def _joined(documents: Iterable[Text], tokens: int) -> Iterable[tuple[str, str]]:
    last = collections.deque()
    for text in documents:
        if not last:  # the first one decides how many are joined
            last = collections.deque(maxlen=-(-tokens // len(_TOKEN.findall(text.text))) or 1)
        last.append(text.text)
        yield text.id, " ".join(last)


def _write_lines(path: Path, records: Iterable[Iterable]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.writelines("\t".join(map(str, record)) + "\n" for record in records)


def package(data_dir: str, language: str) -> dict[str, float]:
    """Times `tokenize_set`, with nothing in the cache and nothing traced before."""
    retrieval_set = _load(data_dir, language)
    with tempfile.TemporaryDirectory() as directory:
        begin = time.perf_counter()
        tokenized_set = tokenize_set(retrieval_set, TextSettings(), directory)
        seconds = time.perf_counter() - begin
        tokens = sum(int(tokenized_set.tokens(role).offsets[-1]) for role in ROLES)
    return _speed(retrieval_set, tokens, seconds)


def plain_python(data_dir: str, language: str) -> dict[str, float]:
    """Times the same in plain Python: a pass that counts, and one that writes ids."""
    retrieval_set, settings = _load(data_dir, language), TextSettings()
    source, training = retrieval_set.source, retrieval_set.splits == SPLITS.index("train")
    streams = {"query": source.queries, "document": source.documents}
    counted = {
        "query": lambda: (text for text, keep in zip(source.queries(), training) if keep),
        "document": source.documents,
    }
    tokens = 0
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        for role in ROLES:
            limit = settings.max_tokens(role)
            counts = collections.Counter()
            for text in counted[role]():
                counts.update(_TOKEN.findall(text.text.lower())[:limit])
            common_tokens = counts.most_common(settings.vocabulary_size - 2)
            ids = {token: row for row, (token, _) in enumerate(common_tokens, start=2)}
            lengths = []
            with open(Path(directory, role), "wb") as file:
                for text in streams[role]():
                    found = _TOKEN.findall(text.text.lower())[:limit]
                    np.array([ids.get(token, 1) for token in found], "<i4").tofile(file)
                    lengths.append(len(found))
            np.cumsum(lengths).tofile(Path(directory, f"{role}.offsets"))
            tokens += sum(lengths)
    return _speed(retrieval_set, tokens, time.perf_counter() - begin)


def measure(data_dir: str, language: str, rounds: int, *, beside_python: bool = True) -> list[dict]:
    """The table for a set in a directory."""
    rivals = {PACKAGE: partial(package, data_dir, language)}
    if beside_python:
        rivals[PYTHON] = partial(plain_python, data_dir, language)
    return [
        common.table(
            "Preparation: vocabularies and ids of queries and documents",
            common.interleaved(rivals, rounds),
            ratio_of="tokens/s",
            references=[PYTHON],
        )
    ]


def _load(data_dir: str, language: str) -> RetrievalSet:
    return RetrievalSet.load(source_of(DataSettings(data_dir=data_dir, document_language=language)))


def _speed(retrieval_set: RetrievalSet, tokens: int, seconds: float) -> dict[str, float]:
    source = retrieval_set.source
    begin = time.perf_counter()
    collections.deque(source.queries(), maxlen=0)
    collections.deque(source.documents(), maxlen=0)
    return {
        "tokens/s": tokens / seconds,
        "tokens": float(tokens),
        "s": seconds,
        "s to read the texts once": time.perf_counter() - begin,
    }


def _define_flags() -> None:
    flags.DEFINE_string("data_dir", "", "Retrieval set; without it, a toy world is generated.")
    flags.DEFINE_string("document_language", "fr", "Document language.")
    flags.DEFINE_integer("toy_entities", 40_000, "Documents of the toy world.", lower_bound=300)
    flags.DEFINE_integer(
        "toy_tokens", 0, "Joins documents to about this length; 0: no.", lower_bound=0
    )
    flags.DEFINE_boolean("python", True, "Measure plain Python too.")


def _measure(
    data_dir: str,
    document_language: str,
    toy_entities: int,
    toy_tokens: int,
    rounds: int,
    python: bool,
) -> list[dict]:
    if data_dir:
        return measure(data_dir, document_language, rounds, beside_python=python)
    with tempfile.TemporaryDirectory() as directory:
        write_toy_world(Path(directory), toy_entities, toy_tokens)
        return measure(directory, "fr", rounds, beside_python=python)


if __name__ == "__main__":
    common.run(_define_flags, _measure)
