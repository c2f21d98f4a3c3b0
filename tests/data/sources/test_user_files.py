"""Lines and tables; sets of users: languages, alphabets, BEIR's layout; the same in memory."""

import functools
import gzip
import json
import os
import re
from collections import Counter

import numpy as np
import pytest

from tests.cases import cases
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources import line_files, memory, tables, toy_world
from tf_smoothclir.data.sources.columns import SPLITS, TEXTS
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Judgment, Text
from tf_smoothclir.data.sources.user_files import BeirDirectory, PairsFile, UserDirectory
from tf_smoothclir.data.sources.wikiclir_files import WikiClirDirectory
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

ROWS = [["1", "a,b"], ["2", 'c "d"']]
texts = functools.partial(tables.read_table, role=TEXTS)
NOT = "Give one JSON object per line"
CUT = gzip.compress(b"a\n", mtime=0)[:-9]
BAD_FILES = [
    ("f", b"", "", "the file is empty", "Give it one record per line"),
    ("f", b"\xef\xbb\xbf\n", "", "the file is empty", "Give it one record per line"),
    ("f", b"\na\n", ":1", "the line is blank", "Remove it"),
    ("f", b"a\n \t\r\n\nb\n", ":2", "the line is blank", "Remove it"),
    ("f", b"ab\ncd\xe9f\n", ":2", "byte 0xe9 at offset 5 of the file", "Convert the file"),
    ("f", b"\xef\xbb\xbfa\xff\n", ":1", "byte 0xff at offset 4 of", "Convert the file"),
    ("f.gz", b"a\n", "", "cannot be read: Not a gzipped file", "Write it again"),
    ("f.gz", CUT, "", "cannot be read: Compressed file ended", "Write it again"),
    ("f.tsv", b"id\tdocument\n1\ta\tb\n", ":2", "3 tab-separated columns instead of 2", "Put one"),
    ("f.tsv", b"#ID\tCorpus-ID\n", ":1", "there is no column 'text'; there are: #ID, C", "Rename"),
    ("f.tsv", b"u\ttext\tx\n1\ta\t2\n", ":1", "there is no column 'id'; there are: u", "Rename"),
    ("f.tsv", b"1\ta\t2\n", ":1", "3 tab-separated columns instead of 2 (id, text)", "Put one"),
    ("f.tsv", b"1\ta\n2\n", ":2", "1 tab-separated columns instead of 2 (id, text)", "Put one tab"),
    ("f.csv", b"", "", "the file is empty", "Give it one record per line"),
    ("f.csv", b"id,text\n", "", "the file is empty", "Give it one record per line"),
    ("f.csv", b"id,own\n1,a\n", ":1", "there is no column 'text'; there are: id, own", "Rename"),
    ("f.csv", b"id,text\n1,a\n2,a,b\n", ":3", "3 values instead of 2, as in the", "Put texts"),
    ("f.csv", b'id,text\n1,"a\nb"c\n', ":2", "this is no CSV (',' expected after", "Put texts"),
    ("f.csv", b"id,\rtext\n1,a\n", ":1", "this is no CSV (new-line character", "Put texts"),
    ("f.csv", b"d0,Un mot\n", ":1", "this looks like a record", "Put id,text first"),
    ("f.csv", b"id|text\n", ":1", "neither commas, semicolons nor tabs separate", "Separate"),
    ("f.csv", b"sep=;\nid;text\n1;a\n", ":1", "this line is for Excel", "Remove it"),
    ("f.csv", b"id,text\r1,a\r", ":1", "all lines end in carriage returns alone", "Make them"),
    ("f.tsv", b"id\ttext\r1\ta", ":1", "all lines end in carriage returns alone", "Make them"),
    ("f.csv", b'id,text\n1,a\n2,"b\n', ":3", "this is no CSV (unexpected end of", "Put texts"),
    ("f.jsonl", b'{"id": 1, "text": "a"}\n{"a": \n', ":2", "the line is not JSON (Expecting", NOT),
    ("f.jsonl", b"[1]\n", ":1", "a JSON list instead of an object", "Give one object per line"),
    ("f.jsonl", b'{"a": "\\ud800"}\n', ":1", "the line is not JSON ('utf-8' codec", NOT),
    ("f.jsonl", b"[" * 100_000 + b"\n", ":1", "the line is not JSON (", NOT),
]
TSV = {"documents.tsv": "d-1\tun liquide\nd-2\t\n", "queries.tsv": "q1\ta liquid\n"}
TSV["judgments.tsv"] = "q1\td-1\t2\nq1\td-2\t0\n"
JSONL = {
    "documents.jsonl": '{"id": "d-1", "text": "un liquide"}\n{"text": "", "id": "d-2", "x": 1}\n',
    "queries.jsonl": '{"id": "q1", "text": "a liquid"}\n',
    "judgments.jsonl": '{"query_id": "q1", "document_id": "d-1", "grade": 2}\n'
    '{"query_id": "q1", "document_id": "d-2", "grade": 0}\n',
}
MIXED = {"documents.tsv": TSV["documents.tsv"], **JSONL}
del MIXED["documents.jsonl"]
WIKI = {"wiki_en.queries": "1\ta\tb\n", "wiki_fr.documents": "1\ta\tb\n", "en2fr.rel": "1\t1\t2\n"}
PAIRS = "anchor,Positive,grade\nred  apple,Apfel,0\nRed Apple,Apfel,2\nsea,meer,1\nsea,Meer\xa0,1\n"
CLICKS = "query\tdocument_id\tcount\na\t1\t3\nb\t1\t0\nA \t2\t2\na\t3\t1\na\t2\t2\nc\t9\t1\n"
WEIGHT = '{"query_id": "q1", "document_id": "d-1", "weight": %s}\n'
BAD_LINES = [
    ("documents.tsv", "a b\tc\n", 1, "id 'a b' is empty or contains white space", "Give an id"),
    ("judgments.tsv", "q1\td-1\t2\nq1\td-2\tx\n", 2, "the grade is 'x', not a", "Give whole"),
    ("judgments.tsv", "q1 0 d-1 2\n", 1, "1 tab-separated columns instead", "Make a table of TREC"),
    ("queries.tsv", "Id\tFrage\nq1\tapple\n", 1, "there is no column 'text'", "Rename"),
    ("queries.tsv", "q1\ta\nq2\t \n", 2, "the text of query q2 is empty", "Fill"),
    ("queries.jsonl", '{"id": "q1"}\n', 1, "there is no column 'text'; there are: id", "Rename"),
    ("queries.jsonl", '{"id": 1.5, "text": ""}\n', 1, "id is 1.5, not a", "Give strings or"),
    ("judgments.jsonl", WEIGHT % '"NaN"', 1, "the weight is 'NaN', not", "Give numbers above 0"),
    ("judgments.jsonl", WEIGHT % "1e999", 1, "the weight is inf, not", "Give numbers above 0"),
    ("splits.tsv", "q1\ttrain\nq1\ttrain\n", 2, "query 'q1' already has a split", "Keep one"),
    ("documents.tsv", "id\ttext\tx\ttext\n", 1, "2 columns have the name 'text'", "Rename"),
    ("queries.jsonl", '{"id": 1, "text": "a", "text": "b"}\n', 1, "the line is not JSON (an", "G"),
    ("wiki_en.queries", "7 8\ta\tb\n", 1, "id '7 8' is empty or", "Give an id"),
    ("en2fr.rel", "\t1\t2\n", 1, "query_id '' is empty", "Give an id"),
    ("en2fr.rel", "7\t1\t1_0\n", 1, "the grade is '1_0', not a whole number", "Give whole numbers"),
]
HEADER = "query-id\tcorpus-id\tscore\n"
CORPUS = [
    {"_id": "d1", "title": "L'eau", "text": "un liquide", "metadata": {"url": "x"}},
    {"_id": 2, "title": "", "text": "une pierre"},
    {"_id": "d3", "text": ""},
]
NAMED = {
    "queries.tsv": "Nr\tFrage\nq1\tapple\n",
    "documents.csv": "Seite,Inhalt\nd1,Apfel\n",
    "judgments.jsonl": '{"Nr": "q1", "Seite": "d1"}\n',
}
QUERIES = [Text("q1", "", "red"), Text("q2", "", "\nblue\t")]
DOCUMENTS = [Text("d1", "Rouge", "rouge", "fr"), Text("d2", "", "blau")]
JUDGMENTS = [Judgment("q1", "d1", 2), Judgment("q2", "d2", 1)]


def opened(directory, **settings):
    return source_of(DataSettings(data_dir=str(directory), **settings))


def written(directory, content, name="file"):
    (directory / name).write_bytes(content)
    return directory / name


@cases(
    "content, lines",
    (b"a\nb\n \t\r\n\n", ["a", "b"]),
    (b"a\r\nb\r\n", ["a", "b"]),
    (b"a\r\r\nb\r", ["a\r", "b"]),  # one end of a line only
    (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
    (b" a \x00 \n", [" a \x00 "]),
    ("été\u2028\x85x\n".encode(), ["été\u2028\x85x"]),
)
def test_lines_are_returned_unchanged(tmp_path, content, lines):
    assert [*line_files.read_lines(written(tmp_path, content))] == [*enumerate(lines, start=1)]


@cases("name, content, line, reason, remedy", *BAD_FILES)
def test_a_bad_file_is_an_error(tmp_path, name, content, line, reason, remedy):
    path = written(tmp_path, content, name)
    expected = f"{re.escape(f'{path}{line}: {reason}')}.*{re.escape(f'. {remedy}')}"
    with pytest.raises(InputError, match=f"^{expected}"):
        list((texts if "." in name.removesuffix(".gz") else line_files.read_lines)(path))


def test_records_are_streamed_and_a_missing_file_is_an_error(tmp_path):
    assert next(texts(written(tmp_path, b"1\ta\n2\n", "f.tsv")))[0] == 1  # before a bad line
    (row,) = texts(written(tmp_path, b'{"id": 1, "text": "\\ud83d\\ude00"}\n', "f.jsonl"))
    assert row == (1, [1, "😀", ..., ...])
    expected = f"{tmp_path / 'absent'}: cannot be read: No such file or directory. Check the path."
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        list(line_files.read_lines(tmp_path / "absent"))


@cases(
    "name, content, lines",
    ("f.tsv", '1\ta,b\n2\tc "d"\n', (1, 2)),
    ("f.tsv", 'title\tText\tyear\t"_ID"\n\ta,b\t7\t1\n\tc "d"\t7\t2\n', (2, 3)),
    ("f.csv", 'text,id\n"a,b",1\n"c ""d""",2\n', (2, 3)),
    ("f.csv", '\ufeffDoc-Id;Text\r\n1;a,b\r\n2;"c ""d"""\r\n', (2, 3)),
    ("f.csv", 'id,text,x\n1,"a,b","\n\n"\n2,"c ""d""",\n\n', (2, 5)),
    ("f.jsonl", '{"id": "1", "text": "a,b"}\n{"text": "c \\"d\\"", "_id": "2"}\n', (1, 2)),
    ("f.CSV.GZ", 'id,own\n1,"a,b"\n2,"c ""d"""\n', (2, 3)),
)
def test_every_kind_of_table_has_the_same_rows(tmp_path, name, content, lines):
    columns, content = {"text": "OWN"} if "own" in content else {}, content.encode()
    content = gzip.compress(content, mtime=0) if name.endswith("GZ") else content
    rows = list(tables.read_table(written(tmp_path, content, name), TEXTS, columns))
    assert [(number, values[:2]) for number, values in rows] == list(zip(lines, ROWS))


def test_a_first_line_is_a_record_where_it_could_be_one(tmp_path):
    path = written(tmp_path, b"query\ttrain\nq\ttest\n", "f.tsv")
    assert list(tables.read_table(path, SPLITS)) == [(1, ["query", "train"]), (2, ["q", "test"])]


@cases("files", TSV, JSONL, MIXED, ids=["tsv", "jsonl", "mixed"])
def test_all_formats_give_the_same_set(make, files):
    source = opened(make(files), document_language="fr")
    assert type(source) is UserDirectory
    assert list(source.documents()) == [("d-1", "", "un liquide", "fr"), ("d-2", "", "", "fr")]
    assert list(source.queries()) == [("q1", "", "a liquid", "")]
    assert list(source.judgments()) == [Judgment("q1", "d-1", 2), Judgment("q1", "d-2", 0)]
    assert source.splits() is None
    place = "judgments.tsv:2" if files is TSV else "judgments.jsonl:2"
    assert source.place("judgments", 1).endswith(place)
    assert (source.query_language, source.document_language) == ("", "fr")
    assert UserDirectory(make({"splits.tsv": "q1\ttest\n"}), "fr").splits() == {"q1": "test"}


def test_judgments_have_the_weights_that_their_table_names(make, tmp_path):
    rows = "query_id\tdocument_id\tweight\nq1\td-2\t\nq1\td-1\t0.25\n"
    source = UserDirectory(make({**TSV, "judgments.tsv": rows}), "fr")
    weighted = [Judgment("q1", "d-2", 1, 1.0), Judgment("q1", "d-1", 1, 0.25)]
    assert list(source.judgments()) == weighted
    memory.write_set(source, tmp_path / "copy", None)
    assert list(UserDirectory(tmp_path / "copy", "fr").judgments()) == weighted


def test_files_may_have_other_names_each(make):
    columns = "id=Nr,id=Seite,text=Frage, text=Inhalt,query_id=Nr,document_id=Seite"
    directory = make(NAMED)
    source = opened(directory, columns=columns)
    assert list(source.queries()) == [("q1", "", "apple", "")]
    assert list(source.documents()) == [("d1", "", "Apfel", "")]
    assert list(source.judgments()) == [Judgment("q1", "d1", 1)]
    # Hazard: a line of names that nothing recognises would be a query.
    with pytest.raises(InputError, match=r"queries.tsv:1: --columns gives id=Seite, text=Inhalt"):
        list(opened(directory, columns="id=Seite,text=Inhalt").queries())


def test_a_title_is_the_text_of_tables_without_texts_alone(make):
    tables = {"documents.tsv": "id\ttitle\ttext\nd\tT\tB\n"}
    tables["queries.tsv"] = "id\ttitle\tdescription\nq\tT\tD\n"
    directory = make({**tables, "judgments.tsv": "q\td\t2\n"})
    for named, query in (("title", ("q", "", "T", "")), ("description", ("q", "T", "D", ""))):
        source = opened(directory, columns=f"text={named}")
        assert [*source.queries(), *source.documents()] == [query, ("d", "T", "B", "")]
    both = "--columns=text gives 2 of its columns: description, title. Join them in a column 'text'"
    with pytest.raises(InputError, match=f"queries.tsv:1: {both}"):
        list(opened(directory, columns="text=description,text=title").queries())


@cases("place", "", "pairs.csv")
def test_pairs_are_a_set_whose_equal_texts_are_one(make, place):
    columns = "query=anchor,document=positive"
    directory = make({"pairs.csv": PAIRS})
    source = opened(directory / place, columns=columns)
    assert list(source.queries()) == [("q2", "", "red  apple", ""), ("q4", "", "sea", "")]
    assert list(source.documents()) == [("d2", "", "Apfel", ""), ("d4", "", "meer", "")]
    assert list(source.judgments()) == [Judgment("q2", "d2", 2), Judgment("q4", "d4", 1)]
    assert source.place("judgments", 1).endswith("pairs.csv:4")
    other = PairsFile(directory / "pairs.csv", "fr", columns={"query": "positive"})
    assert other.fingerprint() != source.fingerprint()
    with pytest.raises(InputError, match=r"no column 'query'.*--columns=query=anchor,document=Po"):
        list(opened(directory).queries())
    with pytest.raises(InputError, match="--columns=qeury=a: there is no such column"):
        opened(directory, columns="qeury=a")


def test_equal_texts_of_two_languages_are_two(make):
    rows = "query,document,document_language\na,Menu,fr\nb,menu,de\nc,Haus,de\nB,MENU,de\n"
    german = opened(make({"pairs.csv": rows}), document_language="de")
    assert list(german.documents()) == [("d3", "", "menu", "de"), ("d4", "", "Haus", "de")]
    assert [judgment[:2] for judgment in german.judgments()] == [("q3", "d3"), ("q4", "d4")]
    rows = '{"query": "a", "document": "x", "document_language": "de"}\n'
    directory = make({"j/pairs.jsonl": rows + '{"query": "b", "document": "x"}\n'}) / "j"
    said = opened(directory, document_language="de")
    judged = [judgment.document_id for judgment in said.judgments()]
    assert judged == [text.id for text in said.documents()] == ["d1", "d2"]
    clicks = "query,document_id,query_language\nmenu,1,en\nMenu,2,fr\nmenu,2,fr\n"
    source = opened(make({"c/documents.tsv": "1\ta\n2\tb\n", "c/clicks.csv": clicks}) / "c")
    assert [judgment[:2] for judgment in source.judgments()] == [("q2", "1"), ("q3", "2")]


def test_clicks_are_counted_and_graded_by_the_most_clicked_document(make):
    documents = "".join(f"{n}\ttext {n}\n" for n in range(4))
    directory = make({"documents.tsv": documents, "clicks.tsv": CLICKS})
    source = opened(directory, max_skipped=0.2)
    assert list(source.queries()) == [("q2", "", "a", ""), ("q3", "", "b", ""), ("q7", "", "c", "")]
    graded = [("q2", "1", 2), ("q3", "1", 0), ("q2", "2", 2), ("q2", "3", 1), ("q7", "9", 2)]
    assert [judgment[:3] for judgment in source.judgments()] == graded
    assert len(RetrievalSet.load(source).grades) == 4
    with pytest.raises(InputError, match=r"tsv:2: clicks give the grades 0\.\.2, .* has 0\.\.1\. "):
        RetrievalSet.load(source, num_grades=2)
    with pytest.raises(InputError, match=r"clicks\.tsv:7: .*0\.1 allows fewer than 1 of 5 .*\(20"):
        RetrievalSet.load(opened(directory, max_skipped=0.1))
    make({"judgments.tsv": "q\t1\n"})
    with pytest.raises(InputError, match=r"there are judgments and clicks\. Keep"):
        opened(directory)
    bad_lines = {"a\t1\t-2": "the count is '-2'", "a\t1\t": "the count is '', not .* Give 0 where"}
    for bad, message in {**bad_lines, " \t1\t2": "the query is empty"}.items():
        make({"clicks.tsv": f"{bad}\n"})
        (directory / "judgments.tsv").unlink(missing_ok=True)
        with pytest.raises(InputError, match=rf"clicks\.tsv:1: {message}"):
            list(opened(directory).judgments())


@cases("form", "table", "beside", "lines")
def test_sentences_teach_where_nobody_judged(make, form):
    pairs = [(f"sentence {n // 2}", f"phrase {n}") for n in range(40)]
    table = "fr\ten\n" + "".join(f"{fr}\t{en}\n" for en, fr in [*pairs, ("", "x")])
    lines = {f"a.{n}": "\n".join(side) + "\n" for n, side in enumerate(zip(*pairs, ("", "x")))}
    files = {"parallel.tsv": table} if form == "beside" else {"x/p.tsv": table, **lines}
    directory = make({"documents.tsv": "1\tpomme\n", **files})
    names = {"table": ["x/p.tsv"], "beside": [], "lines": ["a.0", "a.1"]}[form]
    parallel = ",".join(str(directory / name) for name in names)
    # Of a table with the names of languages, one that is known is enough.
    languages = {"query_language": "" if form == "table" else "en"}
    languages["document_language"] = "" if form == "lines" else "fr"
    source = opened(directory, parallel=parallel, **languages)
    assert not source.is_judged
    assert list(source.documents()) == [("1", "", "pomme", languages["document_language"])]
    assert list(source.judgments()) == []
    taught = source.training
    # What a model learns depends on ids: those of each form are the same.
    ids = [f"s{number}" for number in range(1, 41)]
    in_memory = memory.MemorySource([], list(source.documents()), (), None, "en", "fr")
    in_memory.is_judged, in_memory.parallel_files = False, source.files["queries"]
    for one in (taught, in_memory.training):
        for texts, side in zip((one.queries(), one.documents()), zip(*pairs)):
            assert [(text.id, text.text) for text in texts] == list(zip(ids, side))
    assert [judgment[:2] for judgment in taught.judgments()] == list(zip(ids, ids))
    assert list(taught.further_texts()) == ["pomme"]
    loaded = RetrievalSet.load(taught)
    of_splits = (loaded.digests[loaded.queries_in(split), 0] for split in ("train", "validation"))
    assert not np.intersect1d(*of_splits).size  # although each is there twice
    assert len(loaded.trained_queries) == 20  # those that validate are taught too
    assert len(loaded.queries_in("validation")) == 4
    make({"a.0": "one\n", "a.1": "eins\nzwei\n", "parallel.tsv": table})
    (directory / "parallel.tsv").unlink()
    assert list(opened(directory, query_language="en").queries()) == []
    short = opened(directory, parallel=f"{directory}/a.0,{directory}/a.1")
    with pytest.raises(InputError, match=r"a\.0: it has fewer lines"):
        list(short.training.queries())


def test_names_of_files_in_capitals(make):
    files = {"documents.TSV": "d\ta\n", "Queries.TSV": "q\ta\n", "judgments.TSV": "q\td\t1\n"}
    directory = make({**files, "SPLITS.TSV": "q\ttest\n"})
    os.mkfifo(directory / "queries.jsonl")  # nobody waits for it
    assert RetrievalSet.load(opened(directory)).queries_in("test").tolist() == [0]


@cases("name, content, line, reason, remedy", *BAD_LINES)
def test_bad_lines(make, read_all, name, content, line, reason, remedy):
    published = WIKI if name in WIKI else {}
    directory = make({**(published or (JSONL if name.endswith("jsonl") else TSV)), name: content})
    expected = f"{re.escape(f'{directory / name}:{line}: {reason}')}.*{re.escape(f'. {remedy}')}"
    with pytest.raises(InputError, match=f"^{expected}"):
        read_all((WikiClirDirectory if published else UserDirectory)(directory, "fr"))


@cases("blemish, reason", ("q1\td-1\t1", "already judged at"), ("no\td-1\t2", "'no' is not among"))
def test_judgments_that_do_not_fit_are_an_error_unless_few_may_be_skipped(blemish, reason, make):
    directory = make({**TSV, "judgments.tsv": f"{TSV['judgments.tsv']}{blemish}\n"})
    for share in (0.0, 0.33):  # of 3 judgments
        message = rf"judgments.tsv:3: .*{reason}.*--max_skipped={share:g} allows"
        with pytest.raises(InputError, match=message):
            RetrievalSet.load(opened(directory, max_skipped=share))
    assert RetrievalSet.load(opened(directory, max_skipped=0.34)).grades.tolist() == [2, 0]


@cases(
    "files, message",
    ({**TSV, "queries.jsonl": ""}, "it contains both queries.tsv and queries.jsonl. Keep one"),
    ({**TSV, "queries.en.csv": ""}, "it contains both queries.tsv and queries.en.csv. Keep"),
    ({"documents.tsv": "", "queries.tsv": ""}, "it contains no judgments (.tsv, .csv"),
    ({}, "it contains no documents.* and no pairs.*: no files. Give a directory with"),
    ({"pairs.tsv/0": ""}, "it contains no documents.* and no pairs.*: pairs.tsv; a directory, and"),
    ({**TSV, **WIKI}, "it contains two sets: documents.tsv, en2fr.rel, judgments.tsv, "),
    ({f"{n:02}": "" for n in range(12)}, "it contains no documents.* and no pairs.*: 00, 01"),
)
def test_a_directory_that_is_no_set_says_what_it_has(make, files, message):
    directory = make(files)
    with pytest.raises(InputError, match=re.escape(f"{directory}: {message}")):
        opened(directory)


def test_without_a_place_the_toy_world_is_opened():
    source = source_of(DataSettings(document_language="it", toy_entities=300, split_seed=3))
    assert source.fingerprint() == toy_world.ToyWorld("it", "en", 300, 3).fingerprint()


def beir(make, parts):
    files = {f"qrels/{name}.tsv": content for name, content in parts.items()}
    files["corpus.jsonl"] = "".join(f"{json.dumps(record)}\n" for record in CORPUS)
    queries = [f'{{"_id": "q{i}", "text": "water {i}"}}\n' for i in range(10)]
    return BeirDirectory(make({**files, "queries.jsonl": "".join(queries)}), "fr")


def judged(*queries):
    return HEADER + "".join(f"q{query}\td1\t2\n" for query in queries)


def test_a_document_is_its_title_and_its_text(make):
    assert beir(make, {"train": judged(*range(10))}).splits() is None  # they are drawn by seed
    (make({}) / "qrels" / "train.tsv").unlink()
    beir(make, {"test": judged(0)})
    source = opened(make({}))
    assert isinstance(source, BeirDirectory)
    texts = [("d1", "", "L'eau un liquide", ""), ("2", "", "une pierre", ""), ("d3", "", "", "")]
    assert list(source.documents()) == texts
    assert list(source.queries())[9] == ("q9", "", "water 9", "")
    assert list(source.judgments()) == [Judgment("q0", "d1", 2)]
    make({"documents.tsv": "1\ta\n"})
    with pytest.raises(InputError, match="it contains two sets"):
        opened(make({}))


@cases(
    "parts, in_test, sizes",
    ({"train": judged(*range(5)), "dev": judged(5), "test": judged(6)}, ["q6"], (5, 1, 1)),
    # Without dev, 9 // 5 = 1 of the training queries; the published test stays what it is.
    ({"train": judged(*range(1, 10)), "TEST": judged(0)}, ["q0"], (8, 1, 1)),
    ({"train": judged(*range(5)), "dev": judged(5, 6)}, ["q5", "q6"], (4, 1, 2)),
    ({"test": judged(0, 1)}, ["q0", "q1"], (0, 0, 2)),  # BEIR's figures are over all of them
)
def test_parts_are_splits(make, parts, in_test, sizes):
    source = beir(make, parts)
    splits = source.splits()
    assert [query for query, split in splits.items() if split == "test"] == in_test
    counts = Counter(splits.values())
    assert (counts["train"], counts["validation"], counts["test"]) == sizes
    assert source.splits() == splits
    loaded = RetrievalSet.load(source)
    assert [loaded.query_ids[row] for row in loaded.queries_in("test")] == in_test


def test_judgments_and_splits_that_are_not_read_are_named(make, caplog):
    beir(make, {"train": judged(*range(3))})
    directory = make({"qrels/test.txt": judged(3), "qrels/test.tsv.bak": "", "qrels/notes.md": ""})
    with gzip.open(directory / "qrels" / "dev.tsv.gz", "wt") as file:
        file.write(judged(4))
    trains = dict.fromkeys(("q0", "q1", "q2"), "train")
    assert BeirDirectory(directory).splits() == {**trains, "q4": "test"}
    make({"of_mine/splits.txt": "", **{f"of_mine/{name}": text for name, text in TSV.items()}})
    assert opened(directory / "of_mine").splits() is None
    named = [warning.message.rpartition("/")[2] for warning in caplog.records]
    reason = "not read because of its ending"
    parts = [f"test.{end}: {reason}, which is not .tsv" for end in ("tsv.bak", "txt")]
    assert named == [*parts, f"of_mine: splits are drawn; {reason}: splits.txt"]


@cases("kind", UserDirectory, BeirDirectory)
def test_fingerprint_follows_every_file(kind, make):
    if kind is BeirDirectory:
        beir(make, {"train": judged(0), "test": judged(1)})
    directory = make({} if kind is BeirDirectory else {**TSV, "splits.tsv": "q1\ttest\n"})
    prints = {kind(directory, "fr").fingerprint()}
    for path in [path for path in directory.rglob("*.*") if path.is_file()]:
        path.write_bytes(path.read_bytes() + b"\n")
        prints.add(kind(directory, "fr").fingerprint())
    assert len(prints) == 1 + 4  # files


@cases(
    "parts, message",
    ({}, "it has no qrels/"),
    ({"extra": judged(0)}, r"extra\.tsv: its name is no part of a set. Name it one of train"),
    ({"train": judged(0), "test": HEADER + "q0\t2\t1\n"}, "'q0' has judgments for test and for"),
    ({"train": judged(0), "test": judged(1, 99)}, r"test\.tsv:3: .*q99"),
)
def test_defects_are_named(make, parts, message):
    with pytest.raises(InputError, match=message):
        RetrievalSet.load(beir(make, parts))


def records(source):
    streams = source.queries(), source.documents(), source.judgments(), source.training.queries()
    return [*map(list, streams), source.splits(), source.fingerprint()]


@cases("splits", None, {"q1": "train", "q2": "test"})
@cases("settings", {}, {"document_language": "fr"}, {"query_language": "en", "columns": "text=b"})
def test_files_have_its_records_languages_splits_and_fingerprint(tmp_path, settings, splits):
    codes = [settings.get(f"{role}_language", "") for role in ("query", "document")]
    source = memory.MemorySource(QUERIES, DOCUMENTS, JUDGMENTS, splits, *codes)
    source.others = [{"year": np.int64(2021)}, {"year": None}]
    source.columns = {"text": "b"} if "columns" in settings else {}
    source.keep(tmp_path / "data", overwrite=False)
    named = DataSettings(data_dir=str(tmp_path / "data"), **settings)
    assert records(source_of(named, source)) == records(source_of(named))
    # Hazard: a document of no known language among others is taken for one of the wanted language.
    found = [document.language for document in source_of(named, source).documents()]
    assert found == (["fr"] if "document_language" in settings else ["fr", ""])


def test_what_is_missing_in_pandas_is_missing_in_files(tmp_path):
    pandas = pytest.importorskip("pandas")
    source = memory.MemorySource(QUERIES, [Text("d1", "", "rouge"), DOCUMENTS[1]], JUDGMENTS)
    years = pandas.DataFrame({"year": pandas.array([2021, None], dtype="Int64")})
    years["day"] = pandas.to_datetime(["2021-05-06", None])
    source.others = [{**row, "tags": np.array(["a", "b"])} for row in years.to_dict("records")]
    memory.write_set(source, tmp_path / "data", None)
    of_files = ({"year": 2021, "day": "2021-05-06 00:00:00"}, {"year": None, "day": None})
    tagged = [{**row, "tags": ["a", "b"]} for row in of_files]
    assert list(opened(tmp_path / "data").metadata()) == tagged


def test_files_have_its_sentences(tmp_path):
    source = memory.MemorySource([], DOCUMENTS, [])
    source.is_judged, source.pairs = False, [(1, "red", "rouge"), (2, "blue", "bleu")]
    memory.write_set(source, tmp_path / "data", None)
    assert records(source) == records(opened(tmp_path / "data"))


def test_another_set_is_not_overwritten_unless_it_may_be(tmp_path):
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "of_mine.txt").write_text("mine")
    source = memory.MemorySource(QUERIES, DOCUMENTS, JUDGMENTS)
    with pytest.raises(InputError, match="it holds other data"):
        source.keep(directory, overwrite=False)
    assert [path.name for path in directory.iterdir()] == ["of_mine.txt"]
    source.keep(directory, overwrite=True)
    assert (directory / "queries.jsonl").is_file()
