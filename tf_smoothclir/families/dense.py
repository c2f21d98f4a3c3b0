"""Two towers: a text is a vector, and a score is an inner product of two."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from absl import logging

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Text, text_read
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.encoder import Encoder
from tf_smoothclir.families.family import Family
from tf_smoothclir.index import dense_half
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.publishing.export_directory import load_model, load_part
from tf_smoothclir.publishing.exported_models import ExportedModels
from tf_smoothclir.search.explanation import ExplainedTower, SavedTower, explain_by_vectors
from tf_smoothclir.search.query_reading import EncodeQueries, by_encoder, by_tower
from tf_smoothclir.search.text_search import DenseRanker
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.text.vocabulary import read_vocabulary
from tf_smoothclir.utils.errors import InputError
from tf_smoothclir.utils.parallel import map_in_threads, text_batches
from tf_smoothclir.utils.progress import progress_bar

if TYPE_CHECKING:
    from tf_smoothclir.data.tokenized_set import TokenizedSet
    from tf_smoothclir.settings.run import RunSettings
    from tf_smoothclir.training.run_directory import RunDirectory
    from tf_smoothclir.training.run_models import ModelsOverSet

_NAMES = {  # of losses and towers, where the value of the flag says too little
    "sosl": "Smooth Ordinal Search Loss",
    "mse": "mean squared error",
    "three_part_l2": "3PartL2",
    "cnn": "DSSM-CNN",
    "lstm": "DSSM-LSTM",
}


class Dense(Family):
    """Two towers; its model is a `TwoTower`, which is trained, and its published one `Towers`."""

    kept_in = "checkpoints"
    has_task = True
    half_content = "vectors"
    ranks_by = "two towers that give queries and documents vectors"

    def check(self, run):
        from tf_smoothclir.training.tasks import check_weights

        check_weights(run)

    def load(self, run, settings):
        from tf_smoothclir.training.tasks import load_model

        return load_model(run, settings.model.dim)

    def needs_pairs(self, settings):
        return True

    def thresholds(self, model: Any, settings: RunSettings) -> tuple[float, ...]:
        """Thresholds of the loss, which may have learned them."""
        from tf_smoothclir.two_tower.scorer import thresholds_of

        return tuple(thresholds_of(settings, model))

    def training_set(self, run: RunDirectory, over: ModelsOverSet) -> TokenizedSet:
        """The set with pseudo-queries as further training queries, which the run keeps."""
        from tf_smoothclir.families.lexical import table_of
        from tf_smoothclir.lexical.pseudo_queries import with_pseudo_queries, write_pseudo_queries

        training, tokenized_set = over.settings.training, over.tokenized_set
        missing = training.pseudo_queries - len(tokenized_set.retrieval_set.queries_in("train"))
        if missing <= 0:
            return tokenized_set
        if not run.pseudo_queries.is_dir():
            model = table_of(run, over)
            with run.writing(run.pseudo_queries) as path:
                path.mkdir()
                write_pseudo_queries(path, tokenized_set, model, number=missing, seed=training.seed)
        filled = with_pseudo_queries(tokenized_set, run.pseudo_queries)
        made = len(filled.retrieval_set.query_ids) - len(tokenized_set.retrieval_set.query_ids)
        logging.info("Pseudo-queries: %d documents without a judged query have one", made)
        return filled

    def retrievers(self, model, over):
        from tf_smoothclir.two_tower.scorer import SetEncoder

        dense = SetEncoder(model, over.tokenized_set)(over.known_documents(self.name))
        settings, dims = over.settings.model, ()
        if over.settings.retrieval.retriever == self.name:
            dims = settings.shorter_dims
        cut = {f"{self.name}-{dim}": dense.cut_to(dim, settings.epsilon) for dim in dims}
        return {**cut, self.name: dense}

    def title(self, model):
        return "two towers"

    def facts(self, model, settings, training):
        chosen, form = settings.training, settings.model
        best = f"best {training['best_epoch']} by validation {chosen.select_metric}"
        objective, thresholds = chosen.objective, self.thresholds(model, settings)
        return {
            "towers": f"{_in_words(form.tower)}, {form.dim:,} dimensions, ε = {form.epsilon:g}",
            "loss": _in_words(form.loss if objective == "ranking" else objective),
            "thresholds": ", ".join(f"{value:.4g}" for value in thresholds),
            "epochs": f"{training['epochs']}, {best}",
            "training": f"{training['pairs']:,} pairs in {training['seconds_of_steps']:.0f} s,"
            f" {training['pairs_per_second']:,.0f} pairs/s",
        }

    def published(self, publication):
        from tf_smoothclir.publishing.exported_tower import ExportedTower
        from tf_smoothclir.text.evidence import word_evidence
        from tf_smoothclir.text.subwords import text_encoder

        run, settings, towers = publication.run, publication.settings, {}
        for role in ROLES:
            path = run.vocabulary / f"{role}.txt"
            encoder = text_encoder(path, settings.text, role)
            asked = role == "query"
            vocabulary = read_vocabulary(path) if asked else []
            towers[role] = ExportedTower(
                getattr(publication.models[self.name], f"{role}_tower"),
                encoder,
                epsilon=settings.model.epsilon,
                name=f"{role}_tower",
                evidence=word_evidence(vocabulary, encoder, settings.text) if asked else None,
            )
        return Towers(towers, settings.model.dim, settings.model.epsilon)

    def exported_parts(self, published, others):
        return published.towers

    def vectors_in_graph(self, publication):
        from tf_smoothclir.publishing.exported_search import VectorsInGraph

        towers = publication.published[self.name]

        def encode(documents):
            return towers.vectors("document", [text_read(text, titles=False) for text in documents])

        return {self.name: VectorsInGraph(towers.towers["query"], encode)}

    def exported(self, models):
        if models.for_search:
            return SearchedTowers(models)
        version = models.manifest.version
        towers = {role: load_part(models.export_dir, role, version).model for role in ROLES}
        return Towers(towers, models.manifest.dim, models.manifest.epsilon)

    def index_half(self, models, kind):
        towers, data = models[self.name], models.manifest.data
        asked = functools.partial(training_query_vectors, towers, data)
        return dense_half.DenseHalf(towers.encoder("document"), towers.dim, kind, asked)

    open_half = staticmethod(dense_half.open_dense_half)

    def cut_points(self, manifest):
        """Those of a hybrid are of its sum: vectors alone have the thresholds of the loss."""
        from tf_smoothclir.protocols.text_search import CutPoints

        of_loss = CutPoints(manifest.thresholds, ())
        return super().cut_points(manifest) or of_loss

    def scores(self, models, queries, documents):
        towers = models[self.name]
        of_query, of_document = map(towers.vectors, ROLES, (queries, documents))
        return (of_query * of_document).sum(axis=1)

    def explanation(self, models, query, document, role):
        towers, hits = models[self.name], [Text("", "", document)]
        read, explained = towers.read_queries(), towers.explained
        return explain_by_vectors(read, explained, query, hits, role)[0]

    def retriever_over(self, models, retrieval_set):
        from tf_smoothclir.two_tower.scorer import DenseRetriever

        source, towers = retrieval_set.source, models[self.name]
        streams = zip(ROLES, (source.queries, source.documents))
        vectors = [towers.vectors(role, [t.text for t in texts()]) for role, texts in streams]
        return DenseRetriever(*vectors, retrieval_set.tie_order)

    def ranker(self, models, index):
        from tf_smoothclir.search.engine_ranker import EngineRanker

        towers = models[self.name]
        read, explained = towers.read_queries(), functools.lru_cache(towers.explained)
        explain = functools.partial(explain_by_vectors, read, explained)
        if isinstance(index, DocumentIndex):
            return DenseRanker(self.name, index, read, explain)
        return EngineRanker(index, encode_queries=read, explain=explain)


def _in_words(name: str) -> str:
    """The value of a flag for people, such as "average pooling"."""
    return _NAMES.get(name, name.replace("_", " "))


_TEXTS_PER_CALL = 1024


@dataclasses.dataclass(frozen=True)
class Towers:
    """Towers in TensorFlow, from texts to vectors."""

    towers: Mapping[str, Any]  # by role
    dim: int
    epsilon: float

    def encoder(self, role: str) -> dense_half.Encode:
        """The signature that encodes texts."""
        return self.towers[role].signatures["serving_default"]

    def vectors(self, role: str, texts: Sequence[str]) -> np.ndarray:
        """The smooth-normalised vectors of texts, `[texts, dim]` float32."""
        parts = [np.zeros((0, self.dim), np.float32)]
        batches = text_batches(texts, size=_TEXTS_PER_CALL)
        encode = functools.partial(dense_half.encode_texts, self.encoder(role))
        with progress_bar(len(texts), "Encode", "texts") as bar:
            for vectors in map_in_threads(encode, batches):
                parts.append(vectors)
                bar.update(len(vectors))
        return np.concatenate(parts)

    def read_queries(self) -> EncodeQueries:
        """What reads and encodes the queries of a search."""
        return by_tower(self.towers["query"])

    def explained(self, role: str) -> ExplainedTower:
        """A tower that says what its vectors are made of."""
        return SavedTower(self.towers[role], self.epsilon)


class SearchedTowers:
    """Towers of an export as a search needs them: without TensorFlow, if they can.

    The query tower is the latest, if it belongs to the index; explanations load, if they are asked
    for, those that the index was built with, even if there are later ones.
    """

    def __init__(self, models: ExportedModels):
        self._models = models

    def read_queries(self) -> EncodeQueries:
        """What reads and encodes the queries of a search."""
        directory, _ = self._models.part("query")
        if Encoder.can_load(directory):
            return by_encoder(Encoder.of_version(directory, "query", is_checked=True))
        return by_tower(load_model(directory))

    def explained(self, role: str) -> ExplainedTower:
        """A tower that says what its vectors are made of."""
        directory, tower = self._models.part(role)
        if Encoder.can_load(directory):
            return Encoder.of_version(directory, role, is_checked=True)
        return SavedTower(load_model(directory), tower.epsilon)


def training_query_vectors(towers: Towers, data: DataSettings) -> np.ndarray | None:
    """Encodes training queries, to measure the recall with; None if the set or all are gone."""
    try:
        source = source_of(data)
        queries = itertools.islice(source.queries(), dense_half.RECALL_QUERIES)
        texts = [text.text for text in queries]
    except InputError as error:
        logging.warning("The queries of the training run are missing: %s", error)
        return None
    return dense_half.encode_texts(towers.encoder("query"), texts) if texts else None
