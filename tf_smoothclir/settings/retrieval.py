"""Settings of retrieval: what ranks the collection."""

import collections
import dataclasses

from tf_smoothclir.plugins import FAMILIES, RERANKERS, any_part, with_parts
from tf_smoothclir.settings.base import Rule, Settings, setting

RERANKED = "reranked"
# Names of what searches rank with; plug-ins bring more. auto: what the exported run ranks with.
SEARCHED_BY = collections.ChainMap({RERANKED: None}, FAMILIES, {"auto": None})
RULES = (
    Rule(
        lambda dictionary, retriever: bool(dictionary) and not any_part(retriever, "has_table"),
        "it has no translation table",
        "Add --retriever=lexical or --retriever=hybrid",
    ),
)


@dataclasses.dataclass(frozen=True)
class RetrievalSettings(Settings):
    """What ranks the collection first."""

    retriever: str = setting("dense", "What ranks the documents.", choices=FAMILIES)
    dictionary: str = setting(
        "",
        "A dictionary to mix into the translation table, by a weight chosen on validation: lines"
        " of a word, a translation and optionally its probability or the logarithm of that, with"
        " tabs or spaces, as in MUSE, fast_align -p and GIZA++ (*.actual.ti.final). Its words"
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
        return self.retriever if self.reranker == "none" else RERANKED

    @property
    def families(self) -> tuple[str, ...]:
        """What is trained or learned, in this order; the last one ranks."""
        return with_parts(self.retriever, self.ranks_with)

    @property
    def with_task(self) -> str:
        """The family that is trained step by step, the towers; "" for none."""
        have = (name for name in self.families if FAMILIES.plugin(name).fact("has_task", False))
        return next(have, "")
