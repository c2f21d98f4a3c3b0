"""The objectives of the plug-in: from the towers of a run to the task that trains them."""

from __future__ import annotations

import functools

from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.papers.li2018.helped_task import HelpedTask
from tf_smoothclir.papers.li2018.pair_tasks import BaeTask, S2NetTask, XcnnTask
from tf_smoothclir.papers.li2018.settings import AdversarialSettings
from tf_smoothclir.papers.li2018.task import AdversarialTask
from tf_smoothclir.papers.li2018.translations import OpeningQueries, WordTranslations
from tf_smoothclir.papers.li2018.triplets import TripletBatches
from tf_smoothclir.training.tasks import ObjectiveInputs


def _made(task: type[HelpedTask], inputs: ObjectiveInputs) -> HelpedTask:
    """The task of a class; texts are translated, and queries made of documents, if it needs it."""
    # The seed determines what is made of the texts, so a run that goes on has the same.
    settings, tokenized_set = inputs.settings, inputs.tokenized_set
    opening_epochs = settings.of(AdversarialSettings).opening_epochs
    translations = openings = None
    if task.translates or opening_epochs:
        texts = LexicalTexts(tokenized_set, settings.text.max_query_tokens)
        words = WordTranslations.learn(texts, settings.training.seed)
        translations = words.queries(texts) if task.translates else None
        openings = OpeningQueries.of(tokenized_set, texts, words) if opening_epochs else None
    batches = TripletBatches(
        tokenized_set,
        translations,
        settings.training,
        openings=openings,
        opening_epochs=opening_epochs,
        best_only=task.best_only,
    )
    return task(inputs.model, settings, batches, tokenized_set)


adversarial_task, s2net_task, bae_task, xcnn_task = (
    functools.partial(_made, task) for task in (AdversarialTask, S2NetTask, BaeTask, XcnnTask)
)
