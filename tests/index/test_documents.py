"""Collections of every kind give the same documents; metadata come back and filter."""

import datetime
import functools
import gzip
import json
import os
import re
import sys
import uuid

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.cases import cases
from tests.index.helpers import brute_force, build, found_by, queries
from tests.index.test_halves import TEXTS
from tests.training.tiny_set import DOCUMENTS, write_tiny_set
from tf_smoothclir.data.sources import memory, opening, tables
from tf_smoothclir.data.sources.source import Judgment, Text
from tf_smoothclir.index import index_kind, metadata, ranker
from tf_smoothclir.index.document_collections import open_collection, open_files, read_ids
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

ENTRIES = [Text("1", "Titel", "Ein Apfel"), Text("zwei", "", "日本\u2028語"), Text("3", "", "")]
LINES = {
    "tsv": lambda text: f"{text.id}\t{text.text}",
    **dict.fromkeys(("documents", "queries"), lambda text: "\t".join(text[:3])),
    "jsonl": lambda text: json.dumps(
        {**text._asdict(), "title": text.title or None, "language": None}
    ),
}
FORMS = [*LINES, "parquet", "TSV", "Jsonl", "DOCUMENTS", "Parquet", "documents.gz", "queries"]
DAY = datetime.date(2021, 5, 6)
COLUMNS = {
    "_id": ["a", "b", "c", "d"],
    "text": ["motb", "motc", "motd", "mote"],
    "year": [2020, 2021, None, 2023],
    "section": ["Web", "it's", "Web", None],
    "price": [1.5, 2.0, 0.25, None],
    "zip": ["00123", "10115", None, "99999"],
    "day": [DAY, None, datetime.date(2023, 1, 1), None],
    "phone": ["+4912", "1.10", None, "3"],
}
DELIMITERS = {".tsv": "\t", ".csv": ","}
ROWS = [dict(zip(COLUMNS, row)) for row in zip(*COLUMNS.values())]
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


def write_parquet(path, columns, **options):
    parquet.write_table(pa.table(columns), path, **options)


def write(path, texts):
    kind = path.name.split(".")[1].lower()
    if kind == "parquet":
        columns = {name: [getattr(text, name) or None for text in texts] for name in Text._fields}
        write_parquet(path, {**columns, "text": [text.text for text in texts]})
    else:
        with gzip.open(path, "wt") if path.suffix == ".gz" else open(path, "w") as file:
            file.writelines(LINES[kind](text) + "\n" for text in texts)


def read(path):
    return list(open_files(path, "--collection").documents())


@cases("suffix", *FORMS)
def test_a_file_of_any_kind_or_a_directory_of_them_gives_the_same_documents(tmp_path, suffix):
    expected = [ENTRIES[0]._replace(title=""), *ENTRIES[1:]] if suffix.lower() == "tsv" else ENTRIES
    path, directory = tmp_path / f"some.{suffix}", tmp_path / "parts"
    write(path, ENTRIES)
    collection = open_files(path, "--collection")
    assert list(collection.documents()) == expected
    assert list(collection.documents()) == expected  # again and again
    assert collection.place("documents", 1) == f"{path}:2"

    directory.mkdir()
    write(directory / f"part-1.{suffix}", ENTRIES[1:])
    write(directory / f"part-0.{suffix}", ENTRIES[:1])
    (directory / "_SUCCESS").touch()
    collection = open_files(directory, "--collection")
    assert list(collection.documents()) == expected  # in order of name
    assert collection.place("documents", 2) == f"{directory}/part-1.{suffix}:2"
    first = collection.fingerprint()
    assert first == open_files(directory, "--collection").fingerprint()
    write(directory / f"part-1.{suffix}", ENTRIES[2:])
    assert first != open_files(directory, "--collection").fingerprint()


def test_few_bytes_of_parquet_do_not_become_gigabytes(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_FREE_BYTES", 1 << 24)
    path, size, allocated = tmp_path / "some.parquet", 1 << 20, []
    for options in ({"use_dictionary": False}, {}):
        columns = {"id": list(range(200)), "text": ["x" * size] * 200}
        write_parquet(path, columns, compression="zstd", **options)
        texts = open_files(path, "--collection").documents()
        with pytest.raises(InputError, match="its texts are more than 1000 times as large as it"):
            allocated += (pa.total_allocated_bytes() for _ in texts)
    assert path.stat().st_size < 10_000
    assert 0 < max(allocated) < 16 * size


def test_large_parquet_is_read_across_batches_and_row_groups(tmp_path):
    columns = {"id": list(range(5000)), "text": [f"text {n}" for n in range(5000)]}
    write_parquet(tmp_path / "some.parquet", columns, row_group_size=700)
    assert read(tmp_path / "some.parquet") == [Text(str(n), "", f"text {n}") for n in range(5000)]


@cases(
    "suffix, content, message",
    ("documents", b"1\tt\ta\n2\tb\n", ":2: 2 tab-separated columns instead of 3"),
    ("parquet", b"", ":1: it cannot be read as Parquet"),
    ("parquet", b"PAR1\x15\x04\x15\x06", ":1: it cannot be read as Parquet"),  # cut
    ("parquet", {"id": [], "text": []}, ": the file is empty"),
    ("parquet", {"id": ["1"], "body": ["x"]}, ": there is no column 'text'; there are: id, bo"),
    ("parquet", {"id": ["1", None], "text": ["x", "y"]}, ":2: id is missing"),
    ("parquet", {"id": ["1"], "text": ["x"], "title": [1]}, ":1: the title of 1 is 1, not"),
    ("parquet", {"id": ["1"], "text": np.array([2**62], "M8[us]")}, ":1: .* as Parquet .* out"),
)
def test_a_defect_is_named(tmp_path, suffix, content, message):
    path = tmp_path / f"some.{suffix}"
    if suffix == "parquet":
        write_parquet(path, {} if isinstance(content, bytes) else content)
    if isinstance(content, bytes):
        path.write_bytes(content)
    with pytest.raises(InputError, match=rf"some\.{suffix}{message}"):
        read(path)


@cases(
    "names, asked, message",
    ([], "missing.tsv", r"--collection=.*missing\.tsv: there is no such file.*\.parquet"),
    (["some.xls"], "some.xls", r"some\.xls: the suffix '\.xls' is not .*\.parquet"),
    (["some"], "some", "some: the suffix '' is not"),
    ([], "pipe.tsv", "it is not a regular file, and documents are read more than once"),
    (["a.txt"], "", "the directory holds no files"),
    (["a.tsv", "b.jsonl"], "", r"the directory holds \.jsonl and \.tsv"),
    (["documents.tsv", "queries.de.tsv"], "", "the directory has queries, too: queries.de.tsv"),
)
def test_what_is_not_a_collection_is_named_with_its_flag(tmp_path, names, asked, message):
    for name in names:
        (tmp_path / name).touch()
    os.mkfifo(tmp_path / "pipe.tsv")
    with pytest.raises(InputError, match=message):
        read(tmp_path / asked)


def test_retrieval_set_is_a_collection(tmp_path):
    data = write_tiny_set(tmp_path / "data")
    collection = open_collection("", DataSettings(data_dir=str(data)))
    assert len(list(collection.documents())) == DOCUMENTS
    assert collection.place("documents", 4).endswith("wiki_fr.documents:5")
    same = open_collection(str(data / "wiki_fr.documents"), DataSettings(document_language="fr"))
    assert list(same.documents()) == list(collection.documents())


def test_each_id_is_read_once_and_a_defect_is_named(tmp_path):
    ids = tmp_path / "ids"
    ids.write_text("d2\nd1\nd2\n")
    assert read_ids(ids) == ["d2", "d1"]
    for content, message in (("", "empty"), ("d1\na b\n", ":2: id 'a b'")):
        ids.write_text(content)
        with pytest.raises(InputError, match=message):
            read_ids(ids)


def write_documents(path):
    if path.suffix == ".parquet":
        return write_parquet(path, COLUMNS)
    lines = [COLUMNS, *(row.values() for row in ROWS)]
    if path.suffix == ".jsonl":
        nested = [{"metadata": {"year": r.pop("year")}, "tags": [], **r} for r in map(dict, ROWS)]
        return path.write_text("".join(f"{json.dumps(row, default=str)}\n" for row in nested))
    cells = (("" if value is None else str(value) for value in line) for line in lines)
    return path.write_text("".join(f"{DELIMITERS[path.suffix].join(line)}\n" for line in cells))


def index_of(path, content, filter_=""):
    (path.write_text if content else write_documents)(content or path)
    build(path.with_suffix(""), open_files(path, "--collection"), overwrite=True)
    return DocumentIndex(path.with_suffix(""), filter_)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    """`indexed(suffix)` is an index of the documents in a file of this kind."""
    path = tmp_path_factory.mktemp("documents")
    return functools.cache(lambda suffix: index_of(path / f"{suffix[1:]}{suffix}", ""))


EAST = datetime.timezone(datetime.timedelta(hours=2))
# Rows, and their columns. A nested entry of the name of a column is another column; what a column
# cannot have becomes text without quotes. Hazard: Arrow reads a number among dates as one, of 1970.
NESTED = [{"year": 1, "metadata": {"year": 2, "size": 3}}]
OF_NESTED = {"year": [1], "metadata.year": [2], "size": [3]}
DAY_AND_3 = [{"day": DAY, "key": uuid.UUID(int=5), "of": [1, "a"]}, {"day": 3, "of": "b"}]
ZONED = [{"a": "2026-06-01T12:00:00+02:00", "b": datetime.datetime(2026, 6, 1, 0, 0, 1, 0, EAST)}]
IN_UTC = {"a": [datetime.datetime(2026, 6, 1, 10)], "b": [datetime.datetime(2026, 5, 31, 22, 0, 1)]}
OF_DAY = {"day": [str(DAY), "3"], "key": [str(uuid.UUID(int=5)), None], "of": ['[1, "a"]', "b"]}


@cases("rows, of", (NESTED, OF_NESTED), (DAY_AND_3, OF_DAY), (ZONED, IN_UTC))
def test_values_of_all_kinds_become_columns(rows, of):
    found = metadata.typed_columns(rows, len(rows))
    assert {name: column.to_pylist() for name, column in found.items()} == of


PRICES = [19.5, "", "ask", 7, 3]
PRICES_OF_CSV = "id,text,price\n" + "".join(f"d{n},a,{p}\n" for n, p in enumerate(PRICES))
PRICES_OF_JSONL = "".join(
    json.dumps({"id": f"d{n}", "text": "a", "price": price, "sku": f"{n}"}) + "\n"
    for n, price in enumerate(PRICES)
)


@cases("name, content, line", ("a.csv", PRICES_OF_CSV, 4), ("a.jsonl", PRICES_OF_JSONL, 3))
def test_a_value_that_makes_texts_of_numbers_is_named(tmp_path, caplog, name, content, line):
    (tmp_path / name).write_text(content)
    build(tmp_path / "index", open_files(tmp_path / name, ""))
    (said,) = (message for message in caplog.messages if "column" in message)
    said = said.removeprefix("The column price has values that are no numbers, 1 of 4, such as ")
    assert said.startswith(f"'ask' ({tmp_path / name}:{line}), so filters compare all as texts. If")


def test_an_update_says_which_columns_are_gone_or_compared_otherwise_now(tmp_path, caplog):
    path = tmp_path / "a.csv"
    path.write_text("id,text,price,n,of\nd1,a,9,1,x\nd2,b,10,2,y\n3,c,,,\n4,d,,,\n5,e,,,\n")
    build(tmp_path / "a", open_files(path, ""))
    path.write_text("id,text,price,n,by\nd1,a,ask,1,x\nd2,b,10,2,y\n")
    build(tmp_path / "a", open_files(path, ""), update=True)
    first, second = (message for message in caplog.messages if "column" in message)
    assert first.startswith("The column price was int64, and is string now")
    assert second.startswith("The column of is gone, and filters over it fail. New columns: by.")
    assert "3 dropped, 2 kept. More than half of the earlier ones are gone. If" in caplog.text


def test_text_files_have_numbers_where_only_zeros_at_their_ends_are_lost(tmp_path):
    path, texts = tmp_path / "a.csv", ["+49", "1e5", "-0", "007", "0.123456789012345678", "9" * 16]
    path.write_text(f"id,text,a,b,c,d,e,f,g,h\nd1,motb,{','.join(texts)},1.10,-20\n")
    (row,) = open_files(path, "").metadata()
    assert [*row.values()] == [*texts, 1.1, -20]


@cases("suffix", ".tsv", ".csv", ".jsonl", ".parquet")
def test_columns_of_any_file_are_kept_with_their_types(indexed, suffix):
    index = indexed(suffix)
    texts = ("_id", "text")
    rows = [{n: v for n, v in row.items() if n not in texts and v is not None} for row in ROWS]
    found = [{n: v for n, v in row.items() if v != []} for row in index.metadata.rows(range(4))]
    assert found == rows
    assert index.metadata.facets["section"] == ["Web", "it's"]
    (hits,) = (index.hits(np.array([1, 0]), np.array([0.5, 0.25]), None),)
    assert [hit.metadata for hit in hits] == [*index.metadata.rows([1, 0])]
    json.dumps(metadata.plain([dict(hit.metadata) for hit in hits]), allow_nan=False)


@cases(
    "condition, expected",
    ("year > 2020 and section = 'it''s'", "b"),
    ("YEAR between 2020 and 2021 or zip like '999%'", "abd"),
    ("not (section = 'Web')", "b"),  # neither of what is not known
    ("section is null or price in (2, 0.25)", "bcd"),
    ("day >= '2022-01-01' -- later", "c"),
    ("case when lower(section) = 'web' then year(day) = 2021 else false end", "a"),
    ("regexp_matches(zip, '^1') and cast(year as varchar) = '2021'", "b"),
    ("id in ('a', 'c') and year > 2019 or Id = 'd'", "ad"),
)
def test_a_condition_holds_for_all_that_is_found(indexed, condition, expected):
    assert "".join(np.array(COLUMNS["_id"])[indexed(".tsv").mask(condition)]) == expected
    assert indexed(".tsv").mask(" ") is None


@cases("condition", *filter(None, re.split("; |\n", ATTACKS)))
def test_what_is_no_condition_over_the_columns_is_refused_with_their_names(indexed, condition):
    with pytest.raises(InputError, match=r"--filter=.*Give a condition over year \(int64\), sec"):
        indexed(".tsv").mask(condition)


def test_of_lists_values_are_found_or_parts_of_them(tmp_path):
    codes = (["A61K 9", "B 1"], ["XA61K"])
    rows = "".join(f"{json.dumps({'id': len(c), 'text': 'motb', 'codes': c})}\n" for c in codes)
    index = index_of(tmp_path / "documents.jsonl", rows, "")
    assert index.mask("list_contains(codes, 'B 1')").tolist() == [True, False]
    assert index.mask("codes::varchar like '%A61K%'").tolist() == [True, True]
    assert index.mask(r"regexp_matches(codes::varchar, '\bA61K')").tolist() == [True, False]
    for condition in ("codes like '%A61K%'", "codes = 'B 1'", "lower(codes) = 'b'"):
        with pytest.raises(InputError, match=r"a list is compared .*NAME::varchar like .*codes \("):
            index.mask(condition)


def test_long_deep_and_wrong_standing_conditions_are_refused(indexed, tmp_path, monkeypatch):
    assert indexed(".tsv").mask("not " * 240 + "true").all()
    for condition in ("-" * 999, "(" * 999, "[" * 999, "year > 1" * 500, "''(" * 999):
        with pytest.raises(InputError, match="--filter="):
            indexed(".tsv").mask(condition)
    path, rows = tmp_path / "documents.csv", "id,text,a\n1,motb,1\n2,motc,2\n"
    with pytest.raises(InputError, match=r'"b" not found .*condition over a \(int64\)'):
        index_of(path, rows, "b > 1")
    assert index_of(path, rows, "a > 1").mask("a < 3").tolist() == [False, True]
    with pytest.raises(InputError, match=r'"a" not found .*condition over id \(string\)'):
        index_of(path, "id,text\n1,motb\n", "a > 1")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InputError, match=r"needs the package duckdb .*pip install '\.\[filters\]'"):
        index_of(path, rows, "a > 1")


@cases("few", 0, 1 << 14)
@cases("kind", *index_kind.KINDS)
def test_documents_are_left_out_before_the_best_are_chosen(tmp_path, monkeypatch, kind, few):
    monkeypatch.setattr(ranker, "_FEW", few)
    build(tmp_path / "index", TEXTS, kind=kind)
    index = DocumentIndex(tmp_path / "index")
    for share in (0.0, 0.02, 0.5):
        mask = np.random.default_rng(3).random(len(TEXTS)) < share
        for query in queries(3):
            found = found_by(index, query, 10, mask)
            kept = [text for text, is_kept in zip(TEXTS, mask) if is_kept]
            assert found == brute_force(kept, query, 10)


def test_a_language_is_one_column_and_any_case_of_it_is_found(tmp_path):
    path = tmp_path / "documents.csv"
    index = index_of(path, "id,text,Language\n1,motb,pt_BR\n2,motc,zh-Hant\n")
    assert [*index.metadata.rows([0, 1])] == [{"language": "pt-br"}, {"language": "zh-hant"}]
    for condition in ("language = 'zh-Hant'", "Language in ('zh-HANT', 'de')"):
        assert index.mask(condition).tolist() == [False, True]
    for names in ("Year,year", "Language,language"):
        with pytest.raises(InputError, match=f"{names.replace(',', ', ')}: the names of these col"):
            index_of(path, f"id,text,{names}\n1,motb,de,fr\n")


def test_an_id_of_a_filter_is_that_of_hits(tmp_path, caplog):
    index = index_of(tmp_path / "documents.csv", "id,text,ID\n1,motb,2\n2,motc,1\n")
    assert "The column ID is shown with hits, but filters read the ids of documents" in caplog.text
    assert [*index.metadata.rows([0])] == [{"ID": 2}]
    ids = ",".join(f"'d-{number}'" for number in range(900))
    assert index.mask(f"Id in ('2', {ids})").tolist() == [False, True]
    for hidden in ("/*'*/{}/*'*/", "--'\n{}'", "E'\\''{}'", '"\'"{}"\'"', "$$'$${}$$'$$"):
        with pytest.raises(InputError, match="more than 1000 characters besides its constants"):
            index.mask(hidden.format("(" * 1001))


@cases(
    "condition, expected",
    ("seen = '2026-06-01T12:00:00+02:00' or seen in ('2026-06-01T12:00Z', '2026-06-02')", "bcd"),
    ("seen < '2026-06-01T12:30:00+02:00'", "ab"),
    ("seen between '2026-06-01 10:00' and '2026-06-01T14:00:00+02:00'", "bc"),
    ("seen >= date '2026-06-02' and day(seen) = 2 and date_part('hour', seen) = 0", "d"),
    ('"no ""zone" >= \'2026-06-01T14:00:00+02:00\'', "cd"),
)
def test_times_compare_as_those_of_utc(tmp_path, monkeypatch, condition, expected):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    days = ("01T09:00", "01T10:00", "01T12:00", "02T00:00")
    rows = [{"seen": f"2026-06-{day}:00Z", 'no "zone': f"2026-06-{day}"} for day in days]
    metadata.write_metadata(tmp_path / "columns", rows, len(rows))
    found = metadata.Metadata(tmp_path / "columns").mask(condition)
    assert "".join(np.array(COLUMNS["_id"])[found]) == expected


def test_a_set_keeps_its_columns_and_its_languages(tmp_path):
    documents = [Text("a", "", "motb", "fr"), Text("b", "", "wort2", "de")]
    source = memory.MemorySource([Text("q", "", "wordb")], documents, [Judgment("q", "a", 1)])
    source.others = [{"year": np.int64(2020), "part": "1.10"}, {"day": DAY}]
    memory.write_set(source, tmp_path / "set", None)
    kept = opening.source_of(DataSettings(data_dir=str(tmp_path / "set"), max_queries=1))
    build(tmp_path / "index", kept)
    rows = [*DocumentIndex(tmp_path / "index").metadata.rows([0, 1])]
    first = {"year": 2020, "part": "1.10", "language": "fr"}
    assert rows == [first, {"day": DAY, "language": "de"}]
