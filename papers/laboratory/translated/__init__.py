"""Queries that are translated word by word, and ranked within one language: earlier systems.

A plug-in: `--plugin=tf_smoothclir.papers.laboratory.translated` brings `--retriever=translated`.
"""

from __future__ import annotations

import dataclasses

from tf_smoothclir.plugins import register
from tf_smoothclir.settings.base import Settings, setting
from tf_smoothclir.settings.rule import LEAVE_OUT, Rule


@dataclasses.dataclass(frozen=True)
class TranslatedQueriesSettings(Settings):
    """How queries are translated, and what ranks then."""

    ranker: str = setting(
        "bm25",
        "Only for --retriever=translated: what ranks; bm25 or ql (query likelihood).",
        choices=("bm25", "ql"),
    )
    query_translation: str = setting(
        "table",
        "Only for --retriever=translated: how queries are translated. table: by the translation"
        " table. nearest: the word with the nearest vector, of --query_embeddings and"
        " --document_embeddings, else of the training pairs. human: as in wiki_<document"
        " language>.queries of the set. none: not at all.",
        choices=("table", "nearest", "human", "none"),
    )


def _other(default: str, name: str) -> Rule:
    return Rule(
        lambda retriever, value: retriever != "translated" and value != default,
        "it translates no queries",
        "Add --retriever=translated",
        ("retriever", name),
    )


RULES = (
    _other("bm25", "ranker"),
    _other("table", "query_translation"),
    Rule(
        lambda retriever, query_translation, query_embeddings, document_embeddings: (
            (retriever, query_translation) == ("translated", "nearest")
            and bool(query_embeddings) != bool(document_embeddings)
        ),
        "the nearest word is found by vectors of both languages",
        "Give both files, or neither",
    ),
    Rule(
        lambda init_from, retriever: bool(init_from) and retriever == "translated",
        "it does not learn the translation table of that run further",
        LEAVE_OUT,
    ),
    Rule(
        lambda dictionary, query_translation: bool(dictionary) and query_translation != "table",
        "a dictionary becomes part of the translation table, which this does without",
        LEAVE_OUT,
    ),
)
register(
    "family",
    "translated",
    "tf_smoothclir.papers.laboratory.translated.family:Translated",
    help="queries translated word by word.",
    settings=TranslatedQueriesSettings,
    facts={"has_table": True},
    rules=RULES,
)
