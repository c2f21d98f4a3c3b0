"""A retrieval set that TFDS has prepared."""

import os
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf
import tensorflow_datasets as tfds

from tf_smoothclir.data.pipeline import plain_options
from tf_smoothclir.data.sources.source import SPLITS, Judgment, Source, Text
from tf_smoothclir.data.sources.wiki_clir_builder import DOCUMENTS, features
from tf_smoothclir.storage.folder import joint_digest
from tf_smoothclir.utils.errors import input_error

_FIELDS = ("id", "title", "text")
_BATCH = 1024  # records per step from TensorFlow to Python; single records take far longer


class TfdsSource(Source):
    """A dataset of the features of `wiki_clir_builder` that TFDS has prepared, in its order."""

    titles_are_answers = True

    def __init__(self, name: str, data_dir: str = "", query_language: str = "") -> None:
        self.name = name
        self.query_language = query_language or "en"
        self._builder = _builder(name, data_dir)
        self.document_language = self._builder.builder_config.name
        info = self._builder.info
        if DOCUMENTS not in info.splits:
            raise input_error(
                f"TFDS dataset {name!r}",
                f"it is not prepared in {self._builder.data_dir}",
                "Prepare it in Python: import tensorflow_datasets as tfds,"
                f' tf_smoothclir.data.sources.wiki_clir_builder; tfds.load("{name}", data_dir=...)',
            )
        if repr(info.features) != repr(features()):
            remedy = f"Use a dataset with the features {features()}"
            raise input_error(f"TFDS dataset {name!r}", f"its features are {info.features}", remedy)
        self._query_splits = [split for split in SPLITS if split in info.splits]

    def queries(self) -> Iterator[Text]:
        for split in self._query_splits:
            yield from self._texts(split)

    def documents(self) -> Iterator[Text]:
        return self._texts(DOCUMENTS)

    def judgments(self) -> Iterator[Judgment]:
        for split in self._query_splits:
            records = self._records(split).map(lambda record: (record["id"], record["judgments"]))
            for ids, judgments in records.ragged_batch(_BATCH):
                documents, grades = judgments["document_id"], judgments["grade"]
                queries = tf.gather(ids, documents.value_rowids()).numpy()
                columns = queries, documents.values.numpy(), grades.values.numpy()
                for query, document, grade in zip(*columns):
                    yield Judgment(query.decode(), document.decode(), int(grade))

    def splits(self) -> dict[str, str]:
        return {text.id: split for split in self._query_splits for text in self._texts(split)}

    def fingerprint(self) -> str:
        splits = self._builder.info.splits
        return joint_digest(
            Path(os.fspath(path))
            for split in [*self._query_splits, DOCUMENTS]
            for path in splits[split].filepaths
        )

    def _records(self, split: str) -> tf.data.Dataset:
        # Files one after the other and no cache in memory: the same order for any size.
        config = tfds.ReadConfig(plain_options(), try_autocache=False, interleave_cycle_length=1)
        return self._builder.as_dataset(split=split, read_config=config, shuffle_files=False)

    def _texts(self, split: str) -> Iterator[Text]:
        language = self.language_of("documents" if split == DOCUMENTS else "queries")
        fields = self._records(split).map(lambda record: tuple(map(record.get, _FIELDS)))
        for columns in fields.batch(_BATCH).as_numpy_iterator():
            for id_, title, text in zip(*columns):
                yield Text(id_.decode(), title.decode(), text.decode(), language)


def _builder(name: str, data_dir: str) -> tfds.core.DatasetBuilder:
    try:
        builder = tfds.builder(name, data_dir=data_dir or None)
        reason = "" if "/" in name else "the name has no config, which is the document language"
    except tfds.core.DatasetNotFoundError as error:
        reason = str(error).split("\n")[0].rstrip(".")  # the next lines list all datasets of TFDS
    except ValueError as error:
        reason = " ".join(str(error).split()).rstrip(".")
    if reason:
        remedy = "Give dataset and config, such as wiki_clir/fr"
        raise input_error(f"TFDS dataset {name!r}", reason, remedy)
    return builder
