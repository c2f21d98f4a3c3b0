"""Learning a lexical model from a tokenized set; what has to be chosen is chosen on validation."""

import dataclasses
import functools
import time
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from absl import logging

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.lexical.dictionary import Dictionary, mixed
from tf_smoothclir.lexical.ibm_model_1 import pruned
from tf_smoothclir.lexical.initial_model import InitialModel
from tf_smoothclir.lexical.language_factors import balanced
from tf_smoothclir.lexical.model import LexicalModel
from tf_smoothclir.lexical.postings import Postings
from tf_smoothclir.lexical.psq import background
from tf_smoothclir.lexical.scored_documents import ScoredDocuments
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.training_pairs import AGREEMENTS, LOWER_GRADES, Pairs, TableChoices
from tf_smoothclir.lexical.validation import (
    Validation,
    best_of_better,
    best_weight,
    feedback_variants,
    is_better,
)
from tf_smoothclir.lexical.word_weights import (
    candidate_features,
    hard_candidates,
    learn_word_weights,
)
from tf_smoothclir.lexical.words import DECAYS, FLAT, HEIGHTS, TITLE_WEIGHTS, PositionProfile
from tf_smoothclir.protocols.scorer import ScoreRows
from tf_smoothclir.text.vocabulary import PADDING_ID
from tf_smoothclir.utils import sparse as sp
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.memory import give_back_memory

DICTIONARY_SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
LENGTH_POWERS = (0.0, -0.025, -0.05, -0.075, -0.1, -0.125, -0.15)
# About one standard error of the difference of two rankings over the validation sample.
_CLEARLY = 0.005
_FOLDS = 4
_CANDIDATES = 60
_QUERIES_FOR_WEIGHTS = 8000


class TableLearner:
    """Learns from the training queries of a set, and chooses on its validation queries."""

    def __init__(
        self,
        texts: LexicalTexts,
        *,
        seed: int,
        dictionary: Dictionary | None = None,
        passage_words: Sequence[int] = (),
        initial: LexicalModel | None = None,
    ):
        """Reads the pairs of the set, and cuts documents into passages where that is better."""
        # `passage_words` are lengths of passages to choose from, the longest first; none for whole
        # documents. It goes on from an `initial` model, with whose vocabularies those of the set
        # begin.
        self._texts, self._seed, self._begin = texts, seed, time.monotonic()
        self._documents = ScoredDocuments(texts)
        pairs = self._documents.pairs
        learnable = bool(len(pairs.mates.queries))
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
                by_queries = background(sp.csr_array(expected[None]))
                self._documents.take_background(by_queries, expected)
        self._dictionary_share = 0.0 if learnable else 1.0
        self._passage_words = 0
        self._initial: InitialModel | None = None
        if initial is not None:
            asked = texts.queries[self._training].sum(axis=0)
            self._initial = InitialModel(initial, texts.spelling.shape, asked)
            self._documents.take_background(self._initial.background, self._initial.counts)
            texts.lookalikes = self._initial.lookalikes(texts.lookalikes)
        if passage_words:
            if self.keeps_choices:
                passage_words = (initial.passage_words or passage_words[0],)
            self._choose_passages(passage_words if self._can_choose else passage_words[:1])

    @property
    def keeps_choices(self) -> bool:
        """Whether the choices are those of the initial model."""
        return self._initial is not None and self._initial.model.on_documents

    @property
    def _can_choose(self) -> bool:
        """Whether pairs teach a table and judgments measure it."""
        return bool(len(self._mates.queries)) and self._texts.retrieval_set.source.is_judged

    def _choose_passages(self, lengths: Sequence[int]) -> None:
        """Cuts documents into passages: shorter ones while that is better beyond chance."""
        # Shorter ones than the longest are only tried where documents have several of these, so
        # that a few long documents do not change how all others are ranked.
        self._passage_words, best = lengths[0], None
        for longest in lengths:
            cut = self._documents.in_passages(longest, self._seed)
            if cut is None:
                return
            before, self._documents = self._documents, cut
            if len(lengths) == 1 or not cut.has_several_passages:
                return
            measured = self._measured(cut.pairs.plain_choices)
            if best is not None and not is_better(measured, best):
                self._documents = before
                return
            best, self._passage_words = measured, longest

    @functools.cached_property
    def _validation(self) -> Validation:
        return Validation(self._texts.retrieval_set)

    def model(self) -> LexicalModel:
        """A model: a table with weights of words, and feedback."""
        model = self.table()
        logging.info("Translation table: %d entries, %s", model.table.nnz, model.fields[0])
        model = dataclasses.replace(model, weights=self.word_weights(model))
        if self._texts.retrieval_set.source.is_judged and not self.keeps_choices:
            # Sentences say nothing of documents.
            model = self.with_best_factors_and_feedback(model)
        model = dataclasses.replace(model, seconds=round(time.monotonic() - self._begin, 3))
        logging.info("Lexical model: %s (%.1f s)", model.describe(), model.seconds)
        vars(self._texts).pop("similar_words", None)  # large, and of no more use
        return model

    def table(self) -> LexicalModel:
        """A model of a table alone, all of whose words count alike, with its best profile."""
        if self.keeps_choices:
            choices = _choices_of(self._initial.model)
        else:
            plain = self._documents.pairs.plain_choices
            choices = self._best_order(self._best_title_weight(self._best_profile(plain)))
            choices = self._best_agreement(choices)
        profile = choices.profile
        self._dictionary_share = self._best_dictionary_share(choices)
        fields = (profile,) if profile == FLAT else (profile, FLAT)
        weights = np.zeros((len(fields), len(self._documents.background)), np.float32)
        weights[0] = 1
        table, evidence = self._mixed(*self._documents.taught_pairs().whole_table(choices))
        model = LexicalModel(
            table=table,
            evidence=evidence,
            lookalikes=self._texts.lookalikes,
            background=self._documents.background,
            counts=self._documents.counts,
            fields=fields,
            weights=weights,
            passage_words=self._passage_words,
            dictionary=self._dictionary_share,
            lower_grades=choices.lower_grades,
            agreement=choices.agreement,
            in_order=choices.in_order,
        )
        return self._initial.with_its_choices(model) if self.keeps_choices else model

    def _best_profile(self, choices: TableChoices) -> TableChoices:
        """Choices with the profile by which their table ranks best, if its own does too."""
        several = self._documents.has_several_passages  # of which the opening is one
        if several or not self._texts.retrieval_set.source.is_judged:
            return choices
        table, _ = self._mixed(*self._documents.pairs.whole_table(choices))
        qualities: dict[PositionProfile, float] = {}

        def best_of(profiles: Iterable[PositionProfile]) -> PositionProfile:
            for profile in profiles:
                if profile not in qualities:
                    qualities[profile] = self._validation(self._scored_by(profile, table))
            return max(qualities, key=qualities.get)

        height = best_of((FLAT, *(PositionProfile(height, DECAYS[0]) for height in HEIGHTS))).height
        best = best_of(PositionProfile(height or HEIGHTS[0], decay) for decay in DECAYS)
        if qualities[best] <= qualities[FLAT] + _CLEARLY:
            return choices
        best = best_of(PositionProfile(height, best.decay) for height in HEIGHTS)
        # A table that is learned with a profile may rank worse than this one does with it.
        rising = [choices, choices._replace(profile=best)]
        return self._best_of_better(rising, may_fall=True)

    def _best_title_weight(self, choices: TableChoices) -> TableChoices:
        """Choices with a weight of words of titles: more if that is better beyond chance."""
        # No metric may fall: names of books find related verses, and lose the verse that is meant.
        has_titles = self._texts.documents.starts is not None
        if not has_titles or not self._can_choose:
            return choices
        heavier = (dataclasses.replace(choices.profile, title=one) for one in TITLE_WEIGHTS)
        rising = [choices, *(choices._replace(profile=profile) for profile in heavier)]
        return self._best_of_better(rising, may_fall=False)

    def _best_order(self, choices: TableChoices) -> TableChoices:
        """Choices without the order of words, if that is better beyond chance."""
        # Names with their adjectives before or after them are likelier near the diagonal, but of
        # their few words, those that stand elsewhere are missed.
        if self._can_choose and choices.in_order:
            other = choices._replace(in_order=False)
            choices = self._best_of_better([choices, other], may_fall=True)
        if choices.in_order:
            logging.info("The words of pairs stand in about the same order, which the table uses")
        return choices

    def _best_agreement(self, choices: TableChoices) -> TableChoices:
        """Choices with agreement of words in no order, and with a weight of lower grades."""
        # Both together, since pairs of lower grades are worth more where words have to agree.
        has_lower = len(self._mates.queries) and len(self._documents.pairs.lower.queries)
        agreements = AGREEMENTS if self._can_choose and not choices.in_order else ()
        rising = [
            choices._replace(agreement=share, lower_grades=weight)
            for weight in (0.0, *LOWER_GRADES[: bool(has_lower)])
            for share in (0.0, *agreements)
        ]
        best = self._best_of_better(rising, may_fall=True)
        more = [best._replace(lower_grades=weight) for weight in LOWER_GRADES if has_lower]
        return self._best_of_better([best, *more], may_fall=True)

    def _best_of_better(self, rising: Sequence[TableChoices], *, may_fall: bool) -> TableChoices:
        """The best of `_measured` tables that are better than the first beyond chance, or that."""
        measured = list(map(self._measured, rising)) if rising[1:] else []
        return rising[best_of_better(measured, may_fall)]

    def _measured(self, choices: TableChoices) -> np.ndarray:
        """Measures a table alone, once; returns what `Validation.per_query` does."""
        measured = self._documents.measured
        if choices not in measured:
            give_back_memory(cycles=False)  # of what was measured before
            table, _ = self._mixed(*self._documents.pairs.whole_table(choices))
            rows = self._scored_by(choices.profile, table)
            (measured[choices],) = self._validation.per_query(lambda query_rows: [rows(query_rows)])
        return measured[choices]

    def _best_dictionary_share(self, choices: TableChoices) -> float:
        """The share of the dictionary in the table that ranks best."""
        if self._dictionary is None or not len(self._mates.queries):
            return self._dictionary_share
        (learned, _), qualities = self._documents.pairs.whole_table(choices), []
        for share in DICTIONARY_SHARES:
            table = mixed(learned, self._dictionary, share)
            qualities.append(self._validation(self._scored_by(choices.profile, table)))
        share = DICTIONARY_SHARES[int(np.argmax(qualities))]
        logging.info("The dictionary has %.0f%% of the translation table", 100 * share)
        return share

    def _mixed(
        self, learned: sp.csr_array, evidence: np.ndarray
    ) -> tuple[sp.csr_array, np.ndarray]:
        """A learned table with the dictionary, or with that of the initial model."""
        if self._initial is not None:
            return self._initial.table(learned, evidence)
        if self._dictionary is not None:
            learned = mixed(learned, self._dictionary, self._dictionary_share)
        return learned, evidence

    def word_weights(self, model: LexicalModel) -> np.ndarray:
        """Learns weights from queries whose table has not seen them; without pairs, keeps them."""
        nothing_new = self.keeps_choices and not self._initial.is_new.any()
        if nothing_new or not len(self._mates.queries):
            return model.weights
        former, signs = {}, self._texts.are_signs
        if self.keeps_choices:
            signs = signs & ~self._initial.was_asked
            former = {"former": model.weights, "is_new": self._initial.is_new}
        texts, retrieval_set = self._texts, self._texts.retrieval_set
        ids = [retrieval_set.query_ids[row] for row in self._training]
        hashes = hash_ids(ids, f"folds {self._seed}")
        fold = (hashes % np.uint64(_FOLDS)).astype(int)
        chosen = hashes.argsort(kind="stable").argsort() < _QUERIES_FOR_WEIGHTS
        judged = np.bincount(retrieval_set.query_rows, minlength=len(retrieval_set.query_ids))
        unjudged = len(retrieval_set.document_ids) - judged[self._training]
        chosen &= unjudged > 0  # others have nothing that a mate should beat
        most = unjudged.min(where=chosen, initial=_CANDIDATES)
        parts = [self._training[chosen & (fold == fold_number)] for fold_number in range(_FOLDS)]
        used = [n for n, rows in enumerate(parts) if np.isin(self._mates.queries, rows).any()]
        if not used:  # a fold of a very small set may have no mates
            return model.weights
        others = [self._training[fold != fold_number] for fold_number in used]
        tables = self._documents.pairs.tables(_choices_of(model), others)
        tables = [self._mixed(pruned(learned), evidence)[0] for learned, evidence in tables]
        queries: list[sp.csr_array] = []
        features: list[list[np.ndarray]] = [[] for _ in model.fields]
        firsts = self._documents.passages.firsts
        for rows, table in zip([parts[fold_number] for fold_number in used], tables):
            of_fold = np.isin(self._mates.queries, rows)
            mates = Pairs(self._mates.queries[of_fold], self._mates.documents[of_fold])
            queries.append(texts.queries[mates.queries])
            passages = None
            # One field after the other: impacts of all may take gigabytes.
            for field, profile in zip(features, model.fields):
                impacts = self._documents.impacts([profile], table, rows)
                if passages is None:
                    passages = hard_candidates(texts, mates, Postings.of(impacts, firsts), most)
                field.append(candidate_features(queries[-1], impacts, passages))
        asked = sp.csr_array(sp.vstack(queries, format="csr"))
        weights = learn_word_weights(asked, list(map(np.concatenate, features)), **former)
        # A sign of no query counts nothing, others at most twice what a word of none does: whole
        # sentences end with one, and a few words with `...` after them are no sentence.
        signs = np.flatnonzero(signs)
        most = 2 * np.isin(signs, asked.indices) * weights[:, PADDING_ID, None]
        weights[:, signs] = np.minimum(weights[:, signs], most)
        return weights.astype(np.float32)

    def with_best_factors_and_feedback(self, model: LexicalModel) -> LexicalModel:
        """A model with the best feedback, and lower scores of long documents if that is better."""
        lengths = self._documents.lengths
        model = dataclasses.replace(model, mean_length=max(1.0, float(lengths.mean())))
        models = [dataclasses.replace(model, length_power=power) for power in LENGTH_POWERS]
        of_lengths = [one.factors(lengths, None) for one in models]
        asked = model.fields, model.table, self._validation.query_rows, model.weights
        rows = self._documents.rows(self._documents.impacts(*asked))

        def variants(query_rows: np.ndarray) -> Iterator[np.ndarray]:
            scores = rows(query_rows)
            return (scores * factors for factors in of_lengths)

        measured = self._validation.per_query(variants)
        chosen = 0
        while chosen + 1 < len(models) and is_better(measured[chosen + 1], measured[chosen]):
            chosen += 1
        model = balanced(models[chosen], self._texts, rows, lengths, self._validation)
        factors = model.factors(lengths, self._texts.documents.languages)
        feedback = self._texts.feedback()
        measured = self._validation.per_query(
            lambda query_rows: feedback_variants(feedback, rows(query_rows) * factors)
        )
        return dataclasses.replace(model, feedback=best_weight(measured), on_documents=True)

    def _scored_by(self, profile: PositionProfile, table: sp.csr_array) -> ScoreRows:
        """Scorer of documents for the validation queries."""
        impacts = self._documents.impacts([profile], table, self._validation.query_rows)
        return self._documents.rows(impacts)


def _choices_of(model: LexicalModel) -> TableChoices:
    return TableChoices(model.fields[0], model.lower_grades, model.agreement, model.in_order)
