"""Classes of words, whose translations EM learns together, and the entries of tables that they tie.

Words that begin alike are a class, as McNamee and Mayfield found first letters to serve most
languages ("Character N-Gram Tokenization for European Language Text Retrieval", Information
Retrieval 2004).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tf_smoothclir.lexical.sparse_tables import cells
from tf_smoothclir.utils import sparse as sp

CLASS_LETTERS = 5  # 4 serve as well; 3 and 6, small sets in Estonian and Kazakh less


class Ties(NamedTuple):
    """Entries of a table that have one probability: those of one cell of classes."""

    cells: np.ndarray  # `[entries]` int32, the cell of each
    rows: np.ndarray  # `[cells]` int32, the class of document words of each
    columns: np.ndarray  # the same of query words


class WordClasses(NamedTuple):
    """The class of each word, a number."""

    queries: np.ndarray  # `[query words]` int32
    documents: np.ndarray  # `[document words]` int32

    def of_cells(self, rows: np.ndarray, columns: np.ndarray) -> Ties:
        """The cells of classes that cells `[document word, query word]` are in."""
        number, sizes = len(rows), (self.queries.max() + 1, self.documents.max() + 1)
        one_row = np.arange(number, dtype=np.int32), self.queries[columns], [0, number]
        by_column = sp.csr_array(one_row, shape=(1, sizes[0])).tocsc()  # a counting sort
        of_queries, of_documents, places = cells(
            by_column.indptr, self.documents[rows[by_column.data]], sizes[1]
        )
        of_cells = np.empty(number, np.int32)
        of_cells[by_column.data] = places
        return Ties(of_cells, of_documents, of_queries)


def word_classes(words: Sequence[str], size: int) -> np.ndarray:
    """The class of each of `size` words, int32: words with letters that begin alike are one."""
    numbers: dict[str, int] = {}
    ends = (CLASS_LETTERS if any(map(str.isalpha, word)) else None for word in words)
    known = [numbers.setdefault(word[:end], len(numbers)) for word, end in zip(words, ends)]
    others = np.arange(size - len(known)) + len(numbers)
    return np.concatenate([known, others]).astype(np.int32)
