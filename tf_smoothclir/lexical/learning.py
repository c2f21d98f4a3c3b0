"""Learning a lexical model from a tokenized set; what has to be chosen is chosen on validation."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from absl import logging

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.lexical.dictionary import Dictionary, mixed
from tf_smoothclir.lexical.feedback import Feedback, with_feedback
from tf_smoothclir.lexical.ibm_model_1 import pruned
from tf_smoothclir.lexical.model import LexicalModel
from tf_smoothclir.lexical.positions import FLAT, PROFILES, PositionProfile
from tf_smoothclir.lexical.psq import DEFAULT, PsqSettings, background, impacts
from tf_smoothclir.lexical.retriever import query_chunks
from tf_smoothclir.lexical.score_rows import ScoreRows, lexical_rows
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.training_pairs import LOWER_GRADES, TrainingPairs
from tf_smoothclir.lexical.validation import Validation, is_better
from tf_smoothclir.lexical.word_weights import candidate_features, learn_word_weights
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
) -> LexicalModel:
    """Learns a model from the training queries of a set, and chooses on its validation queries."""
    begin = time.monotonic()
    learner = _Learner(texts, seed, dictionary, psq)
    model = learner.model()
    logging.info(
        "Translation table: %d entries, %s (%.1f s)",
        model.table.nnz,
        model.fields[0],
        time.monotonic() - begin,
    )
    model = dataclasses.replace(model, weights=learner.word_weights(model))
    if texts.retrieval_set.source.is_judged:  # sentences say nothing of documents
        model = learner.with_best_length(model)
        model = dataclasses.replace(model, feedback=learner.best_feedback(model))
    model = dataclasses.replace(model, seconds=round(time.monotonic() - begin, 3))
    logging.info("Lexical model: %s (%.1f s)", model.describe(), model.seconds)
    return model


def learn_table(
    texts: LexicalTexts, *, seed: int, dictionary: Dictionary | None = None
) -> LexicalModel:
    """Learns a translation table alone, with the profile of positions that ranks best by it."""
    return _Learner(texts, seed, dictionary).model()


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
    ):
        self._texts = texts
        self._psq = psq
        self._seed = seed
        self._shares = {FLAT: texts.documents.matrix(FLAT)}
        self._pairs = TrainingPairs(texts, self._share)
        learnable = len(self._pairs.mates[0]) > 0
        if not learnable and dictionary is None:
            raise input_error(
                texts.retrieval_set.source.name,
                "no query of the train split has a relevant document",
                "Judge some: a translation table is learned from pairs that say the same. Or give"
                " a --dictionary",
            )
        self._training, self._mates = self._pairs.training, self._pairs.mates
        self._background = background(texts.queries[self._training])
        self._dictionary: sp.csr_array | None = None
        if dictionary is not None:
            self._dictionary = dictionary.table(*texts.vocabularies, self._background)
            if not len(self._training):  # then what the documents are expected to say
                expected = texts.occurrences @ self._dictionary
                self._background = background(sp.csr_array(expected[None]))
        self._dictionary_share = 0.0 if learnable else 1.0
        self._lower_grades = 0.0

    @functools.cached_property
    def _validation(self) -> Validation:
        return Validation(self._texts.retrieval_set)

    def model(self) -> LexicalModel:
        """A model of one table, all of whose words count alike."""
        profile = self._best_profile()
        self._lower_grades = self._best_lower_grades(profile)
        self._dictionary_share = self._best_dictionary_share(profile)
        fields = (profile,) if profile.is_flat else (profile, FLAT)
        weights = np.zeros((len(fields), len(self._background)), np.float32)
        weights[0] = 1
        return LexicalModel(
            self._mixed(self._whole_table(profile)),
            self._background,
            fields,
            weights,
            psq=self._psq,
            dictionary=self._dictionary_share,
            lower_grades=self._lower_grades,
        )

    def _best_profile(self) -> PositionProfile:
        """The profile by which a table of all positions alike ranks best.

        All positions count alike unless another profile ranks better by more than `_CLEARLY`.
        """
        if not self._texts.retrieval_set.source.is_judged:
            return FLAT
        table = self._mixed(self._whole_table(FLAT))
        quality = {}
        for profile in PROFILES:
            found = self._impacts(profile, table)
            quality[profile] = self._validation(lexical_rows(self._texts.queries, found))
        best = max(quality, key=quality.get)
        return best if quality[best] > quality[FLAT] + _CLEARLY else FLAT

    def _best_lower_grades(self, profile: PositionProfile) -> float:
        """Weight of pairs of lower grades: more while that is better beyond chance."""
        chosen = 0.0
        if not len(self._mates[0]) or not len(self._pairs.lower[0]):
            return chosen
        best = self._measured(profile, chosen)
        for weight in LOWER_GRADES:
            measured = self._measured(profile, weight)
            if not is_better(measured, best):
                break
            chosen, best = weight, measured
        return chosen

    def _measured(self, profile: PositionProfile, lower_grades: float) -> np.ndarray:
        """Measures a learned table alone; returns what `Validation.per_query` does."""
        found = self._impacts(profile, self._pairs.whole_table(profile, lower_grades))
        rows = lexical_rows(self._texts.queries, found)
        (measured,) = self._validation.per_query(lambda query_rows: [rows(query_rows)])
        return measured

    def _best_dictionary_share(self, profile: PositionProfile) -> float:
        """The share of the dictionary in the table that ranks best."""
        if self._dictionary is None or not len(self._mates[0]):
            return self._dictionary_share
        learned, qualities = self._whole_table(profile), []
        for share in DICTIONARY_SHARES:
            found = self._impacts(profile, mixed(learned, self._dictionary, share))
            qualities.append(self._validation(lexical_rows(self._texts.queries, found)))
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
        features: list[list[sp.csr_array]] = [[] for _ in model.fields]
        retrieval_set = self._texts.retrieval_set
        unjudged = len(retrieval_set.document_ids) - np.bincount(retrieval_set.query_rows).max()
        candidates = max(0, min(_CANDIDATES, unjudged))
        for number in range(_FOLDS):
            rows = self._training[chosen & (fold == number)]
            if not np.isin(self._mates[0], rows).any():
                continue  # a fold of a very small set
            others = self._training[fold != number]
            table = self._pairs.table(model.fields[0], self._lower_grades, others)
            table = self._mixed(pruned(table))
            found = [self._impacts(field, table) for field in model.fields]
            queries, documents = self._hard_candidates(rows, found[0], candidates)
            for field, own in zip(features, found):
                field.append(candidate_features(self._texts.queries[queries], own, documents))
        joined = [sp.csr_array(sp.vstack(field)) for field in features]
        return learn_word_weights(joined, candidates + 1).astype(np.float32)

    def with_best_length(self, model: LexicalModel) -> LexicalModel:
        """A model by which long documents score lower, as far as that is better."""
        texts = self._texts
        lengths = np.diff(texts.documents.offsets)
        model = dataclasses.replace(model, mean_length=max(1.0, float(lengths.mean())))
        models = [dataclasses.replace(model, length_power=power) for power in LENGTH_POWERS]
        factors = [one.length_factors(lengths) for one in models]
        rows = lexical_rows(texts.queries, model.impacts(texts.documents, texts.spelling))

        def variants(query_rows: np.ndarray) -> Iterator[np.ndarray]:
            scores = rows(query_rows)
            return (scores * own for own in factors)

        measured = self._validation.per_query(variants)
        chosen = 0
        while chosen + 1 < len(models) and is_better(measured[chosen + 1], measured[chosen]):
            chosen += 1
        return models[chosen]

    def best_feedback(self, model: LexicalModel) -> float:
        """The weight of feedback that ranks best."""
        found = model.impacts(self._texts.documents, self._texts.spelling)
        rows, feedback = lexical_rows(self._texts.queries, found), self._texts.feedback(1)
        qualities = self._validation.of_variants(
            lambda query_rows: feedback_variants(feedback, rows(query_rows))
        )
        return FEEDBACK_WEIGHTS[int(np.argmax(qualities))]

    def _whole_table(self, profile: PositionProfile) -> sp.csr_array:
        return self._pairs.whole_table(profile, self._lower_grades)

    def _impacts(self, profile: PositionProfile, table: sp.csr_array) -> sp.csr_array:
        spelling = self._texts.spelling
        return impacts(self._share(profile), table, spelling, self._background, self._psq)

    def _share(self, profile: PositionProfile) -> sp.csr_array:
        if profile not in self._shares:
            self._shares[profile] = self._texts.documents.matrix(profile)
        return self._shares[profile]

    def _hard_candidates(
        self, rows: np.ndarray, found: sp.csr_array, number: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns, for each mate of some queries, the query and `[1 + number]` documents.

        The first one is the mate, the others are the best documents that nobody judged.
        """
        queries, documents = self._mates
        chosen = np.isin(queries, rows)
        with_mates = np.unique(queries[chosen])
        score_rows = lexical_rows(self._texts.queries, found)
        ranking = unjudged_top(score_rows, self._texts.retrieval_set, with_mates, number)
        place = np.searchsorted(with_mates, queries[chosen])
        return queries[chosen], np.column_stack([documents[chosen], ranking[place]])


def unjudged_top(
    score_rows: ScoreRows, retrieval_set: RetrievalSet, query_rows: np.ndarray, number: int
) -> np.ndarray:
    """The best documents of sorted queries that nobody judged, `[queries, number]` in no order."""
    judged = np.isin(retrieval_set.query_rows, query_rows)
    places = np.searchsorted(query_rows, retrieval_set.query_rows[judged])
    documents = retrieval_set.document_rows[judged]
    parts = []
    for begin, chunk in query_chunks(query_rows, len(retrieval_set.document_ids)):
        scores = score_rows(chunk)
        own = (places >= begin) & (places < begin + len(chunk))
        scores[places[own] - begin, documents[own]] = -np.inf
        parts.append(np.argpartition(-scores, number - 1, axis=1)[:, :number])
    return np.concatenate(parts)
