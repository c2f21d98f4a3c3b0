"""The run report for people, `report.md`, and the same tables on terminals."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.storage.files import write_text
from tf_smoothclir.utils.printing import markdown_table, print_table, visible

if TYPE_CHECKING:  # importing it takes seconds
    from tf_smoothclir.evaluation.evaluate import Evaluation

Cells = tuple[list[str], list[list[str]]]  # of a table: header, rows
KNOWN = "test queries with the words of a training query"  # a size of the set
NOTHING = "none"  # in the place of the mean of no query
# What the rules in `metrics.json` are about, for people.
RULE_NAMES = {
    "full": "Whole collection",
    "lists": "Candidate lists",
    "gain": "NDCG",
    "relevance": "Relevant",
    "ties": "Ties",
    "left_out": "Left out",
    "intervals": "Intervals",
    "grades": "Predicted grades",
    "languages": "Languages",
}
_QUERIES, _CHARACTERS = 10, 100
_BY = "full/nDCG@10"


def metrics_cells(content: Mapping[str, Any], splits: Sequence[str]) -> list[Cells]:
    """Tables of the whole collection and of candidate lists, as measured: metrics by split."""
    tables = []
    for title, prefix in (("whole collection", "full/"), ("candidate lists", "")):
        header = [title, *(f"{split} (95% interval)" for split in splits), "queries"]
        rows = []
        for name in content[splits[0]]:
            if name.startswith("full/") == bool(prefix):
                counts = [content["counts"][split][name] for split in splits]
                cells = [_mean(content, split, name) for split in splits]
                cells.append(" / ".join(f"{count:,}" for count in counts))
                rows.append([name.removeprefix(prefix), *cells])
        tables += [(header, rows)] * bool(rows)
    return tables


def _mean(content: Mapping[str, Any], split: str, name: str) -> str:
    if not content["counts"][split][name]:
        return NOTHING
    low, high = content["intervals"][split][name]
    return f"{content[split][name]:.4f} ({low:.4f} to {high:.4f})"


def without_queries(content: Mapping[str, Any], splits: Sequence[str]) -> list[str]:
    """A sentence for each split that has metrics without any query, which says why."""
    sentences = []
    for split in splits:
        counts = content["counts"][split]
        missing = [name for name, count in counts.items() if not count]
        if len(missing) == len(counts):
            lacking = "relevant document" if counts else "judgment"
            sentences.append(f"No {split} query has a {lacking}, so nothing was measured.")
        elif missing:
            sentences.append(
                f"No judged query of the {split} split has a document of the highest grade that"
                f" the run knows, so there is nothing to measure by {', '.join(missing)}. Train"
                " with one of --thresholds for each grade above 0."
            )
    return sentences


def known_queries(content: Mapping[str, Any]) -> list[str]:
    """A sentence about test queries that a run knows from training, or none."""
    sizes = content.get("set", {})
    if not (known := sizes.get(KNOWN)):
        return []
    of_all = f"{known:,} of the {sizes['test queries']:,} test queries"
    return [f"The model was trained on the words of {of_all}, so the figures are too good."]


def rules_list(rules: Mapping[str, str]) -> str:
    """A Markdown list of what metrics depend on, as `metrics.json` says it."""
    order = sorted(rules, key=lambda name: [*RULE_NAMES, name].index(name))
    return "\n".join(f"* {RULE_NAMES.get(name, name)}: {rules[name]}." for name in order)


def grades_cells(content: Mapping[str, Any], splits: Sequence[str]) -> list[Cells]:
    """A table of how well grades are predicted, a row per split and kind; none without any."""
    rows = [
        [f"{split}, {kind}", *(f"{value:.4f}" for value in metrics.values())]
        for split in splits
        for kind, metrics in content.get("grades", {}).get(split, {}).items()
    ]
    header = ["predicted grades", "accuracy", "macro-averaged accuracy", "quadratic kappa"]
    return [(header, rows)] * bool(rows)


def language_cells(content: Mapping[str, Any], splits: Sequence[str]) -> list[Cells]:
    """A table of each split of several languages: a row for all, and for each of either side."""
    tables = []
    for split in splits:
        if figures := content.get("languages", {}).get(split):
            columns = list(dict.fromkeys(name for row in figures.values() for name in row))
            rows = [
                [name, *(_figure(row.get(column, "")) for column in columns)]
                for name, row in figures.items()
            ]
            tables.append(([f"{split}, languages", *columns], rows))
    return tables


def _figure(value: float | str) -> str:
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if value != "" else ""


def confusion_cells(counts: np.ndarray) -> Cells:
    """A table of `[K, K]` counts: true by predicted grade, and shares right."""
    grades = range(len(counts))
    header = ["true grade", *(f"predicted {grade}" for grade in grades), "right"]
    rows = [
        [f"{grade}", *(f"{counts[grade, o]:,}" for o in grades), _share(counts[grade], grade)]
        for grade in grades
    ]
    rows.append(["right of those", *(_share(counts[:, grade], grade) for grade in grades), ""])
    return header, rows


def _share(row, grade) -> str:
    return f"{row[grade] / row.sum():.1%}" if row.sum() else NOTHING


def print_results(content: Mapping[str, Any], splits: Sequence[str]) -> None:
    """Prints what `metrics.json` says of some splits: metrics, and how grades are predicted."""
    for cells in metrics_cells(content, splits):
        print_table(*cells)
    for sentence in without_queries(content, splits) + known_queries(content):
        print(f"{visible(sentence)}\n")
    for cells in (*language_cells(content, splits), *grades_cells(content, splits)):
        print_table(*cells)
    for split in splits:
        if counts := content.get("confusion", {}).get(split):
            title = f"{split}, candidate lists by grade"
            print_table(*confusion_cells(np.array(counts)), title=title)


def components_table(retrievers: Mapping[str, Mapping[str, Evaluation]]) -> str:
    """A Markdown table: a row for each metric, a column for each split and retriever."""
    splits = list(next(iter(retrievers.values())))
    columns = [(split, name) for split in splits for name in retrievers]
    metrics = next(iter(next(iter(retrievers.values())).values())).metrics
    rows = [
        [metric, *(f"{retrievers[name][split].metrics[metric]:.4f}" for split, name in columns)]
        for metric in metrics
    ]
    return markdown_table(["metric", *(f"{split}, {name}" for split, name in columns)], rows)


def write_report(
    path: str | os.PathLike,
    *,
    title: str,
    facts: Mapping[str, object],
    content: Mapping[str, Any],
    evaluations: Mapping[str, Evaluation],
    sections: Mapping[str, str],
    plots: Mapping[str, str],
    commands: Sequence[str],
    flags: Sequence[str],
) -> None:
    """Writes the report."""
    splits = list(evaluations)
    parts = [f"# {title}", markdown_table(["", ""], [[k, v] for k, v in facts.items()])]
    parts += ["## Metrics", *(markdown_table(*cells) for cells in metrics_cells(content, splits))]
    parts += without_queries(content, splits) + known_queries(content)
    parts += [markdown_table(*cells) for cells in language_cells(content, splits)]
    parts.append(rules_list(content["rules"]))
    for heading, text in sections.items():
        parts += [f"## {heading}", text]
    parts += _predicted_grades(content, evaluations)
    if plots:
        parts += ["## Plots", *(f"![{caption}]({file})" for caption, file in plots.items())]
    parts += ["## Next", _code(commands)]
    parts += ["<details><summary>All flags</summary>", _code(flags), "</details>"]
    write_text(path, "\n\n".join(part.rstrip("\n") for part in parts) + "\n")


def _code(lines: Sequence[str]) -> str:
    return "\n".join(["```", *lines, "```"])


def _predicted_grades(
    content: Mapping[str, Any], evaluations: Mapping[str, Evaluation]
) -> Iterator[str]:
    for cells in grades_cells(content, list(evaluations)):
        yield from ("## Predicted grades", markdown_table(*cells))
    for split, evaluation in evaluations.items():
        of_kinds = {"Candidate lists": evaluation.confusion, "Hits": evaluation.hit_confusion}
        for kind, counts in of_kinds.items():
            if counts is not None:
                yield f"### {kind}, {split}"
                yield markdown_table(*confusion_cells(counts))


def examples(retrieval_set: RetrievalSet, evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    """Yields heading and Markdown table: the worst queries by nDCG@10, and others; none of none."""
    values, hits = evaluation.per_query.get(_BY), evaluation.hits
    if values is None or hits is None or not np.isfinite(values).any():
        return
    measured = np.flatnonzero(np.isfinite(values))
    ids = [retrieval_set.query_ids[row] for row in hits.query_rows[measured]]
    by_chance = measured[np.argsort(hash_ids(ids, "examples"), kind="stable")]
    worst = by_chance[np.argsort(values[by_chance], kind="stable")][:_QUERIES]
    shown = {"The worst queries": worst, "Examples": by_chance[:_QUERIES]}
    chosen = np.unique(np.concatenate(list(shown.values())))
    wanted = {row: _best_document(retrieval_set, row) for row in hits.query_rows[chosen].tolist()}
    documents = {*wanted.values(), *hits.document_rows[chosen, 0].tolist()}
    asked = (query._replace(title="") for query in retrieval_set.source.queries())
    queries = _texts(asked, wanted.keys())
    texts = _texts(retrieval_set.source.documents(), documents)
    for heading, places in shown.items():
        rows = []
        for place in places:
            query, first = int(hits.query_rows[place]), int(hits.document_rows[place, 0])
            is_right = hits.grades[place] == retrieval_set.num_grades - 1
            rank = str(int(is_right.argmax()) + 1) if is_right.any() else f"> {len(is_right)}"
            is_first = first == wanted[query]
            cells = [texts[wanted[query]], rank, "the same" if is_first else texts[first]]
            rows.append([queries[query], *cells, f"{values[place]:.2f}"])
        yield heading, markdown_table(["query", "wanted", "rank", "first hit", "nDCG@10"], rows)


def _best_document(retrieval_set: RetrievalSet, query: int) -> int:
    """The row of a document of the highest grade that the query has."""
    judged = np.flatnonzero(retrieval_set.query_rows == query)
    return int(retrieval_set.document_rows[judged[np.argmax(retrieval_set.grades[judged])]])


def _texts(texts: Iterable[Text], rows: Iterable[int]) -> dict[int, str]:
    """Row -> the beginning of the text, after its title."""
    wanted, shown = set(rows), {}
    for row, text in enumerate(texts):
        if row in wanted:
            whole = " ".join(f"{text.title}: {text.text}".removeprefix(": ").split())
            shown[row] = whole[:_CHARACTERS] + "…" * (len(whole) > _CHARACTERS)
    return shown
