"""Writes a collection and queries for Elasticsearch or OpenSearch, which are built on Lucene.

It takes an export. Each document is written with what the words of the query language add to its
score, and its vector, where towers count. So these engines rank as the exported models do, up to
rounding and feedback: mapping.json, documents/*.ndjson for `_bulk`, queries.ndjson for `_msearch`.
docs/engines.md has the commands that index and search them.
"""

from __future__ import annotations

from pathlib import Path

from absl import flags

from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.storage.files import make_directory
from tf_smoothclir.utils.errors import input_error

_FORMAT = flags.DEFINE_enum(
    "format",
    "elasticsearch",
    ["elasticsearch", "opensearch"],
    "For whom: Elasticsearch from 8.15 on, or OpenSearch from 2.11 on.",
    module_name=command.COMMAND,
)
_EXPORT_DIR = setting_flags.define_path(
    "export_dir", "runs/train", "Directory that smoothclir-export wrote."
)
_VERSION = flags.DEFINE_integer(
    "version",
    None,
    "Version of the export; without it, the newest.",
    1,
    module_name=command.COMMAND,
)
_OUTPUT_DIR = setting_flags.define_path("output_dir", "lucene", "New directory to write.")
_COLLECTION = setting_flags.define_path(
    "collection",
    "",
    "Documents to write, in the formats of smoothclir-index; without it, those of a retrieval set,"
    " by default of the one that the model was trained on.",
)
_QUERIES = setting_flags.define_path(
    "queries",
    "",
    "File of queries, as for smoothclir-search. Without it, the queries of the retrieval set; with"
    " --collection, none.",
)
setting_flags.define_settings(["data"])


def main(argv) -> None:
    """Writes the files."""
    del argv
    output_dir = Path(_OUTPUT_DIR.value)
    make_directory(output_dir.parent, "--output_dir")
    if output_dir.exists():
        raise input_error(f"--output_dir={output_dir}", "it is there already", "Give a new one")
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.data.sources.source import Text
    from tf_smoothclir.extras.lucene.bulk_files import write_bulk_files
    from tf_smoothclir.index.document_collections import open_collection
    from tf_smoothclir.publishing.exported_models import load_exported_models
    from tf_smoothclir.search.query_files import read_queries

    models = load_exported_models(_EXPORT_DIR.value, _VERSION.value)
    data = setting_flags.data_like(models.manifest.data)
    if _QUERIES.value:
        queries = (Text(query.id, "", query.text) for query in read_queries(_QUERIES.value))
    else:
        queries = () if _COLLECTION.value else source_of(data).queries()
    collection = open_collection(_COLLECTION.value, data)
    written = write_bulk_files(output_dir, models, collection, queries, _FORMAT.value)
    print(f"{output_dir}: {written}")


def run() -> None:
    """Entry point of `smoothclir-lucene`."""
    command.run_main(main, __doc__, ("data",))


if __name__ == "__main__":
    run()
