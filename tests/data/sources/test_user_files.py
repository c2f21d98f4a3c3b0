from __future__ import annotations

import re

import pytest

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Judgment, Text
from tf_smoothclir.data.sources.user_files import UserDirectory
from tf_smoothclir.data.sources.wikiclir_files import WikiClirDirectory
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

TSV = {
    "documents.tsv": "d-1\tun liquide\nd-2\t\n",
    "queries.tsv": "q1\ta liquid\n",
    "judgments.tsv": "q1\td-1\t2\nq1\td-2\t0\n",
}
JSONL = {
    "documents.jsonl": '{"id": "d-1", "text": "un liquide"}\n{"text": "", "id": "d-2", "x": 1}\n',
    "queries.jsonl": '{"id": "q1", "text": "a liquid"}\n',
    "judgments.jsonl": '{"query_id": "q1", "document_id": "d-1", "grade": 2}\n'
    '{"query_id": "q1", "document_id": "d-2", "grade": 0}\n',
}
WIKI = {"wiki_en.queries": "1\ta\tb\n", "wiki_fr.documents": "1\ta\tb\n", "en2fr.rel": "1\t1\t2\n"}


@pytest.fixture
def make(tmp_path):
    def make_files(files):
        for name, content in files.items():
            (tmp_path / name).write_bytes(content.encode())
        return tmp_path

    return make_files


@pytest.mark.parametrize("files", [TSV, JSONL], ids=["tsv", "jsonl"])
def test_both_formats_give_the_same_set(make, files):
    source = UserDirectory(make({**files, "splits.tsv": "q1\ttest\n"}), "fr")
    assert list(source.documents()) == [Text("d-1", "", "un liquide"), Text("d-2", "", "")]
    assert list(source.queries()) == [Text("q1", "", "a liquid")]
    assert list(source.judgments()) == [Judgment("q1", "d-1", 2), Judgment("q1", "d-2", 0)]
    assert source.splits() == {"q1": "test"}
    assert source.place("judgments", 1).endswith(
        "judgments.tsv:2" if files is TSV else "judgments.jsonl:2"
    )
    assert (source.query_language, source.document_language) == ("en", "fr")


def test_files_may_have_different_formats(make):
    files = {**TSV, "queries.jsonl": JSONL["queries.jsonl"]}
    del files["queries.tsv"]
    source = UserDirectory(make(files), "fr")
    assert list(source.queries()) == [Text("q1", "", "a liquid")]
    assert source.splits() is None


def test_json_titles_and_integer_ids(make):
    files = {**JSONL, "queries.jsonl": '{"id": 7, "title": "Water", "text": "été\\t\\n😀"}\n'}
    assert list(UserDirectory(make(files), "fr").queries()) == [Text("7", "Water", "été\t\n😀")]


def test_fingerprint_changes_with_any_file(make):
    prints = {UserDirectory(make(TSV), "fr").fingerprint()}
    for name, content in [*TSV.items(), ("splits.tsv", "q1\ttest\n")]:
        make({name: content + content})
        prints.add(UserDirectory(make({}), "fr").fingerprint())
    assert len(prints) == 5


BAD_TEXT = "Give it a JSON str"
BAD_LINES = [
    ("queries.tsv", "q1\ta\tb\n", 1, "3 tab-separated columns instead of 2", "Put one tab"),
    ("documents.tsv", "a b\tc\n", 1, "id 'a b' is empty or contains white space", "Give an id"),
    ("judgments.tsv", "q1\td-1\t2\nq1\td-2\tx\n", 2, "grade 'x' is not an integer", "Give a grade"),
    ("judgments.tsv", "\td-1\t2\n", 1, "query_id '' is empty", "Give an id"),
    ("queries.jsonl", '{"id": "q1"}\n', 1, "the object has no 'text'; it has: id", "Add 'text'"),
    ("queries.jsonl", '{"text": "a"}\n', 1, "the object has no 'id'; it has: text", "Add 'id'"),
    ("queries.jsonl", "{}\n", 1, "the object has no 'text'; it has: nothing", "Add 'text'"),
    ("queries.jsonl", '{"id": "1", "text": 5}\n', 1, "'text' is 5, a JSON int", BAD_TEXT),
    ("queries.jsonl", '{"id": 1.0, "text": ""}\n', 1, "'id' is 1.0, a JSON float", BAD_TEXT),
    ("queries.jsonl", '{"id": true, "text": ""}\n', 1, "'id' is True, a JSON bool", BAD_TEXT),
    ("queries.jsonl", '{"id": "a b", "text": ""}\n', 1, "id 'a b' is empty or", "Give an id"),
    (
        "queries.jsonl",
        '{"id": "1", "text": "", "title": null}\n',
        1,
        "'title' is None, a JSON NoneType",
        BAD_TEXT,
    ),
    (
        "judgments.jsonl",
        JSONL["judgments.jsonl"] + '{"query_id": "q1", "document_id": "d-1", "grade": 2.0}\n',
        3,
        "'grade' is 2.0, a JSON float",
        "Give it a JSON int",
    ),
    (
        "judgments.jsonl",
        '{"query_id": "q1", "document_id": "d-1", "grade": true}\n',
        1,
        "'grade' is True, a JSON bool",
        "Give it a JSON int",
    ),
    (
        "judgments.jsonl",
        '{"query_id": "q1", "grade": 2}\n',
        1,
        "the object has no 'document_id'",
        "Add 'document_id'",
    ),
    ("splits.tsv", "q1\ttrain\nq1\ttrain\n", 2, "query 'q1' already has a split", "Keep one"),
]


@pytest.mark.parametrize(("name", "content", "line", "reason", "remedy"), BAD_LINES)
def test_bad_lines(make, name, content, line, reason, remedy):
    directory = make({**(JSONL if name.endswith("jsonl") else TSV), name: content})
    source = UserDirectory(directory, "fr")
    expected = f"{re.escape(f'{directory / name}:{line}: {reason}')}.*{re.escape(f'. {remedy}')}"
    with pytest.raises(InputError, match=f"^{expected}"):
        print(*source.queries(), *source.documents(), *source.judgments(), source.splits())


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({**TSV, "queries.jsonl": ""}, "it contains both queries.tsv and queries.jsonl. Keep one"),
        (
            {"documents.tsv": "", "queries.tsv": ""},
            "it contains neither judgments.tsv nor judgments.jsonl. Give one file each for",
        ),
    ],
)
def test_each_role_has_one_file(make, files, message):
    directory = make(files)
    with pytest.raises(InputError, match=f"^{re.escape(f'{directory}: {message}')}"):
        UserDirectory(directory, "fr")


@pytest.mark.parametrize(
    ("files", "kind"), [(TSV, UserDirectory), (JSONL, UserDirectory), (WIKI, WikiClirDirectory)]
)
def test_source_of_recognises_a_directory_by_its_files(make, files, kind):
    source = source_of(DataSettings(data_dir=str(make(files)), document_language="fr"))
    assert type(source) is kind
    assert len(list(source.queries())) == 1


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "it contains no set: no files. Give a directory either with wiki_<language>"),
        ({"a.csv": "", "b.csv": ""}, "it contains no set: a.csv, b.csv. Give a directory"),
        ({**TSV, **WIKI}, "it contains two sets: documents.tsv, en2fr.rel, judgments.tsv, "),
        (
            {f"{n:02}": "" for n in range(12)},
            "it contains no set: 00, 01, 02, 03, 04, 05, 06, 07, 08,",
        ),
    ],
)
def test_source_of_says_what_it_found(make, files, message):
    directory = make(files)
    with pytest.raises(InputError, match=f"^{re.escape(f'--data_dir={directory}: {message}')}"):
        source_of(DataSettings(data_dir=str(directory)))


def test_source_of_takes_one_place_only():
    with pytest.raises(InputError, match=r"^--data_dir=here --tfds_name=wiki_clir/fr: both name"):
        source_of(DataSettings(data_dir="here", tfds_name="wiki_clir/fr"))


def test_source_of_falls_back_on_the_toy_world():
    source = source_of(DataSettings(document_language="it", toy_entities=300, split_seed=3))
    assert (source.query_language, source.document_language) == ("en", "it")
    assert any(judgment.grade == 2 for judgment in source.judgments())
