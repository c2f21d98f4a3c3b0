"""The flags of an engine that holds the collection, in place of an index on disk."""

from __future__ import annotations

from tf_smoothclir.command_line.setting_flags import FLAGS, define_path, flag


def define_engine_flags(*, searches: bool) -> None:
    """Defines --engine, --uri, --engine_collection and, for commands that search, --filter."""
    flag(
        "engine",
        "embedded",
        "Where the documents are. embedded: in the index in --index_dir. milvus: in Milvus at"
        " --uri, where documents come and go (docs/milvus.md).",
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
            "Find only documents for which this condition over their other columns holds, in SQL,"
            " such as \"year > 2021 and section = 'Web'\". With --engine=milvus, an expression of"
            " Milvus over id, title and text, such as 'title like \"Berlin%\"'.",
        )


def engine_address():
    """The `Address` that the flags give; None for the index on disk."""
    from tf_smoothclir.engines.milvus import Address

    if FLAGS.engine == "embedded":
        return None
    filter_ = FLAGS.filter if "filter" in FLAGS else ""
    return Address(FLAGS.uri, FLAGS.engine_collection, filter_)


def where_to_search() -> dict:
    """Keywords of `open_search`: the engine, if there is one, and the filter of an index."""
    return {"engine": engine_address(), "filter": FLAGS.filter}
