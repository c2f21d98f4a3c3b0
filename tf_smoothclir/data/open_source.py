"""Opens the retrieval set that the flags name."""

from __future__ import annotations

from tf_smoothclir.data.files import checked_directory
from tf_smoothclir.data.source import Source
from tf_smoothclir.data.toy_world import ToyWorld
from tf_smoothclir.data.user_files import ROLES, UserDirectory
from tf_smoothclir.data.wikiclir_files import WikiClirDirectory, document_languages
from tf_smoothclir.errors import input_error
from tf_smoothclir.settings import DataSettings


def source_of(settings: DataSettings) -> Source:
    """Opens the retrieval set that the settings name."""
    return open_source(
        data_dir=settings.data_dir,
        document_language=settings.document_language,
        query_language=settings.query_language,
        tfds_name=settings.tfds_name,
        tfds_data_dir=settings.tfds_data_dir,
        toy_entities=settings.toy_entities,
        seed=settings.split_seed,
    )


def open_source(
    data_dir: str = "",
    document_language: str = "fr",
    query_language: str = "en",
    tfds_name: str = "",
    tfds_data_dir: str = "",
    toy_entities: int = 2000,
    seed: int = 13,
) -> Source:
    """Returns the source that the arguments name; all named as the flags are.

    Args:
        data_dir: Directory with `wiki_<language>.documents` (see `WikiClirDirectory`) or with
            `documents.tsv` or `.jsonl` (see `UserDirectory`).
        document_language: Language of the documents; with `tfds_name`, the config says it.
        query_language: Language of the queries.
        tfds_name: A prepared TFDS dataset instead of a directory, such as "wiki_clir/fr".
        tfds_data_dir: Where TFDS keeps its datasets.
        toy_entities: Size of the toy world, which is the source where neither is given.
        seed: Seed of the toy world.

    Raises:
        InputError: Both a directory and a TFDS dataset are given, or the directory is not one.
    """
    if tfds_name and data_dir:
        raise input_error(
            "--data_dir and --tfds_name",
            f"both are given ({data_dir} and {tfds_name})",
            "Give one of them, or neither for the toy world",
        )
    if tfds_name:
        # Others need not wait for the import of TensorFlow.
        from tf_smoothclir.data.tfds_source import TfdsSource

        return TfdsSource(tfds_name, tfds_data_dir, query_language)
    if not data_dir:
        return ToyWorld(document_language, query_language, toy_entities, seed)
    return _open_directory(data_dir, document_language, query_language)


def _open_directory(data_dir: str, document_language: str, query_language: str) -> Source:
    directory = checked_directory(data_dir)
    published = bool(document_languages(directory))
    own = any((directory / f"documents.{suffix}").is_file() for suffix in ("tsv", "jsonl"))
    if published == own:
        names = sorted(path.name for path in directory.iterdir())
        listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise input_error(
            f"--data_dir={data_dir}",
            f"it holds {'two sets' if own else 'no set'}: {listed or 'no file at all'}",
            "Give a directory either with wiki_<language>.documents, wiki_<language>.queries and a"
            f" .rel file, or with {', '.join(ROLES)} as .tsv or .jsonl",
        )
    kind = WikiClirDirectory if published else UserDirectory
    return kind(directory, document_language, query_language)
