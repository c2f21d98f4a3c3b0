"""Sources whose streams are files, and the files of a directory."""

import collections
import functools
import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tf_smoothclir.data.sources import cells
from tf_smoothclir.data.sources.columns import ABSENT, TABLES, TEXTS, TITLED_TEXTS, Role, Row
from tf_smoothclir.data.sources.languages import is_code, plain_code
from tf_smoothclir.data.sources.source import Judgment, Source, Text
from tf_smoothclir.data.sources.tables import SUFFIXES, kind_of, read_table
from tf_smoothclir.storage.folder import joint_digest
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.paths import local_path

_ROWS_SAMPLED = 1000
WITH_OTHERS = TEXTS._replace(others=True)


class FileSource(Source):
    """A source whose streams are tables with one record per row."""

    # Where an id stands in the files of several languages, every id of the stream gets its
    # language: `de:17`.

    # "queries", "documents", "judgments" and perhaps "splits" -> the files of the stream, in order.
    files: dict[str, list[Path]]
    languages: dict[Path, str]  # of the texts of a file, or of the documents that it judges
    sides: dict[Path, tuple[str, str]]  # of judgments: languages of their queries and documents
    roles = TABLES  # of the table of each stream; where texts have ids, these come first
    queries_may_be_empty = True  # as some of published sets are

    def __init__(
        self,
        directory: Path,
        document_language: str = "",
        query_language: str = "",
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self.columns = columns or {}
        self.files, self.languages, self.sides = {}, {}, {}
        self.name = set_name(directory.resolve().name, query_language, document_language)
        self.document_language = document_language
        self.query_language = query_language

    def _rows(self, path: Path, role: Role) -> tuple[Iterator[Row], cells.Place]:
        """The rows of a file, and their places."""
        return read_table(path, role, self.columns), cells.in_file(path)

    def _add_files(self, stream: str, tables: Mapping[Path, str]) -> None:
        """Gives a stream its files, which may have languages."""
        self.files[stream] = list(tables)
        self.languages |= {path: code for path, code in tables.items() if code}

    def _texts(self, stream: str, path: Path) -> Iterator[tuple[int, Text]]:
        """Yields (line number, text) of a file of "queries" or "documents"."""
        language = self.languages.get(path, self.language_of(stream))
        prefix = self._prefix(stream, self.languages.get(path, ""))
        may_be_empty = stream == "documents" or self.queries_may_be_empty
        rows, place = self._rows(path, self.roles[stream])
        for line, text in cells.texts_in(rows, place, language, may_be_empty=may_be_empty):
            yield line, text._replace(id=prefix + text.id) if prefix else text

    def _judgments(self, path: Path) -> Iterator[tuple[int, Judgment]]:
        """Yields (line number, judgment)."""
        role = self.roles["judgments"]
        codes = self.sides.get(path, ("", self.languages.get(path, "")))
        of_query, of_document = map(self._prefix, ("queries", "documents"), codes)
        for line, judgment in cells.JUDGMENT_READERS[role](*self._rows(path, role)):
            if of_query or of_document:
                query_id, document_id, *rest = judgment
                judgment = Judgment(of_query + query_id, of_document + document_id, *rest)
            yield line, judgment

    def _splits(self, path: Path) -> Iterator[tuple[int, tuple[str, str]]]:
        """Yields (line number, (query id, split))."""
        return cells.splits_in(*self._rows(path, self.roles["splits"]))

    def _records(self, stream: str, path: Path) -> Iterator[tuple[int, Any]]:
        if stream in ("judgments", "splits"):
            return self._judgments(path) if stream == "judgments" else self._splits(path)
        if (role := self.roles[stream]) in cells.JUDGMENT_READERS:
            column = cells.QUERY if stream == "queries" else cells.DOCUMENT
            return cells.texts_of_column(column, *self._rows(path, role), self.language_of(stream))
        return self._texts(stream, path)

    def _all(self, stream: str) -> Iterator[Any]:
        paths = self.files.get(stream, ())
        return (record for path in paths for _, record in self._records(stream, path))

    def queries(self) -> Iterator[Text]:
        return self._all("queries")

    def documents(self) -> Iterator[Text]:
        return self._all("documents")

    def metadata(self) -> Iterator[Mapping[str, Any]]:
        if self.roles["documents"] == TITLED_TEXTS:
            yield from super().metadata()
        elif self.roles["documents"] == TEXTS:
            paths = self.files["documents"]
            # All rows of such a file have the same columns: without others, it is read once.
            untyped = [
                path
                for path in paths
                if kind_of(path) in ("tsv", "csv") and next(self._others(path), {})
            ]
            texts = self._columns_of_texts(untyped)
            for path in paths:
                code = {"language": self.languages[path]} if path in self.languages else {}
                for row in self._others(path):
                    if path in untyped:
                        row |= {n: cells.number_of(row[n]) for n in row.keys() - texts}
                    yield {**code, **row}

    def _columns_of_texts(self, paths: Iterable[Path]) -> set[str]:
        """The columns of files without types that have a cell that is no number."""
        numbers, others = collections.Counter[str](), collections.Counter[str]()
        first: dict[str, tuple[str, str]] = {}  # such a cell, and where it is
        for path in paths:
            for line, values in self._rows(path, WITH_OTHERS)[0]:
                for name, cell in values[-1].items():
                    if cells.number_of(cell) is None:
                        others[name] += 1
                        first.setdefault(name, (f"{path}:{line}", cell))
                    elif cell:
                        numbers[name] += 1
        for name, example in first.items():
            if numbers[name] > others[name]:  # else they are texts by intention
                cells.warn_of_mixed(name, numbers[name], others[name], *example)
        return set(first)

    def _others(self, path: Path) -> Iterator[dict[str, Any]]:
        return (row[-1] for _, row in self._rows(path, WITH_OTHERS)[0])

    def judgments(self) -> Iterator[Judgment]:
        return self._all("judgments")

    def splits(self) -> dict[str, str] | None:
        split_of: dict[str, str] = {}
        for path in self.files.get("splits", ()):
            for line, (query_id, split) in self._splits(path):
                if (earlier := split_of.setdefault(query_id, split)) != split:
                    reason = f"query {query_id!r} is in the {earlier} split of another file"
                    raise input_error(path, reason, "Keep one of the two lines", line=line)
        return split_of if "splits" in self.files else None

    @functools.cached_property
    def _told_apart(self) -> set[str]:
        """The streams of which several files have the same ids."""
        return {stream for stream in ("queries", "documents") if self._ids_repeat(stream)}

    def _ids_repeat(self, stream: str) -> bool:
        seen: set[str] = set()
        paths = [path for path in self.files[stream] if path in self.languages]
        for path in paths if len(paths) > 1 else ():
            ids = {str(row[0]) for _, row in self._rows(path, self.roles[stream])[0]}
            if not seen.isdisjoint(ids):
                return True
            seen |= ids
        return False

    def _prefix(self, stream: str, language: str) -> str:
        """What precedes the ids of a language."""
        return f"{language}:" if language and stream in self._told_apart else ""

    def says_languages(self, stream: str) -> bool:
        """Whether the files of a stream, or its texts, say what language each is in."""
        if self.files[stream][0] in self.languages:
            return True
        role, own = self.roles[stream], "query" if stream == "queries" else "document"
        place = role.names.index("language" if role == TEXTS else f"{own}_language")
        rows = (row for path in self.files[stream] for _, row in self._rows(path, role)[0])
        # Objects of JSONL need not have the same fields.
        return any(row[place] is not ABSENT for row in itertools.islice(rows, _ROWS_SAMPLED))

    def place(self, stream: str, index: int) -> str:
        for path in self.files[stream]:  # read again: only an error asks for a place
            for line, _ in self._records(stream, path):
                if not index:
                    return f"{path}:{line}"
                index -= 1
        raise IndexError(index)

    def fingerprint(self) -> str:
        return self._fingerprint

    @functools.cached_property
    def _fingerprint(self) -> str:  # takes seconds for a large collection
        digest = joint_digest(dict.fromkeys(itertools.chain(*self.files.values())))
        return digest_with_columns(digest, self.columns)


def digest_with_columns(digest: str, columns: Mapping[str, str]) -> str:
    """The digest of files in which columns have other names than ours."""
    named = f"{digest} {sorted(columns.items())}"
    return hashlib.sha256(named.encode()).hexdigest() if columns else digest


def set_name(name: str, query_language: str, document_language: str) -> str:
    """The name of a set, after which come those of its languages that are known."""
    codes = ("multi" if "," in code else code for code in (query_language, document_language))
    languages = "-".join(filter(None, codes))
    return name if name.endswith(languages) else f"{name}-{languages}"


def files_named(directory: Path, *names: str) -> list[Path]:
    """The files of these names in a directory, whatever the case of their letters."""
    there = {path.name.lower(): path for path in sorted(directory.iterdir()) if path.is_file()}
    return [there[name] for name in names if name in there]


def tables_of(directory: Path, name: str) -> dict[Path, str]:
    """The table of a name and its language, ""; or one for each language, `documents.de.tsv`."""
    alone, of_languages = table_named(directory, name), {}
    for path in sorted(directory.iterdir()):
        stem, _, rest = path.name.lower().partition(".")
        for code in (rest.partition(".")[0], stem.removeprefix(name)[1:]):
            names = (f"{name}{mark}{code}{suffix}" for mark in "._-" for suffix in SUFFIXES)
            if is_code(plain_code(code)) and path.name.lower() in names and path.is_file():
                of_languages[path] = plain_code(code)
    if alone is not None and of_languages:
        reason = f"it contains both {alone.name} and {min(of_languages).name}"
        raise input_error(directory, reason, "Keep one file, or one for each language")
    return of_languages if alone is None else {alone: ""}


def unread(directory: Path, *names: str) -> str:
    """What an error says of what has a name of a table, but is no file of a kind."""
    there = sorted(path for path in directory.iterdir() if path.name.lower().startswith(names))
    read = {path for name in names for path in tables_of(directory, name)}
    ignored = ", ".join(path.name for path in there if path.is_file() and path not in read)
    folders = ", ".join(path.name for path in there if path.is_dir() and kind_of(path))
    said = f"; not read because of its ending: {ignored}" if ignored else ""
    return f"{said}; a directory, and not a file: {folders}" if folders else said


def table_named(directory: Path, name: str) -> Path | None:
    """The table of a name in a directory, of whatever kind; None where there is none."""
    tables = files_named(directory, *(f"{name}{suffix}" for suffix in SUFFIXES))
    if len(tables) > 1:
        reason = f"it contains both {tables[0].name} and {tables[1].name}"
        raise input_error(directory, reason, "Keep one of the two")
    return tables[0] if tables else None


def checked_directory(directory: str | Path) -> Path:
    """The path of a directory; raises `InputError` if there is none."""
    directory = Path(local_path(directory))
    if not directory.is_dir():
        raise input_error(directory, "there is no such file or directory", "Check the path")
    return directory
