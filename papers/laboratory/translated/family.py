"""The family of translated queries."""

from __future__ import annotations

from tf_smoothclir.families.lexical import Lexical, read_dictionary, texts_of, word_vectors
from tf_smoothclir.papers.laboratory.translated import TranslatedQueriesSettings
from tf_smoothclir.papers.laboratory.translated.learning import (
    NEAREST,
    TABLE,
    learn_translated_queries,
)
from tf_smoothclir.papers.laboratory.translated.model import TranslatedQueries
from tf_smoothclir.protocols.scorer import RowRetriever
from tf_smoothclir.utils.errors import input_error


class Translated(Lexical):
    """Translated queries; its model is `TranslatedQueries`, which is not published."""

    is_published = False

    def needs_pairs(self, settings):
        translation = settings.of(TranslatedQueriesSettings).query_translation
        return translation in (TABLE, NEAREST) and not settings.retrieval.dictionary

    def learn(self, over):
        settings = over.settings.of(TranslatedQueriesSettings)
        translation = settings.query_translation
        return learn_translated_queries(
            texts_of(over),
            settings.ranker,
            translation,
            seed=over.settings.training.seed,
            vectors=word_vectors(over) if translation == NEAREST else None,
            dictionary=read_dictionary(over.settings),
        )

    def load(self, run, settings):
        return TranslatedQueries.load(self.path(run))

    def retrievers(self, model, over):
        rows = model.rows(texts_of(over))
        return {self.name: RowRetriever(rows, over.retrieval_set.tie_order)}

    def metrics(self, model):
        return {"lexical": model.choices()}

    def published(self, publication):
        raise input_error(
            publication.run.path,
            f"a run with --retriever={self.name} cannot be exported",
            "Train with --retriever=lexical, which is better too",
        )
