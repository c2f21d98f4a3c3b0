"""Settings of a foreign encoder: which, and how it wants its texts."""

from __future__ import annotations

import dataclasses

from tf_smoothclir.settings.base import Settings, setting


@dataclasses.dataclass(frozen=True)
class EncoderSettings(Settings):
    """A model from elsewhere that turns texts into vectors."""

    encoder: str = setting(
        "",
        "A multilingual encoder. http://localhost:8000/v1: an OpenAI-compatible server, by address."
        " sentence-transformers:NAME or model2vec:NAME: a model of these packages, by name or"
        " directory. FILE.npz: the arrays query_ids, queries, document_ids and documents."
        " MODULE:NAME: a function of texts, or an object with encode_queries and encode_documents.",
    )
    encoder_model: str = setting("", "The model that a server is asked for, by its name there.")
    query_prefix: str = setting(
        "", 'Put before each query that the encoder reads, such as "query: " for e5.'
    )
    document_prefix: str = setting(
        "", 'Put before each document that the encoder reads, such as "passage: " for e5.'
    )
