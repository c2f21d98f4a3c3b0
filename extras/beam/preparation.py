"""Preparing a very large set with Apache Beam: workers count and tokenise the documents.

The cache then contains exactly what `tokenize_set` would have written, byte for byte. All workers
must reach the files of the set and the cache by the same paths, such as on a network file system.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.preparation import cut_documents, encode_role
from tf_smoothclir.data.ragged_store import RaggedWriter, join_stores
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.file_source import FileSource
from tf_smoothclir.data.sources.line_files import Piece
from tf_smoothclir.data.sources.source import SPLITS, text_read
from tf_smoothclir.data.token_cache import (
    caching,
    default_cache_dir,
    is_usable,
    token_directory,
    vocabulary_directory,
)
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.storage.files import make_directory, read_json, write_json
from tf_smoothclir.text.batches import text_batches
from tf_smoothclir.text.token_counter import TokenCounter, no_token_left
from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN, write_vocabulary
from tf_smoothclir.text.word_encoder import TextEncoder
from tf_smoothclir.utils.beam import load_beam
from tf_smoothclir.utils.errors import input_error

_BYTES_PER_PIECE = 1 << 26


def check_text(settings: TextSettings) -> None:
    """Checks that the pipelines can do what the settings ask for."""
    if settings.ngram_buckets:
        reason = "only one process can number the different words of a collection"
        where = f"--ngram_buckets={settings.ngram_buckets}"
        raise input_error(where, reason, "Leave it out, or let smoothclir-train prepare the set")
    if settings.query_vocabulary or settings.document_vocabulary:
        where = "--query_vocabulary, --document_vocabulary"
        raise input_error(where, "the words are counted on the texts", "Leave the files out")


class BeamPreparation:
    """Prepares a set with two pipelines: one counts, one encodes."""

    def __init__(self, retrieval_set: RetrievalSet, settings: TextSettings, options: Sequence[str]):
        self._set, self._settings, self._options = retrieval_set, settings, options
        self._files = retrieval_set.source.whole  # its documents are those of the set
        if not isinstance(self._files, FileSource):
            reason = f"Beam reads sets of files only, not {self._files.name}"
            raise input_error("--beam", reason, "Give --data_dir")
        check_text(settings)

    def __call__(self, cache_dir: str | os.PathLike = "") -> TokenizedSet:
        """What `tokenize_set` returns; what the cache already has is not made again."""
        cache = make_directory(cache_dir or default_cache_dir(), "--cache_dir").absolute()
        vocabulary = vocabulary_directory(self._set, self._settings, cache)
        if not is_usable(vocabulary):
            with caching(vocabulary) as temporary:
                self._write_vocabularies(temporary)
        directory = token_directory(self._set, self._settings, cache, vocabulary)
        if not is_usable(directory):
            with caching(directory) as temporary:
                encode_role("query", self._set, self._settings, temporary, vocabulary)
                self._encode_documents(temporary, vocabulary / "document.txt")
                cut_documents(self._set, self._settings, temporary)
        return TokenizedSet(
            self._set, directory, vocabulary, pretokenized=self._settings.pretokenized
        )

    def _write_vocabularies(self, directory: Path) -> None:
        queries, settings = self._count_queries(), self._settings
        shared = settings.shared_vocabulary
        tokens = self._most_frequent(directory / "counted.json", queries.counts() if shared else {})
        write_vocabulary(directory / "document.txt", tokens)
        if not shared:
            size, least = settings.vocabulary_size, settings.min_count
            tokens = queries.vocabulary(max_size=size, min_count=least, role="query")
        write_vocabulary(directory / "query.txt", tokens)

    def _count_queries(self) -> TokenCounter:
        counter = TokenCounter(self._settings.pretokenized)
        training = iter(self._set.splits == SPLITS.index("train"))
        for texts in text_batches(text.text for text in self._set.source.queries()):
            counted = np.fromiter(training, bool, count=len(texts))
            counter.add(counter.split(texts, self._settings.max_query_tokens), counted)
        return counter

    def _most_frequent(self, result: Path, more: dict[bytes, int]) -> list[str]:
        """The vocabulary of the tokens of all documents and of `more`, token -> count."""
        beam, settings, least = load_beam(), self._settings, self._settings.min_count
        count = functools.partial(_counted_tokens, self._files, settings)
        with new_pipeline(self._options) as pipeline:
            of_documents = self._on_pieces(pipeline) | "Count" >> beam.FlatMap(count)
            others = pipeline | "Others" >> beam.Create(list(more.items()))
            counts = (of_documents, others) | beam.Flatten() | beam.CombinePerKey(sum)
            different = counts | "Different" >> beam.combiners.Count.Globally()
            _ = (
                counts
                | "Enough" >> beam.Filter(lambda counted: counted[1] >= least)
                | "Order" >> beam.Map(lambda counted: (-counted[1], counted[0]))
                | "Most frequent" >> beam.combiners.Top.Smallest(settings.vocabulary_size - 2)
                | "Write" >> beam.Map(_write, os.fspath(result), beam.pvalue.AsSingleton(different))
            )
        tokens, seen = read_json(result)
        result.unlink()
        if not tokens:
            role = "shared" if settings.shared_vocabulary else "document"
            raise no_token_left(role, least, seen)
        return [PADDING, UNKNOWN, *tokens]

    def _encode_documents(self, directory: Path, vocabulary: Path) -> None:
        beam = load_beam()
        paths = os.fspath(vocabulary), os.fspath(directory)
        with new_pipeline(self._options) as pipeline:
            encode = functools.partial(_encode_piece, self._files, self._settings, *paths)
            _ = self._on_pieces(pipeline) | "Encode" >> beam.Map(encode)
        join_stores(directory, [_part(number) for number, _ in self._pieces], "document", "<i4")

    def _on_pieces(self, pipeline):
        beam = load_beam()
        return pipeline | "Pieces" >> beam.Create(self._pieces) | "Spread" >> beam.Reshuffle()

    @functools.cached_property
    def _pieces(self) -> list[tuple[int, Piece]]:  # reads the whole file
        return list(enumerate(self._files.document_pieces(_BYTES_PER_PIECE)))


def new_pipeline(options: Sequence[str]):
    """A pipeline that runs at the end of its `with` block."""
    beam = load_beam()
    from apache_beam.options.pipeline_options import PipelineOptions

    try:
        return beam.Pipeline(options=PipelineOptions(list(options)))
    except ValueError as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise input_error("--beam", reason, "Give pipeline options of Apache Beam") from None


def _texts(source: FileSource, settings: TextSettings, piece: Piece) -> Iterator[list[str]]:
    titles = settings.reads_titles
    documents = source.documents_in(piece)
    return text_batches(text_read(document, titles=titles) for _, document in documents)


def _counted_tokens(
    source: FileSource, settings: TextSettings, numbered: tuple[int, Piece]
) -> Iterator[tuple[bytes, int]]:
    """Yields (token, count) for the tokens of a piece."""
    counter = TokenCounter(settings.pretokenized)
    for texts in _texts(source, settings, numbered[1]):
        counter.add(counter.split(texts, settings.read_tokens("document")))
    yield from counter.counts().items()


def _write(tokens: list[tuple[int, bytes]], path: str, different: int) -> None:
    write_json(Path(path), [[token.decode() for _, token in tokens], different])


def _encode_piece(
    source: FileSource,
    settings: TextSettings,
    vocabulary: str,
    directory: str,
    numbered: tuple[int, Piece],
) -> None:
    """Writes a store of the documents of a piece; a second attempt replaces the first one."""
    number, piece = numbered
    encoder = _encoder(vocabulary, settings.read_tokens("document"), settings.pretokenized)
    with tempfile.TemporaryDirectory(dir=directory) as temporary:
        with RaggedWriter(temporary, "document", "<i4") as writer:
            for texts in _texts(source, settings, piece):
                encoded = encoder(tf.constant(texts))
                writer.add(encoded.ids.numpy(), encoded.lengths.numpy())
        for file in Path(temporary).iterdir():
            os.replace(file, Path(directory, f"{_part(number)}{file.suffix}"))


@functools.lru_cache(1)
def _encoder(vocabulary: str, max_tokens: int, pretokenized: bool) -> TextEncoder:
    """Loads the vocabulary once per worker."""
    return TextEncoder(vocabulary, max_tokens, pretokenized)


def _part(number: int) -> str:
    return f"document-{number:06}"
