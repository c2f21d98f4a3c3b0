"""Retrieval sets in the file layout of WikiCLIR (Sasaki et al. 2018).

The layout of the published archive, `wiki-clir.tar.gz`, is taken from two independent readers:
ir_datasets (`ir_datasets/datasets/wikiclir.py`) and the code of Liu et al. (2020).

* `english/wiki_en.queries`: query_id, title, first sentence. All languages share this file: the
  queries of a language are those that its judgments refer to.
* `<folder>/wiki_<code>.documents`: doc_id, title, text.
* `<folder>/en2<code>.rel`: query_id, doc_id, relevance. 2 is the same page, 1 a mutually linked
  page; 0 is never listed.
* The folder is the English name of the language; Simple English has the code `simple`.
* No header, no quoting, no splits. Texts are lower-cased and tokenised; many begin with a space.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from tf_smoothclir.data.sources.cells import id_of, judgments_in
from tf_smoothclir.data.sources.file_source import FileSource, checked_directory, files_named
from tf_smoothclir.data.sources.line_files import WHOLE_FILE, Piece
from tf_smoothclir.data.sources.source import Judgment, Text
from tf_smoothclir.data.sources.tables import JUDGMENTS, TITLED_TEXTS, read_table
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import input_error

# Document language -> folder in the published archive.
PUBLISHED_FOLDERS = {
    **{"ar": "arabic", "ca": "catalan", "cs": "czech", "de": "german", "es": "spanish"},
    **{"fi": "finnish", "fr": "french", "it": "italian", "ja": "japanese", "ko": "korean"},
    **{"nl": "dutch", "nn": "norwegian_(nynorsk)", "no": "norwegian_(bokmal)", "pl": "polish"},
    **{"pt": "portuguese", "ro": "romanian", "ru": "russian", "simple": "simple_english"},
    **{"sv": "swedish", "sw": "swahili", "tl": "tagalog", "tr": "turkish", "uk": "ukrainian"},
    **{"vi": "vietnamese", "zh": "chinese"},
}
_QUERY_FOLDERS = {"en": "english"}


def document_languages(directory: Path) -> list[str]:
    """The languages of all `wiki_<language>.documents` in a directory or its folders."""
    return _languages(directory, "wiki_*.documents", r"wiki_(.+)\.documents")


def _languages(directory: Path, pattern: str, name: str) -> list[str]:
    files = [*directory.glob(pattern), *directory.glob(f"*/{pattern}")]
    return sorted({re.fullmatch(name, file.name)[1] for file in files})


class WikiClirDirectory(FileSource):
    """A set in the layout of WikiCLIR: all files in one directory, or in folders as published.

    The text of a query or document is the third column; the title becomes `Text.title`. If several
    languages share one queries file, queries without a judgment in this language belong to other
    languages: they are left out, of the splits too. Otherwise every query is kept. `splits.tsv`
    (query_id, split) next to the documents is optional.
    """

    max_skipped = DataSettings.max_skipped

    def __init__(
        self, directory: str | Path, document_language: str, query_language: str = "en"
    ) -> None:
        directory = checked_directory(directory)
        super().__init__(directory, document_language, query_language)
        documents = _find(
            directory,
            PUBLISHED_FOLDERS.get(document_language, ""),
            f"wiki_{document_language}.documents",
            f"--document_language={document_language}",
            document_languages(directory),
        )
        queries = _find(
            directory,
            _QUERY_FOLDERS.get(query_language, ""),
            f"wiki_{query_language}.queries",
            f"--query_language={query_language}",
            _languages(directory, "wiki_*.queries", r"wiki_(.+)\.queries"),
        )
        judgments = documents.with_name(f"{query_language}2{document_language}.rel")
        if not judgments.is_file():
            others = sorted(file.name for file in documents.parent.glob("*2*.rel"))
            reason = f"there is no such file; next to it: {', '.join(others) or 'no *2*.rel'}"
            remedy = "Put the judgments there, or choose languages that have judgments"
            raise input_error(judgments, reason, remedy)
        self.paths = {"queries": queries, "documents": documents, "judgments": judgments}
        for splits in files_named(documents.parent, "splits.tsv"):
            self.paths["splits"] = splits
        neighbours = len(list(documents.parent.glob("wiki_*.documents")))
        self._queries_are_shared = queries.parent != documents.parent or neighbours > 1

    def _texts(self, stream: str, piece: Piece = WHOLE_FILE) -> Iterator[tuple[int, Text]]:
        wanted, (rows, place) = None, self._rows(stream, TITLED_TEXTS, piece)
        if stream == "queries" and self._queries_are_shared:
            wanted = self._judged_queries()
        for line, fields in rows:
            if wanted is None or fields[0] in wanted:
                id_of(fields[0], "id", place, line)
                yield line, Text(*fields)

    def translated_queries(self) -> Iterator[Text]:
        path = self.paths["documents"].with_name(f"wiki_{self.document_language}.queries")
        if not path.is_file():
            reason = "there is no such file, with queries that people translated"
            remedy = "Put one there (query_id, title, text), or choose another --query_translation"
            raise input_error(path, reason, remedy)
        for _, fields in read_table(path, TITLED_TEXTS):
            yield Text(*fields)

    def _judged_queries(self) -> set[str]:
        return {judgment.query_id for judgment in self.judgments()}

    def _splits(self) -> Iterator[tuple[int, tuple[str, str]]]:
        of_others: set[str] = set()
        if self._queries_are_shared:
            of_others = {id_ for _, (id_, *_) in self._rows("queries", TITLED_TEXTS)[0]}
            of_others -= self._judged_queries()
        for line, (query_id, split) in super()._splits():
            if query_id not in of_others:
                yield line, (query_id, split)

    def _judgments(self) -> Iterator[tuple[int, Judgment]]:
        return judgments_in(*self._rows("judgments", JUDGMENTS))

    def fingerprint(self) -> str:
        own = super().fingerprint()
        if not self._queries_are_shared:
            return own
        # Which queries it has also depends on other languages' documents, which are not its files.
        return hashlib.sha256(f"{own} shared".encode()).hexdigest()


def _find(directory: Path, folder: str, name: str, flag: str, present: list[str]) -> Path:
    for path in (directory / name, directory / folder / name):
        if path.is_file():
            return path
    reason = f"there is no {name} in {directory}; available: {', '.join(present) or 'none'}"
    raise input_error(flag, reason, "Choose an available one, or another directory")
