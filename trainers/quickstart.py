"""Goes the whole way on the built-in toy world: tokenise, train, evaluate, export, search.

The toy world is generated and readable; nothing is downloaded. The queries are English ones that
training has not seen; the documents are French.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from absl import flags

from tf_smoothclir.command_line import command
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.presets import PRESETS, changed
from tf_smoothclir.settings.run import RunSettings

_OUTPUT_DIR = flags.DEFINE_string(
    "output_dir", "runs/quickstart", "The run directory.", module_name=command.COMMAND
)
_OVERWRITE = flags.DEFINE_boolean(
    "overwrite",
    False,
    "Start again, even if the quickstart in --output_dir is finished.",
    module_name=command.COMMAND,
)
SETTINGS = changed(RunSettings(data=DataSettings(toy_entities=3000)), PRESETS["best"])


def main(argv) -> None:
    """Goes the whole way."""
    del argv
    from tf_smoothclir.data.retrieval_set import RetrievalSet
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.data.sources.toy_world import example_queries
    from tf_smoothclir.evaluation.report import metrics_cells
    from tf_smoothclir.index.work_directory import work_directory
    from tf_smoothclir.publishing.export import export_run
    from tf_smoothclir.publishing.export_directory import exported_versions
    from tf_smoothclir.search.display import print_hits
    from tf_smoothclir.search.opening import open_search
    from tf_smoothclir.training.run_directory import RunDirectory
    from tf_smoothclir.training.train import train
    from tf_smoothclir.utils.tables import print_table

    output_dir = _OUTPUT_DIR.value
    print_table(*metrics_cells(train(SETTINGS, output_dir, overwrite=_OVERWRITE.value), ["test"]))
    if _OVERWRITE.value or not exported_versions(output_dir, "query"):
        index_dir = Path(output_dir, "index")
        for outdated in (index_dir, work_directory(index_dir)):  # made with other towers
            shutil.rmtree(outdated, ignore_errors=True)
        export_run(RunDirectory.load(output_dir), output_dir)
    search = open_search(output_dir, "", lambda trained_on: trained_on)
    world = RetrievalSet.load(source_of(SETTINGS.data))
    unseen = {world.query_ids[row] for row in world.queries_in("test")}
    for query in example_queries(world.source, unseen):
        (hits,), (reading,) = search.search([query], 3), search.read([query])
        print_hits(query, hits, width=400, reading=reading)
    print(f"\nReport: {output_dir}/report.md. Search for more, one query per line:")
    print(f"  smoothclir-search --export_dir={output_dir}")


def run() -> None:
    """Entry point of `smoothclir-quickstart`."""
    command.run_main(main, __doc__)


if __name__ == "__main__":
    run()
