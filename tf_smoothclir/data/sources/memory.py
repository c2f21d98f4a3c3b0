"""A retrieval set in memory, and writing any set as the files that `UserDirectory` reads."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tf_smoothclir.data.sources.file_source import set_name
from tf_smoothclir.data.sources.source import Judgment, Source, Text
from tf_smoothclir.storage.files import new_directory, open_text_to_write
from tf_smoothclir.utils.errors import input_error


class MemorySource(Source):
    """Queries, documents, judgments of a program; record i of a stream is `<stream>[i]`."""

    parallel: Sequence[Sequence[str]] = ()  # pairs of sentences, of a set without judgments
    others: Sequence[Mapping[str, Any]] = ()  # columns of each document that are not searched

    def __init__(
        self,
        queries: Sequence[Text],
        documents: Sequence[Text],
        judgments: Sequence[Judgment],
        splits: Mapping[str, str] | None = None,
        query_language: str = "",
        document_language: str = "",
    ):
        self.name = set_name("memory", query_language, document_language)
        self.query_language, self.document_language = query_language, document_language
        self._queries, self._documents, self._judgments = queries, documents, judgments
        self._splits = None if splits is None else dict(splits)
        self._fingerprint = _digest(self)

    def queries(self) -> Iterator[Text]:
        return iter(self._queries)

    def documents(self) -> Iterator[Text]:
        return iter(self._documents)

    def metadata(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.others)

    def judgments(self) -> Iterator[Judgment]:
        return iter(self._judgments)

    def splits(self) -> dict[str, str] | None:
        return self._splits if self.is_judged else {}

    def place(self, stream: str, index: int) -> str:
        return f"{stream}[{index}]"

    def fingerprint(self) -> str:
        return self._fingerprint


Tokenizer = Callable[[str], Iterable[str]]  # from a text to its words


def segmented(text: str, tokenizer: Tokenizer | None) -> str:
    """A text with spaces between the words of a tokenizer, underscores within them."""
    if tokenizer is None:
        return text
    words = tokenizer(text) if callable(tokenizer) else None
    if words is None or isinstance(words, str):
        remedy = "Give a function from a text to the list of its words"
        raise input_error("tokenizer", f"it gives no words of {text[:40]!r}", remedy)
    return " ".join(filter(None, ("_".join(word.split()) for word in words)))


def segmented_set(source: Source, tokenizer: Tokenizer) -> MemorySource:
    """A set in memory whose texts are `segmented`."""

    def texts(given: Iterable[Text]) -> list[Text]:
        return [
            Text(id_, segmented(title, tokenizer), segmented(text, tokenizer), language)
            for id_, title, text, language in given
        ]

    languages = source.query_language, source.document_language
    streams = texts(source.queries()), texts(source.documents()), list(source.judgments())
    copy = MemorySource(*streams, source.splits(), *languages)
    copy.is_judged, copy.others = source.is_judged, list(source.metadata())
    copy.parallel = [
        [segmented(text, tokenizer) for text in pair] for pair in getattr(source, "parallel", ())
    ]
    return copy


def write_set(
    source: Source, directory: Path, splits: Mapping[str, str] | None, *, replace: bool = False
) -> None:
    """Writes `documents.jsonl` and, where there are any, the other tables of a set."""
    with new_directory(directory, replace=replace) as temporary:
        for stream in ("documents", "queries", "judgments")[: None if source.is_judged else 1]:
            _write_lines(temporary / f"{stream}.jsonl", _lines(source, stream))
        if pairs := getattr(source, "parallel", ()):
            records = (dict(zip(("query", "document"), pair)) for pair in pairs)
            lines = (json.dumps(record, ensure_ascii=False) for record in records)
            _write_lines(temporary / "parallel.jsonl", lines)
        if splits is not None:
            lines = (f"{query_id}\t{split}" for query_id, split in splits.items())
            _write_lines(temporary / "splits.tsv", lines)


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with open_text_to_write(path) as file:
        file.writelines(f"{line}\n" for line in lines)


def _lines(source: Source, stream: str) -> Iterator[str]:
    records: Iterable[Text | Judgment] = getattr(source, stream)()
    others = source.metadata() if stream == "documents" else ()
    for record, more in itertools.zip_longest(records, others, fillvalue={}):
        fields = {**more, **record._asdict()}
        if fields.get("language") == "":
            del fields["language"]
        if fields.get("weight") == 1.0 and stream == "judgments":
            del fields["weight"]
        yield json.dumps(fields, ensure_ascii=False, default=_as_json)


def _as_json(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def _digest(source: MemorySource) -> str:
    digest = hashlib.sha256()
    for stream in ("queries", "documents", "judgments"):
        digest.update(f"{stream}\n".encode())
        for line in _lines(source, stream):
            digest.update(line.encode() + b"\n")
    digest.update(json.dumps(source.splits()).encode())
    return digest.hexdigest()
