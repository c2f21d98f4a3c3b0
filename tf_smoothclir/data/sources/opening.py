"""Opening the retrieval set that the flags name."""

from __future__ import annotations

from tf_smoothclir.data.sources.beir_directory import CORPUS, BeirDirectory
from tf_smoothclir.data.sources.ir_datasets_source import IrDatasetsSource
from tf_smoothclir.data.sources.languages import check_code
from tf_smoothclir.data.sources.line_files import checked_directory, files_named
from tf_smoothclir.data.sources.selection import SelectedJudgments
from tf_smoothclir.data.sources.source import Source
from tf_smoothclir.data.sources.toy_world import ToyWorld
from tf_smoothclir.data.sources.user_files import STREAMS, UserDirectory
from tf_smoothclir.data.sources.wikiclir_files import (
    PUBLISHED_FOLDERS,
    WikiClirDirectory,
    document_languages,
)
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import input_error


def source_of(settings: DataSettings) -> Source:
    """Opens the retrieval set that the settings name, or the part of it that they ask for."""
    names = {folder.partition("_(")[0]: code for code, folder in PUBLISHED_FOLDERS.items()}
    for flag in ("query_language", "document_language"):
        check_code(flag, getattr(settings, flag), {"english": "en", **names})
    source = _whole(settings)
    if source.max_skipped:  # published by others, who made the judgments
        source.max_skipped = settings.max_skipped
    is_whole = not (settings.max_queries or settings.max_train_queries)
    if is_whole and settings.related_per_query < 0:
        return source
    return SelectedJudgments(
        source,
        max_queries=settings.max_queries,
        max_train_queries=settings.max_train_queries,
        related_per_query=settings.related_per_query,
        seed=settings.split_seed,
    )


def _whole(settings: DataSettings) -> Source:
    if settings.tfds_name:
        # Imported here, because only this source needs TensorFlow.
        from tf_smoothclir.data.sources.tfds_source import TfdsSource

        return TfdsSource(settings.tfds_name, settings.tfds_data_dir, settings.query_language)
    if settings.ir_dataset:
        languages = settings.document_language, settings.query_language
        return IrDatasetsSource(settings.ir_dataset, *languages)
    if not settings.data_dir:
        return ToyWorld(
            settings.document_language,
            settings.query_language,
            settings.toy_entities,
            settings.split_seed,
        )
    return _open_directory(settings)


def _open_directory(settings: DataSettings) -> Source:
    data_dir, languages = settings.data_dir, (settings.document_language, settings.query_language)
    directory = checked_directory(data_dir)
    published = bool(document_languages(directory))
    own = bool(files_named(directory, "documents.tsv", "documents.jsonl"))
    beir = bool(files_named(directory, CORPUS))
    layouts = published + own + beir
    if layouts != 1:
        names = sorted(path.name for path in directory.iterdir())
        listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        what = "two sets" if layouts else "no set"
        raise input_error(
            f"--data_dir={data_dir}",
            f"it contains {what}: {listed or 'no files'}",
            "Give a directory either with wiki_<language>.documents, wiki_<language>.queries and a"
            f" .rel file, or with {', '.join(STREAMS)} as .tsv or .jsonl, or with"
            f" {CORPUS}, queries.jsonl and qrels/",
        )
    if beir:
        return BeirDirectory(directory, *languages)
    if published:
        return WikiClirDirectory(directory, *languages)
    return UserDirectory(directory, *languages)
