"""The paper's values are as printed."""

import hashlib
import json

from tf_smoothclir.papers.liu2020.paper_numbers import (
    TABLE_1,
    differences_from_paper,
    is_published,
    paper_tables,
)
from tf_smoothclir.settings.presets import changed, preset_settings
from tf_smoothclir.settings.training import METRICS


def test_no_value_changes():
    """This is the digest of values that were compared, each of them, with the text of the paper."""
    values = []
    for name, rows in (("table2", 16), ("table3", 12)):
        (table,) = paper_tables(name, comparable=True)
        assert len(table.rows) == rows
        codes = {name: code for code, (name, *_) in TABLE_1.items()}
        of_languages = {}
        for language, system, *numbers in table.rows:
            numbers = dict(zip(METRICS, map(float, numbers)))
            of_languages.setdefault(codes[language], {})[system] = numbers
        values.append(of_languages)
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    assert digest == "04a8350eb2826cb6978245f06ed45ba65eb490e8dd3916825def4befb1402ac1"


def test_only_wikiclir_itself_is_the_papers_set():
    french = {"layout": True, "queries": 25_000, "documents": 1_894_321}
    assert is_published("fr", **french)
    assert not is_published("fr", **{**french, "layout": False})
    assert not is_published("fr", **{**french, "queries": 1_000_000})  # without --max_queries
    assert not is_published("fr", **{**french, "documents": 30_442})  # bible-en-fr


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
