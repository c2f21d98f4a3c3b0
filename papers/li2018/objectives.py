"""The objectives of the plug-in: from the towers of a run to the task that trains them."""

from __future__ import annotations

import functools
from typing import NamedTuple

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.lexical.text_reader import TextReader
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.papers.li2018.bae import BaeTask
from tf_smoothclir.papers.li2018.helped_task import HelpedTask
from tf_smoothclir.papers.li2018.opening_queries import OpeningQueries
from tf_smoothclir.papers.li2018.pair_tasks import S2NetTask, XcnnTask
from tf_smoothclir.papers.li2018.settings import AdversarialSettings
from tf_smoothclir.papers.li2018.task import AdversarialTask, Encoders
from tf_smoothclir.papers.li2018.translations import (
    TokenRows,
    WordTranslations,
    translated_by_table,
)
from tf_smoothclir.papers.li2018.triplets import TripletBatches
from tf_smoothclir.training.tasks import ObjectiveInputs


def adversarial_task(inputs: ObjectiveInputs) -> AdversarialTask:
    """Builds the task of encoders and a discriminator."""
    model, settings, tokenized_set = inputs.model, inputs.settings, inputs.tokenized_set
    training = settings.training
    translations, openings = _prepared_texts(inputs, translates=True)
    encoders = Encoders(model, training.seed + len(ROLES))
    batches = TripletBatches(
        tokenized_set,
        translations,
        training,
        openings=openings,
        opening_epochs=settings.of(AdversarialSettings).opening_epochs,
    )
    return AdversarialTask(
        model,
        settings,
        batches,
        encoders,
        tokenized_set=tokenized_set,
        training_queries=len(tokenized_set.retrieval_set.queries_in("train")),
    )


def _of_pairs(task: type[HelpedTask], inputs: ObjectiveInputs) -> HelpedTask:
    """The task of a class that learns from queries and their best documents."""
    settings, tokenized_set = inputs.settings, inputs.tokenized_set
    translations, openings = _prepared_texts(inputs, translates=False)
    batches = TripletBatches(
        tokenized_set,
        translations,
        settings.training,
        openings=openings,
        opening_epochs=settings.of(AdversarialSettings).opening_epochs,
        best_only=True,
    )
    return task(inputs.model, settings, batches, tokenized_set)


s2net_task, bae_task, xcnn_task = (
    functools.partial(_of_pairs, task) for task in (S2NetTask, BaeTask, XcnnTask)
)


class _Texts(NamedTuple):
    """What is made of the texts of a set; the seed determines it, so a run that goes on has it."""

    translations: TokenRows  # of the queries
    openings: OpeningQueries | None


def _prepared_texts(inputs: ObjectiveInputs, *, translates: bool) -> _Texts:
    """Translates queries, and makes queries of documents, as far as the settings ask for it."""
    settings, tokenized_set = inputs.settings, inputs.tokenized_set
    makes_queries = settings.of(AdversarialSettings).opening_epochs > 0
    translations = TokenRows.empty(len(tokenized_set.retrieval_set.query_ids))
    if not (translates or makes_queries):
        return _Texts(translations, None)
    most = settings.text.max_query_tokens
    texts = LexicalTexts(tokenized_set, most)
    words = WordTranslations.learn(texts, settings.training.seed)
    if translates:
        reader = TextReader(tokenized_set.vocabulary_dir, "query", most)
        translations = translated_by_table(words, texts, reader)
    openings = OpeningQueries.of(tokenized_set, texts, words, most) if makes_queries else None
    return _Texts(translations, openings)
