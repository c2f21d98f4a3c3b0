"""The flags of smoothclir-export, and the options of `export_run` that they give."""

from __future__ import annotations

from tf_smoothclir.command_line.setting_flags import (
    FLAGS,
    define_path,
    define_verify,
    flag,
)


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
    define_verify()


def export_options() -> dict:
    """Keyword arguments of `export_run`."""
    names = "search_model", "max_search_documents", "search_depth", "dim"
    options = {name: FLAGS[name].value for name in names}
    if FLAGS.collection:
        from tf_smoothclir.index.document_collections import open_files

        options["collection"] = open_files(FLAGS.collection, "--collection")
    return options
