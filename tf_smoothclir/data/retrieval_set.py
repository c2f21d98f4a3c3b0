"""A retrieval set in memory: ids, judgments and splits as arrays, checked against each other."""

import collections
import dataclasses
import functools
import itertools
import re
from collections.abc import Mapping
from typing import NamedTuple, Self

import numpy as np
from absl import logging

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.languages import TEXTS_SAMPLED, warn_of_texts
from tf_smoothclir.data.sources.source import SPLITS, Judgment, Source, log_unread_titles
from tf_smoothclir.data.sources.splits import drawn_splits, known_queries, query_digests
from tf_smoothclir.utils.errors import InputError, input_error


class Languages(NamedTuple):
    """The languages of texts."""

    codes: tuple[str, ...]  # sorted; "" for an unknown one
    rows: np.ndarray  # `[texts]` int16, an index into `codes`

    def __str__(self):
        return ", ".join(code or "unknown" for code in self.codes)


@dataclasses.dataclass(frozen=True)
class RetrievalSet:
    """The checked records of a source. From here on, rows stand for queries and documents."""

    source: Source  # the source it was read from, which streams the texts
    query_ids: list[str]
    document_ids: list[str]
    query_rows: np.ndarray  # `[judgments]` int32, sorted
    document_rows: np.ndarray  # `[judgments]` int32
    grades: np.ndarray  # `[judgments]` int32, 0..`num_grades`-1
    weights: np.ndarray  # `[judgments]` float32, how much a table learns from each
    splits: np.ndarray  # `[queries]` int8, index into `SPLITS`; -1 for a query without a split
    num_grades: int
    query_languages: Languages
    document_languages: Languages
    # Digests of the queries that models were trained on before they learn from this set.
    trained_before: np.ndarray | None = None

    @classmethod
    def load(
        cls,
        source: Source,
        *,
        num_grades: int = 3,
        seed: int | None = 13,
        trained_before: np.ndarray | None = None,
    ) -> Self:
        """Reads and checks a source; without a seed, one that has no splits is all test."""
        query_ids, query_row, of_queries = _rows(source, "queries")
        document_ids, document_row, of_documents = _rows(source, "documents")
        judged, weights = checked_judgments(source, query_row, document_row, num_grades)
        rows = np.unique(judged[:, 0])
        splits = _splits(source, query_ids, query_row, rows, seed, trained_before)
        more = splits, num_grades, of_queries, of_documents, trained_before
        return cls(source, query_ids, document_ids, *judged.T, weights, *more)

    @functools.cached_property
    def tie_order(self) -> np.ndarray:
        """`[documents]` int64, which of two documents of equal score ranks first: the smaller."""
        # The rank by the hash of the id: neither the order of the files nor the grades favour a
        # document.
        order = np.argsort(hash_ids(self.document_ids), kind="stable")
        return np.argsort(order, kind="stable")

    @functools.cached_property
    def digests(self) -> np.ndarray:
        """`[queries, 2]` uint64, of the texts of judged queries; 0 of others."""
        judged = np.isin(np.arange(len(self.query_ids)), self.query_rows)
        queries = zip(judged, self.source.queries())
        return query_digests(query.text if is_judged else "" for is_judged, query in queries)

    @functools.cached_property
    def trained_queries(self) -> np.ndarray:
        """`[texts, 2]` uint64, digests of all that models are, or were, trained on."""
        before = np.zeros((0, 2), np.uint64) if self.trained_before is None else self.trained_before
        found = np.concatenate([before, self.digests[self.are_taught]])
        return np.unique(found[found.any(axis=1)], axis=0)

    @functools.cached_property
    def known_queries(self) -> dict[str, tuple[int, int]]:
        """For validation and test, what `known_queries` says of the judged queries."""
        if not self.source.is_judged:  # of sentences, those that validate are taught too
            return {}
        return {
            split: known_queries(self.trained_queries, self.digests[self._judged_rows(split)])
            for split in SPLITS[1:]
        }

    def with_training_queries(self, document_rows: np.ndarray) -> Self:
        """The set with a training query more for each of these best documents; it has no texts."""
        added = len(document_rows)
        ids = [f"pseudo-query of {self.document_ids[row]}" for row in document_rows]
        new_rows = len(self.query_ids) + np.arange(added, dtype=np.int32)
        return dataclasses.replace(
            self,
            query_ids=self.query_ids + ids,
            query_rows=np.append(self.query_rows, new_rows),
            document_rows=np.append(self.document_rows, document_rows.astype(np.int32)),
            grades=np.append(self.grades, np.full(added, self.num_grades - 1, np.int32)),
            weights=np.append(self.weights, np.ones(added, np.float32)),
            splits=np.append(self.splits, np.full(added, SPLITS.index("train"), np.int8)),
        )

    @functools.cached_property
    def judged_splits(self) -> tuple[str, ...]:
        """Splits that are to have judged queries: none of an unjudged set; a given one if named."""
        if not self.source.is_judged:
            return ()
        named = self.source.splits()
        return tuple(s for s in SPLITS if s != "test" or named is None or s in named.values())

    @property
    def are_taught(self) -> np.ndarray:
        """`[queries]` bool, whose words models know: of training; of sentences, all."""
        # Sentences that validate choose settings. Nothing is measured by them, so their words need
        # not be unknown.
        training = SPLITS.index("train")
        return self.splits == training if self.source.is_judged else self.splits >= 0

    def _judged_rows(self, split: str) -> np.ndarray:
        judged = np.unique(self.query_rows)
        return judged[self.splits[judged] == SPLITS.index(split)]

    def queries_in(self, split: str) -> np.ndarray:
        """The rows of the judged queries of a split, sorted."""
        rows = self._judged_rows(split)
        if not rows.size:
            judged = np.isin(np.arange(len(self.query_ids)), self.query_rows)
            counted, remedy = f"{judged.sum()} judged queries", "Judge more queries"
            if self.source.splits() is None:  # drawn
                texts = {query.text for query in itertools.compress(self.source.queries(), judged)}
                if len(texts) < judged.sum():
                    counted += f" of {len(texts)} texts; one split has all of the same text"
            else:
                remedy = "Move some to this split, or judge more queries"
            reason = f"no query of the {split} split has a judgment ({counted})"
            raise input_error(self.source.name, reason, remedy)
        return rows

    def query_texts(self, rows: np.ndarray) -> dict[int, str]:
        """Row -> text of some queries, in ascending order."""
        chosen, queries = set(rows.tolist()), enumerate(self.source.queries())
        return {row: query.text for row, query in queries if row in chosen}


def _rows(source: Source, stream: str) -> tuple[list[str], dict[str, int], Languages]:
    texts = collections.defaultdict(list)
    languages: list[int] = []
    numbers: dict[str, int] = {}
    rows: dict[str, int] = {}
    titled = 0
    for row, text in enumerate(getattr(source, stream)()):
        if rows.setdefault(text.id, row) != row:
            reason = f"id {text.id!r} is already used at {source.place(stream, rows[text.id])}"
            raise input_error(source.place(stream, row), reason, "Give every text its own id")
        titled += bool(text.title)
        languages.append(numbers.setdefault(text.language, len(numbers)))
        if len(texts[text.language]) < TEXTS_SAMPLED:
            texts[text.language].append(text.text)
    for language, sampled in texts.items():
        warn_of_texts(source.name, stream, language, sampled)
    if stream == "queries" and not source.titles_are_answers:
        log_unread_titles(source.name, titled)
    if "" in texts and stream == "documents" and not source.is_parallel:
        share = "some" if len(texts) > 1 else "any"
        logging.info(
            f"{source.name}: no language is known of {share} of the documents. A column `language`"
            " tells which each has, for figures, filters and shares; or --document_language."
        )
    if not rows and (source.is_judged or stream == "documents"):
        raise input_error(source.name, f"there are no {stream}", "Check the files of the set")
    codes = sorted(numbers)
    order = np.array([codes.index(code) for code in numbers], np.int16)
    return list(rows), rows, Languages(tuple(codes), order[np.array(languages, np.int64)])


def _splits(source, query_ids, query_row, judged, seed, trained) -> np.ndarray:
    splits = np.full(len(query_ids), -1, np.int8)
    named = source.splits()
    if named is None:  # 3:1:1 by query, as in the paper, section 5
        rows = set(judged.tolist())
        queries = [text for row, text in enumerate(source.queries()) if row in rows]
        all_test = SPLITS.index("test")
        splits[judged] = all_test if seed is None else drawn_splits(queries, seed, trained)
        return splits
    for index, (query_id, split) in enumerate(named.items()):
        wrong = "" if split in SPLITS else f" has {split!r}, not one of {', '.join(SPLITS)}"
        if query_id not in query_row:
            wrong = " is not among the queries"
        if wrong:
            where, reason = source.place("splits", index), f"query {query_id!r}{wrong}"
            raise input_error(where, reason, "Correct it")
        splits[query_row[query_id]] = SPLITS.index(split)
    missing = judged[splits[judged] < 0]
    if missing.size:
        where = re.sub(r":[^:]*$|\[0\]$", "", source.place("splits", 0))
        reason = f"query {query_ids[missing[0]]!r} has no split"
        remedy = "Give every query a split, or no query one, for a seeded 3:1:1 split"
        raise input_error(where, reason, remedy)
    return splits


def checked_judgments(
    source: Source, query_row: Mapping[str, int], document_row: Mapping[str, int], num_grades: int
) -> tuple[np.ndarray, np.ndarray]:
    """`[judgments, 3]` int32, query row, document row, grade, sorted by query; and the weights."""
    # A negative grade, such as of spam, counts as 0. Up to the share `source.max_skipped` of them,
    # judgments of unknown ids are skipped, and of those that repeat each other all but the highest;
    # a warning counts them.
    judged, weights, indices, unknown = _read(source, query_row, document_row, num_grades)
    # Those that repeat each other stand together, the highest grade first.
    order = np.lexsort((-judged[:, 2], judged[:, 1], judged[:, 0]))
    repeats = 1 + np.flatnonzero((np.diff(judged[order, :2], axis=0) == 0).all(axis=1))
    if unknown or repeats.size:
        if unknown:
            example = _unknown_error(source, *unknown[0], query_row, document_row)
        else:
            pair = sorted(indices[row] for row in order[repeats[0] - 1 : repeats[0] + 1])
            first, second = (source.place("judgments", index) for index in pair)
            reason = f"the same query and document are already judged at {first}"
            example = input_error(second, reason, "Keep one of the two")
        _skip(source, example, len(repeats), len(unknown), len(judged) + len(unknown))
        judged = np.delete(judged, order[repeats], axis=0)
        weights = np.delete(weights, order[repeats])
    if source.is_judged and not (judged[:, 2] > 0).any():
        raise input_error(
            source.name,
            f"no query has a relevant document ({len(judged)} judgments, none of grade 1 or more)",
            "Add judgments with grade 1 or more: training and evaluation need them",
        )
    order = np.argsort(judged[:, 0], kind="stable")
    return judged[order], weights[order]


def _read(
    source: Source, query_row: Mapping, document_row: Mapping, num_grades: int
) -> tuple[np.ndarray, np.ndarray, list[int], list[tuple[int, Judgment]]]:
    """The judgments of known ids as rows, their weights and indices, and the others by index."""
    judged, weights, indices, unknown = [], [], [], []
    for index, judgment in enumerate(source.judgments()):
        query_id, document_id, grade, weight = judgment
        if query_id not in query_row or document_id not in document_row:
            unknown.append((index, judgment))
            continue
        if grade >= num_grades:
            grades = f"0..{num_grades - 1}"
            reason = f"grade {grade} is outside {grades}"
            remedy = "Correct it, or give one more of --thresholds for each further grade"
            if source.has_clicks:
                reason = f"clicks give the grades 0..2, and this run has {grades}"
                remedy = "Train with two --thresholds, such as 0.2,0.7, also beside --init_from"
            raise input_error(source.place("judgments", index), reason, remedy)
        judged.append((query_row[query_id], document_row[document_id], max(grade, 0)))
        weights.append(weight)
        indices.append(index)
    rows = np.array(judged, np.int32).reshape(-1, 3)
    return rows, np.array(weights, np.float32), indices, unknown


def _skip(source: Source, example: InputError, repeats: int, unknown: int, total: int) -> None:
    """Warns of what is skipped; raises `example` if it is more than the source allows."""
    skipped = repeats + unknown
    of_all = (
        f"{skipped} of {total} judgments ({skipped / total:.1%}): {repeats} repeat another one,"
        f" {unknown} name a query or document that is not there."
    )
    if skipped > source.max_skipped * total:
        raise InputError(
            f"{example} --max_skipped={source.max_skipped:g} allows fewer than {of_all}"
        )
    figures = (
        " Figures count judged documents of the collection alone; trec_eval with the original qrels"
        " counts all."
    ) * bool(unknown)
    logging.warning("%s: skipped %s%s For example: %s", source.name, of_all, figures, example)


def _unknown_error(
    source: Source, index: int, judgment: Judgment, query_row: Mapping, document_row: Mapping
) -> InputError:
    role, id_, rows = "query", judgment.query_id, query_row
    if id_ in query_row:
        role, id_, rows = "document", judgment.document_id, document_row
    # Ids that several languages have.
    named = [known_id for known_id in rows if known_id.endswith(f":{id_}")]
    return input_error(
        source.place("judgments", index),
        f"the judged {role} {id_!r} is not among the {len(query_row)} queries"
        f" and {len(document_row)} documents",
        f"Call it {' or '.join(named[:3])}" if named else f"Add the {role}, or remove the judgment",
    )
