"""The encoder interface of MTEB (package `mteb`), for models of this package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tf_smoothclir.utils.errors import input_error

if TYPE_CHECKING:
    from tf_smoothclir.api.model import Model

_ROLES = {"query": "query", "document": "document", "passage": "document"}  # mteb 1: passage


class MtebEncoder:
    """A loaded model as MTEB's `EncoderProtocol`: `mteb.evaluate(MtebEncoder(model), tasks)`.

    For tasks of retrieval and re-ranking, where MTEB says which texts are queries and which are
    documents: each kind has a tower of its own. Needs towers (`preset="dense"`, for example). MTEB
    measures the vectors alone, not the translation table of a hybrid.

    ```python
    import mteb

    tasks = mteb.get_tasks(tasks=["BelebeleRetrieval"], languages=["eng", "fra"])
    mteb.evaluate(sc.MtebEncoder(model, name="me/en-fr"), tasks)
    ```

    Attributes:
        model: The model.
    """

    def __init__(self, model: Model, name: str = "tf_smoothclir/model", revision: str = "1"):
        """Takes a model.

        Args:
            model: Of `train` or `load`.
            name: What MTEB calls it in its results, "organization/model".
            revision: Its version there. MTEB keeps results by name and revision: change it with
                the model.

        Raises:
            InputError: The model has no towers.
        """
        if not model.dim:
            raise input_error(
                f"MtebEncoder: {model.path}",
                "the model has no towers, so it gives no vectors",
                "Train one with preset='dense'",
            )
        self.model, self._name, self._revision = model, name, revision

    def encode(
        self, inputs: Iterable[Mapping[str, Any] | str], *, prompt_type: Any = None, **kwargs: Any
    ) -> np.ndarray:
        """Returns vectors, `[texts, dim]` float32.

        Args:
            inputs: Batches, as MTEB's `DataLoader` gives them: a dictionary whose "text" is a list
                of strings; or the strings themselves, as in mteb 1.
            prompt_type: MTEB's `PromptType`, or its value: "query" or "document".
            **kwargs: What MTEB says of its task; not used.

        Raises:
            InputError: MTEB does not say which kind of text it is, or the inputs are no texts.
        """
        role = _ROLES.get(str(getattr(prompt_type, "value", prompt_type)))
        if role is None:
            raise input_error(
                f"MtebEncoder: prompt_type={prompt_type!r}",
                "queries and documents have towers of their own, and this task does not say which"
                " of them its texts are",
                "Choose tasks of retrieval or re-ranking",
            )
        texts: list[str] = []
        for batch in inputs:
            if isinstance(batch, str):
                texts.append(batch)
            elif "text" in batch:
                texts += batch["text"]
            else:
                reason = f"a batch has {', '.join(batch)}, and no 'text'"
                raise input_error("MtebEncoder: inputs", reason, "Choose tasks of texts")
        encode = self.model.encode_queries if role == "query" else self.model.encode_documents
        return encode(texts)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> np.ndarray:
        """Returns the smooth cosine similarity of each vector of one array with each of another.

        Args:
            embeddings1: `[texts, dim]`, or `[dim]` for a single vector.
            embeddings2: The same.

        Returns:
            `[texts of embeddings1, texts of embeddings2]`.
        """
        first, second = np.atleast_2d(embeddings1), np.atleast_2d(embeddings2)
        return first @ second.T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> np.ndarray:
        """Returns the smooth cosine similarity of the vectors in the same row, `[texts]`.

        Args:
            embeddings1: `[texts, dim]`, or `[dim]` for a single vector.
            embeddings2: The same shape.
        """
        first, second = np.atleast_2d(embeddings1), np.atleast_2d(embeddings2)
        return np.sum(first * second, axis=1)

    @property
    def mteb_model_meta(self) -> Any:
        """MTEB's `ModelMeta`.

        Raises:
            InputError: The package `mteb` is not installed, or is older than version 2.
        """
        try:
            from mteb.models.model_meta import ModelMeta
        except ImportError as error:
            reason = f"the package mteb is missing, or too old ({error})"
            raise input_error("MtebEncoder", reason, "pip install 'mteb>=2'") from None
        return ModelMeta.create_empty(
            {
                "name": self._name,
                "revision": self._revision,
                "embed_dim": self.model.dim,
                "framework": ["TensorFlow"],
                "similarity_fn_name": "dot",
            }
        )
