"""The flags of smoothclir-index."""

from __future__ import annotations

from tf_smoothclir.command_line.engine_flags import define_engine_flags
from tf_smoothclir.command_line.setting_flags import (
    define_index_flags,
    define_path,
    define_settings,
    flag,
)
from tf_smoothclir.index.index_kind import AUTO, KINDS


def define_building_flags() -> None:
    """Defines the flags of an index to build, and of a collection in an engine to change."""
    define_index_flags()
    define_engine_flags(searches=False)
    define_settings(["data"])
    define_path(
        "collection",
        "",
        "Documents to index: a file .tsv, .csv, .jsonl or .parquet (id, text and optionally title)"
        " or .documents (id, title, text), or a directory of such files.",
    )
    flag(
        "index_type",
        "auto",
        "flat ranks exactly. hnsw finds nearly all of the best documents, much faster. auto: flat"
        " up to 1 million documents, hnsw beyond.",
        choices=(AUTO, *KINDS),
    )
    flag(
        "update",
        False,
        "Bring the index to the present state of its documents: encode those that are new or"
        " changed, and drop those that are gone.",
    )
    flag("overwrite", False, "Replace the index, whatever its export, collection and type are.")
    define_path(
        "add",
        "",
        "Documents to add to the collection in --engine, in the formats of --collection; they"
        " replace those with the same ids.",
    )
    define_path(
        "remove",
        "",
        "File with the ids of documents to remove from the collection in --engine, one per line."
        " They are removed before --add adds documents.",
    )
