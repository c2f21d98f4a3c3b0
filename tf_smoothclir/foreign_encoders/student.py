"""A student of a foreign encoder: it reads queries in its place, in a hundredth of the time.

The vector of a query is the mean of the vectors of its words, weighted by inverse document
frequency. The vector of a word is its own plus those of its n character n-grams divided by √n, as
in `towers/word_table.py`. Documents keep the vectors of the encoder.
"""

import numpy as np

from tf_smoothclir.encoder import Encoder
from tf_smoothclir.encoder.description import Ngrams, TowerDescription
from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN

ARRAYS = ("words", "token_weights", "embeddings", "ngram_embeddings")
NGRAMS = Ngrams(buckets=1 << 15, shortest=2, longest=5)
MAX_TOKENS = 512  # as many as encoders read


class Student:
    """What has learned how an encoder reads queries.

    Attributes:
        arrays: `words`, `[words]` strings; `token_weights`, `[2 + words, 1]`, of which the softplus
            weighs, from padding and unknown on; `embeddings`, `[2 + words, dim]`;
            `ngram_embeddings`, `[buckets, dim]`.
        encoder: Encodes queries with these arrays; 0 for a text without words.
    """

    def __init__(self, arrays: dict[str, np.ndarray]):
        """Takes its arrays."""
        tower = TowerDescription("", MAX_TOKENS, 0.0, {}, (), pace=1.0, ngrams=NGRAMS)
        self.arrays, tables = arrays, {name: arrays[name] for name in ARRAYS[1:]}
        self.encoder = Encoder.of_arrays(tower, self.vocabulary, tables)

    @property
    def vocabulary(self) -> list[str]:
        """Its words, after padding and unknown."""
        return [PADDING, UNKNOWN, *self.arrays["words"].tolist()]
