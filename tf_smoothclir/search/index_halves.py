"""Halves of an index in a search: an index may have one half of a hybrid alone."""

from __future__ import annotations

from collections.abc import Sequence

from tf_smoothclir.engines.milvus import CollectionNote
from tf_smoothclir.index.dense_half import DenseHalf
from tf_smoothclir.index.export_halves import HALVES_OF
from tf_smoothclir.index.lexical_half import LexicalHalf
from tf_smoothclir.index.manifest import IndexManifest
from tf_smoothclir.utils.errors import InputError, input_error

RERANKED = "reranked"


def one_half_alone(
    parts: Sequence[str], manifest: IndexManifest | CollectionNote, retriever: str
) -> bool:
    """Whether an index has one half of a hybrid; no re-ranker follows it.

    The weight and the cut points of a re-ranker belong to the whole ranking.
    """
    halves = {"document": DenseHalf.name, "lexical": LexicalHalf.name}
    alone = len(manifest.halves) < len(halves.keys() & set(parts))
    if alone and retriever == RERANKED:
        raise missing(retriever, "the index has one half of the hybrid alone")
    return alone


def ranked_by(retriever: str, manifest: IndexManifest | CollectionNote) -> str:
    """Name of the retriever: that of a run, or the half of it that an index has."""
    if set(HALVES_OF[retriever]) <= set(manifest.halves):
        return retriever
    return "dense" if DenseHalf.name in manifest.halves else "lexical"


def check_halves(retriever: str, manifest: IndexManifest | CollectionNote) -> None:
    """Raises `InputError` if an index has not what a retriever needs."""
    contents = {DenseHalf.name: "vectors", LexicalHalf.name: "impacts of words"}
    for half in HALVES_OF[retriever]:
        if half not in manifest.halves:
            raise missing(retriever, f"the index has no {contents[half]}")


def missing(retriever: str, reason: str) -> InputError:
    """An error about a retriever that something is missing for."""
    remedy = "Leave the flag out, or export and index a run that has what it needs"
    return input_error(f"--retriever={retriever}", reason, remedy)
