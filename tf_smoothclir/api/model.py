"""A trained model in Python: vectors, search, scores, evaluation, export."""

import functools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tf_smoothclir import plugins
from tf_smoothclir._compat.quiet import without_retracing_warnings
from tf_smoothclir.api.collections import Searches, check_is_export, documents_of
from tf_smoothclir.api.given import Judgments, Table, Texts, one_string, strings, whole_number
from tf_smoothclir.api.sets import Data, evaluate_on
from tf_smoothclir.data.sources.memory import Tokenizer, segmented
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.evaluation.evaluate import Evaluation
from tf_smoothclir.protocols.text_search import Answer, Explanation
from tf_smoothclir.publishing.exported_models import ExportedModels, load_exported_models
from tf_smoothclir.settings.given import classes_of, know_classes
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.storage.files import make_directory, read_record
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.paths import PathText, local_path


class Model:
    """A trained model: towers, a translation table, or both.

    `train` and `load` return it. Models are loaded when they are first needed. What a model cannot
    do, such as the vectors of one without towers, is an error that says what to do.

    It pickles as its path: another process opens it again, with the plug-ins and the classes of
    given objects of this one. A temporary run lasts as long as its model.

    Attributes:
        path: The run directory or the export directory.
    """

    def __init__(
        self,
        path: PathText,
        *,
        held: tempfile.TemporaryDirectory[str] | None = None,
        tokenizer: Tokenizer | None = None,
        version: int | None = None,
    ):
        """Opens a run directory or an export directory, as `load` does; `held` goes with it."""
        self.path = Path(local_path(path, "load: path"))
        self._held, self._tokenizer, self._version = held, tokenizer, version
        self._run: RunDirectory | None = None
        if RunDirectory(self.path).config.is_file() and version is None:
            self._run = RunDirectory.load(self.path)
        else:
            check_is_export(self.path, version)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def __getstate__(self) -> tuple[Any, ...]:
        objects = "" if self._run is None else self._run.settings().model.objects
        opened = {"tokenizer": self._tokenizer, "version": self._version}
        return self.path.absolute(), opened, plugins.loaded(), classes_of(objects)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        path, opened, modules, classes = state
        plugins.load(name for name in modules if name != "__main__")  # a program's own are there
        know_classes(classes)
        Model.__init__(self, path, **opened)

    @property
    def settings(self) -> RunSettings:
        """All settings of the run; an `InputError` of an export, which has none."""
        return self._of_run("settings").settings()

    @property
    def details(self) -> dict[str, Any]:
        """The content of `metrics.json`: metrics by split, intervals, counts, rules, history.

        An `InputError` of an export, or a run that is not finished; so are the next two.
        """
        run = self._of_run("metrics")
        if not run.finished:
            raise run.incomplete("is not finished yet")
        return read_record(run.metrics, dict, "Restore the file, or train again")

    @property
    def metrics(self) -> dict[str, float]:
        """Name -> value on the test queries of the set that the run was trained on."""
        return self.details["test"]

    @property
    def history(self) -> list[dict[str, Any]]:
        """For each epoch its number, losses and validation metrics; empty without towers."""
        return self.details["history"]

    @property
    def retriever(self) -> str:
        """Name of the retriever, such as "dense", "lexical" or "hybrid"."""
        return self._models.retriever

    @property
    def dim(self) -> int:
        """Length of the vectors; 0 without towers."""
        return self._models.manifest.dim

    @without_retracing_warnings()
    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the vectors of queries, `[texts, dim]` float32.

        They are smooth-normalised: the inner product with the vector of a document is the smooth
        cosine similarity, so any inner-product index ranks by it.

        Args:
            texts: A list of strings. Longer texts are cut as in training (`max_query_tokens`).

        Raises:
            InputError: The model has no towers, or `texts` is no list of strings.
        """
        return self._models.vectors("query", self._strings(texts, "texts"))

    @without_retracing_warnings()
    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the vectors of documents, `[texts, dim]` float32; see `encode_queries`.

        Longer documents are cut as in training (`max_document_tokens`).
        """
        return self._models.vectors("document", self._strings(texts, "texts"))

    @without_retracing_warnings()
    def score(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        """Returns the score of each query with the document of the same place, `[texts]` float32.

        It is the score of the retriever, without what only a search adds: feedback, which looks at
        a whole collection, and a re-ranker.

        Args:
            queries: A list of strings.
            documents: As many.

        Raises:
            InputError: They are no lists of strings, or of different lengths.
        """
        pairs = self._strings(queries, "queries"), self._strings(documents, "documents")
        if len(pairs[0]) != len(pairs[1]):
            reason = f"there are {len(pairs[0])} queries and {len(pairs[1])} documents"
            remedy = "Give one document for each query; repeat the query to score it with several"
            raise input_error("score", reason, remedy)
        return plugins.family(self.retriever).scores(self._models, *pairs)

    @without_retracing_warnings()
    def search(
        self,
        queries: Sequence[str],
        k: int = 10,
        *,
        documents: Texts | None = None,
        index: PathText | None = None,
        retriever: str = "auto",
        filter: str | None = None,
    ) -> list[Answer]:
        """Returns the best documents of each query, best first.

        Without `documents` and `index`, it searches the documents of training: by the index in
        `index/` of the model's directory, if that is of it, else by one that is built and kept.

        Args:
            queries: A list of strings.
            k: Documents per query.
            documents: What to search, as for `train`. The same documents are indexed once.
            index: Directory of an index, of `build_index` or `smoothclir-index`.
            retriever: "dense", "lexical" or "hybrid" ranks by these alone; "reranked" by all and a
                re-ranker; "auto" is what the model ranks with.
            filter: What must hold for other columns of hits, in SQL: "year > 2021 and tag = 'Web'".

        Returns:
            For each query a list of hits, with `rank`, `score`, `grade` (predicted), `id`, `title`,
            `text` and `metadata`. Its `reading` says what was understood; without it, it is empty.

        Raises:
            InputError: An argument is wrong, the index is of another model, or a part is missing.
        """
        texts, depth = self._strings(queries, "queries"), whole_number(k, "k")
        if documents is not None and index is not None:
            raise input_error("search: documents", "index is given too", "Leave one of them out")
        searched = self._searches.opened(documents, index, retriever)
        return searched.search(texts, depth, "" if filter is None else one_string(filter, "filter"))

    @without_retracing_warnings()
    def build_index(
        self,
        directory: PathText,
        documents: Texts | None = None,
        *,
        overwrite: bool = False,
        update: bool = False,
    ) -> Path:
        """Writes an index for `search` and `smoothclir-search`.

        Args:
            directory: Where it goes.
            documents: As for `train`; by default those of training.
            overwrite: Replaces an index that is there.
            update: Brings one that is there to these documents; encodes what is new or changed.

        Returns:
            The directory.

        Raises:
            InputError: There is an index of something else, or the documents have a defect.
        """
        path = Path(local_path(directory, "build_index: directory"))
        return self._searches.build(path, documents, overwrite=overwrite, update=update)

    @without_retracing_warnings()
    def explain(self, query: str, document: str, role: str = "document") -> Explanation:
        """Splits the `score` of a query and a document into shares of words and a remainder.

        Args:
            query: A string.
            document: A string.
            role: "document" for the words of the document, "query" for those of the query.

        Raises:
            InputError: An argument has the wrong type, or towers that read word order rank.
        """
        if role not in ROLES:
            raise input_error(f"role={role!r}", "no such role", f"Give {' or '.join(ROLES)}")
        pair = self._strings([one_string(query, "query"), one_string(document, "document")], "text")
        return plugins.family(self.retriever).explanation(self._models, *pair, role)

    @without_retracing_warnings()
    def evaluate(
        self,
        data: Data | None = None,
        *,
        queries: Texts | None = None,
        documents: Texts | None = None,
        judgments: Judgments | None = None,
        clicks: Table | None = None,
        pairs: Table | None = None,
        split: str | None = None,
        negatives: int | None = None,
        measures: Sequence[str] = (),
    ) -> Evaluation:
        """Measures the model on judged queries, as `smoothclir-evaluate` does.

        Without data, on the test queries of its own set. Queries that it was trained on make
        figures too good; a warning counts them.

        Args:
            data: Directory of a retrieval set, or an open set.
            queries: As for `train`, and so are the next four.
            split: Which queries: "test", "validation" or "train". Without it, the test queries;
                all judged ones of a set that has no splits and that the model was not trained on.
            negatives: Sampled documents of grade 0 in each candidate list; None: as in training.
            measures: Further ones of `ir_measures`, which must be installed, by their names, such
                as ["nDCG@20", "RR"]. Rankings are 100 documents deep, or as a cutoff needs.

        Returns:
            `metrics`, `intervals`, `counts` and, of each of `query_ids`, `per_query` by the name of
            the metric; `print` shows a table. `full/...` rank all documents, others short lists.

        Raises:
            InputError: The data cannot be used.
        """
        parts = {"queries": queries, "documents": documents, "judgments": judgments}
        parts |= {"clicks": clicks, "pairs": pairs}
        if negatives is None:
            negatives = 40 if self._run is None else self._run.settings().training.negatives
        measures = strings(measures, "measures")
        options = {"negatives": whole_number(negatives, "negatives", 0), "measures": measures}
        return evaluate_on(self._models, data, parts, self._tokenizer, split, **options)

    @without_retracing_warnings()
    def export(
        self,
        directory: PathText,
        *,
        search_model: bool = True,
        depth: int = 10,
        documents: Texts | None = None,
    ) -> Path:
        """Exports the model for TensorFlow Serving, as `smoothclir-export` does.

        Args:
            directory: Gets `query_tower/<version>`, `document_tower/<version>` of towers,
                `lexical_model/<version>` of a translation table, and `search/<version>`.
            search_model: Whether to export a search model.
            depth: Documents that it returns per query.
            documents: Of the search model, at most 200,000; by default those of training.

        Returns:
            The directory, which `load` takes.

        Raises:
            InputError: It is an export already, or the run cannot be exported.
        """
        from tf_smoothclir.publishing.export import export_run

        run = self._of_run("export", "it is an export already", "Copy its directory")
        path = make_directory(directory, "export: directory")
        collection = documents_of(documents, self._tokenizer, run.settings().data)
        depth = whole_number(depth, "depth")
        export_run(run, path, search_model=search_model, search_depth=depth, collection=collection)
        return path

    @functools.cached_property
    def _models(self) -> ExportedModels:
        if self._run is None:
            return load_exported_models(self.path, self._version)
        from tf_smoothclir.publishing.export import models_of_run  # takes a second

        return models_of_run(self._run)

    @functools.cached_property
    def _searches(self) -> Searches:
        return Searches(self._models, self.path / "index", self._tokenizer)

    def _strings(self, given: Sequence[str], argument: str) -> list[str]:
        return [segmented(text, self._tokenizer) for text in strings(given, argument)]

    def _of_run(
        self,
        what: str,
        reason: str = "it is an export, which does not keep them",
        remedy: str = "Load the run directory of the training",
    ) -> RunDirectory:
        if self._run is None:
            raise input_error(f"{self.path}: {what}", reason, remedy)
        return self._run


def load(
    path: PathText, *, tokenizer: Tokenizer | None = None, version: int | None = None
) -> Model:
    """Opens a trained model.

    Args:
        path: A run directory, or a directory that `Model.export` or `smoothclir-export` wrote to;
            one that is both is opened as the run, or as the export if a version is given.
        tokenizer: The one that `train` was given, for texts that are given to the model.
        version: Of an export; None for the newest complete one.

    Raises:
        InputError: There is neither, or not this version.
    """
    return Model(path, tokenizer=tokenizer, version=version)
