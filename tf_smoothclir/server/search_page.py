"""The page to search with: one HTML file and the JSON it asks for."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import itertools
import os
import re
import time
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from absl import logging

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.index.manifest import IndexManifest
from tf_smoothclir.protocols.text_search import Explanation, SearchHit
from tf_smoothclir.publishing.export_directory import exported_versions, part_dir
from tf_smoothclir.publishing.manifest import ExportManifest
from tf_smoothclir.search.display import carrying_words, word_pattern
from tf_smoothclir.search.searcher import ChooseData, Searcher, open_searcher
from tf_smoothclir.server.rest import Response, Route, json_response
from tf_smoothclir.settings.run import DataSettings
from tf_smoothclir.utils.errors import InputError

_DEFAULT_DEPTH, _LARGEST_DEPTH = 10, 100
_LONGEST_QUERY = 10_000  # characters
_LONGEST_TEXT = 700  # characters of a document that are shown
_BEFORE = 120  # of them before the first highlighted word
_EXAMPLES, _LONGEST_EXAMPLE, _LOOKED_AT = 6, 120, 500
_INLINE = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class About:
    """What the page says of the collection.

    Attributes:
        query_language: ISO 639-1.
        document_language: ISO 639-1.
        grades: How many there are.
        examples: Queries to try.
    """

    query_language: str
    document_language: str
    grades: int
    examples: Sequence[str]


class SearchPage:
    """Answers for the page; `routes` are for `RestServer`."""

    def __init__(self, searcher: Searcher, about: About):
        """Reads the page.

        Args:
            searcher: The collection.
            about: What is said of it.
        """
        self._searcher = searcher
        self._about = about
        page = resources.files(__package__).joinpath("page.html").read_bytes()
        self._page = Response(page, 200, "text/html; charset=utf-8", _headers(page))
        self._explains = True

    def routes(self) -> dict[str, Route]:
        """Returns path -> answer."""
        return {
            "/": lambda fields: self._page,
            "/api/about": lambda fields: json_response(dataclasses.asdict(self._about)),
            "/api/search": self.search,
        }

    def search(self, fields: Mapping[str, str]) -> Response:
        """Answers `/api/search?q=...&k=10`.

        The JSON has `query`, `milliseconds` and `results`; a result has `rank`, `score`, `grade`,
        `id`, `title`, and `parts`: pairs of a piece of the text and its share of the score, which
        is null for what is not highlighted.
        """
        query, depth = fields.get("q", ""), fields.get("k", str(_DEFAULT_DEPTH))
        if not query.strip() or len(query) > _LONGEST_QUERY:
            return _bad_request(f"Give a query q of 1 to {_LONGEST_QUERY} characters.")
        if not re.fullmatch("[0-9]{1,3}", depth) or not 1 <= int(depth) <= _LARGEST_DEPTH:
            return _bad_request(f"Give a number of results k from 1 to {_LARGEST_DEPTH}.")
        begin = time.perf_counter()
        (results,) = self._searcher.search([query], int(depth))
        milliseconds = 1000 * (time.perf_counter() - begin)
        explanations = self._explanations(query, results)
        shown = [_shown(*pair) for pair in zip(results, explanations)]
        answer = {"query": query, "milliseconds": round(milliseconds, 2), "results": shown}
        return json_response(answer)

    def _explanations(
        self, query: str, results: Sequence[SearchHit]
    ) -> Sequence[Explanation | None]:
        if self._explains and results:
            try:
                return self._searcher.explain(query, results)
            except InputError as error:  # a tower that does not pool averages
                logging.info("No words are highlighted: %s", error)
                self._explains = False
        return [None] * len(results)


def open_page(
    export_dir: str | os.PathLike, index_dir: str | os.PathLike, choose_data: ChooseData
) -> SearchPage:
    """Opens towers and index as `smoothclir-search` does, and the page over them.

    Args:
        export_dir: Where the towers are.
        index_dir: Of the index; empty for `index` in `export_dir`.
        choose_data: As for `open_searcher`.

    Raises:
        InputError: As `open_searcher`.
    """
    searcher = open_searcher(export_dir, index_dir, choose_data)
    searcher.search([""], _DEFAULT_DEPTH)  # the first search takes longer
    manifest = IndexManifest.read(Path(index_dir or Path(export_dir, "index")))
    data = choose_data(manifest.data or _data_of_towers(export_dir))
    about = About(
        query_language=data.query_language,
        document_language=data.document_language,
        grades=len(manifest.thresholds) + 1,
        examples=_examples(data) if manifest.data else [],
    )
    return SearchPage(searcher, about)


def _data_of_towers(export_dir: str | os.PathLike) -> DataSettings:
    """Returns the settings of the data that the towers were trained with."""
    latest = part_dir(export_dir, "document") / str(max(exported_versions(export_dir, "document")))
    return ExportManifest.read(latest, ["document"]).data


def _examples(data: DataSettings) -> list[str]:
    try:
        texts = [query.text for query in itertools.islice(source_of(data).queries(), _LOOKED_AT)]
    except InputError as error:  # the index is enough to search
        logging.info("There are no examples of queries: %s", error)
        return []
    # Spread over them, as neighbours are often alike.
    short = list(dict.fromkeys(text for text in texts if 0 < len(text) <= _LONGEST_EXAMPLE))
    return short[:: max(1, len(short) // _EXAMPLES)][:_EXAMPLES]


def _headers(page: bytes) -> dict[str, str]:
    """Lets the browser run what stands in the page, and nothing else from anywhere."""
    digests = {"script": "", "style": ""}
    for kind, content in _INLINE.findall(page.decode("utf-8")):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        digests[kind] += f" 'sha256-{digest}'"
    policy = (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none';"
        f" script-src{digests['script']}; style-src{digests['style']}"
    )
    return {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }


def _bad_request(message: str) -> Response:
    return json_response({"error": message}, 400)


def _shown(result: SearchHit, explanation: Explanation | None) -> dict:
    fields = {name: getattr(result, name) for name in ("rank", "score", "grade", "id", "title")}
    shares = {}
    if explanation:
        carrying = set(carrying_words(explanation))
        shares = {word.word: word.share for word in explanation.words if word.word in carrying}
    return {**fields, "parts": text_parts(result.text, shares)}


def text_parts(text: str, shares: Mapping[str, float]) -> list[tuple[str, float | None]]:
    """Cuts a text into pieces at the words that carry its score.

    Args:
        text: Of a document; of a long one, the beginning or what is around the first such word.
        shares: Word in lower case -> its share of the score.

    Returns:
        Pieces in order, each with its share; None for what is between the words.
    """
    pattern = word_pattern(tuple(shares))
    if len(text) > _LONGEST_TEXT:
        first = pattern.search(text)
        begin = max(0, first.start() - _BEFORE) if first else 0
        end = begin + _LONGEST_TEXT
        text = "…" * (begin > 0) + text[begin:end].strip() + "…" * (end < len(text))
    parts, position = [], 0
    for match in pattern.finditer(text):
        share = shares.get(match[0].lower())
        if share is not None:
            parts += [(text[position : match.start()], None), (match[0], share)]
            position = match.end()
    parts.append((text[position:], None))
    return [part for part in parts if part[0]]
