"""Indexes a collection for search with exported models, on disk or in an engine.

The collection is the one given by --collection or, without it, a retrieval set: by default the one
that the models were trained on. If the command is interrupted, run it again: an index on disk
continues where it stopped. An index on disk is built in one go; to change it, build it again with
--overwrite. Documents are added, replaced and removed in an engine (--engine=milvus).
"""

from __future__ import annotations

from pathlib import Path

from absl import flags

from tf_smoothclir.command_line import command, engine_flags, setting_flags
from tf_smoothclir.settings.retrieval import INDEXED_FOR
from tf_smoothclir.utils.files import make_directory

_EXPORT_DIR, _INDEX_DIR = setting_flags.define_index_flags()
_COLLECTION = flags.DEFINE_string(
    "collection",
    "",
    "Documents to index: a file .tsv (id, text), .documents (id, title, text), .jsonl or .parquet"
    " (id, text and optionally title), or a directory of such files.",
    module_name=command.COMMAND,
)
_INDEX_TYPE = flags.DEFINE_enum(
    "index_type",
    "auto",
    ["auto", "flat", "int8", "binary", "hnsw"],
    "flat ranks exactly. int8 keeps a byte per number of a vector, on disk too, and binary a bit in"
    " memory beside these bytes on disk: a quarter of the size, nearly the same ranking. hnsw finds"
    " nearly all of the best documents, much faster. auto: flat up to 1 million documents, hnsw"
    " beyond.",
    module_name=command.COMMAND,
)
_HNSW_NEIGHBOURS = flags.DEFINE_integer(
    "hnsw_neighbours",
    32,
    "hnsw: links per document. More links find more, and cost memory and time to build.",
    lower_bound=2,
    module_name=command.COMMAND,
)
_SEARCH_EFFORT = flags.DEFINE_integer(
    "search_effort",
    0,
    "hnsw: candidates kept during the search (efSearch). More find more and take longer. 0: the"
    " default for the number of documents.",
    lower_bound=0,
    module_name=command.COMMAND,
)
_RETRIEVER = flags.DEFINE_enum(
    "retriever",
    "auto",
    INDEXED_FOR,
    "What the index is for. Of a hybrid, dense keeps vectors alone, and lexical words alone, which"
    " takes less disk and memory. auto: all that the export ranks with.",
    module_name=command.COMMAND,
)
_OVERWRITE = flags.DEFINE_boolean(
    "overwrite",
    False,
    "Replace the index, whatever its export, collection and type are.",
    module_name=command.COMMAND,
)
_BEAM = flags.DEFINE_string(
    "beam",
    "",
    "Encode --collection with Apache Beam and these pipeline options, such as"
    " --beam='--runner=FlinkRunner --flink_master=host:8081'.",
    module_name=command.COMMAND,
)
engine_flags.define_engine_flags(searches=False)
_ADD = flags.DEFINE_string(
    "add",
    "",
    "Documents to add to the collection in --engine, in the formats of --collection.",
    module_name=command.COMMAND,
)
_REMOVE = flags.DEFINE_string(
    "remove",
    "",
    "File with the ids of documents to remove from the collection in --engine, one per line. They"
    " are removed before --add adds documents.",
    module_name=command.COMMAND,
)
_REPLACE = flags.DEFINE_boolean(
    "replace",
    False,
    "A document of --add replaces the one with the same id. Without this flag that is an error.",
    module_name=command.COMMAND,
)
setting_flags.define_settings(["data"])


def main(argv) -> None:
    """Indexes the collection, or changes it."""
    del argv
    setting_flags.check_export_dir()
    engine = engine_flags.engine_address()
    index_dir = Path(_INDEX_DIR.value or Path(_EXPORT_DIR.value, "index"))
    if engine is None:
        make_directory(index_dir.parent, "--index_dir")
    from tf_smoothclir.index.builder import build_index
    from tf_smoothclir.index.document_collections import open_collection
    from tf_smoothclir.index.export_halves import export_halves
    from tf_smoothclir.index.vector_index import IndexSettings

    settings = IndexSettings(_INDEX_TYPE.value, _HNSW_NEIGHBOURS.value, _SEARCH_EFFORT.value)
    if _ADD.value or _REMOVE.value:
        _change(engine, *export_halves(_EXPORT_DIR.value))
        return
    retriever = "" if _RETRIEVER.value == "auto" else _RETRIEVER.value
    halves, export = export_halves(_EXPORT_DIR.value, settings, retriever=retriever)
    data = setting_flags.data_like(export.data)
    collection = open_collection(_COLLECTION.value, data)
    data = None if _COLLECTION.value else data
    if engine is not None:
        _write(engine, collection, halves, export, settings, data)
        return
    manifest = build_index(
        index_dir,
        collection,
        halves,
        export,
        data=data,
        overwrite=_OVERWRITE.value,
        **_with_beam(export.version),
    )
    print(f"{index_dir}: {manifest}")


def _write(engine, collection, halves, export, settings, data) -> None:
    from tf_smoothclir.engines.milvus import Milvus
    from tf_smoothclir.engines.milvus_building import build_collection

    with Milvus(engine.uri) as milvus:
        written = build_collection(
            milvus,
            engine.collection,
            collection,
            halves,
            export,
            settings,
            data=data,
            overwrite=_OVERWRITE.value,
        )
        _report(engine, written)


def _change(engine, halves, export) -> None:
    from tf_smoothclir.engines.milvus import Milvus
    from tf_smoothclir.engines.milvus_building import change_collection
    from tf_smoothclir.index.document_collections import open_files, read_ids

    add = open_files(_ADD.value, "--add") if _ADD.value else None
    remove = read_ids(_REMOVE.value) if _REMOVE.value else ()
    with Milvus(engine.uri) as milvus:
        changed = change_collection(
            milvus,
            engine.collection,
            halves,
            export,
            add=add,
            remove=remove,
            replace=_REPLACE.value,
        )
        _report(engine, changed)


def _report(engine, collection) -> None:
    print(f"{engine.uri} {engine.collection}: {len(collection)} documents")


def _with_beam(version: int) -> dict:
    if not _BEAM.value:
        return {}
    from tf_smoothclir.index.beam_encoding import BeamEncoder

    return {"encode_all": BeamEncoder(_EXPORT_DIR.value, version, _BEAM.value.split())}


def run() -> None:
    """Entry point of `smoothclir-index`."""
    command.run_main(main, __doc__, ["data"])


if __name__ == "__main__":
    run()
