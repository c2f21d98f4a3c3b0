"""What all benchmarks share: rounds in fresh processes, medians and ratios, tables, the machine.

A rival is a function that measures one thing once and returns its measurements by name. Each call
runs in its own process, so that rivals share neither threads nor memory.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import logging as standard_logging
import multiprocessing
import os
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import metadata, util

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from absl import app, flags

from tf_smoothclir.ops.intraop_threads import intraop_threads
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import name_flags
from tf_smoothclir.utils.memory import peak_memory

_PACKAGES = ("tensorflow", "tensorflow-ranking", "torch", "numpy", "ir-measures")
PROCESSES = multiprocessing.get_context("spawn")


def has(module: str) -> bool:
    """Whether a rival's package is installed."""
    return util.find_spec(module) is not None


def interleaved(
    rivals: Mapping[str, Callable[[], Mapping[str, float]]], rounds: int
) -> dict[str, list[dict[str, float]]]:
    """Measures every rival once per round, in an order that rotates from round to round."""
    names = list(rivals)
    measurements = {name: [] for name in names}
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            measurements[name].append(in_new_process(rivals[name]))
    return measurements


def halves_of_export(export_dir: str, index_type: str = "auto", retriever: str = ""):
    """The halves of an index for a retriever of an export, or for all, and the manifest."""
    from tf_smoothclir.index.builder import export_halves
    from tf_smoothclir.plugins import with_parts

    halves, manifest = export_halves(export_dir, index_type)
    if retriever:  # gets only what it needs
        halves = [half for half in halves if half.name in with_parts(retriever)]
        manifest = dataclasses.replace(manifest, retriever=retriever)
    return halves, manifest


def in_new_process(rival: Callable[[], Mapping[str, float]]) -> dict[str, float]:
    """What `in_this_process` returns in a new process."""
    with ProcessPoolExecutor(1, mp_context=PROCESSES) as pool:
        return pool.submit(in_this_process, rival).result()


def in_this_process(rival: Callable[[], Mapping[str, float]]) -> dict[str, float]:
    """The measurements of a rival, and "MB" and "load" of this process.

    "MB" is the peak memory, TensorFlow included. "load" is the machine's load average over the
    minute before, the benchmark included: programs with spinning threads, such as PyTorch, become
    many times slower if another process runs.
    """
    load = os.getloadavg()[0]
    measurements = dict(rival())
    return {**measurements, "MB": peak_memory() / 2**20, "load": load}


def use_threads(threads: int, settings: RunSettings | None = None) -> None:
    """Sets TensorFlow's threads, before it starts any."""
    import tensorflow as tf

    within = intraop_threads(settings, threads) if settings else threads
    tf.config.threading.set_intra_op_parallelism_threads(within)
    tf.config.threading.set_inter_op_parallelism_threads(threads)


def table(
    title: str,
    measurements: Mapping[str, Sequence[Mapping[str, float]]],
    *,
    ratio_of: str,
    references: Sequence[str],
) -> dict:
    """Summarizes the rounds."""
    present = [reference for reference in references if reference in measurements]
    rows = []
    for name, rounds in measurements.items():
        row = {key: _summary([r[key] for r in rounds]) for key in rounds[0]}
        for reference in present:
            ratios = [
                r[ratio_of] / base[ratio_of] for r, base in zip(rounds, measurements[reference])
            ]
            row[f"times {reference}"] = _summary(ratios)
        rows.append({"name": name, **row})
    return {"title": title, "ratio_of": ratio_of, "rows": rows}


def _summary(values: Sequence[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def machine() -> dict:
    """Processor, cores, load average of the last minute and versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "versions": {"python": platform.python_version(), **versions_of(_PACKAGES)},
    }


def versions_of(packages: Sequence[str]) -> dict[str, str]:
    """The version of each of these packages that is installed."""
    installed = [package for package in packages if has(package.replace("-", "_"))]
    return {package: metadata.version(package) for package in installed}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if "model name" in line]
    except OSError:
        names = []
    return names[0] if names else platform.machine()


def run(define_flags: Callable[[], None], measure: Callable[..., list[dict]]):
    """Runs a benchmark from the command line, whose flags are parameters of `measure`."""
    flags.DEFINE_integer("rounds", 3, "Number of measurements of each rival.", lower_bound=1)
    flags.DEFINE_boolean("json", False, "Print one JSON object instead of tables.")
    define_flags()
    standard_logging.disable(standard_logging.WARNING)

    def main(argv):
        if len(argv) > 1:
            raise app.UsageError(f"Unknown argument {argv[1]!r}; flags begin with --.")
        before = machine()
        names = [name for name in inspect.signature(measure).parameters if name in flags.FLAGS]
        tables = measure(**{name: flags.FLAGS[name].value for name in names})
        result = {"machine": before, "load_after": round(os.getloadavg()[0], 2), "tables": tables}
        print(json.dumps(result, indent=1) if flags.FLAGS.json else formatted(result))

    name_flags()
    app.run(main)


def formatted(result: Mapping) -> str:
    """A result as Markdown: a line about the machine, then the tables."""
    about = result["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    lines = [
        f"{about['processor']}, {about['cores']} cores; load {about['load']} before,"
        f" {result['load_after']} after; {versions}"
    ]
    for part in result["tables"]:
        columns = [name for name in part["rows"][0] if name != "name"]
        ratio = part["ratio_of"]
        lines += ["", f"{part['title']} (median, minimum and maximum; times: ratios of {ratio})"]
        lines += ["", "| | " + " | ".join(columns) + " |", "| --- |" + " --- |" * len(columns)]
        for row in part["rows"]:
            cells = [row["name"], *(_cell(row[column]) for column in columns)]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(summary: Mapping[str, float]) -> str:
    median, low, high = (_number(summary[name]) for name in ("median", "min", "max"))
    return median if low == high else f"{median} ({low} to {high})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
