"""A LangChain retriever over a model: `SmoothclirRetriever`. Needs the extra `langchain`.

```python
from tf_smoothclir.extras.langchain import SmoothclirRetriever

retriever = SmoothclirRetriever(model=sc.load("models"), k=5)
retriever.invoke("how do I centre a box?")
```
"""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field


class SmoothclirRetriever(BaseRetriever):
    """Finds documents by `Model.search`.

    The text of a document is its best passage, if it is searched in passages; its metadata are the
    `title`, `score`, `rank` and predicted `grade`, and the whole `text` of one with a passage.

    Attributes:
        model: What `sc.load` or `sc.train` returned.
        k: Documents per query.
        options: Further keywords of `Model.search`, such as `{"index": "models/index"}`.
    """

    model: Any
    k: int = 10
    options: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        del run_manager
        return [_document(hit) for hit in self.model.search([query], self.k, **self.options)[0]]


def _document(hit: Any) -> Document:
    metadata = {name: getattr(hit, name) for name in ("title", "score", "rank", "grade")}
    if hit.passage is not None:
        metadata["text"] = hit.text
    return Document(id=hit.id, page_content=hit.passage or hit.text, metadata=metadata)
