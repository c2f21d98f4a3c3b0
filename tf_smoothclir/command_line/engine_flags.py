"""The flags of an engine that holds the collection, in place of an index on disk."""

from __future__ import annotations

from tf_smoothclir.command_line.setting_flags import FLAGS, define_path, flag


def define_engine_flags(*, searches: bool) -> None:
    """Defines --engine, --uri, --engine_collection and, for commands that search, --filter."""
    flag(
        "engine",
        "embedded",
        "Where the documents are. embedded: in the index in --index_dir. milvus: in Milvus at"
        " --uri, where documents can be added, replaced and removed. docs/scale.md says when that"
        " pays.",
        choices=("embedded", "milvus"),
    )
    define_path(
        "uri",
        "",
        "Address of --engine=milvus, such as http://localhost:19530, or a file ending in .db for"
        " Milvus Lite. The environment variable MILVUS_TOKEN has its user:password or key, if any.",
    )
    flag("engine_collection", "smoothclir", "Name of the collection in --engine.")
    if searches:
        flag(
            "filter",
            "",
            "Find only documents in --engine for which this expression of Milvus holds, such as"
            " 'title like \"Berlin%\"'. Fields: id, title, text.",
        )


def engine_address():
    """The `Address` that the flags give; None for the index on disk."""
    from tf_smoothclir.engines.milvus import Address

    if FLAGS.engine == "embedded":
        return None
    filter_ = FLAGS.filter if "filter" in FLAGS else ""
    return Address(FLAGS.uri, FLAGS.engine_collection, filter_)
