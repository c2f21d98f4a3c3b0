"""Learning curves: quality by the number of judged queries, with an encoder as teacher or not.

python -m benchmarks.learning_curves --data_dir=... --document_language=tl --encoder=VECTORS.npz

The set is cut to the texts that the file has vectors of. Of its training queries, some are judged,
every seventh of these for validation. The others are a query log: the encoder judges them, or they
are left out. All models are measured on the same test queries.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from absl import flags

from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.printing import markdown_table

METRIC = "full/MRR@10"
_TITLES = {"lexical": "table", "dense": "towers", "best": "table and towers"}
_WITH_ENCODER = ("encoder", "encoder"), ("lexical+encoder", "table and encoder")
_VALIDATION = 7
_TAUGHT = ", taught"  # ends the names of models that learned from the encoder, too


def part_of(data: DataSettings, vectors: str) -> dict:
    """The texts of a set with vectors, their judgments and splits, as `sc.train` takes them."""
    from tf_smoothclir.data.hashing import hash_ids
    from tf_smoothclir.data.sources.opening import source_of

    source, kept = source_of(data), np.load(vectors, allow_pickle=False)
    ids = {name: {*kept[f"{name}_ids"].tolist()} for name in ("query", "document")}
    queries = {text.id: text.text for text in source.queries() if text.id in ids["query"]}
    documents = [text._asdict() for text in source.documents() if text.id in ids["document"]]
    judged = [j for j in source.judgments() if j.query_id in queries]
    splits = source.splits()
    order = np.argsort(hash_ids([*queries]), kind="stable")
    return {
        "queries": {query: queries[query] for query in np.array([*queries])[order].tolist()},
        "documents": [{n: one[n] for n in ("id", "title", "text")} for one in documents],
        "judgments": [j for j in judged if j.document_id in ids["document"]],
        "splits": {query: splits[query] for query in queries},
    }


def with_judged(part: dict, number: int, *, has_log: bool) -> dict:
    """The part in which so many training queries are judged; the others are a log, or left out."""
    tested = [query for query, split in part["splits"].items() if split == "test"]
    training = [query for query in part["queries"] if part["splits"][query] != "test"]
    judged = training[:number]
    splits = dict.fromkeys(tested, "test") | dict.fromkeys(judged, "train")
    splits |= dict.fromkeys(judged[::_VALIDATION], "validation")
    texts = part["queries"].items()
    return {
        **part,
        "queries": {id_: text for id_, text in texts if id_ in splits or has_log},
        "judgments": [judgment for judgment in part["judgments"] if judgment[0] in splits],
        "splits": splits,
    }


def curves(
    part: dict, numbers: Sequence[int], vectors: str, presets: Sequence[str], work_dir: Path
) -> Iterator[tuple[str, int, float]]:
    """Yields the name of a curve, the number of judged queries and what was measured."""
    import tf_smoothclir as sc

    most = sum(split != "test" for split in part["splits"].values())
    numbers = sorted({min(number, most) for number in numbers} | {most})
    with_encoder = {"encoder": vectors, "preset": "lexical"}
    for number in numbers:
        # Seven are too few for a head, which needs 100, but a run needs one for validation.
        judged = with_judged(part, number or _VALIDATION, has_log=False)
        for retriever, name in _WITH_ENCODER[: None if number else 1]:
            path = work_dir / f"{retriever}-{number}"
            model = sc.train(**judged, **with_encoder, retriever=retriever, output_dir=path)
            yield name, number, model.metrics[METRIC]
        sets = {"": judged} if number else {}
        if number < most:
            sets[_TAUGHT] = sc.teach(**with_judged(part, number, has_log=True), encoder=vectors)
        for preset in presets:
            for how, given in sets.items():
                name = f"{_TITLES.get(preset, preset)}{how}"
                path = work_dir / f"{preset}{how.strip(', ')}-{number}"
                model = sc.train(**given, preset=preset, output_dir=path)
                yield name, number, model.metrics[METRIC]


def draw(path: Path, table: dict[str, dict[int, float]]) -> None:
    """Draws the curves; both axes stretch where they lie close together."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter

    figure = Figure(figsize=(7, 4.4), layout="constrained")
    axes = figure.subplots()
    names = list(dict.fromkeys(name.removesuffix(_TAUGHT) for name in table))
    for name, curve in table.items():
        style = {"linestyle": "--", "marker": "s"} if name.endswith(_TAUGHT) else {"marker": "o"}
        color = f"C{names.index(name.removesuffix(_TAUGHT))}"
        axes.plot([*curve], [*curve.values()], label=name, color=color, alpha=0.8, **style)
    axes.set_xscale("symlog", linthresh=100)
    ticks = sorted({number for curve in table.values() for number in curve})
    axes.set_xticks(ticks, [f"{number:,}" for number in ticks])
    axes.set_yscale("logit")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    shares = [0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995]
    lowest, highest = (
        reach(value for curve in table.values() for value in curve.values()) for reach in (min, max)
    )
    axes.set_yticks([share for share in shares if lowest <= share <= highest])
    axes.set(xlabel="judged queries", ylabel=f"{METRIC}, test queries")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


def table_of(table: dict[str, dict[int, float]]) -> str:
    """A row for each number of judged queries, a column for each curve."""
    numbers = sorted({number for curve in table.values() for number in curve})
    rows = [
        [
            f"{number:,}",
            *(f"{curve[number]:.3f}" if number in curve else "" for curve in table.values()),
        ]
        for number in numbers
    ]
    return markdown_table(["judged queries", *table], rows)


_ENCODER = flags.DEFINE_string(
    "encoder", None, "FILE.npz with vectors.", module_name=command.COMMAND
)
_JUDGED = flags.DEFINE_list(
    "judged", ["0", "100", "500", "2000"], "Numbers of judged queries, besides all.",
    module_name=command.COMMAND,
)  # fmt: skip
_PRESETS = flags.DEFINE_list("preset", [*_TITLES], "Presets to train.", module_name=command.COMMAND)
_PLOT = flags.DEFINE_string("plot", "", "A .png file to draw.", module_name=command.COMMAND)
_WORK_DIR = flags.DEFINE_string(
    "work_dir",
    "",
    "Keeps the runs, to continue after an interruption.",
    module_name=command.COMMAND,
)
setting_flags.define_settings(["data"])


def main(argv) -> None:
    """Measures, prints a table, and draws it."""
    del argv
    part = part_of(setting_flags.settings_from_flags().data, _ENCODER.value)
    table: dict[str, dict[int, float]] = {}
    with tempfile.TemporaryDirectory() as directory:
        work_dir, numbers = Path(_WORK_DIR.value or directory), [*map(int, _JUDGED.value)]
        for name, number, value in curves(part, numbers, _ENCODER.value, _PRESETS.value, work_dir):
            table.setdefault(name, {})[number] = value
            print(f"{name}, {number:,} judged: {value:.4f}", flush=True)
    print(table_of(table))
    if _PLOT.value:
        draw(Path(_PLOT.value), table)


if __name__ == "__main__":
    flags.mark_flag_as_required("encoder")
    command.run_main(main, __doc__, ["data"])
