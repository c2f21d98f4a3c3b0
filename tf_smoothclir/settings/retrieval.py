"""Settings of retrieval: what ranks the collection."""

from __future__ import annotations

import dataclasses

from tf_smoothclir.settings.base import Settings, setting


@dataclasses.dataclass(frozen=True)
class RetrievalSettings(Settings):
    """What ranks the collection first."""

    retriever: str = setting(
        "dense",
        "What ranks the documents. dense: the two towers (paper). lexical: a translation table,"
        " learned from the training pairs in seconds; no towers. hybrid: both in one ranking; the"
        " validation queries decide how much each counts. So far, only towers can be"
        " indexed and searched.",
        choices=("dense", "lexical", "hybrid"),
    )

    @property
    def has_towers(self) -> bool:
        """Whether towers are trained."""
        return self.retriever != "lexical"

    @property
    def has_lexical_model(self) -> bool:
        """Whether a lexical model is learned."""
        return self.retriever != "dense"
