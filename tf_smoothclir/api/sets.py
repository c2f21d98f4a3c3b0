"""The retrieval set that a caller means, in memory or in a directory; measuring a model on it."""

import dataclasses
import functools
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tf_smoothclir.api import given
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources import cells, opening, user_files
from tf_smoothclir.data.sources.columns import CLICKS, PAIRS, PARALLEL
from tf_smoothclir.data.sources.file_source import set_name
from tf_smoothclir.data.sources.memory import MemorySource, Streamed, Tokenizer
from tf_smoothclir.data.sources.source import SPLITS, Source
from tf_smoothclir.data.sources.splits import read_digests
from tf_smoothclir.data.sources.unjudged import parallel_files, sentences_in
from tf_smoothclir.evaluation.evaluate import Evaluation, evaluate_split
from tf_smoothclir.plugins import family
from tf_smoothclir.publishing.exported_models import ExportedModels
from tf_smoothclir.settings.data import LANGUAGES, DataSettings
from tf_smoothclir.training.evaluated_sets import another_set, warn_of_figures
from tf_smoothclir.utils.errors import input_error, kind
from tf_smoothclir.utils.paths import PathText, local_path

Data = PathText | Source | RetrievalSet
# Arguments that are a set, and which of them go together.
PARTS = ("queries", "documents", "judgments", "clicks", "pairs", "parallel", "splits")
_FORMS = (
    *({"queries", "documents", "judgments"}, {"documents", "clicks"}, {"pairs"}),
    *({"documents", "parallel"}, {"documents"}),
)
_REMEDY = (
    "Give queries, documents and judgments; or documents and clicks; or pairs; or documents and"
    " parallel sentences, or a dictionary; or data: a directory or a retrieval set"
)


def given_set(
    where: str,
    data: Data | None,
    parts: Mapping[str, Any],
    settings: DataSettings,
    tokenizer: Tokenizer | None = None,
) -> MemorySource | None:
    """The set that arguments give; None for one that settings name, not to be split."""
    parts = {name: part for name, part in parts.items() if part is not None}
    splits = parts.pop("splits", None)
    if data is not None and (parts or splits is not None):
        raise input_error(
            f"{where}: data", f"{', '.join(parts) or 'splits'} are given too", _REMEDY
        )
    if parts:
        return set_in_memory(where, parts, given.splits_of(splits), settings, tokenizer)
    if data is None or isinstance(data, (str, os.PathLike)):
        if tokenizer is None:
            return None
        data = opening.source_of(settings)
    if isinstance(data, RetrievalSet):
        rows = {id_: int(split) for id_, split in zip(data.query_ids, data.splits)}
        splits = {id_: SPLITS[split] for id_, split in rows.items() if split >= 0}
        data = data.source
    elif isinstance(data, Source):
        splits = data.splits()
    else:
        raise input_error(f"{where}: data", f"it is {kind(data)}", _REMEDY)
    queries, documents, judged = map(Streamed, (data.queries, data.documents, data.judgments))
    languages = opening.labels_of(settings)[::-1]
    source = MemorySource(queries, documents, judged, splits, *languages, tokenizer)
    source.is_judged, source.others = data.is_judged, Streamed(data.metadata)
    source.pairs = Streamed(data.sentences)
    streams = (*user_files.STREAMS, "splits")
    source.places = {stream: functools.partial(data.place, stream) for stream in streams}
    return _as_kept(source, settings)


def check_given_columns(
    data: Data | None, parts: Mapping[str, Any], settings: DataSettings
) -> None:
    """Checks that what is given has the names that `columns` gives."""
    tables = [part for part in parts.values() if part is not None]
    if any(isinstance(table, Iterator) for table in tables):  # it is read once
        return
    if tables:
        names = itertools.chain.from_iterable(map(given.columns_in, tables))
        opening.check_named(opening.columns_of(settings.columns), names)
    elif not isinstance(data, (Source, RetrievalSet)) and (
        not settings.data_dir or os.path.exists(settings.data_dir)
    ):
        opening.check_columns(settings)


def _as_kept(source: MemorySource, settings: DataSettings) -> MemorySource:
    """The set as a run keeps it, in `data/`."""
    source.name = set_name("data", source.query_language, source.document_language)
    source.max_skipped = settings.max_skipped
    return source


def set_in_memory(
    where: str,
    parts: Mapping[str, Any],
    splits: dict[str, str] | None,
    settings: DataSettings,
    tokenizer: Tokenizer | None = None,
) -> MemorySource:
    """The set that arguments give, those of `PARTS` but for `splits`."""
    form = next((form for form in _FORMS if form == parts.keys()), None)
    if form is None:
        near = next((form for form in _FORMS if form > parts.keys()), parts.keys())
        missing = [name for name in PARTS if name in near - parts.keys()]
        reason = f"{', '.join(missing)} are missing" if missing else "they do not go together"
        raise input_error(f"{where}: {', '.join(parts)}", reason, _REMEDY)
    columns, queries, judgments = opening.columns_of(settings.columns), [], None
    others: Sequence[Mapping[str, Any]] = ()
    if "pairs" in parts:
        rows, place = given.rows_of(parts["pairs"], PAIRS, "pairs", columns)
        queries, documents = (
            [text for _, text in cells.texts_of_column(column, rows, place)]
            for column in (cells.QUERY, cells.DOCUMENT)
        )
        judgments = cells.judgments_of_pairs(rows, place)
    else:
        documents, others = given.texts_and_others(parts["documents"], "documents", columns)
    if "clicks" in parts:
        rows, place = given.rows_of(parts["clicks"], CLICKS, "clicks", columns)
        queries = [text for _, text in cells.texts_of_column(cells.QUERY, rows, place)]
        judgments = cells.judgments_of_clicks(rows, place)
    elif "judgments" in parts:
        queries = given.texts_of(parts["queries"], "queries", columns)
        judgments = enumerate(given.judgments_of(parts["judgments"], columns=columns))

    at, judged = [*zip(*judgments or ())] or ((), ())
    languages = opening.labels_of(settings)[::-1]
    source = MemorySource(queries, documents, judged, splits, *languages, tokenizer)
    source.is_judged, source.columns = judgments is not None, columns
    source.others, source.has_clicks = others, "clicks" in parts
    if "judgments" not in parts:
        source.places = {"judgments": lambda index: place(at[index])}
    if "parallel" in parts and settings.parallel:
        source.parallel_files = parallel_files(settings.parallel)
    elif "parallel" in parts:
        names = {"query": settings.query_language, "document": settings.document_language}
        rows, place = given.rows_of(parts["parallel"], PARALLEL, "parallel", {**names, **columns})
        pairs = sentences_in(((row, *pair) for row, pair in rows), place, "parallel")
        source.pairs = [(line, query, text) for line, (_, query, text) in enumerate(pairs, 1)]
    return _as_kept(source, settings)


def evaluate_on(
    models: ExportedModels,
    data: Data | None,
    parts: Mapping[str, Any],
    tokenizer: Tokenizer | None,
    split: str | None,
    **options: Any,
) -> Evaluation:
    """Measures a model on a set, which is read as that of training was; by default on that one."""
    if split not in (*SPLITS, None):
        remedy = f"Give one of {', '.join(SPLITS)}"
        raise input_error(f"split={split!r}", "there is no such split", remedy)
    manifest = models.manifest
    trained_on, num_grades = manifest.data, len(manifest.thresholds) + 1
    trained = read_digests(models.trained_queries)
    is_own = data is None and all(part is None for part in parts.values())
    if is_own:
        retrieval_set = RetrievalSet.load(
            opening.source_of(trained_on),
            num_grades=num_grades,
            seed=trained_on.split_seed,
            trained_before=trained,
        )
    else:
        names = *LANGUAGES, "split_seed", "columns", "max_skipped"
        settings = DataSettings(**{name: getattr(trained_on, name) for name in names})
        settings = settings.of_another_set()
        if isinstance(data, (str, os.PathLike)):
            settings = dataclasses.replace(settings, data_dir=os.path.abspath(local_path(data)))
            opening.warn_of_left_out(settings, LANGUAGES)
        in_memory = given_set("evaluate", data, parts, settings, tokenizer)
        source = in_memory or opening.source_of(settings)
        retrieval_set = another_set(source, settings, trained_on, split or "", trained)
    warn_of_figures(trained, retrieval_set, split or "test", is_own=is_own)
    *_, last = models
    retriever = family(last).retriever_over(models, retrieval_set)
    measured = evaluate_split(retrieval_set, retriever, split or "test", **options)
    same_grades = num_grades == retrieval_set.num_grades
    return measured.graded(manifest.cut_points) if same_grades else measured
