"""The lexical model of a run that translates queries, then ranks within one language."""

from __future__ import annotations

import dataclasses
import functools
import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from absl import logging

from tf_smoothclir.lexical.text_reader import DocumentReader
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.papers.laboratory.translated.rankers import (
    RANKERS,
    Bm25,
    QueryLikelihood,
    collection_of,
)
from tf_smoothclir.protocols.scorer import ScoreRows
from tf_smoothclir.storage.files import (
    new_directory,
    open_to_write,
    read_arrays,
    read_json,
    write_json,
)
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.records import record_from_json

_SETTINGS, _ARRAYS = "lexical.json", "lexical.npz"


@functools.lru_cache(maxsize=1)
def human_queries(texts: LexicalTexts) -> sp.csr_array:
    """The set's own translations, `[queries, document words]`; no words where there is none."""
    source, ids = texts.retrieval_set.source, texts.retrieval_set.query_ids
    found = {text.id: text.text for text in source.translated_queries()}
    if missing := sum(id_ not in found for id_ in ids):
        logging.warning("%s: %d queries have no translation", source.name, missing)
    reader = DocumentReader(texts.vocabulary_dir, texts.max_query_tokens)
    return reader.words(found.get(id_, "") for id_ in ids).matrix()


@dataclasses.dataclass(frozen=True)
class _Choices:
    """Choices of a saved model, besides its arrays."""

    ranker: str
    parameters: dict[str, float]
    query_translation: str
    seconds: float


@dataclasses.dataclass(frozen=True)
class TranslatedQueries:
    """A ranker, and how queries are translated for it."""

    ranker: Bm25 | QueryLikelihood
    query_translation: str  # its name, as `--query_translation` has it
    # `[query words, document words]` float32; None where the set has translated queries of its own.
    translation: sp.csr_array | None
    seconds: float = 0.0

    def rows(self, texts: LexicalTexts) -> ScoreRows:
        """The model over a set."""
        if self.translation is None:
            queries = human_queries(texts)
        else:
            queries = sp.csr_array(texts.queries @ self.translation)
        return self.ranker(collection_of(texts)).rows(queries)

    def save(self, directory: str | os.PathLike) -> None:
        """Writes the model into a new directory, whole or not at all."""
        with new_directory(Path(directory)) as temporary:
            if self.translation is not None:
                with open_to_write(temporary / _ARRAYS) as file:
                    np.savez_compressed(
                        file,
                        values=self.translation.data,
                        columns=self.translation.indices,
                        row_ends=self.translation.indptr,
                        shape=self.translation.shape,
                    )
            write_json(temporary / _SETTINGS, self.choices())

    @classmethod
    def load(cls, directory: str | os.PathLike) -> TranslatedQueries:
        """Reads what `save` wrote."""
        path, translation = Path(directory, _SETTINGS), None
        try:
            chosen = record_from_json(_Choices, read_json(path))
            ranker = RANKERS[chosen.ranker](**chosen.parameters)
        except (KeyError, TypeError, ValueError) as error:
            reason, remedy = str(error).rstrip("."), "Restore the file, or train again"
            raise input_error(path, reason, remedy) from error
        if Path(directory, _ARRAYS).is_file():
            names = ("values", "columns", "row_ends", "shape")
            arrays = read_arrays(Path(directory, _ARRAYS), *names)
            *parts, shape = (arrays[name] for name in names)
            translation = sp.csr_array(tuple(parts), shape=tuple(shape))
        return cls(ranker, chosen.query_translation, translation, chosen.seconds)

    @property
    def name(self) -> str:
        """The ranker's, as `--ranker` has it."""
        return next(name for name, kind in RANKERS.items() if kind is type(self.ranker))

    @property
    def fields(self) -> tuple:
        """The profiles of positions: none, all positions count alike."""
        return ()

    def choices(self) -> dict:
        """Choices, and their seconds, for `metrics.json`."""
        return {
            "ranker": self.name,
            "parameters": dataclasses.asdict(self.ranker),
            "query_translation": self.query_translation,
            "seconds": self.seconds,
        }

    def facts(self) -> dict[str, str]:
        """Facts for the run report."""
        return {
            "translation of queries": self._translation(),
            "chosen on validation": f"{self._parameters()}, in {self.seconds:.0f} s",
        }

    def describe(self) -> str:
        """Description in one line, for logs and reports."""
        return f"{self.name} ({self._parameters()}), translation of queries: {self._translation()}"

    def _parameters(self) -> str:
        values = dataclasses.asdict(self.ranker)
        return ", ".join(f"{name} = {value:g}" for name, value in values.items())

    def _translation(self) -> str:
        if self.translation is None:
            return self.query_translation
        most = int(np.diff(self.translation.indptr).max(initial=0))
        return f"{self.query_translation}, at most {most} words for one"
