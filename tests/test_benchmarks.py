"""The benchmarks run at tiny sizes and give sane tables; no speed is tested."""

import importlib
import json
import math
import multiprocessing
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import tensorflow as tf

from benchmarks import common, encoding, growth, preparation, profile, scaling, training, workload
from tests.cases import cases
from tests.engines.test_milvus import needs_milvus
from tf_smoothclir._compat import ON_KERAS_3
from tf_smoothclir.lexical.words import FLAT
from tf_smoothclir.optimizers import OPTIMIZERS
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.training.train import train

pytestmark = pytest.mark.slow

LENGTHS = {"query_tokens": 4, "document_tokens": 6}
TINY = workload.Workload(queries=5, documents=100, vocabulary=50, **LENGTHS, batch_size=8, dim=4)
ONCE = {"rounds": 1, "threads": 1}
SERVED = {"documents": 50, "dim": 4, "vocabulary": 200, "clients": 2, "seconds": 0.5, "rounds": 1}
VARIANTS = {"variants": [training.parse_variant("optimizer=lazy_adam,clip_norm=0.5")], "steps": 12}
SCALED = {scaling.STANDARD: TINY, "50 document tokens": scaling.sizes(TINY)["50 document tokens"]}
EVALUATED = {"queries": 20, "documents": 20, "collection": 50}
INDEXED = {"documents": 500, "dim": 8, "queries": 20, "kinds": ["hnsw"]}
ENGINE = {"documents": 60, "dim": 8, "queries": 5, "rounds": 1, "uri": "", "words": True}
RETRIEVED = {"export_dir": "hybrid", "documents": [60], "queries": 5, "rounds": 1}
RETRIEVED |= {"retrievers": ["lexical", "hybrid", "dense"]}
GROWN = {"pairs": (40, 80), "languages": (1, 2), "documents": (50, 60), "dimensions": (4, 8)}
GROWING = [["CPU s", "MRR@10"]] * 2 + [["CPU p50 ms", "build CPU s"], ["ms/step"]]
OF_RETRIEVAL = ["build s", "dense MB", "lexical MB"], ["mean ms", "p50 ms", "p99 ms"]


@pytest.fixture(autouse=True)
def _load_tensorflow_once(monkeypatch):
    """Rivals run in forks of a process that has only loaded TensorFlow."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tf_smoothclir.training.train"])
    monkeypatch.setattr(common, "PROCESSES", processes)


def rows_of(table, *measurements):
    """Name -> medians of a table, after a check of its form and that all values are positive."""
    for row in table["rows"]:
        for name in {"MB", *measurements} | {name for name in row if name.startswith("times ")}:
            assert math.isfinite(row[name]["median"])
            assert 0 < row[name]["min"] <= row[name]["median"] <= row[name]["max"]
    return {row.pop("name"): {n: v["median"] for n, v in row.items()} for row in table["rows"]}


@cases(
    "name, arguments, options, columns",
    ("checkpoints", [4, "directory"], {"rounds": 1}, [[]]),
    ("evaluation", [], {**EVALUATED, "rounds": 1}, [["s"], ["queries/s"]]),
    ("growth", [[*GROWN], GROWN], {"rounds": 1}, GROWING),
    ("index", [], {**INDEXED, **ONCE}, [["queries/s alone", "recall@10"]] * 2),
    ("memory", [[50, 60], 2000], {"calls": 1, **ONCE}, [["MB of tokens", "MB of data", "pairs/s"]]),
    ("retrieval", [], RETRIEVED, OF_RETRIEVAL),
    ("scaling", [SCALED], {"optimizer": "lazy_adam", "calls": 1, **ONCE}, [["rows a step"]]),
    ("serving", [], {**SERVED, "retriever": "hybrid"}, [["answers/s"]]),
    ("training", [TINY], {**VARIANTS, **ONCE}, [["pairs/s", "ms/step"]]),
    pytest.param("engine", [], ENGINE, [["p99 ms", "recall@10"]], marks=needs_milvus),
)
def test_small_measurements(name, arguments, options, columns, ranking_exports, tmp_path):
    if "export_dir" in options:
        options = {**options, "export_dir": str(ranking_exports[options["export_dir"]])}
    arguments = [str(tmp_path) if value == "directory" else value for value in arguments]
    measure = importlib.import_module(f"benchmarks.{name}").measure
    for table, of_table in zip(measure(*arguments, **options), columns, strict=True):
        found = rows_of(table, *of_table)
        assert len(found) > 1 or name in ("evaluation", "retrieval")
        assert all(row.get("largest difference", 0) < 1e-5 for row in found.values())
        exact = [row["recall@10"] for row in found.values() if "recall@10" in row]
        assert max(exact, default=1) == 1
    assert list(tmp_path.iterdir()) == []


def test_stacks_compares_two_pythons(tmp_path):
    other = tmp_path / "other_environment" / "bin" / "python"
    other.parent.mkdir(parents=True)
    other.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    other.chmod(0o755)
    from benchmarks import stacks

    sizes = {"queries": 20, "vocabulary": 200, **ONCE}
    (table,) = stacks.measure(str(other), variant=["optimizer=rmsprop"], **sizes)
    places = "other_environment", Path(sys.executable).parent.parent.name
    rows = rows_of(table, "pairs/s", "ms/step")
    assert rows.keys() == {f"TensorFlow {tf.__version__}, {place}" for place in places}


@pytest.mark.skipif(ON_KERAS_3, reason="TensorFlow 2.21 leaves most operations out of its trace")
@cases("optimizer", *[name for name in OPTIMIZERS if name != "adam"])  # is dense
def test_profile(optimizer):
    changes = {"optimizer": optimizer}
    measurements = common.in_new_process(partial(profile.profile, TINY, threads=1, changes=changes))
    # A part whose operations are called otherwise by now would be 0.
    assert all(value > 0 for value in measurements.values())
    assert {part for _, part in profile.PARTS} < measurements.keys()


def test_translation_tables_of_the_toy_world(tmp_path):
    from benchmarks import translation_table

    data = DataSettings(toy_entities=300, cache_dir=str(tmp_path))
    (table,) = translation_table.measure(data, FLAT)
    rows = {row.pop("name"): row for row in table["rows"]}
    assert rows.keys() == translation_table.variants(FLAT).keys()
    entries = [rows[f"least {least}"]["entries"]["median"] for least in ("0", "0.1")]
    assert entries[0] > entries[1]
    assert all(0 < row["quality"]["median"] <= 1 for row in rows.values())


def test_preparation_of_documents_of_the_wanted_length(tmp_path):
    preparation.write_toy_world(tmp_path, 300, tokens=200)
    (table,) = preparation.measure(str(tmp_path), "fr", rounds=1)
    ours, theirs = rows_of(table, "tokens/s", "tokens", "s").values()
    assert ours["tokens"] == theirs["tokens"] > 300 * 150  # the same work


def test_encoding_by_its_command():
    arguments = ["--json", "--rounds=1", "--documents=50", "--tokens=20", "--vocabulary=200"]
    command = [sys.executable, "-m", "benchmarks.encoding", *arguments]
    (table,) = json.loads(subprocess.check_output(command, cwd=Path(__file__).parents[1]))["tables"]
    rows = rows_of(table, "documents/s", "tokens a document")
    assert rows.keys() >= {encoding.PACKAGE, encoding.NUMPY, encoding.KERAS}


def test_ratios_are_taken_round_by_round():
    values = {"a": (2.0, 9.0, 8.0), "b": (1.0, 3.0, 2.0)}
    measurements = {name: [{"x": value} for value in of] for name, of in values.items()}
    table = common.table("Title", measurements, ratio_of="x", references=["b", "takes no part"])
    assert table["rows"][0] == {
        "name": "a",
        "x": {"median": 8.0, "min": 2.0, "max": 9.0},
        "times b": {"median": 3.0, "min": 2.0, "max": 4.0},
    }


def test_the_power_is_the_slope_at_the_largest_sizes_and_is_drawn(tmp_path):
    sizes = {"documents": (1, 10, 1000)}
    measured = {str(n): [{"s": 3 * n**1.5 + (n == 1)}] for n in sizes["documents"]}
    seconds = [of[0]["s"] for of in measured.values()]
    assert growth.power_of(sizes["documents"], seconds) == pytest.approx(1.5)
    table = common.table("a query by words", measured, ratio_of="s", references=[])
    growth.draw(str(tmp_path / "growth.png"), {"documents": table}, sizes)
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")


def test_reranking(tiny, tmp_path):
    from benchmarks import reranking

    train(tiny(reranker="late_interaction"), tmp_path / "run")
    sizes = {"networks": ["late_interaction", "knrm"], "candidates": 7, "queries": 3}
    (table,) = reranking.measure(run_dir=str(tmp_path / "run"), **sizes)
    assert rows_of(table, "p50 ms", "p99 ms", "cold p50 ms").keys() == set(sizes["networks"])


def test_transfer_measures_languages_that_a_model_has_not_seen():
    from benchmarks import transfer

    tables = transfer.measure("", "lexical", "it,sw", {"toy_entities": 600, "negatives": 3})
    titles = [f"Documents: {language}, trained on" for language in ("it", "sw")]
    assert [table["title"] for table in tables] == titles
    for table in tables:
        found = {row["name"]: row["full/MRR@10"]["median"] for row in table["rows"]}
        assert found.keys() == {"that language", "all", "the others"}
        assert 1 / 600 < found["the others"] < found["all"] <= 1
