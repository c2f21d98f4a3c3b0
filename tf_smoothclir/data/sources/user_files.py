"""A user's own retrieval set: tables of documents, queries, judgments, clicks or pairs; or BEIR."""

import functools
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from absl import logging

from tf_smoothclir.data.sources import file_source
from tf_smoothclir.data.sources.cells import Place, count_of, grade_of, id_of, language_of, text_of
from tf_smoothclir.data.sources.columns import ABSENT, CLICKS, PAIRS, Row
from tf_smoothclir.data.sources.file_source import FileSource, tables_of, unread
from tf_smoothclir.data.sources.source import Judgment, Text
from tf_smoothclir.data.sources.splits import NAMES, splits_of_parts
from tf_smoothclir.data.sources.tables import kind_of
from tf_smoothclir.utils.errors import input_error

STREAMS = ("documents", "queries", "judgments")
# Columns of `PAIRS` and `CLICKS`.
QUERY, DOCUMENT = 0, 1
LANGUAGES = 3  # columns from here on
_NAMES = ("query", "document")
CORPUS, QUERIES = "corpus.jsonl", "queries.jsonl"


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
    queries_may_be_empty = False

    def __init__(self, directory: Path, *languages: str, columns: Mapping[str, str] | None = None):
        super().__init__(directory, *languages, columns=columns)
        for stream in self.needed:
            self._add_files(stream, _needed(directory, stream))
        if (splits := file_source.table_named(directory, "splits")) is not None:
            self.files["splits"] = [splits]
        elif ignored := unread(directory, "splits"):
            logging.warning("%s: splits are drawn%s", directory, ignored)

    def _judgments(self, path):
        prefix = self._prefix("documents", self.languages.get(path, ""))
        for line, judgment in super()._judgments(path):
            yield line, judgment._replace(document_id=prefix + judgment.document_id)


class QueryLog(UserDirectory):
    """A directory with documents and queries, which nobody judged."""

    needed, is_judged = ("documents", "queries"), False


class ClicksDirectory(FileSource):
    """Documents, and clicks: query (its text), document_id, perhaps count."""

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
    reason = f"it contains no {name} (.tsv, .csv, .jsonl, .parquet){unread(directory, name)}"
    remedy = f"Give one file each for {', '.join(STREAMS)}; or for documents and clicks; or"
    remedy += " let smoothclir-teach write judgments of an encoder"
    raise input_error(directory, reason, remedy)


def texts_of_column(
    column: int, rows: Iterable[Row], place: Place, language: str = ""
) -> Iterator[tuple[int, Text]]:
    """Yields (number, text) of the different texts of a column."""
    seen: dict[bytes, int] = {}
    for row, values in rows:
        known = len(seen)
        text = _identified(values, column, place, row, seen, language)
        if len(seen) > known:
            yield row, text


def judgments_of_pairs(rows: Iterable[Row], place: Place) -> Iterator[tuple[int, Judgment]]:
    """Yields (number, judgment) of rows of `PAIRS`; of equal pairs one, with the highest grade."""
    seen: tuple[dict[bytes, int], ...] = ({}, {})
    graded: dict[tuple[str, str], tuple[int, int]] = {}
    for row, values in rows:
        query, document = (
            _identified(values, column, place, row, seen[column]).id for column in (QUERY, DOCUMENT)
        )
        grade = grade_of(values[PAIRS.names.index("grade")], place, row)
        first, highest = graded.get((query, document), (row, grade))
        graded[query, document] = first, max(highest, grade)
    for (query, document), (row, grade) in graded.items():
        yield row, Judgment(query, document, grade)


def judgments_of_clicks(rows: Iterable[Row], place: Place) -> Iterator[tuple[int, Judgment]]:
    """Yields (number, judgment) of rows of `CLICKS`, whose counts are added up."""
    # Grade 2 for at least half as many clicks as the most clicked document of the query has, 1 for
    # fewer, 0 for a document that was shown and never clicked. So grades do not depend on how often
    # a query is asked.
    seen: dict[bytes, int] = {}
    clicks: dict[tuple[str, str], list[int]] = {}  # the first row, and how many
    most: dict[str, int] = {}
    for row, values in rows:
        query = _identified(values, QUERY, place, row, seen).id
        document = id_of(values[1], "document_id", place, row)
        of_pair = clicks.setdefault((query, document), [row, 0])
        of_pair[1] += count_of(values[2], place, row)
        most[query] = max(most.get(query, 0), of_pair[1])
    for (query, document), (row, count) in clicks.items():
        yield row, Judgment(query, document, (count > 0) + (0 < most[query] <= 2 * count))


def _identified(
    values: Sequence, column: int, place: Place, row: int, seen: dict[bytes, int], language=""
) -> Text:
    """The text of a column, without white space around it; one of each language has an id."""
    name = _NAMES[column]
    text = text_of(values[column], name, place, row).strip()
    if not text:
        raise input_error(place(row), f"the {name} is empty", "Leave the row out")
    said = values[LANGUAGES + column]
    code = language_of(said, "", place, row)
    same = " ".join([code, *text.casefold().split()]).encode()
    key = hashlib.blake2b(same, digest_size=16).digest()  # shorter than most texts
    return Text(
        f"{name[0]}{seen.setdefault(key, row)}", "", text, language if said is ABSENT else code
    )


def _part(path: Path) -> str:
    """The part of a set whose judgments a file has, by its name."""
    return path.name.lower().partition(".")[0]


class BeirDirectory(FileSource):
    """A directory with `corpus.jsonl`, `queries.jsonl` and `qrels/<part>.tsv`.

    | file | holds |
    | --- | --- |
    | `corpus.jsonl` | "_id", "text" and perhaps "title"; as in BEIR, a document is both |
    | `queries.jsonl` | "_id" and "text"; either may have "language" |
    | `qrels/train.tsv`, `dev.tsv`, `test.tsv` | query-id, corpus-id and score |

    The names of the parts are the splits; see `splits_of_parts`. Other fields are ignored.
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
            joined = f"{text.title} {text.text}".strip() if text.title else text.text
            yield line, text._replace(title="", text=joined if stream == "documents" else text.text)

    def splits(self) -> dict[str, str] | None:
        return splits_of_parts(self, self._queries_by_part)

    @functools.cached_property
    def _queries_by_part(self) -> dict[str, list[str]]:
        return {
            _part(path): [judgment.query_id for _, judgment in self._judgments(path)]
            for path in self.files["judgments"]
        }
