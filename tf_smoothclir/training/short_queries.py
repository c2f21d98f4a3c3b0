"""Validation queries cut short, so that predicted grades fit short queries too.

The score of a query grows with its words. Where all validation queries are whole sentences, cut
points found on them would call nothing relevant that three words find.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.data.preparation import encode_role
from tf_smoothclir.data.sources.source import Source, Text
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.encoder.tokenizer import has_letters, tokens_of
from tf_smoothclir.settings.text import TextSettings

MOST = 600  # queries: a third each is whole, of ten words, and of three
FIRST_WORDS, RAREST_WORDS = 10, 3


def with_short_queries(
    tokenized_set: TokenizedSet, settings: TextSettings, directory: Path
) -> tuple[TokenizedSet, np.ndarray]:
    """A set with some validation queries cut short, and the rows of those that are to be ranked.

    Args:
        directory: An empty one for the tokens of the queries.
    """
    retrieval_set = tokenized_set.retrieval_set
    rows = retrieval_set.queries_in("validation")  # perhaps one language after the other
    rows = rows[np.linspace(0, len(rows) - 1, min(MOST, len(rows)), dtype=int)]
    chosen = set(rows.tolist())
    texts = {
        row: query.text for row, query in enumerate(retrieval_set.source.queries()) if row in chosen
    }
    source = _with_texts(retrieval_set.source, cut_short(texts, settings.pretokenized))
    other = dataclasses.replace(retrieval_set, source=source)
    encode_role("query", other, settings, directory, tokenized_set.vocabulary_dir)
    short = dataclasses.replace(tokenized_set, retrieval_set=other, query_directory=directory)
    return short, rows


def _with_texts(source: Source, texts: dict[int, str]) -> Source:
    """The source with other texts of the queries of some rows."""

    def queries() -> Iterator[Text]:
        for row, query in enumerate(source.queries()):
            yield query._replace(text=texts.get(row, query.text))

    other = copy.copy(source)
    other.queries = queries
    return other


def cut_short(texts: dict[int, str], pretokenized: bool = False) -> dict[int, str]:
    """Texts by row: in turn as they are, their first ten words, and their three rarest ones."""
    words = {
        row: [token for token in tokens_of(text, pretokenized) if has_letters(token)]
        for row, text in texts.items()
    }
    frequency = collections.Counter(word for own in words.values() for word in set(own))
    cut = dict(texts)
    for number, (row, own) in enumerate(words.items()):
        if own and number % 3 == 1:
            cut[row] = " ".join(own[:FIRST_WORDS])
        if own and number % 3 == 2:
            cut[row] = " ".join(_rarest(own, frequency))
    return cut


def _rarest(words: Sequence[str], frequency: collections.Counter[str]) -> list[str]:
    """The rarest distinct words, in the order in which they stand."""
    distinct = list(dict.fromkeys(words))
    rarest = sorted(distinct, key=lambda word: (frequency[word], word))[:RAREST_WORDS]
    return [word for word in distinct if word in rarest]
