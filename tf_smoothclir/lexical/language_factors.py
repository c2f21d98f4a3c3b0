"""Factors of the scores of languages, by which each has its share of the first ranks.

How much a right document scores depends on its language: on the number of tokens of a sentence, and
on the forms of a word. One percent decides between documents of different languages that say the
same.
"""

import dataclasses

import numpy as np

from tf_smoothclir.lexical.model import LexicalModel
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.validation import Validation, is_better
from tf_smoothclir.protocols.scorer import ScoreRows, query_chunks

_FIRST = 10  # ranks
_STEPS, _STEP, _LONGER, _SHORTER = 40, 0.01, 1.5, 0.5  # of the logarithms of factors, as in Rprop
_MOST = 0.2  # of a logarithm: what is found far too rarely is not ranked first by its language
_TOLERATED = 0.1  # of the logarithm of a share: towers and feedback shift shares by as much
_FEWEST = 10  # relevant documents of a language whose share means something


def balanced(
    model: LexicalModel,
    texts: LexicalTexts,
    rows: ScoreRows,
    lengths: np.ndarray,
    validation: Validation,
) -> LexicalModel:
    """A model with factors of languages, unless it ranks better without, beyond chance."""
    # `rows` are scores before they are multiplied by any factors; `lengths` those of documents.
    judged, languages = texts.retrieval_set, texts.retrieval_set.document_languages
    codes, of_documents = languages
    if len(codes) < 2:
        return model
    of_lengths = model.factors(lengths, None)
    firsts = [
        first_of_each(rows(chunk) * of_lengths, of_documents, len(codes))
        for _, chunk in query_chunks(validation.query_rows, len(of_documents))
    ]
    relevant = np.isin(judged.query_rows, validation.query_rows) & (judged.grades > 0)
    relevant = np.bincount(of_documents[judged.document_rows[relevant]], minlength=len(codes))
    factors = np.round(language_factors(np.concatenate(firsts), relevant), 4)
    if (factors == 1).all():
        return model

    def variants(query_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scores = rows(query_rows) * of_lengths
        return scores, scores * factors[of_documents].astype(np.float32)

    if is_better(*validation.per_query(variants)):
        return model
    return dataclasses.replace(model, language_factors=dict(zip(codes, factors.tolist())))


def first_of_each(scores: np.ndarray, languages: np.ndarray, number: int) -> np.ndarray:
    """The highest scores of each language, `[queries, languages, _FIRST]`; 0 where it has fewer."""
    firsts = np.zeros((len(scores), number, _FIRST), np.float32)
    for language in range(number):
        of_language = scores[:, languages == language]
        most = min(_FIRST, of_language.shape[1])
        if most:
            firsts[:, language, :most] = -np.partition(-of_language, most - 1, axis=1)[:, :most]
    return firsts


def language_factors(firsts: np.ndarray, relevant: np.ndarray) -> np.ndarray:
    """`[languages]` float64, around 1, by which the first ten have the shares of the relevant."""
    # All are 1 where these shares are about right without, as is that of a language with few
    # `relevant` documents. `firsts` are of `first_of_each`.
    counted, none = relevant >= _FEWEST, np.zeros(len(relevant))
    if np.count_nonzero(counted) < 2:
        return np.exp(none)
    wanted = relevant[counted] / relevant[counted].sum()

    def too_many(logarithms: np.ndarray) -> np.ndarray:
        """The logarithm of the share of each counted language by what it should be."""
        scores = firsts * np.exp(logarithms)[:, np.newaxis]
        last = -np.partition(-scores.reshape(len(scores), -1), _FIRST - 1, axis=1)[:, _FIRST - 1]
        is_first = (scores >= last[:, np.newaxis, np.newaxis]) & (scores > 0)
        found = is_first.sum(axis=(0, 2))[counted] + 1
        return np.log(found / found.sum() / wanted)

    if np.abs(too_many(none)).max() < _TOLERATED:
        return np.exp(none)
    logarithms, least, best = none.copy(), np.inf, none
    steps = before = np.full(len(wanted), _STEP)
    for _ in range(_STEPS):
        off = too_many(logarithms)
        if np.abs(off).max() < least:
            least, best = np.abs(off).max(), logarithms.copy()
        steps = steps * np.where(off * before < 0, _SHORTER, _LONGER)
        before = off
        logarithms[counted] -= steps * np.sign(off)
        logarithms[counted] -= logarithms[counted].mean()
        logarithms = np.clip(logarithms, -_MOST, _MOST)
    return np.exp(best)
