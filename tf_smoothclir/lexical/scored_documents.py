"""Documents of a set as tables score them: whole, or in passages, of which the best one counts."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.lexical.ibm_model_1 import pruned
from tf_smoothclir.lexical.postings import lexical_rows
from tf_smoothclir.lexical.psq import background, by_documents, impacts, spelling_mixed_in
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.training_pairs import TableChoices, TrainingPairs
from tf_smoothclir.lexical.words import FLAT, PositionProfile, Words
from tf_smoothclir.protocols.scorer import ScoreRows
from tf_smoothclir.utils import sparse as sp

_PAIRS_AT_ONCE = 1024
_SEVERAL = 2  # passages of a document, on average
_FEW = 0.25  # of the pairs: which passages answer them hardly changes a table
_MOST_ALIGNED = 100_000_000  # words of documents with words of queries, in the first table


class ScoredDocuments:
    """Documents of a set, and the training pairs of queries and what answers them."""

    def __init__(self, texts: LexicalTexts):
        self._texts = texts
        self.passages: Words = texts.documents  # or passages of them
        self._shares: dict[PositionProfile, sp.csr_array] = {}
        self.measured: dict[TableChoices, np.ndarray] = {}  # what validation says of tables
        self.pairs = TrainingPairs(texts)
        queries = texts.queries[self.pairs.training]
        self.take_background(background(queries), queries.sum(axis=0))

    def take_background(self, by_queries: np.ndarray, counts: np.ndarray) -> None:
        """Takes P(w) by queries, and what words count in them; documents tell that of others."""
        occurrences, spelling = self._texts.occurrences, self._texts.spelling
        self.counts = np.asarray(counts, np.float32)
        self.background = by_documents(by_queries, self.counts, occurrences, spelling)

    def taught_pairs(self) -> TrainingPairs:
        """The pairs of the final table: those of training, and sentences that validated."""
        retrieval_set = self._texts.retrieval_set
        if retrieval_set.source.is_judged or self.passages.firsts is not None:
            return self.pairs
        return TrainingPairs(self._texts, retrieval_set.are_taught)

    @property
    def has_several_passages(self) -> bool:
        """Whether most documents have."""
        documents = len(self._texts.documents.offsets) - 1
        return len(self.passages.offsets) - 1 > _SEVERAL * documents

    @property
    def lengths(self) -> np.ndarray:
        """`[documents]` int, the words of a document, or of each of its passages."""
        lengths, firsts = np.diff(self.passages.offsets), self.passages.firsts
        return lengths if firsts is None else lengths[firsts[:-1]]

    def share(self, profile: PositionProfile) -> sp.csr_array:
        """Shares p(t | d) of words by a profile, `[passages, document words]` float32."""
        if profile not in self._shares:
            self._shares[profile] = self.passages.matrix(profile)
        return self._shares[profile]

    def impacts(
        self,
        profiles: Sequence[PositionProfile],
        table: sp.csr_array,
        query_rows: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> sp.csr_array:
        """Impacts of the words of some queries by profiles, `[passages, query words]` float32."""
        words = self._texts.queries[query_rows].indices
        mixed = spelling_mixed_in(table, self._texts.alike, words)
        return impacts(list(map(self.share, profiles)), mixed, self.background, weights)

    def rows(self, found: sp.csr_array) -> ScoreRows:
        """Scorer of documents by impacts."""
        return lexical_rows(self._texts.queries, found, self.passages.firsts)

    def in_passages(self, longest: int, seed: int) -> ScoredDocuments | None:
        """The documents in passages; None if no document is longer than one."""
        passages = self._texts.documents.passages(longest)
        if passages.firsts is None:
            return None
        pairs, rounds, cut = self.pairs, 1, copy.copy(self)
        if self.passages.firsts is None:  # tables of whole documents know little, and cost most
            queries, documents = pairs.mates
            words = max(1, self._texts.queries[queries].nnz)
            opening = self._texts.documents.of(documents, max(longest, _MOST_ALIGNED // words))
            pairs = pairs.of_passages(opening)
            rounds = 1 + (np.mean(np.diff(passages.firsts)[documents] > 1) > _FEW)
        cut.passages, cut._shares, cut.measured = passages, {}, {}
        for _ in range(rounds):
            pairs = pairs.of_passages(passages.of(cut._answers(pairs, seed)))
        cut.pairs = pairs
        return cut

    def _answers(self, pairs: TrainingPairs, seed: int) -> np.ndarray:
        """The passage of each mate that says most of what its query says, `[pairs]` int."""
        # Nobody says which one that is. A table of other pairs does: one that was learned from a
        # pair itself would find its words in whatever passage they were first thought to be.
        queries, documents = pairs.mates
        firsts = self.passages.firsts
        rows, has_several = firsts[documents], np.diff(firsts)[documents] > 1
        if not has_several.any():
            return rows
        ids = [self._texts.retrieval_set.query_ids[row] for row in pairs.training]
        half = hash_ids(ids, f"answers {seed}") % np.uint64(2)
        parts = [pairs.training[half != half_number] for half_number in range(2)]
        for half_number, (learned, _) in enumerate(pairs.tables(pairs.plain_choices, parts)):
            table = pruned(learned)
            held_out = np.isin(queries, pairs.training[half == half_number])
            asked = np.flatnonzero(held_out & has_several)
            for begin in range(0, len(asked), _PAIRS_AT_ONCE):
                some = asked[begin : begin + _PAIRS_AT_ONCE]
                ranges = [np.arange(*firsts[row : row + 2]) for row in documents[some]]
                lengths = list(map(len, ranges))
                texts = self._texts.queries[np.repeat(queries[some], lengths)]
                shares = self.share(FLAT)[np.concatenate(ranges)]
                mixed = spelling_mixed_in(table, self._texts.alike, texts.indices)
                of_words = impacts([shares], mixed, self.background)
                scores = np.asarray(texts.multiply(of_words).sum(axis=1)).ravel()
                of_pairs = np.split(scores, np.cumsum(lengths)[:-1])
                rows[some] += [of_pair.argmax() for of_pair in of_pairs]
        return rows
