"""Splits: named by projects, or drawn; parts of a set, of fewer queries or languages."""

import functools
import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.source import SPLITS, Judgment, Source, Text
from tf_smoothclir.encoder.tokenizer import tokens_of
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import input_error

# What projects call a part -> what it is.
NAMES = {
    "train": "train",
    "dev": "validation",
    "validation": "validation",
    "valid": "validation",
    "test": "test",
}
_PARTS_OF_TRAINING = 5  # one of them validates, if nothing else does


def splits_of_parts(source: Source, parts: Mapping[str, Iterable[str]]) -> dict[str, str] | None:
    """Query id -> split, as the names of the parts of a set say."""
    # Published test queries stay, so that figures can be compared; without any, those of `dev` are
    # (as BEIR does with MS MARCO). Without other validation queries, a fifth of the training
    # queries are, drawn by a hash of their ids. Judged queries that are not there have no split:
    # `checked_judgments` counts them.
    queries = {text.id for text in source.queries()}
    split_of: dict[str, str] = {}
    for name, ids in parts.items():
        for id_ in filter(queries.__contains__, ids):
            if split_of.setdefault(id_, NAMES[name]) != NAMES[name]:
                reason = f"query {id_!r} has judgments for {split_of[id_]} and for {NAMES[name]}"
                raise input_error(source.name, reason, "Keep those of one of the two")
    there = set(split_of.values())
    if there == {"train"}:
        return None
    if "test" not in there:
        split_of = {
            id_: "test" if split == "validation" else split for id_, split in split_of.items()
        }
    if "train" in there and "validation" not in set(split_of.values()):
        training = [id_ for id_, split in split_of.items() if split == "train"]
        hashes = zip(hash_ids(training, "validation").tolist(), training)
        drawn = [id_ for _, id_ in sorted(hashes)][: len(training) // _PARTS_OF_TRAINING]
        split_of.update(dict.fromkeys(drawn, "validation"))
    return split_of


def drawn_splits(
    queries: Sequence[Text], seed: int, trained: np.ndarray | None = None
) -> np.ndarray:
    """`[queries]` int8, an index into `SPLITS`: 3:1:1 of the judged (Liu et al. 2020, 5)."""
    # By the hashes of ids. Queries of the same tokens are drawn as one: no split knows those of
    # another. What a model was `trained` on, by its digests, trains again, unless nothing would be
    # left to validate or to test on.
    places = drawn_places(queries, f"split {seed}")
    drawn = len(np.unique(places))
    splits = np.searchsorted([drawn * 3 // 5, drawn * 4 // 5], places, "right").astype(np.int8)
    if trained is None:
        return splits
    known = np.isin(query_digests(query.text for query in queries)[:, 0], trained[:, 0])
    honest = np.where(known, SPLITS.index("train"), splits).astype(np.int8)
    return honest if {1, 2} <= {*honest.tolist()} else splits


def drawn_places(queries: Sequence[Text], salt: str) -> np.ndarray:
    """`[queries]` int64, where each stands in an order by hashes; of the same tokens, at one."""
    hashes = hash_ids([query.id for query in queries], salt)
    first: dict[str, int] = {}
    groups = [
        first.setdefault(" ".join(tokens_of(query.text)) or f"\n{query.id}", len(first))
        for query in queries
    ]
    lowest = np.full(len(first), np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(lowest, groups, hashes)
    places = np.empty(len(first), np.int64)
    places[np.argsort(lowest, kind="stable")] = np.arange(len(first))
    return places[groups]


def query_digests(texts: Iterable[str]) -> np.ndarray:
    """`[texts, 2]` uint64: hashes of the tokens of each text, and of the set of them; 0 of none."""
    tokens = [tokens_of(text) for text in texts]
    ordered = hash_ids([" ".join(one) for one in tokens])
    digests = np.stack([ordered, hash_ids([" ".join(sorted({*one})) for one in tokens])], axis=1)
    digests[[not one for one in tokens]] = 0
    return digests


def read_digests(path: Path) -> np.ndarray | None:
    """The digests of the queries that a model was trained on; None if it does not say."""
    return np.fromfile(path, "<u8").reshape(-1, 2) if path.is_file() else None


def known_queries(training: np.ndarray, others: np.ndarray) -> tuple[int, int]:
    """How many other queries have the tokens of a training query; how many the same set."""
    same, alike = (np.isin(others[:, kind], training[:, kind]) for kind in (0, 1))
    return int(same.sum()), int((alike & ~same).sum())


class SelectedJudgments(Source):
    """Another source without some of its queries or of its languages, which count as not judged."""

    # Splits that the set has are kept; others are drawn from what `max_queries` leaves, before
    # training queries are left out.

    def __init__(self, source: Source, settings: DataSettings, languages: Mapping[str, Set[str]]):
        self.name, self.max_skipped = source.name, source.max_skipped
        self.titles_are_answers = source.titles_are_answers
        self.query_language = source.query_language
        self.document_language = source.document_language
        self._source, self._languages, self._seed = source, languages, settings.split_seed
        self._max_queries = settings.max_queries
        self._max_train_queries = settings.max_train_queries

    def queries(self) -> Iterator[Text]:
        return self._records("queries")

    def documents(self) -> Iterator[Text]:
        return self._records("documents")

    def metadata(self) -> Iterator[Mapping[str, Any]]:
        pairs = zip(self._source.documents(), self._source.metadata())
        return (row for text, row in pairs if self._speaks("documents", text))

    def judgments(self) -> Iterator[Judgment]:
        return self._records("judgments")

    def splits(self) -> dict[str, str] | None:
        has_splits = self._max_train_queries or self._source.splits() is not None
        return dict(self._records("splits")) if has_splits else None

    def place(self, stream: str, index: int) -> str:
        # What is said of all records is said at the first one, though none may be kept.
        index, _ = next(itertools.islice(self._kept(stream), index, None), (index, None))
        return self._source.place(stream, index)

    def fingerprint(self) -> str:
        languages = sorted((stream, *sorted(codes)) for stream, codes in self._languages.items())
        selection = self._max_queries, self._max_train_queries, self._seed, *languages
        return hashlib.sha256(f"{self._source.fingerprint()} {selection}".encode()).hexdigest()

    def _records(self, stream: str) -> Iterator[Any]:
        return (record for _, record in self._kept(stream))

    def _kept(self, stream: str) -> Iterator[tuple[int, Any]]:
        """Yields (index in the whole set, record) of what is kept of a stream."""
        is_splits = stream == "splits"
        records = self._all_splits.items() if is_splits else getattr(self._source, stream)()
        return (pair for pair in enumerate(records) if self._keeps(stream, pair[1]))

    def _keeps(self, stream: str, record: Any) -> bool:
        if stream == "documents":
            return self._speaks(stream, record)
        if stream == "judgments" and record.document_id in self._foreign["documents"]:
            return False
        query_id = record[0]
        return not (
            query_id in self._foreign["queries"]
            or (self._max_queries and query_id not in self._judged)
            or (self._max_train_queries and query_id in self._unused_training_queries)
        )

    def _speaks(self, stream: str, text: Text) -> bool:
        """Whether a text of a stream is in one of the languages that are kept."""
        return stream not in self._languages or text.language in self._languages[stream]

    @functools.cached_property
    def _foreign(self) -> dict[str, set[str]]:
        """The ids of queries and of documents that are in no language that is kept."""
        foreign: dict[str, set[str]] = {"queries": set(), "documents": set()}
        for stream in self._languages:
            texts = getattr(self._source, stream)()
            foreign[stream] = {text.id for text in texts if not self._speaks(stream, text)}
        return foreign

    @functools.cached_property
    def _judged(self) -> frozenset[str]:
        """The judged queries, of which `max_queries` leaves the first."""
        queries, documents = self._foreign["queries"], self._foreign["documents"]
        in_order = dict.fromkeys(
            judgment.query_id
            for judgment in self._source.judgments()
            if judgment.query_id not in queries and judgment.document_id not in documents
        )
        return frozenset(itertools.islice(in_order, self._max_queries or None))

    @functools.cached_property
    def _all_splits(self) -> dict[str, str]:
        """The splits before queries are left out."""
        if (given := self._source.splits()) is not None or not self._max_train_queries:
            return given or {}
        queries = [text for text in self._source.queries() if text.id in self._judged]
        splits = drawn_splits(queries, self._seed)
        return {text.id: SPLITS[split] for text, split in zip(queries, splits)}

    @functools.cached_property
    def _unused_training_queries(self) -> frozenset[str]:
        splits, judged = self._all_splits, self._judged
        training = [id_ for id_ in splits if splits[id_] == "train" and id_ in judged]
        order = np.argsort(hash_ids(training, f"training {self._seed}"), kind="stable")
        return frozenset(training[row] for row in order[self._max_train_queries :])
