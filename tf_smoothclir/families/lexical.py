"""A translation table: documents as the words of the query language that they may stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from absl import logging

from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.families.family import Family
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.lexical_half import LexicalHalf, LexicalIndex
from tf_smoothclir.lexical.model import LexicalModel
from tf_smoothclir.lexical.new_words import numbered
from tf_smoothclir.protocols.text_search import Explanation
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.publishing.exported_models import ExportedFiles, ExportedModels
from tf_smoothclir.search.text_search import HitRanker
from tf_smoothclir.search.word_explanation import WordExplainer
from tf_smoothclir.search.word_ranker import WordRanker
from tf_smoothclir.text.vocabulary import read_vocabulary, write_vocabulary

if TYPE_CHECKING:
    from tf_smoothclir.data.retrieval_set import RetrievalSet
    from tf_smoothclir.lexical.dictionary import Dictionary
    from tf_smoothclir.lexical.learning import TableLearner
    from tf_smoothclir.lexical.texts import LexicalTexts
    from tf_smoothclir.lexical.word_vectors import WordVectors
    from tf_smoothclir.settings.run import RunSettings
    from tf_smoothclir.training.run_directory import RunDirectory
    from tf_smoothclir.training.run_models import ModelsOverSet

_PAIRS_PER_CALL = 1024


class Lexical(Family):
    """A translation table; its model is a `LexicalModel`, and its published one `LexicalParts`."""

    kept_in = "lexical"
    has_table = True
    with_encoder = "lexical+encoder"
    half_content = "impacts of words"
    ranks_by = "a translation table"
    missing = "has not learned its lexical model yet"

    def learn(self, over):
        from tf_smoothclir.training.initial_run import initial_run

        initial = initial_run(over.settings)
        former = None if initial is None else LexicalModel.load(initial.lexical)
        return table_learner(over, former).model()

    def load(self, run, settings):
        return LexicalModel.load(self.path(run))

    def needs_pairs(self, settings):
        return not settings.retrieval.dictionary

    def adds_words(self, vocabulary_dir, settings):
        if not settings.retrieval.dictionary:
            return False
        words = (read_vocabulary(vocabulary_dir / f"{role}.txt") for role in ROLES)
        query_words, document_words = words
        added = read_dictionary(settings).new_query_words(query_words, document_words)
        for role in ROLES if settings.text.shared_vocabulary else ROLES[:1]:
            write_vocabulary(vocabulary_dir / f"{role}.txt", query_words + added)
        logging.info("The dictionary adds %d words to the query vocabulary", len(added))
        return True

    def retrievers(self, model, over):
        return {self.name: texts_of(over).retriever(model)}

    def title(self, model):
        return model.name

    def metrics(self, model):
        return {self.name: model.choices()}

    def facts(self, model, settings, training):
        return model.facts()

    def published(self, publication):
        model, vocabulary = publication.models[self.name], publication.run.vocabulary
        return LexicalParts(model, vocabulary, publication.settings.text)

    def exported_parts(self, published, others):
        return {self.name: ExportedFiles(published.save)}

    def vectors_in_graph(self, publication):
        return {}

    def exported(self, models):
        return LexicalParts.load(models.part(self.name)[0])

    def index_half(self, models, kind):
        return LexicalHalf(models[self.name])

    open_half = staticmethod(LexicalIndex)

    def scores(self, models, queries, documents):
        parts, scores = models[self.name], [np.zeros(0, np.float32)]
        for begin in range(0, len(queries), _PAIRS_PER_CALL):
            some = slice(begin, begin + _PAIRS_PER_CALL)
            asked, read = parts.pairs(queries[some], documents[some])
            words, passages = asked.matrix(), parts.model.passages(read)
            of_each = passages.number_of_each()
            words = words[np.repeat(np.arange(len(of_each)), of_each)]
            products = words.multiply(parts.model.impacts(passages, parts.spelling)).sum(axis=1)
            of_passages = np.asarray(products, np.float32).ravel()
            scores.append(np.maximum.reduceat(of_passages, np.cumsum(of_each) - of_each))
        return np.concatenate(scores)

    def explanation(self, models, query, document, role):
        of_words = self.scores(models, [query], [document])
        return explained_words(models[self.name], query, document, role, of_words)

    def retriever_over(self, models, retrieval_set):
        parts = models[self.name]
        return published_texts(parts, models, retrieval_set).retriever(parts.model)

    def ranker(self, models, index):
        return word_ranker(self.name, models[self.name], index)


def read_dictionary(settings: RunSettings) -> Dictionary | None:
    """A dictionary of a person, which is mixed into the table; None for none."""
    from tf_smoothclir.lexical.dictionary import Dictionary

    retrieval = settings.retrieval
    if not retrieval.dictionary:
        return None
    as_is = settings.text.pretokenized
    return Dictionary.read(retrieval.dictionary, retrieval.dictionary_direction, as_is)


def texts_of(over: ModelsOverSet) -> LexicalTexts:
    """A set as lexical models read it; made once."""
    from tf_smoothclir.lexical.texts import LexicalTexts

    if "lexical_texts" not in over.shared:
        longest, other = over.settings.text.max_query_tokens, over.same_documents
        if other is not None and "lexical_texts" in other.shared:
            texts = other.shared["lexical_texts"].with_queries_of(over.retrieval_set)
        else:
            texts = LexicalTexts(over.tokenized_set, longest)
        over.shared["lexical_texts"] = texts
    return over.shared["lexical_texts"]


def published_texts(
    parts: LexicalParts, models: ExportedModels, retrieval_set: RetrievalSet
) -> LexicalTexts:
    """A set as a published lexical model reads it."""
    from tf_smoothclir.data.preparation import tokenize_set
    from tf_smoothclir.lexical.texts import LexicalTexts

    cache_dir, text = models.manifest.data.cache_dir, parts.text
    tokenized_set = tokenize_set(retrieval_set, text, cache_dir, parts.vocabulary_dir)
    return LexicalTexts(tokenized_set, text.max_query_tokens)


def table_learner(over: ModelsOverSet, initial: LexicalModel | None = None) -> TableLearner:
    """What learns a table from a set, by the settings."""
    from tf_smoothclir.lexical.learning import TableLearner

    return TableLearner(
        texts_of(over),
        seed=over.settings.training.seed,
        dictionary=read_dictionary(over.settings),
        passage_words=over.settings.text.passage_words,
        initial=initial,
    )


def table_of(run: RunDirectory, over: ModelsOverSet) -> LexicalModel:
    """A table that makes queries up: that of the run, or one that is learned for this alone."""
    from tf_smoothclir.training.run_models import learned

    if "lexical" in over.models:
        return over.models["lexical"]
    if "lexical" in over.settings.retrieval.families:
        return learned("lexical", run, over)
    return table_learner(over).table()


def word_vectors(over: ModelsOverSet) -> WordVectors:
    """Vectors of words in one space: of the towers, else of files or of training pairs."""
    from tf_smoothclir.lexical.word_vectors import WordVectors, given_vectors

    if (towers := over.models.get("dense")) is None:
        return given_vectors(over.settings, over.tokenized_set)
    from tf_smoothclir.two_tower.scorer import vectors_of_words

    return WordVectors(*vectors_of_words(towers, over.settings, over.tokenized_set))


def explained_words(
    parts: LexicalParts, query: str, document: str, role: str, *added: np.ndarray
) -> Explanation:
    """Splits the score of a pair: what words, towers and a foreign encoder add, `[1]` each."""
    shares = np.zeros((1, 4), np.float32)
    shares[:, : len(added)] = np.stack(added, axis=1)
    document_words = parts.document_reader.batch([document], with_new=True)
    _, new_words = numbered(document_words, parts.document_reader.size)
    read = parts.plain_query_reader.batch([query], new_words).ids
    return WordExplainer(parts).explain(read, [Text("", "", document)], shares, role)[0]


def word_ranker(
    name: str,
    parts: LexicalParts,
    index: Any,
    encode: Any = None,
    vectors: Sequence[str] = ("dense",),
) -> HitRanker:
    """What a family ranks by: words, and `vectors` where it has an encoder of queries."""

    if isinstance(index, DocumentIndex):
        return WordRanker(name, index, parts, encode, vectors)
    from tf_smoothclir.search.engine_ranker import EngineRanker

    return EngineRanker(index, parts, encode)
