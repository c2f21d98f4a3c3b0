"""Queries cut short, so that predicted grades fit short queries too, and are measured on them.

The score of a query grows with its words. Where all validation queries are whole sentences, cut
points found on them would call nothing relevant that three words find.
"""

import collections
import copy
import dataclasses
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.data.preparation import encode_role
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import Source, Text
from tf_smoothclir.encoder.tokenizer import has_letters, is_pair, tokens_of
from tf_smoothclir.evaluation.evaluate import HITS, Hits
from tf_smoothclir.protocols.scorer import Ranking
from tf_smoothclir.protocols.text_search import CutPoints
from tf_smoothclir.training.run_models import ModelsOverSet

MOST, MEASURED = 1800, 600  # queries: whose words say what is rare, and ranked for each length
FIRST_WORDS, RAREST_WORDS = 10, 3
LENGTHS = ("whole", "first ten words", "three rarest words")


def hits_of_short_queries(over: ModelsOverSet) -> dict[str, Hits]:
    """The hits of validation queries that are cut short, for each retriever."""
    texts = _texts_to_cut(over.retrieval_set, "validation")
    return _hits_of_texts(over, cut_short(texts, over.settings.text.pretokenized))


def _texts_to_cut(retrieval_set: RetrievalSet, split: str) -> dict[int, str]:
    """The texts of some queries of a split, by row, ascending."""
    return retrieval_set.query_texts(_evenly(retrieval_set.queries_in(split), MOST))


def _evenly(rows: np.ndarray, most: int) -> np.ndarray:
    """Some of the rows, of all places: perhaps one language comes after the other."""
    return rows[np.linspace(0, len(rows) - 1, min(most, len(rows)), dtype=int)]


def _hits_of_texts(over: ModelsOverSet, texts: dict[int, str], only: str = "") -> dict[str, Hits]:
    """The hits of queries with other texts, by row, for each retriever, or for one."""
    source = _with_texts(over.retrieval_set.source, texts)
    other = dataclasses.replace(over.retrieval_set, source=source)
    with tempfile.TemporaryDirectory(prefix="smoothclir-") as directory:
        short = dataclasses.replace(over.tokenized_set, retrieval_set=other)
        if over.settings.retrieval.with_task:  # lexical models read texts by themselves
            encode_role("query", short, Path(directory))
            short = dataclasses.replace(short, query_directory=Path(directory))
        rows = np.array(sorted(texts))
        return {
            name: Hits.of(Ranking.joined(one.rank(rows, HITS)), other, one)
            for name, one in over.with_queries_of(short).retrievers.items()
            if only in ("", name)
        }


def grades_by_length(
    over: ModelsOverSet, name: str, cut_points: CutPoints, split: str = "test"
) -> dict[str, dict[str, float]]:
    """How far to trust predicted grades of first hits: length of the queries -> figures."""
    # The same queries are left as they are, cut to their first ten words, and to their rarest
    # three. The figures are the number of queries, the share whose first hit is relevant, the
    # share of these that are predicted relevant (recall), and how many predicted ones are
    # (precision).
    texts, by_length = _texts_to_cut(over.retrieval_set, split), {}
    forms = short_forms(texts, over.settings.text.pretokenized)
    rows = _evenly(np.array(sorted(forms)), MEASURED).tolist()
    for place, label in enumerate(LENGTHS):
        hits = _hits_of_texts(over, {row: forms[row][place] for row in rows}, name)[name]
        right = hits.grades[:, 0] > 0
        called = cut_points.of_hits(hits.scores, hits.words)[:, 0] > 0
        by_length[label] = {
            "queries": len(right),
            "right": float(right.mean()),
            "recall": float((right & called).sum() / max(1, right.sum())),
            "precision": float((right & called).sum() / max(1, called.sum())),
        }
    return by_length


def _with_texts(source: Source, texts: dict[int, str]) -> Source:
    """The source with other texts of the queries of some rows; others, which nobody asks, too."""
    shortest = min(texts.values(), key=len)  # soon read

    def queries() -> Iterator[Text]:
        for row, query in enumerate(source.queries()):
            yield query._replace(text=texts.get(row, shortest))

    other = copy.copy(source)
    other.queries = queries
    return other


def cut_short(texts: dict[int, str], pretokenized: bool = False) -> dict[int, str]:
    """Texts by row: of each third one the first ten words, of the others the three rarest ones."""
    forms = short_forms(texts, pretokenized).items()
    return {row: of_row[1 + (number % 3 > 0)] for number, (row, of_row) in enumerate(forms)}


def short_forms(texts: dict[int, str], pretokenized: bool = False) -> dict[int, tuple[str, ...]]:
    """By row a text as it is, its first ten words, and its three rarest ones: see `LENGTHS`."""
    words = {
        row: list(filter(has_letters, _words(text, pretokenized))) for row, text in texts.items()
    }
    frequency = collections.Counter(word for of_text in words.values() for word in set(of_text))
    return {
        row: (
            texts[row],
            " ".join(of_text[:FIRST_WORDS]) or texts[row],
            " ".join(_rarest(of_text, frequency)) or texts[row],
        )
        for row, of_text in words.items()
    }


def _words(text: str, pretokenized: bool) -> list[str]:
    """The words of a text; of what has no spaces, two characters each, which is what words have."""
    tokens = tokens_of(text, pretokenized)
    if pretokenized:
        return tokens
    words, place = [], 0
    are_pairs = [*map(is_pair, tokens), False, False, False]
    while place < len(tokens):
        if are_pairs[place + 1]:  # of 日 日本 本 本人 人, the word is 日本, and 人 comes next
            words.append(tokens[place + 1])
            place += 4 if are_pairs[place + 3] else 3
        else:
            words.append(tokens[place])
            place += 1
    return words


def _rarest(words: Sequence[str], frequency: collections.Counter[str]) -> list[str]:
    """The rarest distinct words, in the order in which they stand."""
    distinct = list(dict.fromkeys(words))
    rarest = sorted(distinct, key=lambda word: (frequency[word], word))[:RAREST_WORDS]
    return [word for word in distinct if word in rarest]
