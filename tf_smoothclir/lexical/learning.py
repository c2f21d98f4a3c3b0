"""Learning a lexical model from a tokenized set; what has to be chosen is chosen on validation."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from absl import logging

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.lexical.dictionary import Dictionary, mixed
from tf_smoothclir.lexical.feedback import Feedback, with_feedback
from tf_smoothclir.lexical.ibm_model_1 import pruned
from tf_smoothclir.lexical.model import LexicalModel, weighted_sum
from tf_smoothclir.lexical.positions import DECAYS, FLAT, HEIGHTS, TITLE_WEIGHTS, PositionProfile
from tf_smoothclir.lexical.postings import Postings, highest
from tf_smoothclir.lexical.psq import DEFAULT, PsqSettings, background
from tf_smoothclir.lexical.scored_documents import ScoredDocuments
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.training_pairs import LOWER_GRADES
from tf_smoothclir.lexical.validation import Validation, is_better
from tf_smoothclir.lexical.word_weights import candidate_features, learn_word_weights
from tf_smoothclir.protocols.scorer import ScoreRows, query_chunks
from tf_smoothclir.utils import sparse as sp
from tf_smoothclir.utils.errors import input_error

DICTIONARY_SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
LENGTH_POWERS = (0.0, -0.025, -0.05, -0.075, -0.1, -0.125, -0.15)
FEEDBACK_WEIGHTS = (0.0, 12.5, 25.0, 50.0, 100.0, 200.0, 400.0)
# About one standard error of the difference of two rankings over the validation sample.
_CLEARLY = 0.005
_FOLDS = 4
_CANDIDATES = 60
_QUERIES_FOR_WEIGHTS = 8000


def learn_lexical_model(
    texts: LexicalTexts,
    *,
    seed: int,
    dictionary: Dictionary | None = None,
    psq: PsqSettings = DEFAULT,
    passage_words: Sequence[int] = (),
) -> LexicalModel:
    """Learns a model from the training queries of a set, and chooses on its validation queries.

    Args:
        passage_words: Lengths of passages to choose from, the longest first; none for whole
            documents.
    """
    begin = time.monotonic()
    learner = _Learner(texts, seed, dictionary, psq, passage_words)
    model = learner.model()
    seconds, entries = time.monotonic() - begin, model.table.nnz
    logging.info("Translation table: %d entries, %s (%.1f s)", entries, model.fields[0], seconds)
    model = dataclasses.replace(model, weights=learner.word_weights(model))
    if texts.retrieval_set.source.is_judged:  # sentences say nothing of documents
        model = learner.with_best_length_and_feedback(model)
    model = dataclasses.replace(model, seconds=round(time.monotonic() - begin, 3))
    logging.info("Lexical model: %s (%.1f s)", model.describe(), model.seconds)
    vars(texts).pop("similar_words", None)  # large, and of no more use
    return model


def learn_table(
    texts: LexicalTexts,
    *,
    seed: int,
    dictionary: Dictionary | None = None,
    passage_words: Sequence[int] = (),
) -> LexicalModel:
    """Learns a translation table alone, with the profile of positions that ranks best by it."""
    return _Learner(texts, seed, dictionary, passage_words=passage_words).model()


def feedback_variants(feedback: Feedback, scores: np.ndarray) -> Iterator[np.ndarray]:
    """Yields scores with feedback of each of `FEEDBACK_WEIGHTS`, `[queries, documents]` float32."""
    similarities = feedback.similarities(scores)
    for weight in FEEDBACK_WEIGHTS:
        yield with_feedback(scores, similarities, weight)


class _Learner:
    """State that the steps of learning share."""

    def __init__(
        self,
        texts: LexicalTexts,
        seed: int,
        dictionary: Dictionary | None,
        psq: PsqSettings = DEFAULT,
        passage_words: Sequence[int] = (),
    ):
        self._texts = texts
        self._psq = psq
        self._seed = seed
        self._documents = ScoredDocuments(texts, psq)
        pairs = self._documents.pairs
        learnable = bool(len(pairs.mates[0]))
        if not learnable and dictionary is None:
            raise input_error(
                texts.retrieval_set.source.name,
                "no query of the train split has a relevant document",
                "Judge some: a translation table is learned from pairs that say the same. Or give"
                " a --dictionary",
            )
        self._training, self._mates = pairs.training, pairs.mates
        self._dictionary: sp.csr_array | None = None
        if dictionary is not None:
            self._dictionary = dictionary.table(*texts.vocabularies, self._documents.background)
            if not len(self._training):  # then what the documents are expected to say
                expected = texts.occurrences @ self._dictionary
                self._documents.background = background(sp.csr_array(expected[None]))
        self._dictionary_share = 0.0 if learnable else 1.0
        self._lower_grades, self._passage_words = 0.0, 0
        if passage_words:
            can_choose = learnable and texts.retrieval_set.source.is_judged
            self._choose_passages(passage_words if can_choose else passage_words[:1])

    def _choose_passages(self, lengths: Sequence[int]) -> None:
        """Cuts documents into passages: shorter ones while that is better beyond chance.

        Shorter ones than the longest are only tried where documents have several of these, so that
        a few long documents do not change how all others are ranked.
        """
        self._passage_words, best = lengths[0], None
        for longest in lengths:
            cut = self._documents.in_passages(longest, self._seed)
            if cut is None:
                return
            before, self._documents = self._documents, cut
            if len(lengths) == 1 or not cut.has_several_passages:
                return
            measured = self._measured(FLAT, 0.0)
            if best is not None and not is_better(measured, best):
                self._documents = before
                return
            best, self._passage_words = measured, longest

    @functools.cached_property
    def _validation(self) -> Validation:
        return Validation(self._texts.retrieval_set)

    def model(self) -> LexicalModel:
        """A model of one table, all of whose words count alike."""
        profile = self._best_title_weight(self._best_profile())
        self._lower_grades = self._best_lower_grades(profile)
        self._dictionary_share = self._best_dictionary_share(profile)
        fields = (profile,) if profile == FLAT else (profile, FLAT)
        weights = np.zeros((len(fields), len(self._documents.background)), np.float32)
        weights[0] = 1
        return LexicalModel(
            table=self._mixed(self._whole_table(profile)),
            lookalikes=self._texts.lookalikes,
            background=self._documents.background,
            fields=fields,
            weights=weights,
            psq=self._psq,
            passage_words=self._passage_words,
            dictionary=self._dictionary_share,
            lower_grades=self._lower_grades,
        )

    def _best_profile(self) -> PositionProfile:
        """The profile by which a table of all positions alike ranks best.

        All positions count alike unless another profile ranks better by more than `_CLEARLY`.
        """
        several = self._documents.has_several_passages  # of which the opening is one
        if several or not self._texts.retrieval_set.source.is_judged:
            return FLAT
        table = self._mixed(self._whole_table(FLAT))
        quality: dict[PositionProfile, float] = {}

        def best_of(profiles: Iterable[PositionProfile]) -> PositionProfile:
            for profile in profiles:
                quality[profile] = self._validation(self._scored_by(profile, table))
            return max(quality, key=quality.get)

        height = best_of((FLAT, *(PositionProfile(height, DECAYS[0]) for height in HEIGHTS))).height
        best = best_of(PositionProfile(height or HEIGHTS[0], decay) for decay in DECAYS[1:])
        return best if quality[best] > quality[FLAT] + _CLEARLY else FLAT

    def _best_title_weight(self, profile: PositionProfile) -> PositionProfile:
        """A profile with the weight of words of titles: more while that is better beyond chance.

        No metric may fall: names of books find related verses, and lose the verse that is meant.
        """
        has_titles = self._texts.documents.starts is not None
        can_choose = len(self._mates[0]) and self._texts.retrieval_set.source.is_judged
        if not has_titles or not can_choose:
            return profile
        heavier = [(dataclasses.replace(profile, title=one), 0.0) for one in TITLE_WEIGHTS]
        return self._last_better([(profile, 0.0), *heavier], may_fall=False)[0]

    def _best_lower_grades(self, profile: PositionProfile) -> float:
        """Weight of pairs of lower grades: more while that is better beyond chance."""
        can_choose = len(self._mates[0]) and len(self._documents.pairs.lower[0])
        weights = (0.0, *LOWER_GRADES) if can_choose else (0.0,)
        return self._last_better([(profile, weight) for weight in weights], may_fall=True)[1]

    def _last_better(
        self, rising: Sequence[tuple[PositionProfile, float]], *, may_fall: bool
    ) -> tuple[PositionProfile, float]:
        """The last of `_measured` tables each of which is better beyond chance than the former."""
        for former, table in itertools.pairwise(rising):
            gains = self._measured(*table) - self._measured(*former)
            falls = not may_fall and (np.nanmean(gains, axis=0) < 0).any()
            if falls or not is_better(self._measured(*table), self._measured(*former)):
                return former
        return rising[-1]

    def _measured(self, profile: PositionProfile, lower_grades: float) -> np.ndarray:
        """Measures a learned table alone, once; returns what `Validation.per_query` does."""
        measured, key = self._documents.measured, (profile, lower_grades)
        if key not in measured:
            table = self._documents.pairs.whole_table(profile, lower_grades)
            rows = self._scored_by(profile, table)
            (measured[key],) = self._validation.per_query(lambda query_rows: [rows(query_rows)])
        return measured[key]

    def _best_dictionary_share(self, profile: PositionProfile) -> float:
        """The share of the dictionary in the table that ranks best."""
        if self._dictionary is None or not len(self._mates[0]):
            return self._dictionary_share
        learned, qualities = self._whole_table(profile), []
        for share in DICTIONARY_SHARES:
            table = mixed(learned, self._dictionary, share)
            qualities.append(self._validation(self._scored_by(profile, table)))
        share = DICTIONARY_SHARES[int(np.argmax(qualities))]
        logging.info("The dictionary has %.0f%% of the translation table", 100 * share)
        return share

    def _mixed(self, learned: sp.csr_array) -> sp.csr_array:
        """A learned table with the dictionary."""
        if self._dictionary is None:
            return learned
        return mixed(learned, self._dictionary, self._dictionary_share)

    def word_weights(self, model: LexicalModel) -> np.ndarray:
        """Learns weights from queries whose table has not seen them; without pairs, keeps them."""
        if not len(self._mates[0]):
            return model.weights
        ids = [self._texts.retrieval_set.query_ids[row] for row in self._training]
        hashes = hash_ids(ids, f"folds {self._seed}")
        fold = (hashes % np.uint64(_FOLDS)).astype(int)
        chosen = np.zeros(len(fold), bool)
        chosen[np.argsort(hashes, kind="stable")[:_QUERIES_FOR_WEIGHTS]] = True
        retrieval_set = self._texts.retrieval_set
        unjudged = len(retrieval_set.document_ids) - np.bincount(retrieval_set.query_rows).max()
        candidates = max(0, min(_CANDIDATES, unjudged))
        parts = [self._training[chosen & (fold == fold_number)] for fold_number in range(_FOLDS)]
        # A fold of a very small set may have no mates.
        used = [n for n, rows in enumerate(parts) if np.isin(self._mates[0], rows).any()]
        others = [self._training[fold != fold_number] for fold_number in used]
        tables = self._documents.pairs.tables(model.fields[0], self._lower_grades, others)
        tables = [self._mixed(pruned(learned)) for learned in tables]
        queries: list[sp.csr_array] = []
        features: list[list[np.ndarray]] = [[] for _ in model.fields]
        for fold_number, table in zip(used, tables):
            rows = parts[fold_number]
            impacts = self._field_impacts(model.fields, table, rows)
            asked, passages = self._hard_candidates(rows, impacts[0], candidates)
            queries.append(self._texts.queries[asked])
            for field, of_field in zip(features, impacts):
                field.append(candidate_features(queries[-1], of_field, passages))
        asked = sp.csr_array(sp.vstack(queries, format="csr"))
        return learn_word_weights(asked, list(map(np.concatenate, features))).astype(np.float32)

    def with_best_length_and_feedback(self, model: LexicalModel) -> LexicalModel:
        """A model by which long documents score lower, as far as that is better, with feedback.

        The weight of feedback is the one that ranks best.
        """
        lengths = self._documents.lengths
        model = dataclasses.replace(model, mean_length=max(1.0, float(lengths.mean())))
        models = [dataclasses.replace(model, length_power=power) for power in LENGTH_POWERS]
        factors = [one.length_factors(lengths) for one in models]
        fields = self._field_impacts(model.fields, model.table, self._validation.query_rows)
        rows = self._documents.rows(weighted_sum(fields, model.weights))

        def variants(query_rows: np.ndarray) -> Iterator[np.ndarray]:
            scores = rows(query_rows)
            return (scores * of_lengths for of_lengths in factors)

        measured = self._validation.per_query(variants)
        chosen = 0
        while chosen + 1 < len(models) and is_better(measured[chosen + 1], measured[chosen]):
            chosen += 1
        feedback = self._texts.feedback(1)
        qualities = self._validation.of_variants(
            lambda query_rows: feedback_variants(feedback, rows(query_rows) * factors[chosen])
        )
        weight = FEEDBACK_WEIGHTS[int(np.argmax(qualities))]
        return dataclasses.replace(models[chosen], feedback=weight)

    def _field_impacts(self, fields, table: sp.csr_array, rows: np.ndarray) -> list[sp.csr_array]:
        shares, words = map(self._documents.share, fields), self._texts.queries[rows].indices
        return [self._documents.impacts(one, table, words) for one in shares]

    def _scored_by(self, profile: PositionProfile, table: sp.csr_array) -> ScoreRows:
        """Scorer of documents for the validation queries."""
        return self._documents.scored_by(profile, table, self._validation.query_rows)

    def _whole_table(self, profile: PositionProfile) -> sp.csr_array:
        return self._documents.pairs.whole_table(profile, self._lower_grades)

    def _hard_candidates(
        self, rows: np.ndarray, found: sp.csr_array, number: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns, for each mate of some queries, the query and `[1 + number]` rows of impacts.

        The first one is of the mate, the others are of the best documents that nobody judged, of
        each the best passage.
        """
        chosen = np.isin(self._mates[0], rows)
        queries, documents = (pair_rows[chosen] for pair_rows in self._mates)
        postings = Postings.of(found, self._documents.passages.firsts)
        candidates = np.empty((len(queries), 1 + number), np.int64)
        for _, chunk in query_chunks(np.unique(queries), postings.rows):
            of_rows = list(postings.of_each(self._texts.queries[chunk]))
            scores = np.stack(list(map(postings.best, of_rows)))
            top = unjudged_top(scores, self._texts.retrieval_set, chunk, number)
            for pair in np.flatnonzero(np.isin(queries, chunk)):
                place = np.searchsorted(chunk, queries[pair])
                of_pair = np.append(documents[pair], top[place])
                candidates[pair] = postings.best_rows(of_rows[place], of_pair)
        return queries, candidates


def unjudged_top(
    scores: np.ndarray, retrieval_set: RetrievalSet, query_rows: np.ndarray, number: int
) -> np.ndarray:
    """The best documents of sorted queries that nobody judged, `[queries, number]` in no order.

    In `scores`, `[queries, documents]` float32, those of judged documents are lost.
    """
    judged = np.isin(retrieval_set.query_rows, query_rows)
    places = np.searchsorted(query_rows, retrieval_set.query_rows[judged])
    scores[places, retrieval_set.document_rows[judged]] = -np.inf
    best = (highest(row, number) for row in scores)  # and all that equal the last
    return np.stack([rows[np.argsort(-row[rows])[:number]] for row, rows in zip(scores, best)])
