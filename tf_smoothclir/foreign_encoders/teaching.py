"""A foreign encoder as a teacher: judgments for queries that nobody judged.

The teacher's first hit for a query counts as its best document. A translation table that learns
from these is better than they are: what the teacher gets wrong does not repeat, translations do.
So table and teacher then judge together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from absl import logging

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import SPLITS, Judgment, Source, Text
from tf_smoothclir.data.sources.splits import drawn_splits
from tf_smoothclir.encoder.tokenizer import tokens_of
from tf_smoothclir.foreign_encoders.opening import EncodedSet
from tf_smoothclir.lexical.learning import learn_lexical_model
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.protocols.scorer import RowRetriever, query_chunks
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import input_error

# Of standardised scores, where the table and the teacher judge together.
_WEIGHT_OF_TEACHER = 0.25
# With fewer validation queries that people judged, queries of the teacher join them.
_FEWEST_VALIDATION_QUERIES = 100
_VALIDATION_SHARE = 0.2  # of the queries of the teacher


class TaughtSource(Source):
    """Another source whose judgments are joined by those of a teacher."""

    def __init__(self, source: Source, labels: dict[str, str], grade: int, splits: dict[str, str]):
        """Joins both.

        Args:
            labels: Query id -> id of its best document, for the teacher.
            grade: Of these documents.
            splits: Query id -> split, of all judged queries.
        """
        self.name = f"{source.name}-taught"
        self.query_language = source.query_language
        self.document_language = source.document_language
        self._source, self._labels, self._grade, self._splits = source, labels, grade, splits

    @property
    def labelled(self) -> int:
        """How many queries the teacher judged."""
        return len(self._labels)

    def queries(self) -> Iterator[Text]:
        return self._source.queries()

    def documents(self) -> Iterator[Text]:
        return self._source.documents()

    def judgments(self) -> Iterator[Judgment]:
        yield from self._source.judgments()
        for query, document in self._labels.items():
            yield Judgment(query, document, self._grade)

    def splits(self) -> dict[str, str]:
        return self._splits

    def place(self, stream: str, index: int) -> str:
        return self._source.place(stream, index)

    def fingerprint(self) -> str:
        labels = sorted(f"{query} {document}" for query, document in self._labels.items())
        parts = [self._source.fingerprint(), *labels, *map(" ".join, self._splits.items())]
        return f"{hash_ids([chr(10).join(parts)])[0]:016x}"


def taught(source: Source, encoded: EncodedSet, settings: RunSettings) -> TaughtSource:
    """A set all of whose queries have judgments: those that people made, and those of a teacher.

    Queries that people judged stay as they are, in their splits. The others are for training and
    validation alone, so a test means what people judged.

    Args:
        source: The set; its judgments may be none.
        encoded: Its vectors, in the order of its queries and documents.
        settings: Those of the training that is to follow.

    Raises:
        InputError: All queries have judgments.
    """
    teaching = _Teaching(source, encoded, settings)
    return teaching.taught(teaching.next_labels(teaching.first_labels()))


class _Teaching:
    """What the steps of teaching share."""

    def __init__(self, source: Source, encoded: EncodedSet, settings: RunSettings):
        self._source, self._encoded, self._settings = source, encoded, settings
        queries = list(source.queries())
        self._query_ids = [text.id for text in queries]
        self._document_ids = [text.id for text in source.documents()]
        judgments = list(source.judgments())
        ids = {judgment.query_id for judgment in judgments}
        judged = [text for text in queries if text.id in ids]
        self._grade = max([1, *(judgment.grade for judgment in judgments)])
        # A query with the words of a judged one may be a test query under another id.
        known = {tuple(tokens_of(text.text)) for text in judged}
        unjudged = [
            text.id not in ids and tuple(tokens_of(text.text)) not in known for text in queries
        ]
        self._rows = np.flatnonzero(unjudged)
        if not len(self._rows):
            raise input_error(
                f"--encoder: {encoded.name}",
                f"all {len(queries)} queries of {source.name} have judgments: there is nothing to"
                " teach",
                "Leave --encoder out, or add queries that nobody judged",
            )
        self._splits = self._all_splits(judged)
        logging.info(
            "%s teaches: %d of %d queries have no judgment, nor the words of one that has",
            encoded.name,
            len(self._rows),
            len(self._query_ids),
        )

    def _all_splits(self, judged: Sequence[Text]) -> dict[str, str]:
        seed = self._settings.data.split_seed
        splits = self._source.splits()
        if splits is None:
            places = drawn_splits(judged, seed)
            splits = {text.id: SPLITS[place] for text, place in zip(judged, places)}
        splits = {text.id: splits[text.id] for text in judged if text.id in splits}
        of_teacher = [self._query_ids[row] for row in self._rows]
        share = _VALIDATION_SHARE
        if sum(split == "validation" for split in splits.values()) >= _FEWEST_VALIDATION_QUERIES:
            share = 0.0
        order = np.argsort(hash_ids(of_teacher, f"taught {seed}"), kind="stable")
        for place in order[: int(share * len(order))]:
            splits[of_teacher[place]] = "validation"
        return {**dict.fromkeys(of_teacher, "train"), **splits}

    def taught(self, labels: np.ndarray) -> TaughtSource:
        """The set with these labels, `[unjudged queries]` document rows."""
        pairs = zip(self._rows, labels)
        named = {self._query_ids[query]: self._document_ids[document] for query, document in pairs}
        return TaughtSource(self._source, named, self._grade, self._splits)

    def first_labels(self) -> np.ndarray:
        """The first hits of the teacher."""
        chunks = query_chunks(self._rows, len(self._document_ids))
        return np.concatenate([self._of_teacher(rows).argmax(axis=1) for _, rows in chunks])

    def next_labels(self, labels: np.ndarray) -> np.ndarray:
        """The first hits of the teacher together with a table that learned from these labels."""
        retriever = self._table(labels)
        found = []
        for _, rows in query_chunks(self._rows, len(self._document_ids)):
            of_table = _standardised(retriever.scores(rows))
            both = of_table + _WEIGHT_OF_TEACHER * _standardised(self._of_teacher(rows))
            found.append(both.argmax(axis=1))
        new = np.concatenate(found)
        logging.info(
            "%s: the table changes %.1f%% of the labels",
            self._encoded.name,
            100 * np.mean(new != labels),
        )
        return new

    def _of_teacher(self, rows: np.ndarray) -> np.ndarray:
        return self._encoded.queries[rows] @ self._encoded.documents.T

    def _table(self, labels: np.ndarray) -> RowRetriever:
        text, data = self._settings.text, self._settings.data
        retrieval_set = RetrievalSet.load(self.taught(labels), num_grades=self._grade + 1)
        texts = LexicalTexts(
            tokenize_set(retrieval_set, text, data.cache_dir), text.max_query_tokens
        )
        seed, lengths = self._settings.training.seed, text.passage_words
        model = learn_lexical_model(texts, seed=seed, passage_words=lengths)
        return texts.retriever(model)


def _standardised(scores: np.ndarray) -> np.ndarray:
    """The scores of each query with mean 0 and standard deviation 1."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    return centred / np.maximum(centred.std(axis=1, keepdims=True), 1e-9)
