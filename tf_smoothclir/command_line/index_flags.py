"""The flags of smoothclir-index."""

from __future__ import annotations

from absl import flags

from tf_smoothclir.command_line.engine_flags import define_engine_flags
from tf_smoothclir.command_line.setting_flags import (
    COMMAND,
    define_index_flags,
    define_path,
    define_settings,
)
from tf_smoothclir.settings.retrieval import INDEXED_FOR

_OWN = {"module_name": COMMAND}


def define_building_flags() -> None:
    """Defines the flags of an index to build, and of a collection in an engine to change."""
    define_index_flags()
    define_engine_flags(searches=False)
    define_settings(["data"])
    define_path(
        "collection",
        "",
        "Documents to index: a file .tsv (id, text), .documents (id, title, text), .jsonl or"
        " .parquet (id, text and optionally title), or a directory of such files.",
    )
    flags.DEFINE_enum(
        "index_type",
        "auto",
        ["auto", "flat", "int8", "binary", "hnsw"],
        "flat ranks exactly. int8 keeps a byte per number of a vector, on disk too, and binary a"
        " bit in memory and these bytes on disk: a quarter of the size, nearly the same ranking."
        " hnsw finds nearly all of the best documents, much faster. auto: flat up to 1 million"
        " documents, hnsw beyond.",
        **_OWN,
    )
    flags.DEFINE_integer(
        "hnsw_neighbours",
        32,
        "hnsw: links per document. More links find more, and cost memory and time to build.",
        lower_bound=2,
        **_OWN,
    )
    flags.DEFINE_integer(
        "search_effort",
        0,
        "hnsw: candidates kept during the search (efSearch). More find more and take longer. 0: the"
        " default for the number of documents.",
        lower_bound=0,
        **_OWN,
    )
    flags.DEFINE_enum(
        "retriever",
        "auto",
        INDEXED_FOR,
        "What the index is for. Of a hybrid, dense keeps vectors alone, and lexical words alone,"
        " which takes less disk and memory. auto: all that the export ranks with.",
        **_OWN,
    )
    flags.DEFINE_boolean(
        "overwrite",
        False,
        "Replace the index, whatever its export, collection and type are.",
        **_OWN,
    )
    add_help = "Documents to add to the collection in --engine, in the formats of --collection."
    define_path("add", "", add_help)
    define_path(
        "remove",
        "",
        "File with the ids of documents to remove from the collection in --engine, one per line."
        " They are removed before --add adds documents.",
    )
    flags.DEFINE_boolean(
        "replace",
        False,
        "A document of --add replaces the one with the same id. Without this flag that is an"
        " error.",
        **_OWN,
    )
