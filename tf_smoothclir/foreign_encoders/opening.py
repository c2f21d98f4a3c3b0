"""Opening the foreign encoder that the settings name, and encoding a set with it."""

import dataclasses
import os
from pathlib import Path
from typing import Self

import numpy as np

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import Source, text_read
from tf_smoothclir.data.token_cache import default_cache_dir
from tf_smoothclir.foreign_encoders.endpoint import EndpointEncoder
from tf_smoothclir.foreign_encoders.protocol import ForeignEncoder
from tf_smoothclir.foreign_encoders.python_encoders import LIBRARIES, imported, of_library
from tf_smoothclir.foreign_encoders.student import Student
from tf_smoothclir.foreign_encoders.vector_store import VectorFile, VectorStore
from tf_smoothclir.settings.data import EncoderSettings
from tf_smoothclir.two_tower.scorer import DenseRetriever
from tf_smoothclir.utils.errors import input_error

NAMED = "SMOOTHCLIR_ENCODER"  # environment variable: an encoder that runs may open
_named: set[str] = set()  # by the user of this process


def encoder_of(settings: EncoderSettings) -> ForeignEncoder | VectorFile:
    """The encoder that `--encoder` names."""
    name = settings.encoder
    _named.add(name)
    prefixes = {"query_prefix": settings.query_prefix, "document_prefix": settings.document_prefix}
    if name.startswith(("http://", "https://")):
        return EndpointEncoder(name, settings.encoder_model, **prefixes)
    if name.lower().endswith(".npz"):
        return VectorFile(name)
    library, colon, model = name.partition(":")
    if library in LIBRARIES:
        return of_library(library, model, **prefixes)
    if colon and model:
        return imported(name, **prefixes)
    raise input_error(
        f"--encoder={name}",
        "it names no encoder",
        f"Give http://..., FILE.npz, {':NAME, '.join(LIBRARIES)}:NAME or MODULE:NAME",
    )


def reopened(settings: EncoderSettings, digest: str) -> ForeignEncoder | VectorFile:
    """The encoder that a run names, if it may be opened and is the one of its training."""
    # No code is imported and no server is asked because a file says so: the user must have named it
    # in this process, or in the environment variable `NAMED`.
    name = settings.encoder
    library, _, _ = name.partition(":")
    is_harmless = name.lower().endswith(".npz") or library in LIBRARIES
    if not is_harmless and name not in {*_named, os.environ.get(NAMED)}:
        raise input_error(
            f"encoder {name}",
            "the run was made with it, and nothing is asked or imported because a file says so",
            f"If you trust it, set {NAMED}={name}",
        )
    encoder = encoder_of(settings)
    if digest != getattr(encoder, "digest", ""):
        remedy = "Give it the encoder of its training, or train again"
        raise input_error(f"encoder {name}", "it is another one than in training", remedy)
    return encoder


def store_of(encoder: ForeignEncoder | VectorFile, cache_dir: str = "") -> VectorStore:
    """The store of the vectors of an encoder, which encodes what it lacks."""
    if isinstance(encoder, VectorFile):
        raise input_error(
            f"--encoder={encoder.name}.npz",
            "it has the vectors of the texts of a set, by their ids, and can encode no others",
            "Train with an encoder that reads texts, to search, score or distill",
        )
    return VectorStore(encoder, Path(cache_dir or default_cache_dir()))


@dataclasses.dataclass(frozen=True)
class EncodedSet:
    """The vectors of a set, `[texts, dim]` float32, by row; of length 1, unless by a head."""

    name: str
    queries: np.ndarray
    documents: np.ndarray

    @classmethod
    def of(
        cls,
        encoder: ForeignEncoder | VectorFile,
        source: Source,
        cache_dir: str = "",
        documents: np.ndarray | None = None,
        student: Student | None = None,
    ) -> Self:
        """Encodes texts of a set, or finds their vectors, but for `documents` that are known."""
        # The student, if there is one, encodes the queries.
        is_file = isinstance(encoder, VectorFile)
        store = encoder if is_file else store_of(encoder, cache_dir)
        # All texts are read first: encoding takes long, and a fault in them ends it.
        queries = [text.id if is_file else text.text for text in source.queries()]
        read = source.documents() if documents is None else ()
        texts = [text.id if is_file else text_read(text, titles=True) for text in read]
        vectors = student.encoder.encode(queries) if student else store.vectors("query", queries)
        if documents is None:
            documents = store.vectors("document", texts)
            if len(vectors) and vectors.shape[1] != documents.shape[1]:
                numbers = f"{vectors.shape[1]} numbers, those of documents {documents.shape[1]}"
                reason = f"its vectors of queries have {numbers}"
                raise input_error(f"encoder {encoder.name}", reason, "Give one encoder for both")
        return cls(encoder.name, vectors, documents)

    def retriever(self, retrieval_set: RetrievalSet) -> DenseRetriever:
        """Ranks by cosine."""
        return DenseRetriever(self.queries, self.documents, retrieval_set.tie_order)
