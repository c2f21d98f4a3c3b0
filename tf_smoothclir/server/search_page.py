"""The web page to search with: one HTML file, and the JSON that it asks for."""

import base64
import dataclasses
import hashlib
import itertools
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import resources

from absl import logging

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.encoder.tokenizer import has_letters, places_of
from tf_smoothclir.index.metadata import plain
from tf_smoothclir.protocols.text_search import Explanation, SearchHit
from tf_smoothclir.search.display import carrying_words, remarks
from tf_smoothclir.search.text_search import TextSearch
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError, input_error

_FIELDS = "q", "k", "retriever", "filter"  # of a request
_DEFAULT_DEPTH, _LARGEST_DEPTH = 10, 100
_LONGEST_QUERY = 10_000  # characters
_LONGEST_TEXT = 700  # characters of a document that are shown
_LONGEST_WHOLE = 20_000  # characters of a whole document, on a click
_BEFORE = 120  # of these, shown before the first highlighted word
_MOST_PAIRS = 12  # of words that a re-ranker matched
_EXAMPLES, _LONGEST_EXAMPLE, _QUERIES_READ = 6, 120, 500
_INLINE = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)


class SearchPage:
    """Answers the requests of the page."""

    def __init__(
        self,
        search: TextSearch,
        examples: Sequence[str] = (),
        open_other: Callable[[str], TextSearch] | None = None,
    ):
        self._search = search
        self._examples = examples
        self._searches = dict.fromkeys(search.collection.retrievers[:1], search)
        self._open_other = open_other
        self._opening = threading.Lock()
        self.html = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
        self.headers = _headers(self.html)
        self._cannot_explain: set[TextSearch] = set()

    def about(self) -> dict:
        """Answers `/api/about`.

        The JSON has `query_language` and `document_language` (ISO 639-1), `grades` (how many there
        are), `examples` (queries to try), `documents` (how many there are; null if unknown),
        `retrievers` (those to choose from, the default first; empty where there is no choice) and
        `columns` (name of a column of metadata -> its values, empty where these are many).
        """
        collection = self._search.collection
        return {
            "query_language": collection.query_language,
            "document_language": collection.document_language,
            "grades": collection.num_grades,
            "examples": self._examples,
            "documents": collection.documents,
            "retrievers": collection.retrievers if self._open_other else (),
            "columns": self._search.facets,
        }

    def search(self, fields: Mapping[str, str]) -> dict:
        """Answers `/api/search?q=...&k=10&retriever=dense&filter=...`.

        The JSON has `query`, `milliseconds`, `evidence` and `unknown` (see `QueryReading`),
        `remarks` (what people should know of them) and `results`. A result has

        * `rank`, `score`, `id`, `title`, and `grade`, which is null where none is predicted;
        * `metadata`: other columns of the document, name -> value;
        * `parts`: a piece of the text, the share of the score of its word, and that word as it was
          read, both null for pieces that are not highlighted; of a long text they are its best
          passage, or else what surrounds the first such word;
        * `whole`: where it was cut, the same of the whole text, up to 20,000 characters; else null;
        * `matches`: for each highlighted word pairs of a word of the query that it met and the
          probability by which it stands for it, largest share first; empty where only towers rank;
        * `added`: what `words`, `towers`, `encoder`, `feedback` and `reranker` add to the score;
          null where the search does not explain scores;
        * `pairs`: for each query word that a re-ranker matched, largest share first: that word, its
          best match in the document and their similarity; empty without a re-ranker.
        """
        if others := {*fields} - {*_FIELDS}:
            remedy = f"Give q, and perhaps {', '.join(_FIELDS[1:])}"
            raise input_error(min(others)[:80], "there is no such field", remedy)
        query, condition = fields.get("q", ""), fields.get("filter", "")
        depth = fields.get("k", str(_DEFAULT_DEPTH))
        if not query.strip() or len(query) > _LONGEST_QUERY:
            remedy = f"Give a query of 1 to {_LONGEST_QUERY} characters"
            raise input_error("q", f"it has {len(query.strip())} characters", remedy)
        if not re.fullmatch("[0-9]{1,3}", depth) or not 1 <= int(depth) <= _LARGEST_DEPTH:
            remedy = f"Give a number of results k from 1 to {_LARGEST_DEPTH}"
            raise input_error("k", f"{depth[:20]!r} is no number in this range", remedy)
        retriever = fields.get("retriever", "")
        if retriever and retriever not in self._search.collection.retrievers:
            remedy = f"Give one of {', '.join(self._search.collection.retrievers)}"
            raise input_error(f"retriever={retriever[:80]}", "there is no such one here", remedy)
        search = self._search_with(retriever)
        begin = time.perf_counter()
        (hits,) = search.search([query], int(depth), condition)
        milliseconds = 1000 * (time.perf_counter() - begin)
        results = list(map(_result, hits, self._explanations(search, query, hits)))
        return {
            "query": query,
            "milliseconds": round(milliseconds, 2),
            **dataclasses.asdict(hits.reading),
            "remarks": remarks(hits.reading, hits, not hits and search.leaves_none(condition)),
            "results": results,
        }

    def _search_with(self, retriever: str) -> TextSearch:
        if not retriever or (self._open_other is None and retriever not in self._searches):
            return self._search
        with self._opening:
            if retriever not in self._searches:
                self._searches[retriever] = self._open_other(retriever)
        return self._searches[retriever]

    def _explanations(
        self, search: TextSearch, query: str, hits: Sequence[SearchHit]
    ) -> Sequence[Explanation | None]:
        if search not in self._cannot_explain and hits:
            try:
                return search.explain(query, hits)
            except InputError as error:  # this search cannot explain, whatever the query
                logging.info("No words are highlighted: %s", error)
                self._cannot_explain.add(search)
        return [None] * len(hits)


def open_page(
    search: TextSearch, open_other: Callable[[str], TextSearch] | None = None
) -> SearchPage:
    """The page over a search, with examples of queries from the set of its collection."""
    data = search.collection.data
    examples = _examples(data) if data else ()
    search.search([*examples[:1], "a"], _DEFAULT_DEPTH)  # the first search takes longer
    return SearchPage(search, examples, open_other)


def _examples(data: DataSettings) -> list[str]:
    try:
        texts = [query.text for query in itertools.islice(source_of(data).queries(), _QUERIES_READ)]
    except InputError as error:  # searching needs only the index
        logging.info("The page shows no examples of queries: %s", error)
        return []
    # Evenly spaced, because neighbours are often alike.
    short = list(dict.fromkeys(text for text in texts if 0 < len(text) <= _LONGEST_EXAMPLE))
    return short[:: max(1, len(short) // _EXAMPLES)][:_EXAMPLES]


def _headers(page: str) -> dict[str, str]:
    """Lets the browser run the scripts and styles of the page itself, and nothing else."""
    digests = {"script": "", "style": ""}
    for kind, content in _INLINE.findall(page):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        digests[kind] += f" 'sha256-{digest}'"
    policy = (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none';"
        f" script-src{digests['script']}; style-src{digests['style']}"
    )
    return {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-cache",
    }


def _result(hit: SearchHit, explanation: Explanation | None) -> dict:
    fields = {name: getattr(hit, name) for name in ("rank", "grade", "id", "title")}
    fields["score"] = hit.shown_score
    fields["metadata"] = plain(hit.metadata)
    shares, matches, added, pairs = {}, {}, None, []
    if explanation:
        carrying = set(carrying_words(explanation))
        words = [word for word in explanation.words if word.word in carrying]
        shares = {word.word: word.share for word in words}
        matches = {
            word.word: [(match.word, match.probability) for match in word.matches] for word in words
        }
        added = {
            "words": explanation.of_words,
            "towers": explanation.towers,
            "encoder": explanation.encoder,
            "feedback": explanation.feedback - hit.constant,
            "reranker": explanation.reranker,
        }
        pairs = [
            (pair.query_word, pair.document_word, pair.similarity)
            for pair in explanation.pairs
            if has_letters(pair.query_word)
        ][:_MOST_PAIRS]
    shown, whole = hit.text if hit.passage is None else hit.passage, None
    parts = text_parts(shown, shares)
    if hit.passage is not None:
        parts = [("… ", None, None), *parts, (" …", None, None)]
    if len(hit.text) > min(_LONGEST_TEXT, len(shown)):
        whole = text_parts(hit.text[:_LONGEST_WHOLE], shares, _LONGEST_WHOLE)
    return {
        **fields,
        "parts": parts,
        "whole": whole,
        "matches": matches,
        "added": added,
        "pairs": pairs,
    }


def text_parts(
    text: str, shares: Mapping[str, float], longest: int = _LONGEST_TEXT
) -> list[tuple[str, float | None, str | None]]:
    """Cuts a text into pieces at the words that carry its score; see `SearchPage.search`."""
    if len(text) > longest:
        first, _, _ = next(places_of(text, shares), (0, 0, ""))
        begin = max(0, first - _BEFORE)
        end = begin + longest
        text = "…" * (begin > 0) + text[begin:end].strip() + "…" * (end < len(text))
    parts, position = [], 0
    for begin, end, word in places_of(text, shares):
        if parts and begin == position and parts[-1][2] == word:  # the characters of a pair
            begin = position - len(parts.pop()[0])
        else:
            parts.append((text[position:begin], None, None))
        parts.append((text[begin:end], shares[word], word))
        position = end
    parts.append((text[position:], None, None))
    return [part for part in parts if part[0]]
