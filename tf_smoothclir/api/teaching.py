"""A foreign encoder as a teacher, from Python: judgments for queries that nobody judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tf_smoothclir.api.given import Judgments, Texts
from tf_smoothclir.api.sets import set_in_memory
from tf_smoothclir.foreign_encoders.opening import EncodedSet, encoder_of
from tf_smoothclir.foreign_encoders.python_encoders import PythonEncoder
from tf_smoothclir.foreign_encoders.teaching import taught
from tf_smoothclir.settings.encoder import EncoderSettings
from tf_smoothclir.settings.presets import changed, preset_settings
from tf_smoothclir.utils.progress import progress_shown


def teach(
    queries: Texts,
    documents: Texts,
    *,
    encoder: Any,
    judgments: Judgments | None = None,
    splits: Mapping[str, str] | None = None,
    encoder_model: str = "",
    query_prefix: str = "",
    document_prefix: str = "",
    progress: bool | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Makes judgments of an encoder for queries that nobody judged, such as a query log.

    ```python
    model = sc.train(**sc.teach(log, documents, encoder=my_model.encode), preset="lexical")
    ```

    The encoder ranks the documents for each query, and a translation table learns from its first
    hits; then both judge together, which is better than either. What people judged stays, and alone
    is for test queries; without that, a run has no test figures.

    Args:
        queries: As for `train`; those without judgments are what is taught.
        documents: As for `train`.
        encoder: A function from a list of texts to `[texts, dim]`; an object of a library with
            `encode_queries` and `encode_documents`, or with `encode`; or what `--encoder` takes,
            such as "http://localhost:8000/v1". Vectors are kept in `cache_dir` by text; those of a
            function, by its name.
        judgments: As for `train`, of some of the queries.
        splits: As for `train`, of the judged queries.
        encoder_model: The model that a server is asked for.
        query_prefix: Put before each query, such as "query: ".
        document_prefix: Put before each document, such as "passage: ".
        progress: Whether to show progress bars; None shows them on a terminal and in a notebook.
        **settings: Settings of the text and the data of `train`, such as `document_language`.

    Returns:
        `queries`, `documents`, `judgments` and `splits`: arguments of `train`.

    Raises:
        InputError: The data or the encoder cannot be used, or all queries have judgments.
    """
    chosen = changed(preset_settings("lexical"), settings)
    texts = {"queries": queries, "documents": documents}
    parts = {**texts, "judgments": [] if judgments is None else judgments}
    named = None if splits is None else {str(id_): split for id_, split in splits.items()}
    source = set_in_memory("teach", parts, named, chosen.data)
    if isinstance(encoder, str):
        opened = encoder_of(EncoderSettings(encoder, encoder_model, query_prefix, document_prefix))
    else:
        opened = PythonEncoder(encoder, query_prefix=query_prefix, document_prefix=document_prefix)
    with progress_shown(progress):
        found = taught(source, EncodedSet.of(opened, source, chosen.data.cache_dir), chosen)
    return {
        **texts,
        "judgments": [tuple(judgment) for judgment in found.judgments()],
        "splits": found.splits(),
    }
