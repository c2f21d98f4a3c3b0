"""Retrievers of a run: its towers, its lexical model, or both.

Beside `tasks`, `run_models`, `set_retrievers` and `rerankers`, this is the one place in this room
that knows the families of models.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from absl import logging

from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.hybrid.fusion import FORMULAS, Fusion
from tf_smoothclir.hybrid.learning import learn_fusion
from tf_smoothclir.interaction.reranker import Reranker
from tf_smoothclir.lexical.dictionary import Dictionary
from tf_smoothclir.lexical.learning import learn_lexical_model, learn_table
from tf_smoothclir.lexical.model import LexicalModel
from tf_smoothclir.lexical.pseudo_queries import with_pseudo_queries, write_pseudo_queries
from tf_smoothclir.lexical.psq import PsqSettings
from tf_smoothclir.lexical.ranker_learning import NEAREST, learn_translated_queries
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.translated_queries import TranslatedQueries
from tf_smoothclir.lexical.word_vectors import WordVectors, given_vectors
from tf_smoothclir.protocols.cut_points import CutPoints, read_cut_points
from tf_smoothclir.protocols.scorer import GradedScorer, Retriever
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.text.vocabulary import read_vocabulary, write_vocabulary
from tf_smoothclir.training.initial_run import EarlierTable, initial_run
from tf_smoothclir.training.rerankers import learned_reranker
from tf_smoothclir.training.run_checks import check_cut, check_retriever, check_trained
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import RunModels
from tf_smoothclir.training.set_retrievers import SetRetrievers, name_of_cut, retrievers_over
from tf_smoothclir.training.tasks import load_model
from tf_smoothclir.two_tower.model import TwoTower
from tf_smoothclir.two_tower.scorer import vectors_of_words


def learn_models(
    settings: RunSettings, run: RunDirectory, tokenized_set: TokenizedSet, towers: TwoTower | None
) -> tuple[RunModels, dict[str, Retriever]]:
    """Learns what a run needs besides its towers, or loads it, and keeps it in the run."""
    over = retrievers_over(settings, tokenized_set, towers)
    models = RunModels(settings, towers)
    if over.texts is not None:
        lexical = _lexical_model(settings, run, over.texts, tokenized_set, towers)
        models = dataclasses.replace(models, lexical=lexical)
        over.add_lexical(lexical)
        if towers is not None:
            fusion = _fusion(settings, run, over)
            models = dataclasses.replace(models, fusion=fusion)
            over.add_hybrid(fusion)
    if settings.retrieval.reranker != "none":
        reranker = learned_reranker(
            settings,
            run,
            tokenized_set,
            over.found[settings.retrieval.retriever],
            lambda: _word_vectors(settings, tokenized_set, towers),
        )
        over.add_reranked(reranker, settings.retrieval, tokenized_set)
        models = dataclasses.replace(models, reranker=reranker)
    return models, over.found


def set_with_pseudo_queries(
    settings: RunSettings, run: RunDirectory, tokenized_set: TokenizedSet
) -> TokenizedSet:
    """The set with pseudo-queries as further training queries, which the run keeps.

    A run with a lexical model of the kind that has a translation table learns it for this.
    """
    training, retrieval = settings.training, settings.retrieval
    number = training.pseudo_queries - len(tokenized_set.retrieval_set.queries_in("train"))
    if number <= 0:
        return tokenized_set
    if not run.pseudo_queries.is_dir():
        texts = LexicalTexts(tokenized_set, settings.text.max_query_tokens)
        if retrieval.has_lexical_model and retrieval.ranker == "psq":
            model = _lexical_model(settings, run, texts, tokenized_set, None)
        else:
            model = learn_table(
                texts,
                seed=training.seed,
                dictionary=_dictionary(settings),
                passage_words=settings.text.passage_words,
            )
        with run.writing(run.pseudo_queries) as path:
            path.mkdir()
            write_pseudo_queries(
                path,
                tokenized_set,
                model,
                number=number,
                seed=training.seed,
            )
    found = with_pseudo_queries(tokenized_set, run.pseudo_queries)
    made = len(found.retrieval_set.query_ids) - len(tokenized_set.retrieval_set.query_ids)
    if made:
        logging.info("Pseudo-queries: %d documents without a judged query have one", made)
    return found


def add_words_of_dictionary(vocabulary_dir: Path, settings: RunSettings) -> None:
    """Adds the words that a dictionary translates into the collection to the query vocabulary."""
    query_words, document_words = (
        read_vocabulary(vocabulary_dir / f"{role}.txt") for role in ROLES
    )
    added = _dictionary(settings).new_query_words(query_words, document_words)
    for role in ROLES if settings.text.shared_vocabulary else ROLES[:1]:
        write_vocabulary(vocabulary_dir / f"{role}.txt", query_words + added)
    logging.info("The dictionary adds %d words to the query vocabulary", len(added))


def load_models(run: RunDirectory, dim: int = 0) -> RunModels:
    """Restores the models of a run; towers with the weights of their best epoch."""
    settings = run.settings()
    check_cut(settings, dim)
    check_trained(run)
    retrieval = settings.retrieval
    has_fusion = retrieval.retriever == "hybrid" and dim in (0, settings.model.dim)
    return RunModels(
        changed(settings, {"dim": dim or settings.model.dim}),
        towers=load_model(run, dim) if retrieval.has_towers else None,
        lexical=_load_lexical(run, retrieval.ranker) if retrieval.has_lexical_model else None,
        fusion=Fusion.load(run.fusion) if has_fusion else None,
        reranker=Reranker.load(run.reranker) if retrieval.reranker != "none" else None,
    )


def with_fusion(models: RunModels, tokenized_set: TokenizedSet) -> RunModels:
    """Models with a fusion, chosen on validation for a hybrid whose vectors are cut.

    The share of the towers was chosen for the whole vectors; shorter ones know less.
    """
    if models.settings.retrieval.retriever != "hybrid" or models.fusion is not None:
        return models
    over = retrievers_over(models.settings, tokenized_set, models.towers)
    over.add_lexical(models.lexical)
    return dataclasses.replace(models, fusion=_learned_fusion(models.settings, over))


def load_cut_points(run: RunDirectory, models: RunModels) -> dict[str, CutPoints]:
    """The cut points of what a trained run ranks with, and of its parts, by name."""
    if not run.cut_points.is_file():
        raise run.incomplete("has not chosen cut points between its grades yet")
    found, dim = read_cut_points(run.cut_points), models.settings.model.dim
    if dim != run.settings().model.dim:  # those of a hybrid are found with its fusion
        return {"dense": found[name_of_cut(dim)]} if models.lexical is None else {}
    return found


def load_scorer(
    run: RunDirectory, tokenized_set: TokenizedSet, dim: int = 0, retriever: str = ""
) -> GradedScorer:
    """Scorer of a trained run, whatever the run trained, over a set."""
    models = with_fusion(load_models(run, dim), tokenized_set)
    name = retriever or models.settings.retrieval.ranks_with
    if retriever:
        check_retriever(models.settings, retriever)
    cut_points = load_cut_points(run, models).get(name)
    return GradedScorer(models.retrievers(tokenized_set)[name], cut_points)


def _lexical_model(
    settings: RunSettings,
    run: RunDirectory,
    texts: LexicalTexts,
    tokenized_set: TokenizedSet,
    towers: TwoTower | None,
) -> LexicalModel | TranslatedQueries:
    retrieval, seed = settings.retrieval, settings.training.seed
    if not run.lexical.is_dir():
        dictionary: Dictionary | EarlierTable | None = _dictionary(settings)
        if (initial := initial_run(settings)) is not None:
            dictionary = EarlierTable(LexicalModel.load(initial.lexical).table)
        if retrieval.ranker == "psq":
            psq = PsqSettings(retrieval.psq_alpha, retrieval.psq_beta)
            model = learn_lexical_model(
                texts,
                seed=seed,
                dictionary=dictionary,
                psq=psq,
                passage_words=settings.text.passage_words,
            )
        else:
            vectors, translation = None, retrieval.query_translation
            if translation == NEAREST:
                vectors = _word_vectors(settings, tokenized_set, towers)
            model = learn_translated_queries(
                texts,
                retrieval.ranker,
                translation,
                seed=seed,
                vectors=vectors,
                dictionary=dictionary,
            )
        with run.writing(run.lexical) as path:
            model.save(path)
    return _load_lexical(run, retrieval.ranker)


def _dictionary(settings: RunSettings) -> Dictionary | None:
    retrieval = settings.retrieval
    if not retrieval.dictionary:
        return None
    return Dictionary.read(retrieval.dictionary, retrieval.dictionary_direction)


def _word_vectors(
    settings: RunSettings, tokenized_set: TokenizedSet, towers: TwoTower | None
) -> WordVectors:
    if towers is None:
        return given_vectors(settings, tokenized_set)
    return WordVectors(*vectors_of_words(towers, settings, tokenized_set))


def _load_lexical(run: RunDirectory, ranker: str) -> LexicalModel | TranslatedQueries:
    kind = LexicalModel if ranker == "psq" else TranslatedQueries
    return kind.load(run.lexical)


def _fusion(settings: RunSettings, run: RunDirectory, over: SetRetrievers) -> Fusion:
    if not run.fusion.is_file():
        fusion = _learned_fusion(settings, over)
        with run.writing(run.fusion) as path:
            fusion.save(path)
    return Fusion.load(run.fusion)


def _learned_fusion(settings: RunSettings, over: SetRetrievers) -> Fusion:
    wanted = settings.retrieval.fusion
    formulas = FORMULAS if wanted == "auto" else (wanted,)
    halves = over.found["lexical"].rows, over.found["dense"].scores
    return learn_fusion(over.texts, *halves, formulas)
