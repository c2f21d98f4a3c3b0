"""Opening the retrieval set that the flags name."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from absl import logging

from tf_smoothclir.data.sources import file_source, user_files
from tf_smoothclir.data.sources.columns import COLUMNS, Role, plain
from tf_smoothclir.data.sources.file_source import FileSource, table_named, tables_of, unread
from tf_smoothclir.data.sources.ir_datasets_source import IrDatasetsSource
from tf_smoothclir.data.sources.languages import ALL, check_among, codes_of
from tf_smoothclir.data.sources.memory import MemorySource
from tf_smoothclir.data.sources.source import Source
from tf_smoothclir.data.sources.splits import SelectedJudgments
from tf_smoothclir.data.sources.tables import kind_of, read_table
from tf_smoothclir.data.sources.toy_world import ToyWorld
from tf_smoothclir.data.sources.unjudged import UnjudgedDirectory, parallel_files
from tf_smoothclir.data.sources.user_files import CORPUS, STREAMS, BeirDirectory, PairsFile
from tf_smoothclir.data.sources.wikiclir_files import WikiClirDirectory, document_languages
from tf_smoothclir.settings.data import LANGUAGES, DataSettings
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.paths import local_path

_ANY = Role(("",), 0, others=True)  # of which all columns are read


def source_of(settings: DataSettings, in_memory: MemorySource | None = None) -> Source:
    """Opens the set that settings name, or what they ask of one that is in memory."""
    source = _whole(settings) if in_memory is None else in_memory
    wanted = _wanted_languages(source, settings)
    source.max_skipped = settings.max_skipped
    is_whole = not source.is_judged or not (settings.max_queries or settings.max_train_queries)
    if is_whole and not wanted:
        return source
    return SelectedJudgments(source, settings, wanted)


def _wanted_languages(source: Source, settings: DataSettings) -> dict[str, frozenset[str]]:
    """Stream -> the languages that are wanted of a set whose texts say what language each has."""
    wanted = {}
    for stream, flag in (("documents", "document_language"), ("queries", "query_language")):
        codes = codes_of(flag, getattr(settings, flag))
        others = not isinstance(source, (FileSource, MemorySource))
        if not codes or others or isinstance(source, WikiClirDirectory):
            continue  # they have the wanted languages alone
        if source.says_languages(stream):
            check_among(flag, codes, {t.language for t in getattr(source, stream)()}, source.name)
            wanted[stream] = frozenset(codes)
        elif len(codes) > 1:
            is_there = stream == "documents" or source.is_judged
            where = source.place(stream, 0) if is_there else source.name
            raise input_error(
                f"--{flag}={','.join(codes)}",
                f"{where} does not say what language each text is in",
                "Give it a column named language, or give one language",
            )
    if wanted and not source.is_judged:
        reason = "documents without judgments are read in all of their languages"
        raise input_error(
            f"--document_language={settings.document_language}", reason, "Leave it out"
        )
    return wanted


def warn_of_left_out(settings: DataSettings, flags: Iterable[str]) -> None:
    """Warns of languages that settings leave out which are those of a run, not given."""
    given = {flag: codes_of(flag, getattr(settings, flag)) for flag in flags}
    for flag, codes in given.items():
        whole = _whole(dataclasses.replace(settings, **{flag: ALL})) if codes else None
        texts = "documents" if flag == "document_language" else "queries"
        languages: set[str] = set()
        if isinstance(whole, WikiClirDirectory):
            languages = set(getattr(whole, flag).split(","))
        elif isinstance(whole, FileSource) and whole.says_languages(texts):
            languages = {text.language for text in getattr(whole, texts)()}
        if others := sorted(filter(None, languages - {*codes})):
            logging.warning(
                f"{settings.data_dir}: {texts} in {', '.join(others)} are left out, as the run has"
                f" --{flag}={getattr(settings, flag)}. --{flag}=all reads them too."
            )


def check_columns(settings: DataSettings, collection: FileSource | None = None) -> None:
    """Checks that a table of the set, or of a collection, has each name that --columns gives."""
    directory = Path(local_path(settings.data_dir))
    if directory.name == "data" and (directory.parent / "config.json").is_file():
        return  # a run keeps sets from Python there, by the names of this package
    whole = dataclasses.replace(settings, max_queries=0, max_train_queries=0)
    whole = dataclasses.replace(whole, **dict.fromkeys(LANGUAGES, ""))
    source = collection or query_log_of(whole)
    if not isinstance(source, FileSource) or isinstance(source, (BeirDirectory, WikiClirDirectory)):
        reason = "only columns of your own tables have other names"
        raise input_error(f"--columns={settings.columns}", reason, "Leave it out")
    paths = dict.fromkeys(itertools.chain(*source.files.values()))
    names = itertools.chain.from_iterable(_column_names(path) for path in paths if kind_of(path))
    check_named(columns_of(settings.columns), names, every=collection is None)


def check_named(columns: Mapping[str, str], names: Iterable[str], *, every: bool = True) -> None:
    """Checks that tables have the names that are given for columns: every one, or one for each."""
    wanted = {plain(name) for given in columns.values() for name in given.split(",")}
    by_plain: dict[str, str] = {}
    for name in names:
        by_plain[plain(name)] = name
        if wanted <= by_plain.keys():  # so that large files of objects are not read to their ends
            return
    for column, given in columns.items():
        missing = [name for name in given.split(",") if plain(name) not in by_plain]
        if missing and (every or len(missing) == len(given.split(","))):
            raise input_error(
                f"--columns={column}={missing[0]}",
                f"no table has the column {missing[0]!r}; there are:"
                f" {', '.join(by_plain.values()) or 'none that have names'}",
                "Correct the name, or leave it out",
            )


def _column_names(path: Path) -> Iterator[str]:
    """Yields the names of all columns of a table; those of objects as they come."""
    for _, (_, record) in read_table(path, _ANY):
        yield from record
        if kind_of(path) != "jsonl":
            return


def query_log_of(settings: DataSettings) -> Source:
    """Opens a set whose queries need no judgments."""
    path = Path(local_path(settings.data_dir))
    is_log = path.is_dir() and bool(tables_of(path, "queries"))
    if not is_log or tables_of(path, "judgments") or not tables_of(path, "documents"):
        return source_of(settings)
    return user_files.QueryLog(path, *labels_of(settings), columns=columns_of(settings.columns))


def labels_of(settings: DataSettings) -> tuple[str, str]:
    """The languages that are given of the documents and the queries; "" for all, or unknown."""
    flags = "document_language", "query_language"
    document, query = (",".join(codes_of(flag, getattr(settings, flag))) for flag in flags)
    return document, query


def _whole(settings: DataSettings) -> Source:
    languages = labels_of(settings)
    if settings.tfds_name:
        # Imported here, because only this source needs TensorFlow.
        from tf_smoothclir.data.sources.tfds_source import TfdsSource

        return TfdsSource(settings.tfds_name, settings.tfds_data_dir, languages[1])
    if settings.ir_dataset:
        return IrDatasetsSource(settings.ir_dataset, *languages)
    if not settings.data_dir:
        if settings.document_language == ALL:
            languages = ALL, languages[1]
        return ToyWorld(*languages, settings.toy_entities, settings.split_seed)
    return _open_directory(settings, *languages)


def _open_directory(settings: DataSettings, *languages: str) -> Source:
    path, columns = Path(local_path(settings.data_dir)), columns_of(settings.columns)
    if path.is_file() and kind_of(path):
        return PairsFile(path, *languages, columns=columns)
    if path.is_file():
        reason, remedy = "this is no table", "Give pairs in .tsv, .csv, .jsonl or .parquet"
        raise input_error(f"--data_dir={settings.data_dir}", reason, remedy)
    directory, parallel = file_source.checked_directory(path), parallel_files(settings.parallel)
    published = bool(document_languages(directory))
    of_users = [name for name in ("documents", "pairs") if tables_of(directory, name)]
    beir = bool(file_source.files_named(directory, CORPUS))
    layouts = published + len(of_users) + beir
    if layouts != 1:
        names = sorted(path.name for path in directory.iterdir())
        listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        what = "two sets" if layouts else "no documents.* and no pairs.*"
        raise input_error(
            f"--data_dir={settings.data_dir}",
            f"it contains {what}: {listed or 'no files'}{unread(directory, *STREAMS, 'pairs')}",
            f"Give a directory with {', '.join(STREAMS)}, with documents and clicks, or with pairs"
            " (.tsv, .csv, .jsonl or .parquet, perhaps .gz); or with wiki_<language>.documents,"
            f" wiki_<language>.queries and a .rel file; or with {CORPUS}, queries.jsonl and qrels/",
        )
    if settings.parallel and of_users != ["documents"]:
        reason = "sentences teach where there are documents alone"
        raise input_error(f"--parallel={settings.parallel}", reason, "Leave it out")
    if beir:
        return BeirDirectory(directory, *languages)
    if published:
        return WikiClirDirectory(directory, *languages)
    if "pairs" in of_users:
        return PairsFile(table_named(directory, "pairs"), *languages, columns=columns)
    kinds = [name for name in ("judgments", "clicks") if tables_of(directory, name)]
    if settings.parallel:
        kinds.append("--parallel")
    elif not kinds and (sentences := table_named(directory, "parallel")):
        parallel = [sentences]
    if len(kinds) > 1:
        raise input_error(
            directory, f"there are {' and '.join(kinds)}", "Keep one of them (--parallel= for none)"
        )
    if parallel or not (kinds or tables_of(directory, "queries")):
        documents = tables_of(directory, "documents")
        return UnjudgedDirectory(documents, *languages, columns=columns, parallel=parallel)
    kind = user_files.ClicksDirectory if kinds == ["clicks"] else user_files.UserDirectory
    return kind(directory, *languages, columns=columns)


def columns_of(given: str) -> dict[str, str]:
    """Column -> its names in the tables, from a text such as "text=question,text=answer,id=key"."""
    columns: dict[str, str] = {}
    for pair in filter(str.strip, given.split(",")):
        column, name = (part.strip() for part in pair.partition("=")[::2])
        if column not in COLUMNS or not name:
            remedy = f"Give COLUMN=NAME, with a column among {', '.join(COLUMNS)}"
            raise input_error(f"--columns={column}={name}", "there is no such column", remedy)
        columns[column] = f"{columns[column]},{name}" if column in columns else name
    return columns
