"""Documents without judgments, and the parallel sentences that teach a table in their place."""

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import logging

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.cells import Place, in_file, text_of
from tf_smoothclir.data.sources.columns import PARALLEL
from tf_smoothclir.data.sources.file_source import FileSource, unread
from tf_smoothclir.data.sources.line_files import any_lines
from tf_smoothclir.data.sources.source import SPLITS, Judgment, Source, Text
from tf_smoothclir.data.sources.tables import kind_of, read_table
from tf_smoothclir.utils.errors import input_error

_VALIDATION_SHARE, _MOST_VALIDATION = 0.1, 1000  # of the sentences


class UnjudgedDirectory(FileSource):
    """Documents, and perhaps parallel sentences: a table of two columns, or two files of lines."""

    # Its queries are the sentences in their language, as examples; nobody judged them.

    is_judged = False

    def __init__(
        self,
        documents: Mapping[Path, str],
        *languages: str,
        columns: Mapping[str, str] | None = None,
        parallel: Sequence[Path] = (),
    ):
        super().__init__(next(iter(documents)).parent, *languages, columns=columns)
        self._add_files("documents", documents)
        self.files["queries"] = list(parallel)
        self._parallel = parallel

    @property
    def unread(self) -> str:
        directory = self.files["documents"][0].parent
        return unread(directory, "queries", "judgments", "clicks", "parallel")

    @property
    def training(self) -> Source:
        return ParallelSentences(self) if self._parallel else self

    def _texts(self, stream, path):
        if stream == "documents":
            yield from super()._texts(stream, path)
        elif path == self._parallel[0]:  # the other one has their translations
            for number, (line, query, _) in enumerate(self.sentences(), 1):
                yield line, Text(f"s{number}", "", query, self.language_of(stream))

    def says_languages(self, stream: str) -> bool:
        return stream == "documents" and super().says_languages(stream)

    def splits(self) -> dict[str, str]:
        return {}

    def sentences(self) -> Iterator[tuple[int, str, str]]:
        """Yields (line, sentence, its translation)."""
        return sentences_of_files(self._parallel, self.columns, self)


class ParallelSentences(Source):
    """Parallel sentences as a set, of which a tenth validates; nothing is measured by it."""

    # The documents that will be searched count for its vocabulary. Ids number sentences, not lines:
    # any form of the same sentences makes the same model.

    is_judged, is_parallel = False, True

    def __init__(self, unjudged: Source):
        self.name = f"{unjudged.name}-parallel"
        self.query_language = unjudged.query_language
        self.document_language = unjudged.document_language
        self._of = unjudged

    def queries(self) -> Iterator[Text]:
        return self._of.queries()

    def documents(self) -> Iterator[Text]:
        code = self.language_of("documents")
        numbered = enumerate(self._of.sentences(), 1)
        return (Text(f"s{number}", "", text, code) for number, (_, _, text) in numbered)

    def further_texts(self) -> Iterator[str]:
        return (document.text for document in self._of.documents())

    def judgments(self) -> Iterator[Judgment]:
        numbered = enumerate(self._of.sentences(), 1)
        return (Judgment(f"s{number}", f"s{number}", 1) for number, _ in numbered)

    def splits(self) -> dict[str, str]:
        # By the texts: a sentence that is there twice trains or validates, not both.
        queries = [(text.id, " ".join(text.text.casefold().split())) for text in self.queries()]
        hashes = hash_ids([text for _, text in queries], "parallel")
        validating = min(int(_VALIDATION_SHARE * len(hashes)), _MOST_VALIDATION)
        first_of_training = np.sort(hashes)[validating] if validating else 0
        return {
            id_: SPLITS[int(hashed < first_of_training)]
            for (id_, _), hashed in zip(queries, hashes)
        }

    def place(self, stream: str, index: int) -> str:
        return self._of.place("queries", index)

    def fingerprint(self) -> str:
        return hashlib.sha256(
            f"{self._of.fingerprint()} parallel, all taught, numbered".encode()
        ).hexdigest()


def sentences_of_files(
    paths: Sequence[Path], columns: Mapping[str, str], languages: Source
) -> Iterator[tuple[int, str, str]]:
    """Yields (line, sentence, its translation) of the files of `parallel_files`."""
    if paths:
        yield from sentences_in(_pairs(paths, columns, languages), in_file(paths[0]), paths[0])


def sentences_in(
    rows: Iterable[tuple[int, Any, Any]], place: Place, where: object
) -> Iterator[tuple[int, str, str]]:
    """Checks sentences; logs how many pairs have a blank one, and leaves them out."""
    left_out = 0
    for row, *texts in rows:
        pair = [text_of(text, "the sentence", place, row).strip() for text in texts]
        if all(pair):
            yield row, *pair
        else:
            left_out += 1
    if left_out:
        logging.info("%s: %d pairs have a blank sentence", where, left_out)


def _pairs(paths: Sequence[Path], columns: Mapping[str, str], languages: Source):
    """Yields (line, text, text) of a table, or of two files with a sentence on each line."""
    if len(paths) == 1:
        names = {"query": languages.query_language, "document": languages.document_language}
        known = {column: code for column, code in names.items() if code}
        for line, pair in read_table(paths[0], PARALLEL, {**known, **columns}):
            yield line, *pair
        return
    for first, second in itertools.zip_longest(*map(any_lines, paths)):
        if first is None or second is None:
            shorter = paths[first is not None]
            remedy = "Give two files with as many lines, the same sentence on each"
            raise input_error(shorter, "it has fewer lines than the other file", remedy)
        yield first[0], first[1], second[1]


def parallel_files(flag: str) -> list[Path]:
    """The files that --parallel names: a table, or two files of lines."""
    paths = [Path(name) for name in flag.split(",") if name]
    for path in paths:
        if not path.is_file():
            raise input_error(f"--parallel={path}", "there is no such file", "Check the path")
    if (len(paths) == 1 and not kind_of(paths[0])) or len(paths) > 2:
        remedy = "Give a .tsv, .csv, .jsonl or .parquet file of two columns, or two files of lines"
        raise input_error(f"--parallel={flag}", "this is neither a table nor two files", remedy)
    return paths
