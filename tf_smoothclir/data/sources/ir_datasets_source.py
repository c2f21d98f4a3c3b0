"""A retrieval set of the package `ir_datasets`, by its id."""

import difflib
import functools
import hashlib
from collections.abc import Iterator
from typing import Any

from tf_smoothclir.data.sources.source import Judgment, Source, Text
from tf_smoothclir.data.sources.splits import NAMES, splits_of_parts
from tf_smoothclir.utils.errors import input_error


class IrDatasetsSource(Source):
    """Documents, queries and judgments of `ir_datasets.load(name)`.

    If `<name>/train`, `<name>/dev` or `<name>/test` have judgments, these are the splits; see
    `splits_of_parts`. A text is the default text of a record, which may begin with the title.
    Negative grades are 0.
    """

    def __init__(self, name: str, document_language: str = "", query_language: str = ""):
        self.name = name
        registry, self._set = _opened(name)
        parts = {part: f"{name}/{part}" for part in NAMES if f"{name}/{part}" in registry.registry}
        loaded = {part: registry.load(id_) for part, id_ in parts.items()}
        self._parts = {part: part_set for part, part_set in loaded.items() if _is_judged(part_set)}
        if not self._set.has_docs() or not (self._parts or _is_judged(self._set)):
            near = [id_ for id_ in registry.registry if id_.startswith(f"{name}/")]
            hint = f" Parts of it are {', '.join(near[:5])}." if near else ""
            reason = f"the set has no documents, or no queries with judgments.{hint}"
            raise input_error(f"--ir_dataset={name}", reason, "Name one that has all three")
        self.document_language = _language(self._set, "docs_lang") or document_language
        self.query_language = _language(next(iter(self._judged)), "queries_lang") or query_language

    @property
    def _judged(self) -> list[Any]:
        return list(self._parts.values()) or [self._set]

    def queries(self) -> Iterator[Text]:
        seen, asked = set(), self.language_of("queries")
        for part in self._judged:
            for query in part.queries_iter():
                if query.query_id not in seen:  # parts may share a file of queries
                    seen.add(query.query_id)
                    yield Text(self._id(query.query_id), "", query.default_text(), asked)

    def documents(self) -> Iterator[Text]:
        language = self.language_of("documents")
        for document in self._set.docs_iter():
            yield Text(self._id(document.doc_id), "", document.default_text(), language)

    def judgments(self) -> Iterator[Judgment]:
        for part in self._judged:
            yield from _judgments_of(part)

    def splits(self) -> dict[str, str] | None:
        if not self._parts:
            return None
        parts = {
            name: [judgment.query_id for judgment in _judgments_of(part)]
            for name, part in self._parts.items()
        }
        return splits_of_parts(self, parts)

    def fingerprint(self) -> str:
        return self._fingerprint

    @functools.cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256()
        for stream in (self.queries, self.documents, self.judgments):
            digest.update(f"{stream.__name__}\n".encode())
            for record in stream():
                digest.update(repr(tuple(record)[:3]).encode("utf-8", "backslashreplace"))
        digest.update(repr(self.splits()).encode())
        return digest.hexdigest()

    def _id(self, value: str) -> str:
        if value.split() != [value]:
            reason = f"the id {value!r} is empty or contains white space"
            raise input_error(self.name, reason, "Choose another set")
        return value


def _opened(name: str) -> tuple[Any, Any]:
    """The package, and the set of a name."""
    try:
        import ir_datasets
    except ImportError as error:
        reason = f"it needs the package ir_datasets ({error})"
        remedy = "pip install '.[ir_datasets]' in the checkout"
        raise input_error(f"--ir_dataset={name}", reason, remedy) from None
    try:
        return ir_datasets, ir_datasets.load(name)
    except KeyError:
        near = difflib.get_close_matches(name, list(ir_datasets.registry), n=3)
        hint = f"Did you mean {' or '.join(near)}? " if near else ""
        remedy = f"{hint}See https://ir-datasets.com"
        raise input_error(f"--ir_dataset={name}", "there is no such set", remedy) from None


def _is_judged(part: Any) -> bool:
    return part.has_queries() and part.has_qrels()


def _language(part: Any, method: str) -> str | None:
    """The language that a set has, of documents or queries; None if it does not say."""
    return getattr(part, method, lambda: None)()


def _judgments_of(part: Any) -> Iterator[Judgment]:
    for qrel in part.qrels_iter():
        yield Judgment(qrel.query_id, qrel.doc_id, max(0, int(qrel.relevance)))
