"""Settings of retrieval: what ranks the collection."""

from __future__ import annotations

import dataclasses

from tf_smoothclir.plugins import RERANKERS
from tf_smoothclir.settings import built_in as built_in  # registers the choices
from tf_smoothclir.settings.base import Settings, setting
from tf_smoothclir.settings.rule import LEAVE_OUT, Rule

# What indexes are made for, and what searches rank with; auto: what the exported run ranks with.
INDEXED_FOR = ("auto", "dense", "lexical", "hybrid")
SEARCHED_BY = (*INDEXED_FOR, "reranked")
RULES = (
    Rule(
        lambda retriever, ranker: retriever == "dense" and ranker != "psq",
        "two towers rank by their vectors",
        "Add --retriever=lexical or --retriever=hybrid",
    ),
    Rule(
        lambda ranker, query_translation: ranker == "psq" and query_translation != "table",
        "psq translates documents, by the translation table",
        "Add --ranker=bm25 or --ranker=ql",
    ),
    Rule(
        lambda retriever, query_translation, query_embeddings, document_embeddings: (
            (retriever, query_translation) == ("lexical", "nearest")
            and bool(query_embeddings) != bool(document_embeddings)
        ),
        "the nearest word is found by vectors of both languages",
        "Give both files, or neither",
    ),
    Rule(
        lambda fusion, retriever: fusion != "auto" and retriever != "hybrid",
        "there is one ranking, and nothing to fuse",
        "Add --retriever=hybrid, or leave --fusion out",
    ),
    Rule(
        lambda dictionary, retriever: bool(dictionary) and retriever == "dense",
        "two towers have no translation table",
        "Add --retriever=lexical or --retriever=hybrid",
    ),
    Rule(
        lambda dictionary, query_translation: bool(dictionary) and query_translation != "table",
        "a dictionary becomes part of the translation table, which this does without",
        LEAVE_OUT,
    ),
)


@dataclasses.dataclass(frozen=True)
class RetrievalSettings(Settings):
    """What ranks the collection first."""

    retriever: str = setting(
        "dense",
        "What ranks the documents. dense: the two towers (paper). lexical: a translation table"
        " learned from the training pairs; no towers. hybrid: both in one ranking; the validation"
        " queries decide how much each counts, and whether the better half ranks alone.",
        choices=("dense", "lexical", "hybrid"),
    )
    ranker: str = setting(
        "psq",
        "How lexical models rank. psq: documents as expected words of the query language"
        " (probabilistic structured queries). bm25, ql (query likelihood): queries translated as"
        " --query_translation says. Only psq can be exported, indexed and served.",
        choices=("psq", "bm25", "ql"),
    )
    psq_alpha: float = setting(
        0.03,
        "Only for --ranker=psq: share of the language at large in what a document is expected to"
        " say. Larger: a word that a document does not have costs less.",
        minimum=0.0001,
        maximum=0.9999,
        searched=(0.003, 0.01, 0.03, 0.1, 0.3),
    )
    psq_beta: float = setting(
        0.3,
        "Only for --ranker=psq: share of words that are spelled alike in both languages, such as"
        " names, beside their translations.",
        minimum=0.0,
        maximum=1.0,
        searched=(0.0, 0.1, 0.3, 0.5, 0.7),
    )
    query_translation: str = setting(
        "table",
        "How queries are translated for --ranker=bm25 and ql. table: by the translation table."
        " nearest: the word with the nearest vector, of the towers of a hybrid, else of"
        " --query_embeddings and --document_embeddings, else of the training pairs. human: as in"
        " wiki_<document language>.queries of the set. none: not at all.",
        choices=("table", "nearest", "human", "none"),
    )
    dictionary: str = setting(
        "",
        "A dictionary to mix into the translation table, by a weight chosen on validation: lines"
        " of a word, a translation and perhaps its probability or the logarithm of that, separated"
        " by tabs or spaces, as in MUSE, fast_align -p and GIZA++ (*.actual.ti.final). Its words"
        " join the vocabulary of queries; with --retriever=lexical, no training pairs are needed.",
        is_path=True,
    )
    dictionary_direction: str = setting(
        "query_to_document",
        "Which way --dictionary translates. query_to_document: the first column has words of"
        " queries, and numbers are probabilities of document words given query words."
        " document_to_query: the other way round.",
        choices=("query_to_document", "document_to_query"),
    )

    fusion: str = setting(
        "auto",
        "How a hybrid makes one score from two, by weights that validation chooses. sum: of scores,"
        " each divided by its standard deviation. reciprocal_rank: of 1 / (60 + rank) (RRF). auto:"
        " whichever is better on validation.",
        choices=("auto", "sum", "reciprocal_rank"),
    )

    reranker: str = setting(
        "none",
        "What orders the first ranks of --retriever again, by reading query and document together;"
        " validation decides how much it counts.",
        choices=RERANKERS,
    )
    rerank_depth: int = setting(
        100, "Documents of each query that --reranker orders again.", minimum=1
    )

    @property
    def ranks_with(self) -> str:
        """The name of what ranks in the end: the retriever, or "reranked"."""
        return self.retriever if self.reranker == "none" else "reranked"

    @property
    def has_towers(self) -> bool:
        """Whether towers are trained."""
        return self.retriever != "lexical"

    @property
    def has_lexical_model(self) -> bool:
        """Whether a lexical model is learned."""
        return self.retriever != "dense"

    @property
    def learns_more_than_towers(self) -> bool:
        """Whether anything is learned beside towers."""
        return self.has_lexical_model or self.reranker != "none"

    @property
    def needs_training_pairs(self) -> bool:
        """Whether there must be training queries with relevant documents."""
        if self.has_towers:
            return True
        return self.query_translation not in ("human", "none") and not self.dictionary
