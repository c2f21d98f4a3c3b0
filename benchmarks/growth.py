"""How costs grow: with pairs, vocabulary, documents, languages and dimensions, and with what power.

python -m benchmarks.growth --plot=growth.png

Each size runs in a process of its own. Texts are made: queries of ten words, documents of forty in
which the words of their query stand in translation, words drawn as often as in real texts
(rank^-0.91). The power is the slope between the two largest sizes, both axes logarithmic: 1 is
proportional, 0 does not depend. Seconds and milliseconds are those of CPU, but training steps,
which use both cores, are timed by the clock.
"""

from __future__ import annotations

import functools
import itertools
import string
import tempfile
import time
from collections.abc import Mapping, Sequence

import numpy as np
from absl import flags, logging

from benchmarks import common
from benchmarks.turns import measured_in_turn
from benchmarks.workload import Workload, zipf_ranks

_QUERY_WORDS, _DOCUMENT_WORDS, _WORDS_IN_USE = 10, 40, 20_000
_LANGUAGES = ["".join(letters) for letters in itertools.product(string.ascii_lowercase, repeat=2)]
_SYLLABLES = ["".join(letters) for letters in itertools.product("bdfgklmnprstvz", "aeiou")]
_ASKED, _WARM_UP = 200, 20
# What grows -> its sizes, what is measured, and the setting of the others.
SIZES: dict[str, Sequence[int]] = {
    "pairs": (100, 1000, 10_000, 100_000),
    "words of the vocabulary": (1000, 10_000, 100_000, 1_000_000),
    "documents": (1000, 10_000, 100_000, 1_000_000),
    "languages": (1, 10, 100),
    "dimensions": (8, 32, 128, 512),
}
_MEASURED = {
    "pairs": ("CPU s", "learn and evaluate a table of words"),
    "words of the vocabulary": ("ms/step", "a training step of 128 pairs"),
    "documents": ("CPU p50 ms", "a query by words, top 10"),
    "languages": ("CPU s", "learn and evaluate a table of 10,000 pairs"),
    "dimensions": ("ms/step", "a training step of 128 pairs"),
}


def word(rank: int, language: int) -> str:
    """A word of four syllables that no other language has, and that its neighbours do not spell."""
    number = (rank * 7_919 + language * 1_299_709) * 48_271 % len(_SYLLABLES) ** 4
    places = (number // len(_SYLLABLES) ** power % len(_SYLLABLES) for power in range(4))
    return "".join(_SYLLABLES[place] for place in places)


def made_set(pairs: int, languages: int = 1, documents: int = 0) -> dict:
    """Arguments of `sc.train`: each query has a document, in one of the languages in turn."""
    generator = np.random.default_rng(13)
    number = max(pairs, documents)
    queries = zipf_ranks(generator, number * _QUERY_WORDS, _WORDS_IN_USE).reshape(number, -1)
    others = _DOCUMENT_WORDS - _QUERY_WORDS
    rest = zipf_ranks(generator, number * others, _WORDS_IN_USE).reshape(number, -1)
    texts = []
    for row, ranks in enumerate(np.concatenate([queries, rest], axis=1)):
        language = row % languages
        words = [word(rank, 1 + language) for rank in generator.permutation(ranks).tolist()]
        texts.append({"id": f"d{row}", "text": " ".join(words), "language": _LANGUAGES[language]})
    return {
        "queries": {
            f"q{row}": " ".join(word(rank, 0) for rank in ranks)
            for row, ranks in enumerate(queries[:pairs].tolist())
        },
        "documents": texts,
        "judgments": [(f"q{row}", f"d{row}", 1) for row in range(pairs)],
    }


def training(pairs: int, languages: int = 1) -> dict[str, float]:
    """CPU seconds of `sc.train` in a process that has loaded the package."""
    given = made_set(pairs, languages)
    _trained(made_set(100))  # builds what every training builds
    begin = time.process_time()
    model = _trained(given)
    return {"CPU s": time.process_time() - begin, "MRR@10": model.metrics["full/MRR@10"]}


def _trained(given: dict):
    import tf_smoothclir as sc

    logging.set_verbosity(logging.ERROR)  # of languages that nobody has
    return sc.train(**given, preset="lexical", folds=0)


def searching(documents: int) -> dict[str, float]:
    """CPU milliseconds of a query in the process, top 10."""
    model = _trained(made_set(3000))
    given = made_set(3000, documents=documents)
    queries = list(given["queries"].values())[: _ASKED + _WARM_UP]
    with tempfile.TemporaryDirectory() as directory:
        begin = time.process_time()
        model.build_index(f"{directory}/index", given.pop("documents"))
        built, worked = time.process_time() - begin, []
        for query in queries:
            begin = time.process_time()
            model.search([query], index=f"{directory}/index")
            worked.append(time.process_time() - begin)
    milliseconds = 1000 * np.array(worked[_WARM_UP:])
    percentiles = zip(("CPU p50 ms", "CPU p99 ms"), np.percentile(milliseconds, (50, 99)))
    return {**{name: float(value) for name, value in percentiles}, "build CPU s": built}


def steps(field: str, sizes: Sequence[int], rounds: int) -> dict[str, list[dict[str, float]]]:
    """Training steps of a `Workload` by one of its sizes."""
    workloads = {f"{size:,}": Workload(**{field: size}) for size in sizes}
    rivals = {name: (w, w.settings(optimizer="rmsprop")) for name, w in workloads.items()}
    return measured_in_turn(rivals, rounds=rounds, threads=2, calls=10)


def measure(grows: Sequence[str], sizes: Mapping[str, Sequence[int]], rounds: int) -> list[dict]:
    """A table for each thing that grows, in their order."""
    measured_by = {
        "pairs": training,
        "documents": searching,
        "languages": functools.partial(training, 10_000),
    }
    fields = {"words of the vocabulary": "vocabulary", "dimensions": "dim"}
    tables = []
    for name in grows:
        if name in fields:
            measured = steps(fields[name], sizes[name], rounds)
        else:
            rivals = {
                f"{size:,}": functools.partial(measured_by[name], size) for size in sizes[name]
            }
            measured = common.interleaved(rivals, rounds)
        column, work = _MEASURED[name]
        first = f"{sizes[name][0]:,}"
        table = common.table(name, measured, ratio_of=column, references=[first])
        power = power_of(sizes[name], costs_of(table))
        tables.append({**table, "title": f"{work}, by {name}: power {power:.2f}"})
    return tables


def costs_of(table: Mapping) -> list[float]:
    """The cost of each size, ascending."""
    return [row[table["ratio_of"]]["median"] for row in table["rows"]]


def power_of(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of a line through the last two points, both axes logarithmic."""
    return float(np.diff(np.log(costs[-2:]))[0] / np.diff(np.log(sizes[-2:]))[0])


def draw(path: str, tables: Mapping[str, Mapping], sizes: Mapping[str, Sequence[int]]) -> None:
    """Draws a plot for the table of each thing that grows, with a line of proportional costs."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    figure = Figure(figsize=(3 * len(tables), 3.2), layout="constrained")
    of_each = np.atleast_1d(figure.subplots(1, len(tables)))
    for axes, (name, table) in zip(of_each, tables.items()):
        costs, (_, work) = costs_of(table), _MEASURED[name]
        power = power_of(sizes[name], costs)
        first, last = sizes[name][0], sizes[name][-1]
        axes.loglog([first, last], [costs[0], costs[0] * last / first], ":", color="grey")
        axes.loglog(sizes[name], costs, marker="o")
        axes.set_title(f"{work}\nat the end: power {power:.2f}", fontsize=9)
        axes.set(xlabel=name, ylabel=table["ratio_of"], ylim=(costs[0] / 2, costs[0] * 500))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def _define_flags() -> None:
    flags.DEFINE_string("plot", "growth.png", "Image to write.")
    flags.DEFINE_multi_enum("grows", [*SIZES], [*SIZES], "What grows; by default all in turn.")


def _measure(grows: list[str], plot: str, rounds: int) -> list[dict]:
    tables = measure(grows, SIZES, rounds)
    draw(plot, dict(zip(grows, tables)), SIZES)
    return tables


if __name__ == "__main__":
    common.run(_define_flags, _measure)
