"""The halves of an index that an export can make."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
from typing import NamedTuple

import numpy as np
from absl import logging

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.index.dense_half import DenseHalf
from tf_smoothclir.index.encoding import encode_texts
from tf_smoothclir.index.halves import Half
from tf_smoothclir.index.lexical_half import LexicalHalf
from tf_smoothclir.index.recall import RECALL_QUERIES
from tf_smoothclir.index.vector_index import IndexSettings
from tf_smoothclir.publishing.exported_models import ExportedModels, load_exported_models
from tf_smoothclir.publishing.manifest import ExportManifest
from tf_smoothclir.utils.errors import InputError, input_error

HALVES_OF = {  # each retriever
    "dense": (DenseHalf.name,),
    "lexical": (LexicalHalf.name,),
    "hybrid": (DenseHalf.name, LexicalHalf.name),
}


class ExportHalves(NamedTuple):
    """Halves and manifest that an index of an export is built with.

    Attributes:
        halves: A half for each kind of model in the export.
        manifest: The manifest of the export: of one of its parts; without cut points where only one
            half of a hybrid is wanted.
    """

    halves: list[Half]
    manifest: ExportManifest


def export_halves(
    export_dir: str | os.PathLike,
    settings: IndexSettings | None = None,
    *,
    version: int | None = None,
    retriever: str = "",
) -> ExportHalves:
    """Loads the models of an export that encode documents."""
    models = load_exported_models(export_dir, version)
    halves, manifest = halves_of(models, settings), models.manifest
    if retriever and retriever != models.retriever:
        manifest = dataclasses.replace(manifest, cut_points=None)  # those of the whole ranking
        needed = HALVES_OF[retriever]
        halves = [half for half in halves if half.name in needed]
        if len(halves) < len(needed):
            raise input_error(
                f"--retriever={retriever}",
                f"the exported run ranks by --retriever={models.retriever} alone",
                "Leave the flag out, or export a run that has what it needs",
            )
    return ExportHalves(halves, manifest)


def halves_of(models: ExportedModels, settings: IndexSettings | None = None) -> list[Half]:
    """A half for each kind of model; the arguments are those of `export_halves`."""
    halves: list[Half] = []
    if models.towers:
        encode, manifest = models.towers["document"]
        asked = functools.partial(training_query_vectors, models)
        halves.append(DenseHalf(encode, manifest.dim, settings, asked))
    if models.lexical is not None:
        halves.append(LexicalHalf(models.lexical))
    return halves


def training_query_vectors(models: ExportedModels) -> np.ndarray | None:
    """Encodes the first queries that the towers were trained on, to measure the recall with.

    Returns:
        `[queries, dim]` float32; None if the set of the training run is gone.
    """
    encode, manifest = models.towers["query"]
    try:
        source = source_of(manifest.data)
        texts = [text.text for text in itertools.islice(source.queries(), RECALL_QUERIES)]
    except InputError as error:
        logging.warning("The queries of the training run are missing: %s", error)
        return None
    return encode_texts(encode, texts)
