"""A searchable collection on disk: documents, their vectors, and a FAISS index over them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from tf_smoothclir.index.builder import FAISS, REMOVED
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.index.segments import Segments
from tf_smoothclir.index.vector_index import IndexSettings, VectorIndex
from tf_smoothclir.losses.ordinal import SmoothOrdinalSearchLoss
from tf_smoothclir.protocols.text_search import SearchHit
from tf_smoothclir.publishing.manifest import read_manifest
from tf_smoothclir.utils.digests import check_digests
from tf_smoothclir.utils.errors import InputError, input_error

_ROLE = "index"


class DocumentIndex:
    """What `build_index` and `update_index` have written, memory-mapped.

    Attributes:
        manifest: What it is.
        segments: All documents, the removed ones included.
        alive: `[documents]` bool, False for the removed ones.
        vectors: The index of FAISS.
        ranker: Ranks by them.
    """

    def __init__(self, directory: str | os.PathLike):
        """Opens an index after checking its files.

        Raises:
            InputError: A file is not the one that was written, or there is no index.
        """
        directory = Path(directory)
        self.manifest = read_manifest(directory, _ROLE)
        try:
            _check(directory, self.manifest)
        except InputError:
            # An update may have put another state in place meanwhile.
            again = read_manifest(directory, _ROLE)
            if again == self.manifest:
                raise
            self.manifest = again
            _check(directory, self.manifest)
        dim, current = self.manifest["dim"], directory / self.manifest["current"]
        self.segments = Segments([directory / name for name in self.manifest["segments"]], dim)
        self.alive = np.ones(len(self.segments), bool)
        self.alive[np.fromfile(current / REMOVED, "<i8")] = False
        settings = IndexSettings(**self.manifest["index"])
        if settings.kind == "flat":
            self.vectors = VectorIndex.build(settings, self.segments, dim)
        else:
            self.vectors = VectorIndex.load(current / FAISS, settings)
        self.ranker = Ranker(self.vectors, self.segments, self.alive)
        self._grade = SmoothOrdinalSearchLoss(self.manifest["thresholds"]).predict_grade

    def __len__(self) -> int:
        return self.ranker.documents

    def search(self, query_vectors: np.ndarray, depth: int) -> list[list[SearchHit]]:
        """Returns the best documents of each query, best first; ties by a hash of the id.

        Args:
            query_vectors: `[queries, dim]`, by the query tower of the same training run.
            depth: Documents a query.

        Raises:
            InputError: The vectors are of another length.
        """
        if query_vectors.shape[1] != self.manifest["dim"]:
            raise input_error(
                "query vectors",
                f"they have {query_vectors.shape[1]} numbers, those of the index"
                f" {self.manifest['dim']}",
                "Use the query tower of the same training run",
            )
        ranked = self.ranker.rank(query_vectors, depth)
        return [self._results(positions, scores) for positions, scores in ranked]

    def _results(self, positions: np.ndarray, scores: np.ndarray) -> Sequence[SearchHit]:
        grades = self._grade(tf.constant(scores)).numpy()
        return [
            SearchHit(rank, float(score), int(grade), *self.segments.document(position))
            for rank, (position, score, grade) in enumerate(zip(positions, scores, grades), start=1)
        ]


def _check(directory: Path, manifest: dict) -> None:
    remedy = "Build the index anew with smoothclir-index --overwrite"
    check_digests(directory, manifest["files"], remedy)
