"""Published towers: of a run or an export in TensorFlow, or as a search needs them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from absl import logging

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.encoder import Encoder
from tf_smoothclir.index.dense_half import RECALL_QUERIES, Encode, encode_texts
from tf_smoothclir.publishing.export_directory import checked_part, load_model, load_part
from tf_smoothclir.publishing.manifest import check_pair, check_pair_id
from tf_smoothclir.search.explanation import ExplainedTower, SavedTower
from tf_smoothclir.search.query_reading import EncodeQueries, by_encoder, by_server, by_tower
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.text.batches import text_batches
from tf_smoothclir.utils.errors import InputError
from tf_smoothclir.utils.parallel import map_in_threads
from tf_smoothclir.utils.progress import progress_bar

if TYPE_CHECKING:
    from tf_smoothclir.publishing.exported_models import ExportedModels

_TEXTS_PER_CALL = 1024


class Towers:
    """Towers in TensorFlow, from texts to vectors.

    Attributes:
        load: From "query" or "document" to the tower.
    """

    def __init__(self, load: Callable[[str], Any], dim: int, epsilon: float):
        self.load = functools.cache(load)
        self.dim, self.epsilon = dim, epsilon

    @classmethod
    def of_export(cls, models: ExportedModels) -> Towers:
        """Loads the towers of an export, after checking them; a search needs them in this way."""
        manifest = models.manifest
        parts = {
            role: load_part(models.export_dir, role, manifest.version).model
            for role in ("query", "document")
        }
        return cls(parts.__getitem__, manifest.dim, manifest.epsilon)

    def encoder(self, role: str) -> Encode:
        """The signature that encodes texts."""
        return self.load(role).signatures["serving_default"]

    def vectors(self, role: str, texts: Sequence[str]) -> np.ndarray:
        """The smooth-normalised vectors of texts, `[texts, dim]` float32."""
        parts = [np.zeros((0, self.dim), np.float32)]
        batches = text_batches(texts, size=_TEXTS_PER_CALL)
        encode = functools.partial(encode_texts, self.encoder(role))
        with progress_bar(len(texts), "Encode", "texts") as bar:
            for vectors in map_in_threads(encode, batches):
                parts.append(vectors)
                bar.update(len(vectors))
        return np.concatenate(parts)

    def read_queries(self) -> EncodeQueries:
        """What reads and encodes the queries of a search."""
        return by_tower(self.load("query"))

    def explained(self, role: str) -> ExplainedTower:
        """A tower that says what its vectors are made of."""
        return SavedTower(self.load(role), self.epsilon)


class SearchedTowers:
    """Towers of an export as a search needs them: without TensorFlow, if they can, or in a server.

    The query tower is the latest, if it belongs to the index; explanations load, if they are asked
    for, those that the index was built with, even if there are later ones.
    """

    def __init__(self, models: ExportedModels):
        self._models = models

    def read_queries(self) -> EncodeQueries:
        """What reads and encodes the queries of a search."""
        if self._models.server:
            from tf_smoothclir.client.serving_client import ServingClient

            client = ServingClient(self._models.server)
            name, manifest = f"query tower of {self._models.server}", self._models.manifest
            check_pair_id(name, client.pair_id("query"), manifest)
            return by_server(client)
        directory, tower = checked_part(self._models.export_dir, "query")
        check_pair(tower, self._models.manifest)
        if Encoder.can_load(directory):
            return by_encoder(Encoder.of_version(directory, "query", is_checked=True))
        return by_tower(load_model(directory))

    def explained(self, role: str) -> ExplainedTower:
        """A tower that says what its vectors are made of."""
        directory, tower = self._models.part(
            role, lambda path, version: checked_part(path, role, version)
        )
        if Encoder.can_load(directory):
            return Encoder.of_version(directory, role, is_checked=True)
        return SavedTower(load_model(directory), tower.epsilon)


def training_query_vectors(towers: Towers, data: DataSettings) -> np.ndarray | None:
    """Encodes the first queries that towers were trained on, to measure the recall with.

    Returns:
        `[queries, dim]` float32; None if the set of the training run is gone.
    """
    try:
        source = source_of(data)
        texts = [text.text for text in itertools.islice(source.queries(), RECALL_QUERIES)]
    except InputError as error:
        logging.warning("The queries of the training run are missing: %s", error)
        return None
    return encode_texts(towers.encoder("query"), texts)
