"""Preparation: tokens a second from texts to vocabularies and ids, beside plain Python.

python -m benchmarks.preparation
"""

from __future__ import annotations

import collections
import re
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from absl import flags

from benchmarks import common
from tf_smoothclir.data.open_source import open_source
from tf_smoothclir.data.prepared import ROLES, prepare
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.source import SPLITS
from tf_smoothclir.data.toy_world import ToyWorld
from tf_smoothclir.settings import TextSettings

PACKAGE, PYTHON = "tf_smoothclir", "plain Python"
_TOKEN = re.compile(r"\w+|[^\w\s]")


def write_toy_world(directory: Path, entities: int) -> None:
    """Writes a toy world as `queries.tsv`, `documents.tsv` and `judgments.tsv`."""
    world = ToyWorld(entities=entities)
    for role in ROLES:
        texts = world.queries() if role == "query" else world.documents()
        name = "queries.tsv" if role == "query" else "documents.tsv"
        lines = (f"{text.id}\t{text.text}\n" for text in texts)
        (directory / name).write_text("".join(lines), encoding="utf-8")
    lines = ("\t".join(map(str, judgment)) + "\n" for judgment in world.judgments())
    (directory / "judgments.tsv").write_text("".join(lines), encoding="utf-8")


def package(data_dir: str, language: str) -> dict[str, float]:
    """Times `prepare`, with nothing in the cache and nothing traced before."""
    retrieval_set = _load(data_dir, language)
    with tempfile.TemporaryDirectory() as directory:
        begin = time.perf_counter()
        prepared = prepare(retrieval_set, TextSettings(), directory)
        seconds = time.perf_counter() - begin
        tokens = sum(int(prepared.tokens(role).offsets[-1]) for role in ROLES)
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


def measure(data_dir: str, language: str, rounds: int) -> list[dict]:
    """Returns the table for a set in a directory.

    Args:
        data_dir: Where it is.
        language: Of its documents.
        rounds: How often each rival is measured.
    """
    rivals = {
        PACKAGE: partial(package, data_dir, language),
        PYTHON: partial(plain_python, data_dir, language),
    }
    return [
        common.table(
            "Preparation: vocabularies and ids of queries and documents",
            common.interleaved(rivals, rounds),
            ratio_of="tokens/s",
            references=[PYTHON],
        )
    ]


def _load(data_dir: str, language: str) -> RetrievalSet:
    return RetrievalSet.load(open_source(data_dir, language))


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
    flags.DEFINE_string("document_language", "fr", "Language of its documents.")
    flags.DEFINE_integer("toy_entities", 40_000, "Size of the toy world.", lower_bound=300)


def _measure(values: flags.FlagValues) -> list[dict]:
    if values.data_dir:
        return measure(values.data_dir, values.document_language, values.rounds)
    with tempfile.TemporaryDirectory() as directory:
        write_toy_world(Path(directory), values.toy_entities)
        return measure(directory, "fr", values.rounds)


if __name__ == "__main__":
    common.run(_define_flags, _measure)
