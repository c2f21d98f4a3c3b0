"""Preparing a retrieval set: vocabularies and token stores are made once and cached."""

import functools
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf
from absl import logging

from tf_smoothclir.data import token_cache, tokenized_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import text_read
from tf_smoothclir.data.tokenized_set import ROLES, RaggedWriter, TokenizedSet
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.storage import files
from tf_smoothclir.storage.folder import new_folder
from tf_smoothclir.text.new_vocabulary import TokenCounter, given_vocabulary
from tf_smoothclir.text.subwords import ngrams
from tf_smoothclir.text.tokenizer import tokenize
from tf_smoothclir.text.tokens import TextEncoder
from tf_smoothclir.text.vocabulary import read_vocabulary, write_vocabulary
from tf_smoothclir.utils.devices import on_the_cpu
from tf_smoothclir.utils.parallel import map_in_threads, text_batches
from tf_smoothclir.utils.progress import progress_bar

_NUMBERS = "numbers"  # scratch directory of provisional numbers


def tokenize_set(
    retrieval_set: RetrievalSet,
    settings: TextSettings,
    cache_dir: str | os.PathLike = "",
    vocabulary_dir: str | os.PathLike | None = None,
) -> TokenizedSet:
    """Tokenises a set, or finds it in the cache."""
    cache = files.make_directory(cache_dir or token_cache.default_cache_dir(), "--cache_dir")
    files.sweep_scratch(cache, _NUMBERS)  # a process may have been killed once the store was there
    counted = token_cache.vocabulary_directory(retrieval_set, settings, cache)
    has_vocabularies = bool(vocabulary_dir) or token_cache.is_usable(counted)
    vocabulary_dir, directory = Path(vocabulary_dir or counted), None
    if has_vocabularies:
        directory = token_cache.token_directory(retrieval_set, settings, cache, vocabulary_dir)
    if directory is not None and token_cache.is_usable(directory):
        logging.info("Token store: found in %s", directory)
    else:
        directory = _count_and_encode(retrieval_set, settings, cache, vocabulary_dir)
    tokenized = TokenizedSet(retrieval_set, directory, vocabulary_dir, settings)
    _log_share_read(tokenized)
    return tokenized


def _log_share_read(tokenized: TokenizedSet) -> None:
    settings, queries = tokenized.settings, tokenized.tokens("query").lengths
    most = settings.max_query_tokens
    if long := np.count_nonzero(queries == most):
        logging.info(
            f"Queries: the first {most} tokens are read; {long} of the {len(queries)} queries have"
            " as many or more, of which --max_query_tokens reads the rest"
        )
    lengths, most = tokenized.tokens("document").lengths, settings.max_document_tokens
    if settings.passage_words:
        words = max(1, tokenized.whole_documents().offsets[-1])
        share = lengths.sum() / words
        logging.info(f"Documents: lexical models read all {words} words, towers {share:.0%}")
    elif (cut := np.mean(lengths == most)) > 0:
        logging.info(
            f"Documents: the first {most} words are read; {cut:.0%} of the documents have as many"
            " or more, of which --passage_words reads the rest"
        )


def encode_role(role: str, tokenized: TokenizedSet, directory: Path) -> None:
    """Writes the token store of a role into a directory, with the vocabularies of the set."""
    settings = tokenized.settings
    path, most = tokenized.vocabulary_dir / f"{role}.txt", settings.read_tokens(role)
    encoder = TextEncoder(path, most, settings.pretokenized)
    batches = map(tf.constant, _batches(tokenized.retrieval_set, role, settings))
    with RaggedWriter(directory, role, "<i4") as writer:
        for encoded in map_in_threads(on_the_cpu(encoder), batches):
            writer.add(encoded.ids.numpy(), encoded.lengths.numpy())


def cut_documents(retrieval_set: RetrievalSet, settings: TextSettings, directory: Path) -> None:
    """Cuts the store of documents as towers read them, without titles; another keeps all."""
    titles: np.ndarray | int = 0
    if settings.reads_titles:
        most, lengths = settings.read_tokens("document"), [np.zeros(0, np.int64)]
        for batch in text_batches(text.title for text in retrieval_set.source.documents()):
            tokens = tokenize(tf.constant(batch), most, settings.pretokenized)
            lengths.append(tokens.row_lengths().numpy())
        titles = np.concatenate(lengths)
        with files.open_to_write(directory / tokenized_set.TITLES) as file:
            files.write_array(file, titles, "<i8")
    tokenized_set.keep_openings(directory, settings.max_document_tokens, titles)


def _count_and_encode(
    retrieval_set: RetrievalSet, settings: TextSettings, cache: Path, vocabulary_dir: Path
) -> Path:
    """Writes token stores, and missing vocabularies, in one pass; returns the stores' directory."""
    # The pass stores provisional numbers, which become ids once the vocabulary is known.
    counters = {role: TokenCounter(settings.pretokenized) for role in ROLES}
    if settings.shared_vocabulary:
        counters["document"] = counters["query"]
    with files.scratch_directory(cache, _NUMBERS) as numbers:
        for role in ROLES:
            with RaggedWriter(numbers, role, "<i4") as writer:
                _store_numbers(counters[role], retrieval_set, settings, role, writer)
        further = text_batches(retrieval_set.source.further_texts())
        for texts in _split(counters["document"], further, settings.max_document_tokens):
            counters["document"].add(texts)
        if not vocabulary_dir.is_dir():
            with new_folder(vocabulary_dir, token_cache.CACHED) as (temporary, _):
                for role in ROLES:
                    write_vocabulary(
                        temporary / f"{role}.txt", _vocabulary(counters[role], settings, role)
                    )
        directory = token_cache.token_directory(retrieval_set, settings, cache, vocabulary_dir)
        if not token_cache.is_usable(directory):
            with new_folder(directory, token_cache.CACHED) as (temporary, _):
                for role in ROLES:
                    vocabulary = read_vocabulary(vocabulary_dir / f"{role}.txt")
                    if settings.ngram_buckets:
                        ids, others = counters[role].distinct_ids(vocabulary)
                        rows = settings.ngram_rows(len(vocabulary))
                        _write_ngrams(temporary, role, vocabulary[2:] + others, rows, settings)
                    else:
                        ids = counters[role].ids(vocabulary)
                    tokenized_set.copy_mapped(numbers, temporary, role, ids)
                cut_documents(retrieval_set, settings, temporary)
            logging.info("Token store: written to %s", directory)
    return directory


def _vocabulary(counter: TokenCounter, settings: TextSettings, role: str) -> list[str]:
    """The vocabulary of a role; the log says how many words it leaves out."""
    limits = {"max_size": settings.vocabulary_size, "min_count": settings.min_count}
    if given := settings.given_vocabulary(role):
        as_is = settings.pretokenized
        tokens = given_vocabulary(given, counter.counts(), **limits, pretokenized=as_is)
    else:
        called = "shared" if settings.shared_vocabulary else role
        tokens = counter.vocabulary(role=called, **limits)
    logging.info("Vocabulary of the %s side: %d entries", role, len(tokens))
    cut, share = counter.left_out(tokens, settings.min_count)
    if cut and len(tokens) == settings.vocabulary_size:
        logging.warning(
            f"Vocabulary of the {role} side: {cut} further words, {100 * share:.2g}% of the"
            f" running text, count as unknown. --vocabulary_size={len(tokens) + cut} reads"
            " them too."
        )
    return tokens


def _write_ngrams(
    directory: Path, role: str, words: list[str], rows: int, settings: TextSettings
) -> None:
    """Writes the n-grams of all words, by id; padding and unknown have none."""

    def encode(words):
        return ngrams(tf.constant(words), rows, settings.min_ngram, settings.max_ngram)

    with RaggedWriter(directory, tokenized_set.ngrams_store(role), "<i4") as writer:
        writer.add(np.zeros(0), np.zeros(2, np.int64))
        for buckets in map_in_threads(on_the_cpu(encode), text_batches(words)):
            writer.add(buckets.flat_values.numpy(), buckets.row_lengths().numpy())


def _store_numbers(counter, retrieval_set, settings, role: str, writer: RaggedWriter) -> None:
    """Tokenises the texts of a role, counts their tokens and stores their provisional numbers."""
    row, are_taught = 0, retrieval_set.are_taught
    batches = _batches(retrieval_set, role, settings)
    for texts in _split(counter, batches, settings.read_tokens(role)):
        end = row + len(texts.lengths)
        numbers = counter.add(texts, are_taught[row:end] if role == "query" else None)
        writer.add(numbers, texts.lengths)
        row = end


def _split(counter: TokenCounter, batches: Iterator[list[str]], max_tokens: int):
    split = functools.partial(counter.split, max_tokens=max_tokens)
    return map_in_threads(on_the_cpu(split), batches)


def _batches(retrieval_set: RetrievalSet, role: str, settings: TextSettings) -> Iterator[list[str]]:
    is_query, source = role == "query", retrieval_set.source
    texts, titles = source.queries() if is_query else source.documents(), settings.reads_titles
    ids = retrieval_set.query_ids if is_query else retrieval_set.document_ids
    what = "Tokenise queries" if is_query else "Tokenise documents"
    with progress_bar(len(ids), what, "texts") as bar:
        for batch in text_batches(text_read(t, titles=titles and not is_query) for t in texts):
            yield batch
            bar.update(len(batch))
