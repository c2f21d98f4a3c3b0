"""A user's own retrieval set: tables of documents, queries, judgments, clicks or pairs; or BEIR."""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

from absl import logging

from tf_smoothclir.data.sources import file_source
from tf_smoothclir.data.sources.columns import CLICKS, PAIRS
from tf_smoothclir.data.sources.file_source import FileSource, tables_of, unread
from tf_smoothclir.data.sources.splits import NAMES, splits_of_parts
from tf_smoothclir.data.sources.tables import kind_of
from tf_smoothclir.utils.errors import input_error

STREAMS = ("documents", "queries", "judgments")
CORPUS, QUERIES = "corpus.jsonl", "queries.jsonl"


class UserDirectory(FileSource):
    """A directory with documents, queries and judgments, each in a table (`docs/data.md`)."""

    # There may be one file for each language instead: `documents.de.tsv`, `queries.en.tsv`;
    # `judgments.de.tsv` are of German documents.

    needed: Sequence[str] = STREAMS
    queries_may_be_empty = False

    def __init__(self, directory: Path, *languages: str, columns: Mapping[str, str] | None = None):
        super().__init__(directory, *languages, columns=columns)
        for stream in self.needed:
            self._add_files(stream, _needed(directory, stream))
        if (splits := file_source.table_named(directory, "splits")) is not None:
            self.files["splits"] = [splits]
        elif ignored := unread(directory, "splits"):
            logging.warning("%s: splits are drawn%s", directory, ignored)


class QueryLog(UserDirectory):
    """A directory with documents and queries, which nobody judged."""

    needed, is_judged = ("documents", "queries"), False


class ClicksDirectory(FileSource):
    """Documents, and clicks: query (its text), document_id, perhaps count."""

    roles = FileSource.roles | {"queries": CLICKS, "judgments": CLICKS}
    has_clicks = True

    def __init__(self, directory: Path, *languages: str, columns: Mapping[str, str] | None = None):
        super().__init__(directory, *languages, columns=columns)
        self._add_files("documents", _needed(directory, "documents"))
        clicks = list(_needed(directory, "clicks"))
        self.files |= {"queries": clicks, "judgments": clicks}


class PairsFile(FileSource):
    """A table of pairs: query and document, their texts, and perhaps grade (without: 1)."""

    roles = dict.fromkeys(STREAMS, PAIRS)

    def __init__(self, path: Path, *languages: str, columns: Mapping[str, str] | None = None):
        stem = path.name.partition(".")[0]
        named = path.parent if stem == "pairs" else Path(stem)
        super().__init__(named, *languages, columns=columns)
        self.files = {stream: [path] for stream in STREAMS}


def _needed(directory: Path, name: str) -> dict[Path, str]:
    if tables := tables_of(directory, name):
        return tables
    reason = f"it contains no {name} (.tsv, .csv, .jsonl, .parquet){unread(directory, name)}"
    remedy = f"Give one file each for {', '.join(STREAMS)}; or for documents and clicks; or"
    remedy += " let smoothclir-teach write judgments of an encoder"
    raise input_error(directory, reason, remedy)


def _part(path: Path) -> str:
    """The part of a set whose judgments a file has, by its name."""
    return path.name.lower().partition(".")[0]


class BeirDirectory(FileSource):
    """A directory with `corpus.jsonl`, `queries.jsonl` and `qrels/<part>.tsv`, as BEIR has them.

    A document is its title and its text. The names of the parts are the splits; see
    `splits_of_parts`.
    """

    def __init__(self, directory: str | Path, *languages: str) -> None:
        directory = file_source.checked_directory(directory)
        super().__init__(directory, *languages)
        files = file_source.files_named(directory, CORPUS, QUERIES)
        if len(files) < 2:
            raise input_error(directory, f"it has no {QUERIES}", "Add the queries")
        self.files = {"documents": files[:1], "queries": files[1:], "judgments": []}
        qrels = directory / "qrels"
        parts = sorted(qrels.iterdir()) if qrels.is_dir() else []
        for path in parts:
            if kind_of(path) == "tsv" and path.is_file():
                if _part(path) not in NAMES:
                    named = ", ".join(f"{name}.tsv" for name in NAMES)
                    reason = "its name is no part of a set"
                    raise input_error(path, reason, f"Name it one of {named}")
                self.files["judgments"].append(path)
            elif _part(path) in NAMES:
                logging.warning("%s: not read because of its ending, which is not .tsv", path)
        if not self.files["judgments"]:
            raise input_error(directory, "it has no qrels/*.tsv", "Add judgments: qrels/test.tsv")

    def _texts(self, stream, path):
        for line, text in super()._texts(stream, path):
            if stream == "documents" and text.title:
                text = text._replace(title="", text=f"{text.title} {text.text}".strip())
            yield line, text

    def splits(self) -> dict[str, str] | None:
        return splits_of_parts(self, self._queries_by_part)

    @functools.cached_property
    def _queries_by_part(self) -> dict[str, list[str]]:
        return {
            _part(path): [judgment.query_id for _, judgment in self._judgments(path)]
            for path in self.files["judgments"]
        }
