"""The paper's values are as printed."""

import re
from pathlib import Path

import pytest

from tf_smoothclir.papers.liu2020.paper_numbers import (
    LANGUAGES,
    differences_from_paper,
    is_published,
    paper_values,
)
from tf_smoothclir.settings.presets import changed, preset_settings
from tf_smoothclir.settings.training import METRICS

PAPER = Path(__file__).resolve().parents[4] / "shared" / "papers" / "liu2020_smooth_learning.md"
PRINTED = {"3Part_{l2}": "3PartL2", "PO_S": "PO", "Average Pooling": "Average pooling"}
TABLES = {"table2": "Table 2:", "table3": "Table 3:"}


def printed_rows(caption):
    """Yields (language, system, seven values) of the table above a caption in the paper's text."""
    text = PAPER.read_text(encoding="utf-8")
    rows = text[text.rindex("Language\t", 0, text.index(caption)) : text.index(caption)]
    language = ""
    for line in rows.splitlines()[1:]:
        cells = [
            re.sub(r"[$*]|</?[bi]>|</?b>|</?i>", "", cell).strip() for cell in line.split("\t")
        ]
        if len(cells) == len(METRICS) + 2:
            language = cells[0] or language
            yield language, PRINTED.get(cells[1], cells[1]), tuple(map(float, cells[2:]))


def test_some_values_checked_by_hand():
    assert paper_values("table2")["fr"]["SOSL"]["P_mr@1"] == 0.438
    assert paper_values("table2")["tl"]["3PartL2"]["MRR_r"] == 0.785
    assert paper_values("table3")["fr"]["DSSM-CNN"]["NDCG@5"] == 0.570
    assert paper_values("table3")["tl"]["DSSM-LSTM"]["MAP"] == 0.709


@pytest.mark.skipif(not PAPER.is_file(), reason="the text of the paper is not beside the checkout")
@pytest.mark.parametrize("experiment", TABLES)
def test_every_value_is_the_one_in_the_text(experiment):
    printed = {(language, name): v for language, name, v in printed_rows(TABLES[experiment])}
    ours = {
        (LANGUAGES[code], name): tuple(values[metric] for metric in METRICS)
        for code, systems in paper_values(experiment).items()
        for name, values in systems.items()
    }
    assert ours == printed
    assert len(ours) == {"table2": 16, "table3": 12}[experiment]


@pytest.mark.parametrize(
    ("language", "layout", "queries", "documents", "expected"),
    [
        ("fr", True, 25_000, 1_894_321, True),
        ("sw", True, 22_793, 37_079, True),
        ("fr", True, 1_000_000, 1_894_321, False),  # the whole archive, without --max_queries
        ("fr", True, 25_000, 30_442, False),  # bible-en-fr has the same layout and language
        ("tl", False, 25_000, 79_499, False),
    ],
)
def test_only_wikiclir_itself_is_the_papers_set(language, layout, queries, documents, expected):
    found = is_published(language, layout=layout, queries=queries, documents=documents)
    assert found == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"query_embeddings": ""}, ["pre-trained word vectors no (paper: yes)"]),
        ({"epochs": 10}, ["epochs 10 (paper: 30)"]),
        ({"train_negatives": 5}, ["sampled negatives per training query 5 (paper: 40)"]),
        ({"vocabulary_size": 9_999}, ["vocabulary 9,999 (paper: 100,000)"]),
        ({"max_document_tokens": 30}, ["tokens of a document 30 (paper: 200)"]),
    ],
    ids=str,
)
def test_differences_are_named(changes, expected):
    vectors = {"query_embeddings": "en.vec", "document_embeddings": "fr.vec"}
    settings = changed(preset_settings("paper"), {**vectors, **changes})
    assert differences_from_paper(settings) == expected
