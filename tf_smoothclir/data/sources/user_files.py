"""A user's own retrieval set, in tables: documents, queries and judgments; clicks; or pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tf_smoothclir.data.sources.cells import judgments_in
from tf_smoothclir.data.sources.file_source import FileSource, table_named, tables_of
from tf_smoothclir.data.sources.pairs import (
    DOCUMENT,
    LANGUAGES,
    QUERY,
    judgments_of_clicks,
    judgments_of_pairs,
    texts_of_column,
)
from tf_smoothclir.data.sources.source import Judgment
from tf_smoothclir.data.sources.tables import CLICKS, JUDGMENTS, PAIRS
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import input_error

STREAMS = ("documents", "queries", "judgments")


class UserDirectory(FileSource):
    """A directory with documents, queries and judgments, each in a table of any kind.

    | file | columns; a TSV file without their names has them in this order |
    | --- | --- |
    | `documents`, `queries` | id, text; `title` and `language` by their names alone |
    | `judgments` | query_id, document_id, and perhaps grade (without: 1) |
    | `splits` (optional) | query_id, split: `train`, `validation` or `test` |

    Ids are strings without white space, or whole numbers. There may be one file for each language
    instead: `documents.de.tsv`, `queries.en.tsv`; `judgments.de.tsv` are of German documents.
    """

    needed: Sequence[str] = STREAMS

    def __init__(self, directory: Path, *languages: str, columns: Mapping[str, str] | None = None):
        super().__init__(directory, *languages, columns=columns)
        for stream in self.needed:
            self._add_files(stream, _needed(directory, stream))
        if (splits := table_named(directory, "splits")) is not None:
            self.files["splits"] = [splits]

    def _judgments(self, path):
        prefix = self._prefix("documents", self.languages.get(path, ""))
        for line, judgment in judgments_in(*self._rows(path, JUDGMENTS)):
            yield line, judgment._replace(document_id=prefix + judgment.document_id)


class QueryLog(UserDirectory):
    """A directory with documents and queries, which nobody judged."""

    needed = ("documents", "queries")

    def judgments(self) -> Iterator[Judgment]:
        return iter(())


class ClicksDirectory(FileSource):
    """A directory with documents, and with clicks: query (its text), document_id, perhaps count.

    Clicks of documents that are not there are skipped, up to a share; see `judgments_of_clicks`.
    """

    max_skipped = DataSettings.max_skipped

    def __init__(self, directory: Path, *languages: str, columns: Mapping[str, str] | None = None):
        super().__init__(directory, *languages, columns=columns)
        self._add_files("documents", _needed(directory, "documents"))
        clicks = list(_needed(directory, "clicks"))
        self.files |= {"queries": clicks, "judgments": clicks}

    def _texts(self, stream, path):
        if stream == "documents":
            return super()._texts(stream, path)
        return texts_of_column(QUERY, *self._rows(path, CLICKS), self.language_of(stream))

    def _judgments(self, path):
        return judgments_of_clicks(*self._rows(path, CLICKS))

    def _language_column(self, stream):
        return super()._language_column(stream) if stream == "documents" else (CLICKS, LANGUAGES)


class PairsFile(FileSource):
    """A table of pairs: query and document, their texts, and perhaps grade (without: 1)."""

    def __init__(self, path: Path, *languages: str, columns: Mapping[str, str] | None = None):
        stem = path.name.partition(".")[0]
        named = path.parent if stem == "pairs" else Path(stem)
        super().__init__(named, *languages, columns=columns)
        self.files = {stream: [path] for stream in STREAMS}

    def _texts(self, stream, path):
        column = QUERY if stream == "queries" else DOCUMENT
        return texts_of_column(column, *self._rows(path, PAIRS), self.language_of(stream))

    def _judgments(self, path):
        return judgments_of_pairs(*self._rows(path, PAIRS))

    def _language_column(self, stream):
        return PAIRS, LANGUAGES + (stream == "documents")


def _needed(directory: Path, name: str) -> dict[Path, str]:
    if tables := tables_of(directory, name):
        return tables
    reason = f"it contains no {name} (.tsv, .csv, .jsonl, .parquet)"
    remedy = f"Give one file each for {', '.join(STREAMS)}; or for documents and clicks"
    raise input_error(directory, reason, remedy)
