"""Writes a collection and queries for Lucene, Elasticsearch or OpenSearch.

It takes an export. Each document is written with what the words of the query language add to its
score, so these engines rank as the lexical model does, up to rounding and feedback:

* `--format=anserini`: documents/*.jsonl (a JsonVectorCollection of integers), topics.tsv;
* `--format=elasticsearch` or `opensearch`: mapping.json, documents/*.ndjson for `_bulk`,
  queries.ndjson for `_msearch`; vectors too, where towers count.

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
    "anserini",
    ["anserini", "elasticsearch", "opensearch"],
    "For whom: Anserini and Pyserini, Elasticsearch from 8.15 on, or OpenSearch from 2.11 on.",
    module_name=command.COMMAND,
)
_EXPORT_DIR = setting_flags.define_path(
    "export_dir", "runs/train", "Directory that smoothclir-export wrote."
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
_BITS_HELP = (
    "For Anserini: bits of the largest impact. More round less, and make Anserini's index larger."
)
_BITS = flags.DEFINE_integer("bits", 8, _BITS_HELP, 1, 16, module_name=command.COMMAND)
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
    from tf_smoothclir.extras.lucene.anserini import write_anserini
    from tf_smoothclir.extras.lucene.bulk_files import write_bulk_files
    from tf_smoothclir.index.document_collections import open_collection
    from tf_smoothclir.publishing.exported_lexical import load_lexical
    from tf_smoothclir.publishing.exported_models import load_exported_models
    from tf_smoothclir.search.query_files import read_queries

    form, lexical, models = _FORMAT.value, None, None
    if form == "anserini":
        lexical, manifest = load_lexical(_EXPORT_DIR.value)
    else:
        models = load_exported_models(_EXPORT_DIR.value)
        manifest = models.manifest
    data = setting_flags.data_like(manifest.data)
    if _QUERIES.value:
        queries = (Text(query.id, "", query.text) for query in read_queries(_QUERIES.value))
    else:
        queries = () if _COLLECTION.value else source_of(data).queries()
    collection = open_collection(_COLLECTION.value, data)
    written: object
    if lexical is not None:
        written = write_anserini(output_dir, lexical, collection, queries, bits=_BITS.value)
    else:
        written = write_bulk_files(output_dir, models, collection, queries, form)
    print(f"{output_dir}: {written}")


def run() -> None:
    """Entry point of `smoothclir-lucene`."""
    command.run_main(main, __doc__, ("data",))


if __name__ == "__main__":
    run()
