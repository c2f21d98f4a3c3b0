"""The paper's values are as printed."""

import re
from pathlib import Path

import pytest

from tf_smoothclir.experiments.paper_numbers import LANGUAGES, TABLE_1, is_published, paper_values
from tf_smoothclir.settings.training import METRICS

PAPER = Path(__file__).resolve().parents[3] / "shared" / "papers" / "liu2020_smooth_learning.md"
PRINTED = {"3Part_{l2}": "3PartL2", "PO_S": "PO", "Average Pooling": "Average pooling"}
TABLES = {"table2": "Table 2:", "table3": "Table 3:"}


@pytest.mark.parametrize(
    ("experiment", "language", "system", "metric", "value"),
    [
        ("table2", "fr", "SOSL", "P_mr@1", 0.438),
        ("table2", "it", "PO", "P_r@5", 0.619),
        ("table2", "sw", "MSE", "NDCG@5", 0.724),
        ("table2", "tl", "3PartL2", "MRR_r", 0.785),
        ("table3", "fr", "DSSM-CNN", "NDCG@5", 0.570),
        ("table3", "tl", "DSSM-LSTM", "MAP", 0.709),
        ("table3", "sw", "Average pooling", "MRR_mr", 0.735),
    ],
)
def test_some_values_checked_by_hand(experiment, language, system, metric, value):
    assert paper_values(experiment)[language][system][metric] == value


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


def test_the_papers_figures_give_no_numbers():
    assert paper_values("figure4") == {}


@pytest.mark.parametrize(
    ("language", "layout", "documents", "expected"),
    [
        ("fr", True, 1_894_321, True),
        ("tl", True, 79_499, True),
        ("fr", True, 30_442, False),  # bible-en-fr has the same layout and language
        ("tl", False, 79_000, False),
        ("de", True, 14_592, False),
    ],
)
def test_only_wikiclir_itself_is_comparable(language, layout, documents, expected):
    assert is_published(language, layout=layout, documents=documents) == expected


def test_table_1_has_the_languages_of_table_2():
    assert set(TABLE_1) == set(LANGUAGES) == set(paper_values("table2"))
