"""The lexical model of another run, from which a model of new data goes on (`--init_from`).

The new vocabularies begin with those of the other run, so its words keep their numbers, and what it
knows of them stays as it is where the new pairs say nothing. A document word t of both has

    T(w | t) = (n_t T_0(w | t) + m_t T_1(w | t)) / (n_t + m_t),

where n_t and m_t are the counts that the former and the new translations come from: about what all
pairs together would teach. P(w) and the weight of a query word are learned where no former query
has it: those of others decide how documents of languages rank that the new data do not have.
"""

import dataclasses
import functools

import numpy as np

from tf_smoothclir.lexical.model import LexicalModel
from tf_smoothclir.lexical.psq import background
from tf_smoothclir.lexical.sparse_tables import entry_rows, kept_entries
from tf_smoothclir.utils import sparse as sp

# What the choices of a model are, besides its profile and its weights of words.
_CHOSEN = (
    "dictionary",
    "length_power",
    "mean_length",
    "language_factors",
    "feedback",
    "on_documents",
)


@dataclasses.dataclass(frozen=True)
class InitialModel:
    """A model in the numbers of larger vocabularies, whose matrices have `shape`."""

    model: LexicalModel
    shape: tuple[int, int]  # document words, query words
    asked: np.ndarray  # `[query words]`, how often each stands in the new training queries

    def with_its_choices(self, model: LexicalModel) -> LexicalModel:
        """A model of its profile with its weights of words, and what else it chose."""
        chosen = {name: getattr(self.model, name) for name in _CHOSEN}
        return dataclasses.replace(model, weights=self._of_words(self.model.weights), **chosen)

    @functools.cached_property
    def words(self) -> np.ndarray:
        """The new number of each of its query words: words that only documents have move on."""
        documents, words = self.model.table.shape
        of_queries, queries = words - documents, self.shape[1] - self.shape[0]
        return np.concatenate([np.arange(of_queries), queries + np.arange(documents)])

    @property
    def was_asked(self) -> np.ndarray:
        """`[query words]` bool, those that former queries had."""
        return self.counts > self.asked

    @functools.cached_property
    def is_new(self) -> np.ndarray:
        """`[query words]` bool, those that the new queries have and no former one had."""
        return (self.asked > 0) & ~self.was_asked

    @functools.cached_property
    def counts(self) -> np.ndarray:
        """`[query words]`, how often each stands in the former queries and the new ones."""
        return self._of_words(self.model.counts) + self.asked

    @property
    def background(self) -> np.ndarray:
        """P(w), `[query words]` float32, that of new words by all queries."""
        former = self._of_words(self.model.background)
        both = background(sp.csr_array(self.counts[np.newaxis]))
        return np.where(self.is_new, both, former)

    def _of_words(self, former: np.ndarray) -> np.ndarray:
        """Numbers of all query words by those of its own; new ones have those of padding."""
        result = np.repeat(former[..., :1], self.shape[1], axis=-1)
        result[..., self.words] = former
        return result

    def lookalikes(self, found: sp.csr_array) -> sp.csr_array:
        """Its lookalikes, and of those of the new vocabularies the ones of a new word."""
        own = self._grown(self.model.lookalikes)
        has_row = entry_rows(found) < self.model.table.shape[0]
        is_old = has_row & np.isin(found.indices, self.words)
        return sp.csr_array(own + kept_entries(found, ~is_old))

    def table(self, learned: sp.csr_array, evidence: np.ndarray) -> tuple[sp.csr_array, np.ndarray]:
        """Its table with a `learned` one, `[document words, query words]`, and their evidence."""
        # `evidence` is what `learned` comes from; a known word without any keeps its translations.
        table = self._grown(self.model.table)
        former = np.zeros(len(evidence), np.float32)
        former[: len(self.model.evidence)] = self.model.evidence
        # Dictionaries and similar words give translations without a count.
        weight = np.where(former > 0, former, np.diff(table.indptr) > 0)
        total = weight + evidence
        share = np.divide(evidence, total, out=np.ones_like(total), where=total > 0)
        both = sp.diags_array(1 - share) @ table + sp.diags_array(share) @ learned
        both = sp.csr_array(both, dtype=np.float32)
        both.eliminate_zeros()
        return both, former + evidence

    def _grown(self, matrix: sp.csr_array) -> sp.csr_array:
        ends = np.full(self.shape[0] + 1, matrix.indptr[-1], matrix.indptr.dtype)
        ends[: len(matrix.indptr)] = matrix.indptr
        columns = self.words[matrix.indices].astype(matrix.indices.dtype)
        return sp.csr_array((matrix.data, columns, ends), shape=self.shape)
