"""A retrieval set in the layout of BEIR (Thakur et al. 2021): corpus, queries and qrels."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

from tf_smoothclir.data.sources.cells import in_file, judgments_in, texts_in
from tf_smoothclir.data.sources.file_source import FileSource, checked_directory, files_named
from tf_smoothclir.data.sources.line_files import WHOLE_FILE, Piece
from tf_smoothclir.data.sources.named_splits import NAMES, splits_of_parts
from tf_smoothclir.data.sources.source import Judgment, Text
from tf_smoothclir.data.sources.tables import JUDGMENTS, TEXTS, read_table
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import input_error

CORPUS, QUERIES = "corpus.jsonl", "queries.jsonl"


class BeirDirectory(FileSource):
    """A directory with `corpus.jsonl`, `queries.jsonl` and `qrels/<part>.tsv`.

    | file | holds |
    | --- | --- |
    | `corpus.jsonl` | "_id", "text" and perhaps "title"; as in BEIR, a document is both |
    | `queries.jsonl` | "_id" and "text" |
    | `qrels/train.tsv`, `dev.tsv`, `test.tsv` | query-id, corpus-id and score |

    The names of the parts are the splits; see `splits_of_parts`. Other fields are ignored.
    """

    max_skipped = DataSettings.max_skipped

    def __init__(
        self, directory: str | Path, document_language: str, query_language: str = "en"
    ) -> None:
        directory = checked_directory(directory)
        super().__init__(directory, document_language, query_language)
        files = files_named(directory, CORPUS, QUERIES)
        if len(files) < 2:
            raise input_error(directory, f"it has no {QUERIES}", "Add the queries")
        self.paths = dict(zip(("documents", "queries"), files))
        qrels = directory / "qrels"
        parts = sorted(qrels.iterdir()) if qrels.is_dir() else []
        self._parts = [path for path in parts if path.suffix.lower() == ".tsv" and path.is_file()]
        if not self._parts:
            raise input_error(directory, "it has no qrels/*.tsv", "Add judgments: qrels/test.tsv")
        for path in self._parts:
            if path.stem.lower() not in NAMES:
                named = ", ".join(f"{name}.tsv" for name in NAMES)
                raise input_error(path, "its name is no part of a set", f"Name it one of {named}")
            self.paths[f"judgments {path.stem}"] = path

    def _texts(self, stream: str, piece: Piece = WHOLE_FILE) -> Iterator[tuple[int, Text]]:
        for line, text in texts_in(*self._rows(stream, TEXTS, piece)):
            joined = f"{text.title} {text.text}".strip() if text.title else text.text
            yield line, Text(text.id, "", joined if stream == "documents" else text.text)

    def _judgments(self) -> Iterator[tuple[int, Judgment]]:
        for path in self._parts:
            yield from _judgments_in(path)

    def splits(self) -> dict[str, str] | None:
        return splits_of_parts(self, self._queries_by_part)

    @functools.cached_property
    def _queries_by_part(self) -> dict[str, list[str]]:
        return {
            path.stem.lower(): [judgment.query_id for _, judgment in _judgments_in(path)]
            for path in self._parts
        }

    def place(self, stream: str, index: int) -> str:
        if stream == "splits":
            return f"{self._parts[0].parent}:{index + 1}"
        if stream != "judgments":
            return super().place(stream, index)
        for path in self._parts:
            for line, _ in _judgments_in(path):
                if not index:
                    return f"{path}:{line}"
                index -= 1
        raise IndexError(index)


def _judgments_in(path: Path) -> Iterator[tuple[int, Judgment]]:
    return judgments_in(read_table(path, JUDGMENTS), in_file(path))
