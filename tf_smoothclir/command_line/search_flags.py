"""The flags of smoothclir-search."""

from __future__ import annotations

from absl import flags

from tf_smoothclir.command_line.engine_flags import define_engine_flags
from tf_smoothclir.command_line.setting_flags import (
    COMMAND,
    FLAGS,
    check_export_dir,
    define_index_flags,
    define_path,
    define_retriever,
    define_settings,
    flag,
)
from tf_smoothclir.storage.files import check_output_file


def define_search_flags() -> None:
    """Defines all flags of the command."""
    define_index_flags()
    define_engine_flags(searches=True)
    define_retriever()
    define_settings(["data"])
    flags.DEFINE_multi_string(
        "query", [], "A query; repeat the flag for more.", module_name=COMMAND
    )
    define_path(
        "queries",
        "",
        "File of queries, one per line: an id, a tab and a text, a JSON object with an id and a"
        " text, or a text alone.",
    )
    flag("top_k", 10, "Documents per query.", minimum=1)
    flag("json", False, "Print one JSON object per query.")
    define_path("trec_run", "", "Write the hits to this TREC run file instead of printing them.")
    flag(
        "explain",
        False,
        "Show which words of a document its score comes from and, of a lexical or hybrid retriever,"
        " which words of the query they met, by which probability. Of towers alone, average pooling"
        " only.",
    )
    flag("width", 150, "Characters of a text that are shown.", minimum=1)


def check_search_flags() -> None:
    """Reports mistakes that would show only after seconds, or never."""
    if FLAGS.trec_run:
        check_output_file(FLAGS.trec_run, "--trec_run")
    check_export_dir()
