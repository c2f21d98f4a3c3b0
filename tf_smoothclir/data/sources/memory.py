"""A retrieval set in memory, and writing any set as the files that `UserDirectory` reads."""

import dataclasses
import functools
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tf_smoothclir.data.sources.cells import Place, is_missing
from tf_smoothclir.data.sources.file_source import digest_with_columns, set_name
from tf_smoothclir.data.sources.source import Judgment, Source, Text
from tf_smoothclir.data.sources.unjudged import ParallelSentences, sentences_of_files
from tf_smoothclir.storage.files import new_directory, open_to_write
from tf_smoothclir.storage.folder import Contents, joint_digest
from tf_smoothclir.utils.errors import input_error

Tokenizer = Callable[[str], Iterable[str]]  # from a text to its words


class MemorySource(Source):
    """Queries, documents, judgments of a program; record i of a stream is `<stream>[i]`."""

    # Its languages and fingerprint are those of the files that `write_set` makes of it.

    pairs: Iterable[tuple[int, str, str]] = ()  # `sentences` of a set without judgments
    parallel_files: Sequence[Path] = ()  # or the files that have them
    others: Iterable[Mapping[str, Any]] = ()  # columns of each document that are not searched
    columns: Mapping[str, str] = {}
    places: Mapping[str, Place] = {}  # of the records of a stream that was made of something else

    def __init__(
        self,
        queries: Iterable[Text],
        documents: Iterable[Text],
        judgments: Iterable[Judgment],
        splits: Mapping[str, str] | None = None,
        query_language: str = "",
        document_language: str = "",
        tokenizer: Tokenizer | None = None,
    ):
        self.name = set_name("memory", query_language, document_language)
        self.query_language, self.document_language = query_language, document_language
        self._segmented = functools.partial(segmented, tokenizer=tokenizer)
        self.texts = {"queries": queries, "documents": documents}
        if tokenizer is not None:
            for stream, texts in self.texts.items():
                self.texts[stream] = [
                    text._replace(
                        title=self._segmented(text.title), text=self._segmented(text.text)
                    )
                    for text in texts
                ]
        self.judged, self._splits = judgments, None if splits is None else dict(splits)

    @property
    def training(self) -> Source:
        return self if next(self.sentences(), None) is None else ParallelSentences(self)

    def queries(self) -> Iterator[Text]:
        if self.is_judged:
            return self._texts("queries")
        code = self.language_of("queries")
        numbered = enumerate(self.sentences(), 1)
        return (Text(f"s{number}", "", query, code) for number, (_, query, _) in numbered)

    def documents(self) -> Iterator[Text]:
        return self._texts("documents")

    def _texts(self, stream: str) -> Iterator[Text]:
        texts, code = self.texts[stream], self.language_of(stream)
        if not code or self.says_languages(stream):  # of such a set, the others are unknown
            return iter(texts)
        return (text._replace(language=code) for text in texts)

    def says_languages(self, stream: str) -> bool:
        """Whether any text of a stream says what language it is in."""
        return any(text.language for text in self.texts[stream])

    def sentences(self) -> Iterator[tuple[int, str, str]]:
        pairs = self.pairs
        if self.parallel_files:
            pairs = sentences_of_files(self.parallel_files, self.columns, self)
        return ((number, *map(self._segmented, pair)) for number, *pair in pairs)

    def metadata(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.others)

    def judgments(self) -> Iterator[Judgment]:
        return iter(self.judged)

    def splits(self) -> dict[str, str] | None:
        return self._splits if self.is_judged else {}

    def place(self, stream: str, index: int) -> str:
        return self.places.get(stream, lambda row: f"{stream}[{row}]")(index)

    def fingerprint(self) -> str:
        return digest_with_columns(self._digest, self.columns)

    @functools.cached_property
    def _digest(self) -> str:
        return joint_digest(self.parallel_files, set_files(self, self._splits))

    def keep(self, directory: Path, *, overwrite: bool) -> None:
        """Writes the set into a directory, unless it is there."""
        names = [name for name, _ in set_files(self, self._splits)]
        if directory.is_dir():
            there = sorted(path.name for path in directory.iterdir())
            paths = *(directory / name for name in names), *self.parallel_files
            if there == sorted(names) and joint_digest(paths) == self._digest:
                return
            if not overwrite:
                remedy = "Choose another output_dir, or give overwrite"
                raise input_error(directory, "it holds other data", remedy)
        write_set(self, directory, self._splits, replace=True)


@dataclasses.dataclass(frozen=True)
class Streamed:
    """What a method of a source yields, which is called as often as somebody iterates."""

    stream: Callable[[], Iterator[Any]]

    def __iter__(self) -> Iterator[Any]:
        return self.stream()


def segmented(text: str, tokenizer: Tokenizer | None) -> str:
    """A text with spaces between the words of a tokenizer, underscores within them."""
    if tokenizer is None:
        return text
    words = tokenizer(text) if callable(tokenizer) else None
    if words is None or isinstance(words, str):
        remedy = "Give a function from a text to the list of its words"
        raise input_error("tokenizer", f"it gives no words of {text[:40]!r}", remedy)
    return " ".join(filter(None, ("_".join(word.split()) for word in words)))


def write_set(
    source: Source, directory: Path, splits: Mapping[str, str] | None, *, replace: bool = False
) -> None:
    """Writes `documents.jsonl` and, where there are any, the other tables of a set."""
    with new_directory(directory, replace=replace) as temporary:
        for name, lines in set_files(source, splits):
            with open_to_write(temporary / name) as file:
                file.writelines(lines())


def set_files(source: Source, splits: Mapping[str, str] | None) -> Contents:
    """The files of a set: name -> lines, in the order in which `UserDirectory` has them."""

    def parallel() -> Iterator[bytes]:
        for _, query, document in source.sentences():
            yield _line({"query": query, "document": document})

    def of_splits() -> Iterator[bytes]:
        return (f"{query_id}\t{split}\n".encode() for query_id, split in (splits or {}).items())

    streams = ("documents", "queries", "judgments") if source.is_judged else ("documents",)
    files = [(f"{name}.jsonl", functools.partial(_lines, source, name)) for name in streams]
    if source.is_judged and splits is not None:
        files.append(("splits.tsv", of_splits))
    is_there = getattr(source, "parallel_files", ())  # they stay where they are
    if not is_there and next(source.sentences(), None) is not None:
        files.append(("parallel.jsonl", parallel))
    return files


def _lines(source: Source, stream: str) -> Iterator[bytes]:
    records: Iterable[Text | Judgment] = getattr(source, stream)()
    says = isinstance(source, MemorySource) and stream in source.texts
    if says:
        records = source.texts[stream]  # with the languages that they say, not that of the set
        says = source.says_languages(stream)
    others = source.metadata() if stream == "documents" else ()
    for record, more in itertools.zip_longest(records, others, fillvalue={}):
        fields = {**more, **record._asdict()}
        if fields.get("language") == "" and not says:
            del fields["language"]
        if fields.get("weight") == 1.0 and stream == "judgments":
            del fields["weight"]
        yield _line(fields)


def _line(fields: Mapping[str, Any]) -> bytes:
    return f"{json.dumps(fields, ensure_ascii=False, default=_as_json)}\n".encode()


def _as_json(value: Any) -> Any:
    if hasattr(value, "tolist"):  # a scalar or an array of NumPy
        return value.tolist()
    return None if is_missing(value) else str(value)
