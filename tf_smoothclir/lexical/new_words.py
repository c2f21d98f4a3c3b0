"""Words that documents of an index have and its model never met: names of what is new.

They have no translation, and are found as they are spelled. Nobody lists them: the number of such a
word is a hash of it, `spread(size)` numbers after those of the vocabularies.
"""

from collections.abc import Sequence

import numpy as np

from tf_smoothclir.encoder.word_evidence import fingerprints
from tf_smoothclir.lexical.words import Words

BYTES = 64  # of a word that are hashed
_LARGEST = np.iinfo(np.int32).max
NONE = np.zeros(0, np.int32)


def spread(query_words: int) -> int:
    """How many hashes there are, where texts are read by so many known query words."""
    return _LARGEST - query_words


def hashes(words: Sequence[str], query_words: int) -> np.ndarray:
    """The hash of each word, `[words]` int32; in graphs `tf.strings.to_hash_bucket_fast`."""
    encoded = [word.encode("utf-8", "surrogatepass")[:BYTES] for word in words]
    return (fingerprints(encoded) % np.uint64(spread(query_words))).astype(np.int32)


def numbered(words: Words, known: int) -> tuple[Words, np.ndarray]:
    """Words whose new ones have the numbers from `known` on, and the hashes of these, sorted."""
    is_new = words.ids >= known
    different, places = np.unique(words.ids[is_new], return_inverse=True)
    ids = words.ids.copy()
    ids[is_new] = known + places
    return words.with_ids(ids, known + len(different)), different - known
