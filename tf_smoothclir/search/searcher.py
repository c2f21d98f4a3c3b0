"""Search: a query tower, here or in a model server, and the index of a collection."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from absl import logging

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.index.builder import build_index
from tf_smoothclir.index.document_collections import SourceCollection
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.encoding import encode_texts
from tf_smoothclir.index.manifest import IndexManifest
from tf_smoothclir.index.recall import RECALL_QUERIES
from tf_smoothclir.protocols.text_search import Explanation, SearchedCollection, SearchHit
from tf_smoothclir.publishing.export_directory import (
    LoadedPart,
    exported_versions,
    load_part,
    load_tower,
    part_dir,
)
from tf_smoothclir.publishing.manifest import ExportManifest, check_pair, check_pair_id
from tf_smoothclir.search.explanation import explain, word_vectors
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError, input_error

ChooseData = Callable[[DataSettings], DataSettings]
EncodeQueries = Callable[[Sequence[str]], np.ndarray]
LoadPart = Callable[[str], LoadedPart]


class Searcher:
    """A `TextSearch` by the query tower and the index of a collection.

    Attributes:
        collection: What is searched.
    """

    def __init__(
        self,
        encode_queries: EncodeQueries,
        index: DocumentIndex,
        load: LoadPart,
        collection: SearchedCollection,
    ):
        """Joins what `open_searcher` has opened.

        Args:
            encode_queries: From queries to `[queries, dim]`.
            index: Of the same training run.
            load: From "query" or "document" to what `load_part` returns.
            collection: What is known about the documents of the index.
        """
        self.collection = collection
        self._encode = encode_queries
        self._index = index
        self._load = functools.lru_cache(load)

    def search(self, queries: Sequence[str], depth: int) -> list[list[SearchHit]]:
        """Returns the best `depth` documents of each query, best first."""
        return self._index.search(self._encode(queries), depth) if len(queries) else []

    def explain(
        self, query: str, results: Sequence[SearchHit], role: str = "document"
    ) -> list[Explanation]:
        """Says which words carry the scores of a query's results.

        Args:
            query: The query.
            results: Of `search`.
            role: "document" for the words of the documents, "query" for those of the query.

        Returns:
            One explanation a result.

        Raises:
            InputError: The towers are not there, of another run, or not of average pooling.
        """
        models = {}
        for name in ROLES:
            models[name], manifest = self._load(name)
            check_pair(manifest, self._index.manifest)
        texts = {"query": [query] * len(results), "document": [result.text for result in results]}
        other = next(name for name in ROLES if name != role)
        vectors = encode_texts(models[other].signatures["serving_default"], texts[other])
        words = word_vectors(models[role], texts[role])
        return [explain(word, vector, manifest.epsilon) for word, vector in zip(words, vectors)]


def open_searcher(
    export_dir: str | os.PathLike,
    index_dir: str | os.PathLike,
    choose_data: ChooseData,
    *,
    server: str = "",
) -> Searcher:
    """Opens the query tower and the index of a collection, which is built where there is none.

    An index that is there is used as it is: it holds its documents. That its collection has changed
    since is a warning; that another collection is asked for, an error.

    Args:
        export_dir: Where the towers are.
        index_dir: Of the index; empty for `index` in `export_dir`.
        choose_data: From the data settings of the training run, or of the index, to those of the
            collection.
        server: Address of a model server with the query tower; empty for the one in `export_dir`.

    Raises:
        InputError: The towers are missing or changed, or towers and index are of different runs.
    """
    index_dir = Path(index_dir or Path(export_dir, "index"))
    if not index_dir.exists():
        encode_documents, manifest = load_tower(export_dir, "document")
        data = choose_data(manifest.data)
        build_index(
            index_dir,
            SourceCollection(source_of(data)),
            encode_documents,
            manifest,
            query_vectors=functools.partial(run_queries, export_dir),
            data=data,
        )
        index = DocumentIndex(index_dir)
    else:
        index = DocumentIndex(index_dir)
        _check_collection(index_dir, index.manifest, choose_data)
    encode = _remote(server, index.manifest) if server else _local(export_dir, index.manifest)
    load = functools.partial(_part_of_index, export_dir, index.manifest.version)
    return Searcher(encode, index, load, _searched(export_dir, index.manifest, choose_data))


def _searched(
    export_dir: str | os.PathLike, manifest: IndexManifest, choose_data: ChooseData
) -> SearchedCollection:
    """Describes the collection of an index; files of documents are in the towers' languages."""
    data = choose_data(manifest.data or _data_of_towers(export_dir))
    return SearchedCollection(
        query_language=data.query_language,
        document_language=data.document_language,
        num_grades=len(manifest.thresholds) + 1,
        data=data if manifest.data else None,
    )


def _data_of_towers(export_dir: str | os.PathLike) -> DataSettings:
    """Returns the set that the towers were trained on; the default one without towers."""
    versions = exported_versions(export_dir, "document")
    if not versions:  # a model server has them
        return DataSettings()
    latest = part_dir(export_dir, "document") / str(versions[-1])
    return ExportManifest.read(latest, ["document"]).data


def _part_of_index(export_dir: str | os.PathLike, version: int, role: str) -> LoadedPart:
    """Loads a tower that an index was made with, also where a later version has come since."""
    there = version in exported_versions(export_dir, role)
    return load_part(export_dir, role, version if there else None)


def run_queries(export_dir: str | os.PathLike) -> np.ndarray | None:
    """Returns vectors of the first queries that the towers were trained for; None without them."""
    encode, manifest = load_tower(export_dir, "query")
    try:
        source = source_of(manifest.data)
        texts = [text.text for text in itertools.islice(source.queries(), RECALL_QUERIES)]
    except InputError as error:
        logging.warning("The queries of the training run are not there: %s", error)
        return None
    return encode_texts(encode, texts)


def _check_collection(index_dir: Path, manifest: IndexManifest, choose_data: ChooseData) -> None:
    base = manifest.data or DataSettings()
    data = choose_data(base)
    remedy = "build it with smoothclir-index --overwrite, or choose another --index_dir"
    try:
        if manifest.data is None and data == base:
            return  # of files, which nobody has named here
        same = source_of(data).fingerprint() == manifest.fingerprint
    except InputError:
        if data != base:
            raise
        return  # the index is enough
    if not same and data != base:
        name = manifest.collection_name
        reason = f"the index is of another collection, or of another state of it: {name}"
        raise input_error(index_dir, reason, f"To search this one, {remedy}")
    if not same:
        logging.warning(
            "The collection %s has changed since it was indexed; for its new state, %s.",
            manifest.collection_name,
            remedy,
        )


def _local(export_dir: str | os.PathLike, manifest: IndexManifest) -> EncodeQueries:
    encode, tower = load_tower(export_dir, "query")
    check_pair(tower, manifest)
    return functools.partial(encode_texts, encode)


def _remote(server: str, manifest: IndexManifest) -> EncodeQueries:
    from tf_smoothclir.client.serving_client import ServingClient

    client = ServingClient(server)
    pair_id = client.pair_id("query")
    if pair_id is not None:
        check_pair_id(f"query tower of {server}", pair_id, manifest)
    return client.encode
