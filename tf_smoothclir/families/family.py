"""What a family is: one way to rank, from learning to search.

With `scorer` alone, one is trained, evaluated, exported, indexed, searched, explained and served by
what stands here (`docs/retrievers.md` has an example). One that learns says so in `learn`. The
families of this package replace more of it: by vectors, postings and graphs, which are faster.

What takes long to load, as TensorFlow does, is imported where it is needed: a search needs none of
it.
"""

from __future__ import annotations

import abc
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from absl import logging

from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.protocols.scorer import Retriever, RowRetriever
from tf_smoothclir.protocols.text_search import CutPoints, Explanation
from tf_smoothclir.publishing.exported_models import ROLE, ExportedFiles, ExportedModels
from tf_smoothclir.search.explanation import explain_by_leaving_out
from tf_smoothclir.search.text_search import HitRanker, TextRanker
from tf_smoothclir.storage.files import open_to_write, read_arrays
from tf_smoothclir.utils.errors import input_error

if TYPE_CHECKING:
    from tf_smoothclir.data.retrieval_set import RetrievalSet
    from tf_smoothclir.data.sources.source import Source
    from tf_smoothclir.index.builder import Half
    from tf_smoothclir.publishing.export import Publication
    from tf_smoothclir.publishing.exported_search import VectorsInGraph
    from tf_smoothclir.settings.run import RunSettings
    from tf_smoothclir.training.run_directory import RunDirectory
    from tf_smoothclir.training.run_models import ModelsOverSet

# From queries to the scores of all documents, `[queries, documents]` float32.
TextScorer = Callable[[Sequence[str]], np.ndarray]
_ARRAYS = "arrays.npz"


class Family:
    """A way to rank. A plug-in implements `scorer`, and `learn` if it learns.

    A model is what `learn` returns: here a dictionary of NumPy arrays; other families have objects
    of their own, with `save` and `load`. A published model is what an export has of it.

    Attributes:
        name: The name by which it is registered.
        parts: Names of the families that it is made of; a run has their models too, and an export
            of it ranks by each of them alone as well.
        with_encoder: Name of the family that `--encoder` makes of it; "" where it joins none.
        has_task: Whether it is trained step by step, by a `Task`.
        has_table: Whether it has a translation table, which takes a dictionary.
        half_content: What its half of an index holds, for people.
        ranks_by: What it ranks by, for the model card; "" for its name.
        is_published: Whether it can be exported.
        kept_in: Attribute of a `RunDirectory` that is the path of its model; "" for a plug-in's.
        missing: What a run without its model has not done yet.
    """

    parts: ClassVar[tuple[str, ...]] = ()
    with_encoder: ClassVar[str] = ""
    has_task: ClassVar[bool] = False
    has_table: ClassVar[bool] = False
    half_content: ClassVar[str] = ""
    ranks_by: ClassVar[str] = ""
    is_published: ClassVar[bool] = True
    kept_in: ClassVar[str] = ""
    missing: ClassVar[str] = "has not learned all of its models yet"

    def __init__(self, name: str):
        self.name = name

    def learn(self, over: ModelsOverSet) -> Any:
        """Learns from a set.

        Args:
            over: Its `tokenized_set`, the `settings`, and the `models` and `retrievers` of `parts`.
        """
        return {}

    @abc.abstractmethod
    def scorer(self, model: Any, documents: Sequence[str]) -> TextScorer:
        """Scorer of queries over a collection; 0 for what has nothing to do with a query."""
        raise NotImplementedError

    def look(self, over: ModelsOverSet) -> Callable[[Callable[[], Retriever], bool], str] | None:
        """What tells, by what is trained so far, which part ranks alone without it.

        It takes what makes a retriever of what is trained, and whether training has yet to begin.
        It returns the name of that part, or "" where what is trained may count in the end. None:
        it is trained to the end in any case.

        Args:
            over: All other parts.
        """
        return None

    def ranks_alone(self, over: ModelsOverSet) -> str:
        """Name of the part that ranks alone after all; "" where what is trained counts."""
        return ""

    # In a run

    def path(self, run: RunDirectory) -> Path:
        """Where a run keeps the model."""
        return getattr(run, self.kept_in) if self.kept_in else run.of_plugins(self.name)

    def save(self, model: Any, path: Path) -> None:
        """Writes a model to a new path."""
        if hasattr(model, "save"):
            model.save(path)
            return
        path.mkdir()
        with open_to_write(path / _ARRAYS) as file:
            np.savez(file, **model)

    def read(self, path: Path) -> Any:
        """Reads what `save` wrote."""
        return read_arrays(path / _ARRAYS)

    def check(self, run: RunDirectory) -> None:
        """Checks that a run has the model, before its data are read."""
        if not self.path(run).exists():
            raise run.incomplete(self.missing)

    def load(self, run: RunDirectory, settings: RunSettings) -> Any:
        """Loads the model of a run; None where it has to be learned anew for these settings."""
        return self.read(self.path(run))

    def needs_pairs(self, settings: RunSettings) -> bool:
        """Whether there must be training queries with relevant documents."""
        return False

    def adds_words(self, vocabulary_dir: Path, settings: RunSettings) -> bool:
        """Adds words that it needs to the vocabularies of a new run; returns whether it did."""
        return False

    def retrievers(self, model: Any, over: ModelsOverSet) -> Mapping[str, Retriever]:
        """Name -> retriever over a set: of variants, if there are any, and last its own."""
        return {self.name: self._retriever(model, over.retrieval_set)}

    def _retriever(self, model: Any, retrieval_set: RetrievalSet) -> Retriever:
        source = retrieval_set.source
        queries = [text.text for text in source.queries()]
        score = self._checked_scorer(model, [text.text for text in source.documents()])
        lock = threading.Lock()  # a plug-in need not know of threads

        def rows(query_rows: np.ndarray) -> np.ndarray:
            with lock:
                return score([queries[row] for row in query_rows])

        return RowRetriever(rows, retrieval_set.tie_order)

    # In reports

    def title(self, model: Any) -> str:
        """Name for people; "" for what is made of others."""
        return self.name

    def metrics(self, model: Any) -> dict[str, Any]:
        """Entries for `metrics.json`: choices that were made in learning."""
        return {}

    def facts(self, model: Any, settings: RunSettings, training: Mapping[str, Any]) -> dict:
        """Facts for the run report, name -> text; `training` is that of `metrics.json`."""
        return {}

    # In an export

    def published(self, publication: Publication) -> Any:
        """Published model of a run; None where it counts for nothing."""
        return publication.models[self.name]

    def exported_parts(self, published: Any, others: Mapping[str, Any]) -> dict[str, Any]:
        """Role -> part of an export; `others` are those of families before it."""
        before = others.get(ROLE)

        def save(path: Path) -> None:
            if before is not None:
                before.save(path)
            self.save(published, path / self.name)

        return {ROLE: ExportedFiles(save)}

    def exported(self, models: ExportedModels) -> Any:
        """Loads the published model of an export, after checking its files."""
        return self.read(models.part(ROLE)[0] / self.name)

    def vectors_in_graph(self, publication: Publication) -> dict[str, VectorsInGraph] | None:
        """Part -> what makes vectors that TensorFlow ranks by, beside words; None: it cannot."""
        return None

    def search_model(self, publication: Publication, source: Source, **options: Any) -> Any:
        """Search model of the documents of a source; None without a graph."""
        encoders = self.vectors_in_graph(publication)
        if encoders is None:
            logging.info(
                "No search model: TensorFlow Serving cannot rank by --retriever=%s as it is here."
                " Index the collection with smoothclir-index.",
                self.name,
            )
            return None
        from tf_smoothclir.publishing.exported_search import Collection, build_search_model

        lexical = publication.published.get("lexical")
        collection = Collection.read(source, encoders, lexical)
        of_queries = {part: encoder.queries for part, encoder in encoders.items()}
        return build_search_model(collection, of_queries, lexical, **options)

    # With published models

    def index_half(self, models: ExportedModels, kind: str) -> Half | None:
        """Builder of its half of an index; None where documents are enough."""
        return None

    def open_half(self, directory: Path, entry: dict, hashes: np.ndarray) -> Any:
        """Opens its half of an index, or returns a function that does, where it takes memory.

        Args:
            entry: As `Half.finish` returned it.
            hashes: `[documents]` uint64, of the ids.
        """
        return None

    def cut_points(self, manifest: Any) -> CutPoints | None:
        """Cut points of its scores over an index, by its manifest; None where none are known."""
        return manifest.cut_points if manifest.retriever == self.name else None

    def scores(
        self, models: ExportedModels, queries: Sequence[str], documents: Sequence[str]
    ) -> np.ndarray:
        """`[pairs]` float32, of each query with the document of the same place alone."""
        pairs = zip(queries, documents)
        scorer = self._scorer_of(models)
        return np.array([scorer([text])([query])[0, 0] for query, text in pairs], np.float32)

    def explanation(
        self, models: ExportedModels, query: str, document: str, role: str
    ) -> Explanation:
        """Splits the score of a pair into the shares of words."""
        return explain_by_leaving_out(self._scorer_of(models), query, document, role)

    def retriever_over(self, models: ExportedModels, retrieval_set: RetrievalSet) -> Retriever:
        """Retriever over a set by published models."""
        return self._retriever(models[self.name], retrieval_set)

    def ranker(self, models: ExportedModels, index: Any) -> HitRanker:
        """What ranks a collection in a search.

        Args:
            models: Family -> published model, loaded when it is asked for.
            index: A `DocumentIndex`, or a collection in an engine; of a run with this family.
        """
        if not isinstance(index, DocumentIndex):
            reason = "an engine keeps vectors and words, by which it does not rank"
            raise input_error(f"--retriever={self.name}", reason, "Use an index on disk")
        return TextRanker(self.name, index, self._scorer_of(models))

    def _scorer_of(self, models: Any) -> Callable[[Sequence[str]], TextScorer]:
        return functools.partial(self._checked_scorer, models[self.name])

    def _checked_scorer(self, model: Any, documents: Sequence[str]) -> TextScorer:
        score = self.scorer(model, documents)

        def scores(queries: Sequence[str]) -> np.ndarray:
            found, shape = np.asarray(score(queries), np.float32), (len(queries), len(documents))
            if found.shape != shape:
                reason = f"{type(self).__name__}.scorer gives scores of shape {found.shape}"
                remedy = f"Return [queries, documents], here {shape}"
                raise input_error(f"--retriever={self.name}", reason, remedy)
            return found

        return scores
