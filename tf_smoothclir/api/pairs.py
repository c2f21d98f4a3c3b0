"""Explaining the score of one query and one document, by whatever a model ranks with."""

from __future__ import annotations

import numpy as np

from tf_smoothclir.api.ranking_models import RankingModels
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.protocols.text_search import Explanation
from tf_smoothclir.search.explanation import SavedTower, explain
from tf_smoothclir.search.word_explanation import WordExplainer


def explain_pair(models: RankingModels, query: str, document: str, role: str) -> Explanation:
    """Splits the score of a pair into the shares of words."""
    lexical = models.models.lexical
    if lexical is None:
        texts = {"query": [query], "document": [document]}
        other = next(name for name in ROLES if name != role)
        (vector,) = models.vectors(other, texts[other])
        model, manifest = models.load_tower(role)
        (words,) = SavedTower(model, manifest.epsilon).token_vectors(texts[role])
        return explain(words, vector, manifest.epsilon)
    of_words, of_towers = models.parts_of_scores([query], [document])
    parts = np.stack([of_words, of_towers, np.zeros_like(of_words)]).T
    read = lexical.plain_query_reader.batch([query]).ids
    return WordExplainer(lexical).explain(read, [Text("", "", document)], parts, role)[0]
