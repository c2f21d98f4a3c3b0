"""Query forms: what words and signs around a query cost, which training queries do not have.

python -m benchmarks.query_forms --data_dir=mdn-en-de --document_language=de

The queries of a set are cut to keywords, without signs and frequent words, and a model learns from
those of training. Test queries then come in other forms, such as in quotes.
"""

from __future__ import annotations

import collections
import tempfile
from collections.abc import Callable
from pathlib import Path

from absl import flags

from benchmarks import common

KEYWORDS = 5  # of a query, the rarest
_FREQUENT = 60  # words that are none
_QUERIES = 500
FORMS: dict[str, Callable[[str], str]] = {
    "as in training": str,
    '"..."': lambda query: f'"{query}"',
    "...?": lambda query: f"{query}?",
    "... (x)": lambda query: f"{query} (x)",
    "... - new": lambda query: f"{query} - new",
    "... in stock": lambda query: f"{query} in stock",
    "a ...": lambda query: f"a {query}",
    "how to ...": lambda query: f"how to {query}",
    "what is the ...?": lambda query: f"what is the {query}?",
    "first's second": lambda query: query.replace(" ", "'s ", 1),
    "first: second": lambda query: query.replace(" ", ": ", 1),
    "first-second": lambda query: query.replace(" ", "-", 1),
    "first_second": lambda query: query.replace(" ", "_"),
    "firstsecond": lambda query: query.replace(" ", "", 1),
    "#FirstSecond": lambda query: f"#{query.title().replace(' ', '')}",
    "frst secnd": lambda query: _of_long_words(query, lambda word, at: word[:at] + word[at + 1 :]),
    "fisrt seocnd": lambda query: _of_long_words(
        query, lambda word, at: f"{word[:at]}{word[at + 1]}{word[at]}{word[at + 2 :]}"
    ),
    "fir st sec ond": lambda query: _of_long_words(
        query, lambda word, at: f"{word[: at + 1]} {word[at + 1 :]}"
    ),
}


def measure(data_dir: str, document_language: str, preset: str) -> list[dict]:
    """A table of forms."""
    import tf_smoothclir as sc
    from tf_smoothclir.data.retrieval_set import RetrievalSet
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.data.sources.source import SPLITS
    from tf_smoothclir.settings.data import DataSettings

    source = source_of(DataSettings(data_dir=data_dir, document_language=document_language))
    retrieval_set = RetrievalSet.load(source, num_grades=3, seed=13)
    queries = _keywords({query.id: query.text for query in source.queries()})
    splits = {
        id_: SPLITS[split]
        for id_, split in zip(retrieval_set.query_ids, retrieval_set.splits)
        if split >= 0 and id_ in queries
    }
    best: dict[str, str] = {}  # query -> a document of the highest grade
    judged = [one for one in source.judgments() if one.query_id in splits]
    for one in sorted(judged, key=lambda judgment: judgment.grade):
        best[one.query_id] = one.document_id
    with tempfile.TemporaryDirectory(prefix="smoothclir-forms-") as directory:
        model = sc.train(
            queries={id_: queries[id_] for id_ in splits},
            documents=[
                {"id": document.id, "title": document.title, "text": document.text}
                for document in source.documents()
            ],
            judgments=judged,
            splits=splits,
            document_language=document_language,
            preset=preset,
            output_dir=Path(directory, "run"),
        )
        asked = [id_ for id_, split in splits.items() if split == "test" and id_ in best]
        asked = asked[:_QUERIES]
        rows = {}
        for name, form in FORMS.items():
            hits = model.search([form(queries[id_]) for id_ in asked], k=10)
            ranks = (
                next((1 / hit.rank for hit in found if hit.id == best[id_]), 0.0)
                for id_, found in zip(asked, hits)
            )
            rows[name] = [{"MRR@10": sum(ranks) / len(asked)}]
    title = f"{len(asked)} test queries, trained on keywords"
    return [common.table(title, rows, ratio_of="MRR@10", references=["as in training"])]


def _keywords(queries: dict[str, str]) -> dict[str, str]:
    """The rarest words of texts, in their order; of texts with two of them or more."""
    words = {
        id_: [word for word in dict.fromkeys(text.lower().split()) if word.isalpha()]
        for id_, text in queries.items()
    }
    counts = collections.Counter(word for of_query in words.values() for word in of_query)
    frequent = {word for word, _ in counts.most_common(_FREQUENT)}
    found = {}
    for id_, of_query in words.items():
        rare = [word for word in of_query if len(word) > 2 and word not in frequent]
        rarest = sorted(rare, key=lambda word: counts[word])[:KEYWORDS]
        if len(rarest) > 1:
            found[id_] = " ".join(word for word in rare if word in rarest)
    return found


def _of_long_words(query: str, change: Callable[[str, int], str]) -> str:
    """A query whose words of five letters and more are changed in their middle."""
    words = query.split()
    return " ".join(change(word, len(word) // 2) if len(word) > 4 else word for word in words)


def _define_flags() -> None:
    flags.DEFINE_string("data_dir", None, "A set with judgments.")
    flags.DEFINE_string("document_language", "", "The language of its documents.")
    flags.DEFINE_string("preset", "lexical", "Preset of the model.")
    flags.mark_flag_as_required("data_dir")


if __name__ == "__main__":
    common.run(_define_flags, measure)
