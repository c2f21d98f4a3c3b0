"""What a search takes, finds and says of it: readings of queries, hits, grades, explanations."""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.files import read_record, write_json

# What to tell people where a query is not understood by its words.
DOUBTS = {
    "spelling": "No word of the query is known from training: found by words of the same spelling"
    " or a similar one.",
    "n-grams": "No word of the query is known: found by letters that it shares with known words, so"
    " perhaps by chance.",
    "nothing": "No word of the query is known, so there is nothing to search with.",
}
# The cut point where nothing says which scores are good; JSON has no infinity.
BEYOND = float(np.finfo(np.float32).max)


@dataclasses.dataclass(frozen=True)
class SearchHit:
    """A document that a search found.

    Attributes:
        rank: From 1.
        score: Of the scorer that ranks, such as the smooth cosine similarity.
        grade: Predicted from the score; None where nothing says what a score means.
        id: Of the document.
        title: Of the document; may be empty.
        text: Of the document.
        passage: The passage of the text that matched best; None where the text is one passage, or
            where only vectors rank.
        constant: The part of the score that feedback adds to the first hits of a query alike: it
            says nothing about a document, and is not shown to people.
        metadata: Its other columns, column -> value; without those that it has no value of.
    """

    rank: int
    score: float
    grade: int | None
    id: str
    title: str
    text: str
    passage: str | None = None
    metadata: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    constant: float = 0.0

    @property
    def shown_score(self) -> float:
        """The score without what is the same for the first hits."""
        return self.score - self.constant


@dataclasses.dataclass(frozen=True)
class QueryReading:
    """Evidence of a query: its known and unknown words.

    Attributes:
        evidence: "words" if it knows one; else "spelling" if documents have one, spelled alike, or
            one is read as another; else "n-grams" if one looks like known words; else "nothing".
        unknown: Its words that neither queries nor documents had in training.
        read_as: Other such words, each with what it is read as: the known word of most similar
            spelling, that of which it is a part, or those that it joins, with spaces between.
        cut: How many tokens at its end are not read, as they follow `max_query_tokens` others; 0
            where a tower reads it by TensorFlow, which does not say.
    """

    evidence: str
    unknown: tuple[str, ...] = ()
    read_as: Mapping[str, str] = dataclasses.field(default_factory=dict)
    cut: int = 0

    @property
    def says_something(self) -> bool:
        """Whether there is anything to search with."""
        return self.evidence != "nothing"


class Answer(list[SearchHit]):
    """The hits of a query, best first.

    Attributes:
        reading: What was understood of the query.
    """

    def __init__(self, hits: Iterable[SearchHit], reading: QueryReading):
        super().__init__(hits)
        self.reading = reading

    def __reduce__(self) -> tuple:
        return Answer, (list(self), self.reading)


@dataclasses.dataclass(frozen=True)
class WordMatch:
    """A word of the other text that a word stands for.

    Attributes:
        word: As the tokeniser gives it, in lower case.
        probability: By which the word of the document stands for the word of the query.
        share: What the two add to the score.
    """

    word: str
    probability: float
    share: float


@dataclasses.dataclass(frozen=True)
class WordShare:
    """The share of a score that one word carries.

    Attributes:
        word: As the tokeniser gives it, in lower case.
        share: Sum over its occurrences; negative where the word lowers the score.
        matches: What it met in the other text, the three largest shares first to last; empty where
            a score does not come from pairs of words.
    """

    word: str
    share: float
    matches: tuple[WordMatch, ...] = ()


@dataclasses.dataclass(frozen=True)
class MatchedPair:
    """A word of a query and the word of a document that a re-ranker takes for its best match.

    Attributes:
        query_word: As the tokeniser gives it, in lower case.
        document_word: The same.
        similarity: Cosine of their vectors.
        share: Of late interaction: what the match of the query word adds to the score of the hit;
            the shares of all pairs add up to what the re-ranker adds. Other networks do not add up
            words: their similarity times the weight of the re-ranker, for the order alone.
    """

    query_word: str
    document_word: str
    similarity: float
    share: float


@dataclasses.dataclass(frozen=True)
class Explanation:
    """A score, split into the shares of the words of a text.

    Attributes:
        score: The sum of all shares, the remainder, and what all others add.
        words: Each word of the text that has a share, once, largest share first.
        remainder: The part of the score that nothing else carries.
        towers: What the vectors of the texts add to the score of their words.
        encoder: What their vectors by a foreign encoder add.
        feedback: What the likeness to the first documents adds.
        reranker: What a re-ranker adds.
        pairs: The best matches that it found, largest share first.
    """

    score: float
    words: tuple[WordShare, ...]
    remainder: float
    towers: float = 0.0
    encoder: float = 0.0
    feedback: float = 0.0
    reranker: float = 0.0
    pairs: tuple[MatchedPair, ...] = ()

    @property
    def of_words(self) -> float:
        """The score without what all others than words add."""
        return self.score - self.towers - self.encoder - self.feedback - self.reranker

    def without(self, constant: float) -> Self:
        """The explanation of the score of a hit as it is shown."""
        less = {"score": self.score - constant, "feedback": self.feedback - constant}
        return dataclasses.replace(self, **less)


@dataclasses.dataclass(frozen=True)
class SearchedCollection:
    """Metadata of the collection that is searched.

    Attributes:
        query_language: ISO 639-1.
        document_language: ISO 639-1.
        num_grades: K; predicted grades are 0..K-1.
        data: The set that the documents come from; None where they come from plain files.
        documents: How many there are; None where that is not known.
        retrievers: What may rank them, the one that does first.
    """

    query_language: str
    document_language: str
    num_grades: int
    data: DataSettings | None
    documents: int | None = None
    retrievers: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class CutPoints:
    """Scores at which the predicted grade changes, K-1 rising numbers each; two may be equal.

    The grade of a hit is the lower one of two: that of its score, which says whether the first hit
    is any good, and that of its share of the score of the first hit, which says how much worse
    than the best a document is.

    Attributes:
        scores: For the score of a hit in a whole collection, divided by (known words of the query)
            to the power of `power`.
        shares: For the score of a hit divided by that of the first hit; empty for a scorer that
            ranks no collection.
        lists: For the score of a document of a candidate list, most of which are drawn at random
            and score lower than any hit.
        power: 0 for scores that are no sums over the words of a query.
    """

    scores: tuple[float, ...]
    shares: tuple[float, ...]
    lists: tuple[float, ...] = ()
    power: float = 0.0

    def of_hits(self, scores: np.ndarray, words: np.ndarray | int = 1) -> np.ndarray:
        """Returns grades of hits without TensorFlow, which takes longer than a search.

        Args:
            scores: `[..., hits]` float32, best first; the first hits of a ranking.
            words: `[...]` int, the known words of each query.

        Returns:
            int64, the shape of `scores`.
        """
        grades = _above(scores * self.of_words(words)[..., np.newaxis], self.scores)
        if not self.shares:
            return grades
        return np.minimum(grades, _above(hit_shares(scores), self.shares))

    def of_words(self, words: np.ndarray | int) -> np.ndarray:
        """What scores of queries of so many known words are multiplied by, float32."""
        return np.power(np.maximum(words, 1, dtype=np.float32), np.float32(-self.power))

    def of_lists(self, scores: np.ndarray) -> np.ndarray:
        """Returns grades of documents of candidate lists, int64, the shape of `scores`."""
        return _above(scores, self.lists)


def hit_shares(scores: np.ndarray) -> np.ndarray:
    """Scores of hits divided by the first one, `[..., hits]`; 0 where that is not above 0."""
    first = np.maximum(scores[..., :1], 0)
    return np.divide(scores, first, out=np.zeros_like(scores), where=first > 0)


NEVER_RELEVANT = CutPoints((BEYOND,), (BEYOND,))


def _above(scores: np.ndarray, cut_points: tuple[float, ...]) -> np.ndarray:
    points = np.asarray(cut_points, scores.dtype)
    return np.count_nonzero(scores[..., np.newaxis] > points, axis=-1)


@dataclasses.dataclass(frozen=True)
class _CutPointsFile:
    retrievers: dict[str, CutPoints]


def write_cut_points(path: Path, retrievers: Mapping[str, CutPoints]) -> None:
    """Writes a JSON file with the cut points of each retriever by its name."""
    write_json(path, dataclasses.asdict(_CutPointsFile(dict(retrievers))))


def read_cut_points(path: Path) -> dict[str, CutPoints]:
    """Reads what `write_cut_points` wrote."""
    remedy = "Restore the file, or train again"
    return read_record(path, _CutPointsFile, remedy).retrievers
