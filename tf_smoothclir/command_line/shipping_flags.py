"""The flags of smoothclir-export and smoothclir-index, those of engines, and what they give."""

from tf_smoothclir.command_line import setting_flags
from tf_smoothclir.command_line.setting_flags import FLAGS, define_path, flag
from tf_smoothclir.index.index_kind import AUTO, KINDS


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


def define_export_flags() -> None:
    """Defines all flags of the command."""
    define_path("run_dir", "runs/train", "Run directory of smoothclir-train.")
    define_path(
        "export_dir",
        "",
        "Directory for query_tower/<version>, document_tower/<version>, lexical_model/<version> and"
        " search/<version>; empty: the run directory.",
    )
    flag(
        "search_model",
        True,
        "Also export the collection of the run as a search model. --nosearch_model if the data of"
        " the run are gone, or if you build an index instead.",
    )
    define_path(
        "collection",
        "",
        "Documents of the search model, in the formats of smoothclir-index; empty: those of the"
        " run.",
    )
    flag(
        "max_search_documents",
        200_000,
        "A larger collection gets no search model, because each query reads all its vectors.",
        minimum=1,
    )
    flag("search_depth", 10, "Documents that the search model returns per query.", minimum=1)
    flag(
        "dim",
        0,
        "Cuts the vectors to this length, one of the --matryoshka_dims of the run: a smaller and"
        " faster model that ranks a little worse. 0: not cut.",
        minimum=0,
    )
    setting_flags.define_verify()


def export_options() -> dict:
    """Keyword arguments of `export_run`."""
    names = "search_model", "max_search_documents", "search_depth", "dim"
    options = {name: FLAGS[name].value for name in names}
    if FLAGS.collection:
        from tf_smoothclir.index.document_collections import open_files

        options["collection"] = open_files(FLAGS.collection, "--collection")
    return options


def define_building_flags() -> None:
    """Defines the flags of an index to build, and of a collection in an engine to change."""
    setting_flags.define_index_flags()
    define_engine_flags(searches=False)
    setting_flags.define_settings(["data"])
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
