"""A retrieval set in the layout of BEIR (Thakur et al. 2021): corpus, queries and qrels."""

from __future__ import annotations

import functools
from pathlib import Path

from tf_smoothclir.data.sources.cells import judgments_in
from tf_smoothclir.data.sources.file_source import FileSource, checked_directory, files_named
from tf_smoothclir.data.sources.splits import NAMES, splits_of_parts
from tf_smoothclir.data.sources.tables import JUDGMENTS
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import input_error

CORPUS, QUERIES = "corpus.jsonl", "queries.jsonl"


class BeirDirectory(FileSource):
    """A directory with `corpus.jsonl`, `queries.jsonl` and `qrels/<part>.tsv`.

    | file | holds |
    | --- | --- |
    | `corpus.jsonl` | "_id", "text" and perhaps "title"; as in BEIR, a document is both |
    | `queries.jsonl` | "_id" and "text"; either may have "language" |
    | `qrels/train.tsv`, `dev.tsv`, `test.tsv` | query-id, corpus-id and score |

    The names of the parts are the splits; see `splits_of_parts`. Other fields are ignored.
    """

    max_skipped = DataSettings.max_skipped

    def __init__(self, directory: str | Path, *languages: str) -> None:
        directory = checked_directory(directory)
        super().__init__(directory, *languages)
        files = files_named(directory, CORPUS, QUERIES)
        if len(files) < 2:
            raise input_error(directory, f"it has no {QUERIES}", "Add the queries")
        self.files = {"documents": files[:1], "queries": files[1:], "judgments": []}
        qrels = directory / "qrels"
        parts = sorted(qrels.iterdir()) if qrels.is_dir() else []
        for path in parts:
            if path.suffix.lower() != ".tsv" or not path.is_file():
                continue
            if path.stem.lower() not in NAMES:
                named = ", ".join(f"{name}.tsv" for name in NAMES)
                raise input_error(path, "its name is no part of a set", f"Name it one of {named}")
            self.files["judgments"].append(path)
        if not self.files["judgments"]:
            raise input_error(directory, "it has no qrels/*.tsv", "Add judgments: qrels/test.tsv")

    def _texts(self, stream, path):
        for line, text in super()._texts(stream, path):
            joined = f"{text.title} {text.text}".strip() if text.title else text.text
            yield line, text._replace(title="", text=joined if stream == "documents" else text.text)

    def _judgments(self, path):
        return judgments_in(*self._rows(path, JUDGMENTS))

    def splits(self) -> dict[str, str] | None:
        return splits_of_parts(self, self._queries_by_part)

    @functools.cached_property
    def _queries_by_part(self) -> dict[str, list[str]]:
        return {
            path.stem.lower(): [judgment.query_id for _, judgment in self._judgments(path)]
            for path in self.files["judgments"]
        }

    def place(self, stream: str, index: int) -> str:
        if stream == "splits":
            return f"{self.files['judgments'][0].parent}:{index + 1}"
        return super().place(stream, index)
