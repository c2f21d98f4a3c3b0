"""Learning a lexical model from a tokenized set; what has to be chosen is chosen on validation."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence

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
from tf_smoothclir.lexical.postings import Postings
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
_PAIRS_AT_ONCE = 256
_SEVERAL = 2  # passages of a document, on average
_MOST_ALIGNED = 100_000_000  # words of documents with words of queries, in the first table


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
    logging.info(
        "Translation table: %d entries, %s (%.1f s)",
        model.table.nnz,
        model.fields[0],
        time.monotonic() - begin,
    )
    model = dataclasses.replace(model, weights=learner.word_weights(model))
    model = learner.with_best_length(model)
    model = dataclasses.replace(model, feedback=learner.best_feedback(model))
    model = dataclasses.replace(model, seconds=round(time.monotonic() - begin, 3))
    logging.info("Lexical model: %s (%.1f s)", model.describe(), model.seconds)
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
        self._validation = Validation(texts.retrieval_set)
        self._passages, self._shares = texts.documents, {}
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
                expected = texts.collection.occurrences @ self._dictionary
                self._background = background(sp.csr_array(expected[None]))
        self._dictionary_share = 0.0 if learnable else 1.0
        self._lower_grades, self._passage_words = 0.0, 0
        if passage_words:
            self._choose_passages(passage_words if learnable else passage_words[:1])

    def _choose_passages(self, lengths: Sequence[int]) -> None:
        """Cuts documents into passages: shorter ones while that is better beyond chance.

        Shorter ones than the longest are only tried where documents have several of these, so that
        a few long documents do not change how all others are ranked.
        """
        self._passage_words, best = lengths[0], None
        for longest in lengths:
            before = self._passages, self._shares, self._pairs
            if not self._cut(longest) or not self._has_several_passages:
                return
            measured = self._measured(FLAT, 0.0)
            if best is not None and not is_better(measured, best):
                self._passages, self._shares, self._pairs = before
                return
            best, self._passage_words = measured, longest

    @property
    def _has_several_passages(self) -> bool:
        documents = len(self._texts.documents.offsets) - 1
        return len(self._passages.offsets) - 1 > _SEVERAL * documents

    def _cut(self, longest: int) -> bool:
        """Cuts documents into passages, if any is longer."""
        passages = self._texts.documents.passages(longest)
        if passages.firsts is None:
            return False
        pairs, rounds = self._pairs, 1
        if self._passages.firsts is None:
            queries, documents = self._mates
            words = max(1, self._texts.queries[queries].nnz)
            opening = self._texts.documents.of(documents, max(longest, _MOST_ALIGNED // words))
            pairs, rounds = TrainingPairs(self._texts, opening.matrix, np.arange(len(queries))), 2
        self._passages, self._shares = passages, {}
        for _ in range(rounds):
            pairs = TrainingPairs(self._texts, self._share, self._answers(pairs))
        self._pairs = pairs
        return True

    def _answers(self, pairs: TrainingPairs) -> np.ndarray:
        """The passage of each mate that says most of what its query says, `[pairs]` int.

        Nobody says which one that is. A table of other pairs does: one that was learned from a
        pair itself would find its words in whatever passage they were first thought to be.
        """
        queries, documents = self._mates
        firsts, rows = self._passages.firsts, np.zeros(len(documents), np.int64)
        ids = [self._texts.retrieval_set.query_ids[row] for row in self._training]
        half = hash_ids(ids, f"answers {self._seed}") % np.uint64(2)
        for number in range(2):
            table = pruned(pairs.table(FLAT, 0.0, self._training[half != number]))
            held_out = np.flatnonzero(np.isin(queries, self._training[half == number]))
            for begin in range(0, len(held_out), _PAIRS_AT_ONCE):
                own = held_out[begin : begin + _PAIRS_AT_ONCE]
                ranges = [np.arange(*firsts[row : row + 2]) for row in documents[own]]
                asked = self._texts.queries[np.repeat(queries[own], list(map(len, ranges)))]
                found = self._impacts_of(self._share(FLAT)[np.concatenate(ranges)], table)
                scores = np.asarray(asked.multiply(found).sum(axis=1)).ravel()
                ends = np.cumsum(list(map(len, ranges)))[:-1]
                best = [of_pair.argmax() for of_pair in np.split(scores, ends)]
                rows[own] = firsts[documents[own]] + best
        return rows

    def _best_rows(
        self, postings: Postings, query_rows: np.ndarray, documents: np.ndarray
    ) -> np.ndarray:
        """Rows of the best passages of documents for a query, in the shape of `documents`.

        Args:
            documents: `[queries, ...]`, document rows.
        """
        if postings.firsts is None:
            return documents
        rows = np.empty_like(documents)
        for place, query in enumerate(query_rows):
            words = self._texts.queries[[query]]
            of_rows = postings.of_rows(words.indices, words.data)
            rows[place] = postings.best_rows(of_rows, np.atleast_1d(documents[place])).squeeze()
        return rows

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
            passage_words=self._passage_words,
            dictionary=self._dictionary_share,
            lower_grades=self._lower_grades,
        )

    def _best_profile(self) -> PositionProfile:
        """The profile by which a table of all positions alike ranks best.

        All positions count alike unless another profile ranks better by more than `_CLEARLY`.
        """
        if self._has_several_passages:  # of which the opening is one
            return FLAT
        table = self._mixed(self._whole_table(FLAT))
        quality = {}
        for profile in PROFILES:
            quality[profile] = self._validation(self._rows(self._impacts(profile, table)))
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
        rows = self._rows(self._impacts(profile, self._pairs.whole_table(profile, lower_grades)))
        (measured,) = self._validation.per_query(lambda query_rows: [rows(query_rows)])
        return measured

    def _best_dictionary_share(self, profile: PositionProfile) -> float:
        """The share of the dictionary in the table that ranks best."""
        if self._dictionary is None or not len(self._mates[0]):
            return self._dictionary_share
        learned, qualities = self._whole_table(profile), []
        for share in DICTIONARY_SHARES:
            found = self._impacts(profile, mixed(learned, self._dictionary, share))
            qualities.append(self._validation(self._rows(found)))
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
            queries, passages = self._hard_candidates(rows, found[0], candidates)
            for field, own in zip(features, found):
                field.append(candidate_features(self._texts.queries[queries], own, passages))
        joined = [sp.csr_array(sp.vstack(field)) for field in features]
        return learn_word_weights(joined, candidates + 1).astype(np.float32)

    def with_best_length(self, model: LexicalModel) -> LexicalModel:
        """A model by which long documents score lower, as far as that is better."""
        lengths = np.diff(self._passages.offsets)
        if self._passages.firsts is not None:  # passages of a document are equally long
            lengths = lengths[self._passages.firsts[:-1]]
        model = dataclasses.replace(model, mean_length=max(1.0, float(lengths.mean())))
        models = [dataclasses.replace(model, length_power=power) for power in LENGTH_POWERS]
        factors = [one.length_factors(lengths) for one in models]
        rows = self._rows(model.impacts(self._passages, self._texts.spelling))

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
        rows = self._rows(model.impacts(self._passages, self._texts.spelling))
        feedback = self._texts.feedback(1)
        qualities = self._validation.of_variants(
            lambda query_rows: feedback_variants(feedback, rows(query_rows))
        )
        return FEEDBACK_WEIGHTS[int(np.argmax(qualities))]

    def _whole_table(self, profile: PositionProfile) -> sp.csr_array:
        return self._pairs.whole_table(profile, self._lower_grades)

    def _impacts(self, profile: PositionProfile, table: sp.csr_array) -> sp.csr_array:
        return self._impacts_of(self._share(profile), table)

    def _impacts_of(self, shares: sp.csr_array, table: sp.csr_array) -> sp.csr_array:
        return impacts(shares, table, self._texts.spelling, self._background, self._psq)

    def _share(self, profile: PositionProfile) -> sp.csr_array:
        if profile not in self._shares:
            self._shares[profile] = self._passages.matrix(profile)
        return self._shares[profile]

    def _rows(self, found: sp.csr_array) -> ScoreRows:
        return lexical_rows(self._texts.queries, found, self._passages.firsts)

    def _hard_candidates(
        self, rows: np.ndarray, found: sp.csr_array, number: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns, for each mate of some queries, the query and `[1 + number]` rows of impacts.

        The first one is of the mate, the others are of the best documents that nobody judged, of
        each the best passage.
        """
        queries, documents = self._mates
        chosen = np.isin(queries, rows)
        with_mates = np.unique(queries[chosen])
        asked, postings = self._texts.queries, Postings.of(found, self._passages.firsts)

        def score_rows(query_rows: np.ndarray) -> np.ndarray:
            return postings.sums(asked[query_rows])

        ranking = unjudged_top(score_rows, self._texts.retrieval_set, with_mates, number)
        place = np.searchsorted(with_mates, queries[chosen])
        queries, found_documents = (
            queries[chosen],
            np.column_stack([documents[chosen], ranking[place]]),
        )
        return queries, self._best_rows(postings, queries, found_documents)


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
