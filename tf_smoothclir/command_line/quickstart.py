"""The work of smoothclir-quickstart: train, export, index, search for unseen queries."""

import shutil
from pathlib import Path

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.toy_world import example_queries
from tf_smoothclir.evaluation.report import metrics_cells
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.publishing.export_directory import exported_versions
from tf_smoothclir.search.display import print_hits
from tf_smoothclir.search.opening import open_search
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import train
from tf_smoothclir.utils.printing import print_table


def train_export_search(settings: RunSettings, output_dir: str, *, overwrite: bool) -> None:
    """Prints metrics of the test split, and hits for some of its queries; needs the toy world."""
    for table in metrics_cells(train(settings, output_dir, overwrite=overwrite), ["test"]):
        print_table(*table)
    if overwrite or not exported_versions(output_dir, "query"):
        shutil.rmtree(Path(output_dir, "index"), ignore_errors=True)  # made with other towers
        export_run(RunDirectory.load(output_dir), output_dir)
    search = open_search(output_dir, "", lambda trained_on: trained_on)
    world = RetrievalSet.load(source_of(settings.data))
    unseen = {world.query_ids[row] for row in world.queries_in("test")}
    for query in example_queries(world.source, unseen):
        (hits,) = search.search([query], 3)
        print_hits(query, hits, width=400, reading=hits.reading)
    print(f"\nReport: {output_dir}/report.md. Search for more, one query per line:")
    print(f"  smoothclir-search --export_dir={output_dir}")
