"""A searchable collection on disk: documents and the halves that rank them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.index.dense_half import DenseHalf, opened_ranker
from tf_smoothclir.index.documents import DOCUMENTS, DocumentStore
from tf_smoothclir.index.lexical_half import LexicalHalf, LexicalIndex
from tf_smoothclir.index.manifest import INDEX, REMEDY, IndexManifest
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.protocols.text_search import SearchHit
from tf_smoothclir.storage.folder import Folder, opened
from tf_smoothclir.utils.errors import input_error


class DocumentIndex:
    """Index written by `build_index`, memory-mapped.

    Attributes:
        documents: The documents; all halves count them in the same order.
        lexical: Scores the documents by their words; None if the index has no impacts.
    """

    def __init__(self, directory: str | os.PathLike):
        opened(Path(directory), INDEX, REMEDY, self._open)

    def _open(self, folder: Folder) -> None:
        self.manifest, content = IndexManifest.of(folder), folder.path
        self.documents = DocumentStore(content / DOCUMENTS)
        self.lexical: LexicalIndex | None = None
        if self.manifest.impacts is not None:
            own = content / LexicalHalf.name
            self.lexical = LexicalIndex(own, self.manifest.impacts, self.documents.hashes)

        self._dense: Callable[[], Ranker | None] = lambda: None
        if (note := self.manifest.vectors) is not None:
            own, hashes = content / DenseHalf.name, self.documents.hashes
            self._dense = opened_ranker(own, note.dim, note.settings, hashes)

    @functools.cached_property
    def dense(self) -> Ranker | None:
        """Ranks the documents by their vectors; None if the index has none.

        Takes memory once it is asked for.
        """
        return self._dense()

    def __len__(self) -> int:
        return len(self.documents)

    def search(self, query_vectors: np.ndarray, depth: int) -> list[list[SearchHit]]:
        """The best documents of each query by their vectors; ties by a hash of the id.

        Args:
            query_vectors: `[queries, dim]`, from the query tower of the same training run.
        """
        dim = self.manifest.vectors.dim
        if query_vectors.shape[1] != dim:
            raise input_error(
                "query vectors",
                f"they have {query_vectors.shape[1]} numbers, those of the index {dim}",
                "Use the query tower of the same training run",
            )
        ranked = self.dense.rank(query_vectors, depth)
        cut_points = self.manifest.cut_points_of(DenseHalf.name)
        return [self.hits(*found, cut_points) for found in ranked]

    def hits(
        self, positions: np.ndarray, scores: np.ndarray, cut_points: CutPoints | None
    ) -> list[SearchHit]:
        """Ranked documents as hits; a score of zero is none.

        Args:
            positions: `[documents]` int64, best first.
            scores: `[documents]` float32.
        """
        positions, scores = positions[scores != 0], scores[scores != 0]
        grades: Sequence = [None] * len(scores)
        if cut_points is not None:
            grades = cut_points.of_hits(scores).tolist()
        return [
            SearchHit(rank, float(score), grade, *self.documents[position])
            for rank, (position, score, grade) in enumerate(zip(positions, scores, grades), start=1)
        ]
