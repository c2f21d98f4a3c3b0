"""A foreign encoder as a family: it ranks alone, or as a part of a hybrid.

Its vectors are kept in the storage, so no text is encoded twice. A head of them is learned, where
that helps, and a student that reads queries, where that is wanted. A run or an export keeps these
and the name of the encoder, not the encoder itself.
"""

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from absl import logging

from tf_smoothclir.data.sources.source import Text, text_read
from tf_smoothclir.encoder.word_evidence import NAMES, NOTHING, WORDS
from tf_smoothclir.families.family import Family
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.protocols.text_search import QueryReading
from tf_smoothclir.search.explanation import explain_hits_by_leaving_out
from tf_smoothclir.search.query_reading import EncodeQueries, QueryBatch, by_encoder
from tf_smoothclir.search.text_search import DenseRanker
from tf_smoothclir.settings.data import EncoderSettings
from tf_smoothclir.storage.files import open_to_write, read_arrays, read_record, write_json
from tf_smoothclir.utils.errors import InputError


@dataclasses.dataclass(frozen=True)
class _Saved:
    """What a run keeps of an encoder."""

    settings: dict[str, Any]
    name: str
    digest: str
    dim: int
    head: str = ""  # a note on it


_ENCODER, _HEAD, _STUDENT = "encoder.json", "head.npz", "student.npz"  # files of a run


@dataclasses.dataclass(eq=False)
class NamedEncoder:
    """An encoder by what a run keeps of it, opened when texts are to be encoded."""

    saved: _Saved
    cache_dir: str = ""
    opened: Any = None  # the encoder itself, where it is open
    head: Any = None
    student: Any = None
    epsilon: ClassVar[float] = 0.0

    def __post_init__(self):
        self.dim = self.saved.dim

    @functools.cached_property
    def encoder(self) -> Any:
        """The encoder; a run's name for it is no reason to ask a server or to run code."""
        from tf_smoothclir.foreign_encoders.opening import reopened

        return self.opened or reopened(EncoderSettings(**self.saved.settings), self.saved.digest)

    def vectors(self, role: str, texts: Sequence[str]) -> np.ndarray:
        """The vectors of texts by the head, else of length 1; `[texts, dim]` float32."""
        if role == "query" and self.student is not None:
            return self._by_head(role, self.student.encoder.encode(texts))
        return self._by_head(role, self._store.vectors(role, texts))

    @functools.cached_property
    def _store(self) -> Any:
        from tf_smoothclir.foreign_encoders.opening import store_of

        return store_of(self.encoder, self.cache_dir)

    def _by_head(self, role: str, vectors: np.ndarray) -> np.ndarray:
        return vectors if self.head is None else self.head.vectors(role, vectors)

    def documents(self, documents: Sequence[Text]) -> np.ndarray:
        """The same of documents with their titles, `[documents, dim]` float32."""
        return self.vectors("document", [text_read(text, titles=True) for text in documents])

    def read_queries(self) -> EncodeQueries:
        """What reads and encodes the queries of a search: an encoder knows all that has letters."""
        if self.student is None:
            return self._read
        by_student = by_encoder(self.student.encoder)

        def read(queries: Sequence[str]) -> QueryBatch:
            batch = by_student(queries)
            return batch._replace(vectors=self._by_head("query", batch.vectors))

        return read

    def _read(self, queries: Sequence[str]) -> QueryBatch:
        known = [NAMES[WORDS if any(map(str.isalnum, text)) else NOTHING] for text in queries]
        readings = [QueryReading(level, ()) for level in known]
        return QueryBatch(list(queries), readings, self.vectors("query", queries))


class ForeignEncoderFamily(Family):
    """A foreign encoder; its model, published or not, is a `NamedEncoder`."""

    half_content = "vectors"
    ranks_by = "a foreign encoder"

    def learn(self, over):
        from tf_smoothclir.foreign_encoders.head_learning import learn_head, queries_to_learn_from
        from tf_smoothclir.foreign_encoders.opening import EncodedSet, encoder_of, store_of
        from tf_smoothclir.foreign_encoders.student_learning import learn_student
        from tf_smoothclir.two_tower.builder import configured_loss

        settings, cache_dir = over.settings.of(EncoderSettings), over.settings.data.cache_dir
        encoder = encoder_of(settings)
        loss, seed = configured_loss(over.settings), over.settings.training.seed
        student = None
        if settings.distill:
            texts = over.retrieval_set.query_texts(queries_to_learn_from(over.retrieval_set))
            encode = functools.partial(store_of(encoder, cache_dir).vectors, "query")
            student = learn_student(encode, list(texts.values()), seed)
        encoded = EncodedSet.of(encoder, over.retrieval_set.source, cache_dir, student=student)
        head, note = learn_head(encoded, over.retrieval_set, loss, seed)
        over.shared[self.name] = encoded if head is None else head.over(encoded)
        digest, (_, dim) = getattr(encoder, "digest", ""), over.shared[self.name].documents.shape
        saved = _Saved(settings.values(), encoder.name, digest, dim, note)
        return NamedEncoder(saved, cache_dir, encoder, head, student)

    def save(self, model, path):
        path.mkdir()
        write_json(path / _ENCODER, dataclasses.asdict(model.saved))
        for file_name, learned in ((_HEAD, model.head), (_STUDENT, model.student)):
            if learned is not None:
                with open_to_write(path / file_name) as file:
                    np.savez(file, **learned.arrays)

    def read(self, path: Path) -> NamedEncoder:
        from tf_smoothclir.foreign_encoders import head, student

        saved = read_record(path / _ENCODER, _Saved, "Restore the file, or train again")
        model = NamedEncoder(saved)
        if saved.head:
            model.head = head.Head(read_arrays(path / _HEAD, *head.ARRAYS))
        if saved.settings.get("distill"):
            model.student = student.Student(read_arrays(path / _STUDENT, *student.ARRAYS))
        return model

    def load(self, run, settings):
        model = self.read(self.path(run))
        model.cache_dir = settings.data.cache_dir
        return model

    def retrievers(self, model, over):
        encoded = over.shared.get(self.name)
        if encoded is None:
            documents = over.known_documents(self.name)
            encoded = self._encoded(model, over.retrieval_set, documents)
        return {self.name: encoded.retriever(over.retrieval_set)}

    def title(self, model):
        return f"encoder {model.saved.name}"

    def facts(self, model, settings, training):
        head = {"its head": model.saved.head} if model.saved.head else {}
        read_by = ", queries by its student" if model.student else ""
        return {"encoder": f"{model.saved.name}, {model.dim} dimensions{read_by}", **head}

    def exported_parts(self, published, others):
        from tf_smoothclir.publishing.exported_head import ExportedHead

        head = {}
        if published.head or published.student:
            head["head"] = ExportedHead(published.head, published.student)
        return {**super().exported_parts(published, others), **head}

    def vectors_in_graph(self, publication):
        from tf_smoothclir.publishing.exported_head import ExportedHead
        from tf_smoothclir.publishing.exported_search import VectorsInGraph

        model = publication.published[self.name]
        if model.student is None:
            return None
        try:
            logging.info("Documents of the search model are encoded by %s", model.encoder.name)
        except InputError as error:
            logging.info("A search model would need the encoder, for its documents: %s", error)
            return None
        queries = ExportedHead(model.head, model.student)
        return {self.name: VectorsInGraph(queries, model.documents)}

    def index_half(self, models, kind):
        from tf_smoothclir.index.dense_half import DenseHalf

        half = DenseHalf({}.get, models[self.name].dim, kind)
        half.encode = models[self.name].documents  # it reads titles, as towers do not
        half.name = self.name
        return half

    def open_half(self, directory, entry, hashes):
        from tf_smoothclir.index.dense_half import open_dense_half

        return open_dense_half(directory, entry, hashes)

    def scorer(self, model, documents):
        vectors = model.vectors("document", documents)
        return lambda queries: model.vectors("query", queries) @ vectors.T

    def scores(self, models, queries, documents):
        vectors = models[self.name].vectors
        return np.sum(vectors("query", queries) * vectors("document", documents), axis=1)

    def retriever_over(self, models, retrieval_set):
        return self._encoded(models[self.name], retrieval_set).retriever(retrieval_set)

    def ranker(self, models, index):
        if not isinstance(index, DocumentIndex):
            return super().ranker(models, index)  # refuses it
        # Vectors of words say nothing of those of texts.
        explain = functools.partial(explain_hits_by_leaving_out, self._scorer_of(models))
        return DenseRanker(self.name, index, models[self.name].read_queries(), explain)

    def _encoded(self, model, retrieval_set, documents: np.ndarray | None = None) -> Any:
        from tf_smoothclir.foreign_encoders.opening import EncodedSet

        encoded = EncodedSet.of(
            *(model.encoder, retrieval_set.source, model.cache_dir, documents),
            student=model.student,
        )
        if model.head is None:
            return encoded
        if documents is None:
            return model.head.over(encoded)
        # Documents of an index are by the head already.
        queries = model.head.vectors("query", encoded.queries)
        return dataclasses.replace(encoded, queries=queries)
