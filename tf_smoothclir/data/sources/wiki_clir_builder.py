"""The TFDS dataset `wiki_clir`: importing this module registers it (`docs/training.md`).

Layout: each query is one example with its judgments, in `train`, `validation` or `test`. The
collection, which all three rank, is the split `documents`. TFDS requires the same features in every
split, so a document is an example with an empty list of judgments, which costs a few bytes.
Judgments refer to documents by id. With the texts in the queries' examples instead, a document
would be repeated for every query that refers to it, and unjudged documents would be lost.

The archive has no splits. As in `RetrievalSet`, a seeded hash of the ids splits the queries 3:1:1,
so a set has the same splits whichever way it is read. A local `splits.tsv` wins.

TFDS requires a SHA-256 for a download, but none is published for the archive. ir_datasets gives its
MD5 and size (`ir_datasets/etc/downloads.json`, entry "wikiclir"). They are checked here instead of
a TFDS checksums file.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.languages import PUBLISHED_FOLDERS
from tf_smoothclir.data.sources.source import SPLITS, Text
from tf_smoothclir.data.sources.wikiclir_files import WikiClirDirectory
from tf_smoothclir.storage.folder import file_digest
from tf_smoothclir.utils.errors import input_error

ARCHIVE_URL = "https://www.cs.jhu.edu/~kevinduh/a/wikiclir2018/wiki-clir.tar.gz"
ARCHIVE_MD5 = "705abb611eb8cbab9ced2b8767a3bdb6"
ARCHIVE_BYTES = 7_036_445_773
DOCUMENTS = "documents"

_CITATION = """\
@inproceedings{sasaki-etal-2018-cross,
  title = "Cross-Lingual Learning-to-Rank with Shared Representations",
  author = "Sasaki, Shota and Sun, Shuo and Schamoni, Shigehiko and Duh, Kevin and Inui, Kentaro",
  booktitle = "Proceedings of the 2018 Conference of the North {A}merican Chapter of the Association
    for Computational Linguistics: Human Language Technologies, Volume 2 (Short Papers)",
  month = jun,
  year = "2018",
  address = "New Orleans, Louisiana",
  publisher = "Association for Computational Linguistics",
  url = "https://aclanthology.org/N18-2073",
  doi = "10.18653/v1/N18-2073",
  pages = "458--463"
}"""


def features() -> tfds.features.FeaturesDict:
    """Returns the features of a query and of a document; a document's judgments are empty."""
    return tfds.features.FeaturesDict(
        {
            "id": tfds.features.Text(),
            "title": tfds.features.Text(),
            "text": tfds.features.Text(),
            "judgments": tfds.features.Sequence(
                {"document_id": tfds.features.Text(), "grade": np.int32}
            ),
        }
    )


class WikiClir(tfds.core.GeneratorBasedBuilder):
    """English queries and documents of 25 other Wikipedias, with relevance 2, 1 and (unlisted) 0.

    Args:
        directory: A local copy in the layout that `WikiClirDirectory` reads; nothing is
            downloaded. Prepare it into its own `data_dir`: TFDS tells sets apart by name only.
        **kwargs: Arguments of every TFDS builder.
    """

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS = [  # noqa: RUF012 (the name and the type are TFDS's)
        tfds.core.BuilderConfig(name=language, description=f"Documents: {folder}")
        for language, folder in PUBLISHED_FOLDERS.items()
    ]

    def __init__(self, *, directory: str = "", **kwargs: Any) -> None:
        self._directory = directory
        super().__init__(**kwargs)

    def _info(self) -> tfds.core.DatasetInfo:
        return self.dataset_info_from_configs(
            description="Large-scale cross-lingual retrieval from Wikipedia: queries are first"
            " sentences of English pages without the title's words.",
            features=features(),
            homepage="https://www.cs.jhu.edu/~kevinduh/a/wikiclir2018/",
            citation=_CITATION,
        )

    def _split_generators(self, dl_manager: tfds.download.DownloadManager) -> dict[str, Iterator]:
        directory = self._directory or _published(dl_manager)
        retrieval_set = RetrievalSet.load(WikiClirDirectory(directory, self.builder_config.name))
        # A query without a split, which has no judgments, is in none.
        present = [split for n, split in enumerate(SPLITS) if (retrieval_set.splits == n).any()]
        source = retrieval_set.source
        queries = {split: self._generate_examples(retrieval_set, split) for split in present}
        documents = enumerate(source.documents())
        without = ((row, {**_text(text), "judgments": []}) for row, text in documents)
        return {**queries, DOCUMENTS: without}

    def _generate_examples(self, retrieval_set: RetrievalSet, split: str) -> Iterator[tuple]:
        source = retrieval_set.source
        rows = np.arange(len(retrieval_set.query_ids) + 1)
        begin = np.searchsorted(retrieval_set.query_rows, rows)
        wanted = retrieval_set.splits == SPLITS.index(split)
        for row, text in enumerate(source.queries()):
            if wanted[row]:
                judged = slice(begin[row], begin[row + 1])
                judgments = zip(retrieval_set.document_rows[judged], retrieval_set.grades[judged])
                yield (
                    row,
                    {
                        **_text(text),
                        "judgments": [
                            {"document_id": retrieval_set.document_ids[document], "grade": grade}
                            for document, grade in judgments
                        ],
                    },
                )


def _text(text: Text) -> dict[str, str]:
    """What an example has of a text; its language is that of the whole set."""
    return {"id": text.id, "title": text.title, "text": text.text}


def _published(dl_manager: tfds.download.DownloadManager) -> Path:
    """Downloads, checks and extracts the archive; later languages find it in TFDS's cache."""
    archive = Path(dl_manager.download(ARCHIVE_URL))
    size, digest = archive.stat().st_size, file_digest(archive, "md5")
    if (size, digest) != (ARCHIVE_BYTES, ARCHIVE_MD5):
        raise input_error(
            archive,
            f"the file has {size} bytes and MD5 {digest}, but the published archive has"
            f" {ARCHIVE_BYTES} bytes and MD5 {ARCHIVE_MD5}",
            "Remove the file and try again. To use another edition, extract it and give"
            ' builder_kwargs={"directory": ...}',
        )
    return Path(dl_manager.extract(archive)) / "wiki-clir"
