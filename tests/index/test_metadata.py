"""Columns of documents besides their texts: kept with their types, and filtered by conditions."""

import datetime
import functools
import json
import re
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.index.helpers import brute_force, build, found_by, queries
from tests.index.test_vector_index import TEXTS
from tf_smoothclir.data.sources.memory import MemorySource, write_set
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Judgment, Text
from tf_smoothclir.index import ranker
from tf_smoothclir.index.document_collections import open_files
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.index_kind import KINDS
from tf_smoothclir.index.metadata import plain, typed_columns
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

DAY = datetime.date(2021, 5, 6)
COLUMNS = {
    "_id": ["a", "b", "c", "d"],
    "text": ["mot1", "mot2", "mot3", "mot4"],
    "year": [2020, 2021, None, 2023],
    "section": ["Web", "it's", "Web", None],
    "price": [1.5, 2.0, 0.25, None],
    "zip": ["00123", "10115", None, "99999"],
    "day": [DAY, None, datetime.date(2023, 1, 1), None],
}
DELIMITERS = {".tsv": "\t", ".csv": ","}
ROWS = [dict(zip(COLUMNS, row)) for row in zip(*COLUMNS.values())]


def write_documents(path):
    """The documents as a file of a kind; JSONL is that of BEIR."""
    if path.suffix == ".parquet":
        return parquet.write_table(pa.table(COLUMNS), path)
    lines = [COLUMNS, *(row.values() for row in ROWS)]
    if path.suffix == ".jsonl":
        nested = [{**row, "tags": [], "metadata": {"year": row["year"]}} for row in ROWS]
        for row in nested:
            del row["year"]
        return path.write_text("".join(f"{json.dumps(row, default=str)}\n" for row in nested))
    cells = (("" if value is None else str(value) for value in line) for line in lines)
    return path.write_text("".join(f"{DELIMITERS[path.suffix].join(line)}\n" for line in cells))


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    """`indexed(suffix)` is an index of the documents in a file of this kind."""

    @functools.lru_cache
    def indexed(suffix):
        path = tmp_path_factory.mktemp("documents") / f"documents{suffix}"
        write_documents(path)
        build(path.parent / "index", open_files(path, "--collection"))
        return DocumentIndex(path.parent / "index")

    return indexed


def test_a_nested_entry_of_the_name_of_a_column_is_another_column():
    found = typed_columns([{"year": 1, "metadata": {"year": 2, "size": 3}}], 1)
    expected = {"year": [1], "metadata.year": [2], "size": [3]}
    assert {name: column.to_pylist() for name, column in found.items()} == expected


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl", ".parquet"])
def test_columns_of_any_file_are_kept_with_their_types(indexed, suffix):
    index = indexed(suffix)
    texts = ("_id", "text")
    rows = [{n: v for n, v in row.items() if n not in texts and v is not None} for row in ROWS]
    found = [{n: v for n, v in row.items() if v != []} for row in index.metadata.rows(range(4))]
    assert found == rows
    assert index.metadata.facets["section"] == ["Web", "it's"]
    (hits,) = (index.hits(np.array([1, 0]), np.array([0.5, 0.25]), None),)
    assert [hit.metadata for hit in hits] == [*index.metadata.rows([1, 0])]
    json.dumps(plain([dict(hit.metadata) for hit in hits]), allow_nan=False)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("year > 2020 and section = 'it''s'", "b"),
        ("YEAR between 2020 and 2021 or zip like '999%'", "abd"),
        ("not (section = 'Web')", "b"),  # neither of what is not known
        ("section is null or price in (2, 0.25)", "bcd"),
        ("day >= '2022-01-01' -- later", "c"),
        ("case when lower(section) = 'web' then year(day) = 2021 else false end", "a"),
        ("regexp_matches(zip, '^1') and cast(year as varchar) = '2021'", "b"),
    ],
)
def test_a_condition_holds_for_all_that_is_found(indexed, condition, expected):
    mask = indexed(".tsv").mask(condition)
    assert "".join(np.array(COLUMNS["_id"])[mask]) == expected
    assert indexed(".tsv").mask(" ") is None


ATTACKS = """
year; year >; yer > 1; ;drop table documents; year = 'x'; section > 5; ;1=1)
1=1) union select true; 1=1), (2=2
true) from documents where (true; true) as kept from documents --; 1=1 /*; kept; *; ? = 1; $1 = 1
exists(select 1); year > (select max(year) from documents); year in (select 1); #1 = 1
read_text('/etc/passwd') is not null; getenv('HOME') = '/'; current_setting('threads') = '1'
(select count(*) from read_csv('/etc/passwd')) > 0; nextval('x') > 0; query('select 1') = 1
count(*) > 1; sum(year) over () > 1; columns(*) > 1; unnest([1]) = 1; [x for x in [1]] = [1]
repeat('a', 1000000000) = 'a'; range(1000000000) = []; random() > 0.5; sleep_ms(1000) > 0
set threads = 9; attach 'x.db'; copy documents to 'x.csv'
install httpfs; pragma version; list_filter([1], lambda x: x > 0) = [1]; error('x') = ''
"""


@pytest.mark.parametrize("condition", filter(None, re.split("; |\n", ATTACKS)))
def test_what_is_no_condition_over_the_columns_is_refused_with_their_names(indexed, condition):
    with pytest.raises(InputError, match=r"--filter=.*Give a condition over year \(int64\), sec"):
        indexed(".tsv").mask(condition)


def test_long_and_deep_conditions_are_refused_and_a_wrong_standing_one_at_once(
    indexed, tmp_path, monkeypatch
):
    assert indexed(".tsv").mask("not " * 240 + "true").all()
    for condition in ("-" * 999, "(" * 999, "[" * 999, "year > 1" * 500):
        with pytest.raises(InputError, match="--filter="):
            indexed(".tsv").mask(condition)
    path = tmp_path / "documents.jsonl"
    path.write_text('{"id": 1, "text": "mot1", "a": 1}\n{"id": 2, "text": "mot2", "a": 2}\n')
    build(tmp_path / "index", open_files(path, ""))
    with pytest.raises(InputError, match=r'"b" not found .*condition over a \(int64\)'):
        DocumentIndex(tmp_path / "index", "b > 1")
    assert DocumentIndex(tmp_path / "index", "a > 1").mask("a < 3").tolist() == [False, True]
    path.write_text('{"id": 1, "text": "mot1"}\n')
    build(tmp_path / "other", open_files(path, ""))
    with pytest.raises(InputError, match="no columns besides their texts"):
        DocumentIndex(tmp_path / "other", "a > 1")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InputError, match=r"needs the package duckdb .*pip install '\.\[filters\]'"):
        DocumentIndex(tmp_path / "index", "a > 1")


@pytest.mark.parametrize("few", [0, 1 << 14])
@pytest.mark.parametrize("kind", KINDS)
def test_documents_are_left_out_before_the_best_are_chosen(tmp_path, monkeypatch, kind, few):
    monkeypatch.setattr(ranker, "_FEW", few)
    build(tmp_path / "index", TEXTS, kind=kind)
    index = DocumentIndex(tmp_path / "index")
    for share in (0.0, 0.02, 0.5):
        mask = np.random.default_rng(3).random(len(TEXTS)) < share
        for query in queries(3):
            found = found_by(index, query, 10, mask)
            kept = [text for text, is_kept in zip(TEXTS, mask) if is_kept]
            expected = brute_force(kept, query, 10)
            assert found == expected


def test_a_set_keeps_its_columns_and_its_languages(tmp_path):
    documents = [Text("a", "", "mot1", "fr"), Text("b", "", "wort2", "de")]
    source = MemorySource([Text("q", "", "word1")], documents, [Judgment("q", "a", 1)])
    source.others = [{"year": np.int64(2020)}, {"day": DAY}]
    write_set(source, tmp_path / "set", None)
    kept = source_of(DataSettings(data_dir=str(tmp_path / "set"), max_queries=1))
    build(tmp_path / "index", kept)
    rows = [*DocumentIndex(tmp_path / "index").metadata.rows([0, 1])]
    assert rows == [{"year": 2020, "language": "fr"}, {"day": DAY, "language": "de"}]
