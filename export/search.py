"""Answers queries in one language with documents in the other, with exported models.

Searches what smoothclir-index wrote. Without --index_dir, the set that the models were trained on
is indexed first if it has no index yet. Queries come from --query, from --queries, or from standard
input, one per line.
"""

from absl import flags

from tf_smoothclir.command_line import command, setting_flags, shipping_flags
from tf_smoothclir.command_line.setting_flags import define_path, flag
from tf_smoothclir.storage.files import check_output_file

setting_flags.define_index_flags()
shipping_flags.define_engine_flags(searches=True)
setting_flags.define_retriever()
setting_flags.define_settings(["data"])
_QUERY = "A query; repeat the flag for more."
flags.DEFINE_multi_string("query", [], _QUERY, module_name=command.COMMAND)
_QUERIES = (
    "File of queries, one per line: an id, a tab and a text, a JSON object with an id and a text,"
    " or a text alone."
)
define_path("queries", "", _QUERIES)
flag("top_k", 10, "Documents per query.", minimum=1)
flag("json", False, "Print one JSON object per query.")
_TREC_RUN = "Write the hits to this TREC run file instead of printing them."
_RUN_FILE = define_path("trec_run", "", _TREC_RUN)
_EXPLAIN = (
    "Show which words of a document its score comes from and, of a lexical or hybrid retriever,"
    " which words of the query they met, by which probability. Of towers alone, average pooling"
    " only."
)
flag("explain", False, _EXPLAIN)
flag("width", 150, "Characters of a text that are shown.", minimum=1)


def main(_argv) -> None:
    """Answers the queries."""
    if _RUN_FILE.value:
        check_output_file(_RUN_FILE.value, "--trec_run")
    setting_flags.check_export_dir(searched=True)
    # This import takes seconds: report a wrong flag first.
    from tf_smoothclir.command_line.searching import answer_queries

    answer_queries()


def run() -> None:
    """Entry point of `smoothclir-search`."""
    command.run_main(main, __doc__, ["data"])


if __name__ == "__main__":
    run()
