"""The paper's values are as printed."""

import hashlib
import json

import pytest

from tf_smoothclir.papers.liu2020.paper_numbers import (
    differences_from_paper,
    is_published,
    paper_values,
)
from tf_smoothclir.settings.presets import changed, preset_settings


def test_no_value_changes():
    """This is the digest of values that were compared, each of them, with the text of the paper."""
    values = [paper_values("table2"), paper_values("table3")]
    assert [sum(map(len, of.values())) for of in values] == [16, 12]
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    assert digest == "04a8350eb2826cb6978245f06ed45ba65eb490e8dd3916825def4befb1402ac1"


@pytest.mark.parametrize(
    ("language", "layout", "queries", "documents", "expected"),
    [
        ("fr", True, 25_000, 1_894_321, True),
        ("fr", True, 1_000_000, 1_894_321, False),  # the whole archive, without --max_queries
        ("fr", True, 25_000, 30_442, False),  # bible-en-fr has the same layout and language
        ("tl", False, 25_000, 79_499, False),
    ],
)
def test_only_wikiclir_itself_is_the_papers_set(language, layout, queries, documents, expected):
    found = is_published(language, layout=layout, queries=queries, documents=documents)
    assert found == expected


def test_differences_are_named():
    vectors = {"query_embeddings": "en.vec", "document_embeddings": "fr.vec"}
    paper = changed(preset_settings("paper"), vectors)
    assert differences_from_paper(paper) == []
    changes = {"query_embeddings": "", "train_negatives": 5, "vocabulary_size": 9_999}
    assert differences_from_paper(changed(paper, changes)) == [
        "sampled negatives per training query 5 (paper: 40)",
        "vocabulary 9,999 (paper: 100,000)",
        "pre-trained word vectors no (paper: yes)",
    ]
