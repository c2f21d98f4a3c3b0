"""Models behind the Python interface: of a run or of an export, loaded when needed."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence

import numpy as np

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.index.encoding import encode_texts
from tf_smoothclir.index.export_halves import halves_of
from tf_smoothclir.index.halves import Half
from tf_smoothclir.publishing.export import models_of_run
from tf_smoothclir.publishing.export_directory import LoadedPart, load_part
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.publishing.exported_models import ExportedModels, load_exported_models
from tf_smoothclir.text.batches import text_batches
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.parallel import map_in_threads
from tf_smoothclir.utils.progress import progress_bar

_TEXTS_PER_CALL = 1024


class RankingModels:
    """Towers and lexical model, from texts to vectors and scores.

    Attributes:
        models: As in an export.
        load_tower: From "query" or "document" to the tower, with its words.
    """

    def __init__(self, models: ExportedModels, load_tower: Callable[[str], LoadedPart]):
        self.models = models
        self.load_tower = functools.lru_cache(load_tower)

    @classmethod
    def of_run(cls, run: RunDirectory) -> RankingModels:
        """Loads the models of a run; towers with the weights of their best epoch."""
        models, towers = models_of_run(run)
        return cls(models, towers.__getitem__)

    @classmethod
    def of_export(cls, export_dir: str | os.PathLike[str]) -> RankingModels:
        """Loads the latest complete version of an export."""
        models = load_exported_models(export_dir)
        version = models.manifest.version
        return cls(models, lambda role: load_part(export_dir, role, version))

    def halves(self) -> list[Half]:
        """Halves that an index of documents is built with."""
        return halves_of(self.models)

    def vectors(self, role: str, texts: Sequence[str]) -> np.ndarray:
        """The smooth-normalised vectors of texts, `[texts, dim]` float32."""
        if role not in self.models.towers:
            raise input_error(
                f"encode_{'queries' if role == 'query' else 'documents'}",
                "a lexical model has no vectors",
                "Use search or score, or train with towers, such as preset='dense' or 'best'",
            )
        encode, manifest = self.models.towers[role]
        parts = [np.zeros((0, manifest.dim), np.float32)]
        batches = text_batches(texts, size=_TEXTS_PER_CALL)
        with progress_bar(len(texts), "Encode", "texts") as bar:
            for vectors in map_in_threads(functools.partial(encode_texts, encode), batches):
                parts.append(vectors)
                bar.update(len(vectors))
        return np.concatenate(parts)

    def scores(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        """The score of each query with the document of the same place.

        Feedback is left out: it needs a collection.

        Returns:
            `[pairs]` float32.
        """
        return self.parts_of_scores(queries, documents).sum(axis=0)

    def parts_of_scores(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        """Shares of words and of towers in scores, `[2, pairs]` float32."""
        of_lexical, of_dense = self.weights
        parts = np.zeros((2, len(queries)), np.float32)
        if self.models.lexical is not None and of_lexical:
            scores = _lexical_scores(self.models.lexical, queries, documents)
            parts[0] = np.float32(of_lexical) * scores
        if of_dense:
            pair = zip(ROLES, (queries, documents))
            of_query, of_document = (self.vectors(role, texts) for role, texts in pair)
            parts[1] = np.float32(of_dense) * (of_query * of_document).sum(axis=1)
        return parts

    @property
    def weights(self) -> tuple[float, float]:
        """Weights of the lexical score and of the SCS of a pair."""
        lexical = self.models.lexical
        if lexical is None:
            return 0.0, 1.0
        return (1.0, 0.0) if lexical.fusion is None else lexical.fusion.of_pairs.weights


def _lexical_scores(
    lexical: LexicalParts, queries: Sequence[str], documents: Sequence[str]
) -> np.ndarray:
    scores = [np.zeros(0, np.float32)]
    for begin in range(0, len(queries), _TEXTS_PER_CALL):
        some = slice(begin, begin + _TEXTS_PER_CALL)
        words = lexical.query_reader.batch(queries[some]).matrix()
        passages = lexical.model.passages(lexical.document_reader.batch(documents[some]))
        impacts, number = (
            lexical.model.impacts(passages, lexical.spelling),
            passages.number_of_each(),
        )
        words = words[np.repeat(np.arange(len(number)), number)]
        products = np.asarray(words.multiply(impacts).sum(axis=1), np.float32).ravel()
        scores.append(np.maximum.reduceat(products, np.cumsum(number) - number))
    return np.concatenate(scores)
