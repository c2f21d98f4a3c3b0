"""The LangChain retriever finds what a search finds."""

import pytest

import tf_smoothclir as sc
from tests.test_examples import ROOT, blocks

pytest.importorskip("langchain_core", reason="LangChain is an extra, .[langchain]")
from tf_smoothclir.extras.langchain import SmoothclirRetriever
from tf_smoothclir.protocols.text_search import SearchHit


def test_documents_are_the_hits_of_a_search(ranking_runs, monkeypatch):
    model = sc.load(ranking_runs["hybrid"].path)
    monkeypatch.setattr(sc, "load", {"models": model}.get)
    exec("\n".join(blocks(ROOT / "docs" / "langchain.md")), names := {})
    asked = names["chain"].steps[0].invoke("wordb wordc")
    assert asked["question"] == "wordb wordc"
    assert asked["texts"].count("mot") > 5
    hits = model.search(["wordb wordc"], k=5, retriever="lexical")[0]
    retriever = names["retriever"].copy(update={"options": {"retriever": "lexical"}})
    found = retriever.invoke("wordb wordc")
    expected = [(hit.id, hit.text, hit.score) for hit in hits]
    assert [(d.id, d.page_content, d.metadata["score"]) for d in found] == expected
    assert [document.metadata["rank"] for document in found] == [1, 2, 3, 4, 5]
    assert retriever.invoke("unheard of") == []


def test_the_best_passage_is_the_text_of_a_long_document():
    class Model:
        def search(self, queries, k):
            return [[SearchHit(1, 2.0, 1, "a", "A", "one two three", passage="two")]]

    (document,) = SmoothclirRetriever(model=Model()).invoke("deux")
    assert (document.page_content, document.metadata["text"]) == ("two", "one two three")
