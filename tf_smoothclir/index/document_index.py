"""A searchable collection on disk: documents, their vectors, and a FAISS index over them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.index.generations import FAISS, REMOVED
from tf_smoothclir.index.manifest import IndexManifest
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.index.segments import Segments
from tf_smoothclir.index.vector_index import VectorIndex
from tf_smoothclir.losses.grades import predicted_grades
from tf_smoothclir.protocols.text_search import SearchHit
from tf_smoothclir.utils.digests import check_digests
from tf_smoothclir.utils.errors import InputError, input_error


class DocumentIndex:
    """What `build_index` and `update_index` have written, memory-mapped.

    Attributes:
        manifest: The manifest of the index.
        segments: All documents, including removed ones.
        alive: `[documents]` bool, False for removed documents.
        vectors: The FAISS index.
        ranker: Ranks documents by the vectors.
    """

    def __init__(self, directory: str | os.PathLike):
        """Opens an index after checking its files.

        Raises:
            InputError: There is no index, or a file is not the one that was written.
        """
        directory = Path(directory)
        self.manifest = _checked_manifest(directory)
        dim, current = self.manifest.dim, directory / self.manifest.current
        self.segments = Segments([directory / name for name in self.manifest.segments], dim)
        self.alive = np.ones(len(self.segments), bool)
        self.alive[np.fromfile(current / REMOVED, "<i8")] = False
        settings = self.manifest.settings
        if settings.kind == "flat":
            self.vectors = VectorIndex.build(settings, self.segments, dim)
        else:
            self.vectors = VectorIndex.load(current / FAISS, settings)
        self.ranker = Ranker(self.vectors, self.segments, self.alive)

    def __len__(self) -> int:
        return self.ranker.documents

    def search(self, query_vectors: np.ndarray, depth: int) -> list[list[SearchHit]]:
        """Returns the best documents of each query, best first; ties by a hash of the id.

        Args:
            query_vectors: `[queries, dim]`, from the query tower of the same training run.
            depth: Documents per query.

        Raises:
            InputError: The vectors have another length.
        """
        if query_vectors.shape[1] != self.manifest.dim:
            raise input_error(
                "query vectors",
                f"they have {query_vectors.shape[1]} numbers, those of the index"
                f" {self.manifest.dim}",
                "Use the query tower of the same training run",
            )
        ranked = self.ranker.rank(query_vectors, depth)
        return [self._hits(positions, scores) for positions, scores in ranked]

    def _hits(self, positions: np.ndarray, scores: np.ndarray) -> Sequence[SearchHit]:
        grades = predicted_grades(scores, self.manifest.thresholds).numpy()
        return [
            SearchHit(rank, float(score), int(grade), *self.segments.document(position))
            for rank, (position, score, grade) in enumerate(zip(positions, scores, grades), start=1)
        ]


def _checked_manifest(directory: Path) -> IndexManifest:
    manifest = IndexManifest.read(directory)
    try:
        _check(directory, manifest)
    except InputError:
        # An update may have replaced the generation in the meantime.
        again = IndexManifest.read(directory)
        if again == manifest:
            raise
        _check(directory, again)
        return again
    return manifest


def _check(directory: Path, manifest: IndexManifest) -> None:
    remedy = "Build the index again with smoothclir-index --overwrite"
    check_digests(directory, manifest.digests, remedy)
