"""The objectives of the plug-in: from the towers of a run to the task that trains them."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.lexical.text_reader import QueryReader
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.papers.li2018.bae import BaeTask
from tf_smoothclir.papers.li2018.encoders import Encoders
from tf_smoothclir.papers.li2018.helped_task import HelpedTask
from tf_smoothclir.papers.li2018.opening_queries import OpeningQueries
from tf_smoothclir.papers.li2018.probe import SourceProbe
from tf_smoothclir.papers.li2018.s2net import S2NetTask
from tf_smoothclir.papers.li2018.settings import AdversarialSettings
from tf_smoothclir.papers.li2018.task import AdversarialTask
from tf_smoothclir.papers.li2018.translations import (
    TokenRows,
    WordTranslations,
    translated_by_people,
    translated_by_table,
)
from tf_smoothclir.papers.li2018.triplets import TripletBatches
from tf_smoothclir.papers.li2018.xcnn import XcnnTask
from tf_smoothclir.training.tasks import ObjectiveInputs


def adversarial_task(inputs: ObjectiveInputs) -> AdversarialTask:
    """Builds the task of encoders and a discriminator; keeps their texts in the run."""
    model, settings, tokenized_set = inputs.model, inputs.settings, inputs.tokenized_set
    training, own = settings.training, settings.of(AdversarialSettings)
    files = _prepared_texts(inputs, translates=True)
    translations = TokenRows.load(files.translations)
    openings = OpeningQueries.load(files.openings) if own.opening_epochs else None
    encoders = Encoders(model, training.seed + len(ROLES))
    batches = TripletBatches(
        tokenized_set,
        translations,
        training,
        openings=openings,
        opening_epochs=own.opening_epochs,
        graded=own.graded_triplets,
        after_epoch=SourceProbe(encoders, tokenized_set, translations),
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
    own, openings = settings.of(AdversarialSettings), None
    if own.opening_epochs:
        openings = OpeningQueries.load(_prepared_texts(inputs, translates=False).openings)
    batches = TripletBatches(
        tokenized_set,
        TokenRows.empty(len(tokenized_set.retrieval_set.query_ids)),
        settings.training,
        openings=openings,
        opening_epochs=own.opening_epochs,
        best_only=True,
    )
    return task(inputs.model, settings, batches, tokenized_set)


s2net_task, bae_task, xcnn_task = (
    functools.partial(_of_pairs, task) for task in (S2NetTask, BaeTask, XcnnTask)
)


class _Files(NamedTuple):
    """What a run keeps of this paper."""

    translations: Path
    openings: Path


def _prepared_texts(inputs: ObjectiveInputs, *, translates: bool) -> _Files:
    """Writes translated queries, and queries made of documents, unless the run has them."""
    settings, tokenized_set, run = inputs.settings, inputs.tokenized_set, inputs.run
    files = _Files(run.of_plugins("translations.npz"), run.of_plugins("openings.npz"))
    own, most = settings.of(AdversarialSettings), settings.text.max_query_tokens
    by_people = own.translated_by == "human"
    translates = translates and not files.translations.is_file()
    needs_words = translates and not by_people
    needs_openings = own.opening_epochs and not files.openings.is_file()
    if translates and by_people:
        with run.writing(files.translations) as path:
            translated_by_people(tokenized_set, most).save(path)
    if needs_words or needs_openings:
        texts = LexicalTexts(tokenized_set, most)
        words = WordTranslations.learn(texts, settings.training.seed)
    if needs_words:
        reader = QueryReader(tokenized_set.vocabulary_dir, most)
        with run.writing(files.translations) as path:
            translated_by_table(words, texts, reader).save(path)
    if needs_openings:
        with run.writing(files.openings) as path:
            OpeningQueries.of(tokenized_set, texts, words, most).save(path)
    return files
