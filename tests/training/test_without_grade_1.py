"""A set whose judgments name nothing but the mate of each query, from training to search."""

import math

import pytest

from tests.training.tiny_set import tiny_settings, write_tiny_set
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.search.opening import open_search
from tf_smoothclir.settings.presets import PRESETS
from tf_smoothclir.storage.files import read_json
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import train


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_presets_train_export_and_search(tmp_path, no_child_process, preset):
    mates_only = write_tiny_set(tmp_path / "mates")
    lines = (mates_only / "en2fr.rel").read_text().splitlines(keepends=True)
    (mates_only / "en2fr.rel").write_text("".join(s for s in lines if s.endswith("\t2\n")))
    small = {"epochs": 1, "dim": 4, "batch_size": 8, "matryoshka_dims": (), "hard_negatives": 0}
    settings = tiny_settings(mates_only, tmp_path / "cache", **{**PRESETS[preset], **small})
    train(settings, tmp_path / "run")
    figures = read_json(tmp_path / "run" / "metrics.json")["test"]
    assert all(math.isfinite(value) for value in figures.values())
    assert figures["MRR_mr"] == figures["MRR_r"]  # the mate is the only relevant document

    export_run(RunDirectory.load(tmp_path / "run"), tmp_path / "export")
    search = open_search(tmp_path / "export", "", lambda data: data)
    queries = [query.text for query in source_of(settings.data).queries()]
    found = search.search(queries, 5)
    assert all(len(hits) == 5 for hits in found)
