"""Small matrices for the lexical tests."""

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.data import preparation, tokenized_set
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.lexical.words import Words
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.run_data import retrieval_set_of


def words(*texts: list[int], size: int) -> Words:
    offsets = np.cumsum([0, *map(len, texts)])
    ids = np.array([word for text in texts for word in text], np.int32)
    return Words(ids, offsets.astype(np.int64), size)


def counts(*texts: list[int], size: int) -> sp.csr_array:
    """`[texts, size]`, how often each word stands in each text."""
    return words(*texts, size=size).matrix()


def shares(*texts: list[int], size: int) -> sp.csr_array:
    """`[texts, size]`, the share that each word has of each text."""
    return words(*texts, size=size).matrix(np.ones_like)


def tokenized(settings: RunSettings) -> tokenized_set.TokenizedSet:
    retrieval_set = retrieval_set_of(source_of(settings.data), settings, ())
    return preparation.tokenize_set(retrieval_set, settings.text, settings.data.cache_dir)
