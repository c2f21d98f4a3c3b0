"""What is said of files, names of columns and languages that a set has or that were asked for."""

import dataclasses
import re

import pytest

from tests.data.sources.test_languages import FORMS
from tests.data.sources.test_user_files import JSONL, NAMED, PAIRS, TSV, WIKI
from tf_smoothclir.data.sources.opening import (
    check_columns,
    check_named,
    source_of,
    warn_of_left_out,
)
from tf_smoothclir.index.document_collections import open_files
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

TEXTS = {"documents.tsv": "1\ta\n2\tb\n", "queries.tsv": "1\ta\n"}
OF_NAMED = "id=Nr,id=Seite,text=Frage,text=Inhalt,query_id=NR,document_id=Seite"


@pytest.mark.parametrize(
    ("files", "columns", "message"),
    [
        (NAMED, OF_NAMED, ""),
        (NAMED, f"{OF_NAMED},grade=Nr", ""),
        (NAMED, f"{OF_NAMED},text=nosuch", "text=nosuch: no .* 'nosuch'; there are: .*Inhalt, Nr"),
        (JSONL, "text=nosuch", "text=nosuch: no table has .*; there are: id, text, x, query_id"),
        (JSONL, "grade=x", ""),  # which one object has
        ({"pairs.csv": PAIRS}, "query=anchor,document=positive", ""),
        ({"pairs.csv": PAIRS}, "grade=note", "grade=note: no table .*: anchor, Positive, grade"),
        (TSV, "text=body", "text=body: no table has the column 'body'"),
        ({"documents.csv": "id,text\n1,a\n", "queries.csv": "Nr,text\n1,a\n"}, "id=Nr", ""),
        (WIKI, "text=body", "text=body: only columns of your own tables"),
        ({}, "text=body", "text=body: only columns of your own tables"),
    ],
)
def test_a_name_that_no_table_has_is_an_error_that_names_those_there_are(
    files, columns, message, make, caplog
):
    directory = str(make(files)) if files else ""
    settings = DataSettings(data_dir=directory, columns=columns, max_train_queries=1)
    if not message:
        check_columns(settings)
        assert not caplog.messages
        return
    with pytest.raises(InputError, match=f"^--columns=.*{message}"):
        check_columns(settings)


def test_names_are_read_until_all_are_found():
    names = iter(["id", "Inhalt", "Titel"])
    check_named({"text": "inhalt"}, names)
    assert list(names) == ["Titel"]


@pytest.mark.parametrize(
    ("name", "content", "ignored"),
    [
        ("judgments.csv", "query_id,document_id,stars\n1,1,4\n1,2,1\n", "'grade'.*: stars"),
        (
            "judgments.tsv",
            "query_id\tdocument_id\tby\tstars\n1\t1\tme\t4\n",
            "'grade'.*: by, stars",
        ),
        ("clicks.csv", "query,document_id,views\na,1,4\n", "'count'.*: views"),
        ("judgments.csv", "query_id,document_id,weight\n1,1,0.5\n", ""),
        ("judgments.csv", "query_id,document_id,stars,rel\n1,1,4,2\n", ""),
        ("judgments.tsv", "1\t1\n", ""),
    ],
)
def test_columns_beside_a_missing_grade_or_count_are_named_once(
    name, content, ignored, make, read_all, caplog
):
    source = source_of(DataSettings(data_dir=str(make({**TEXTS, name: content}))))
    for _ in range(2):
        read_all(source)
    assert len(caplog.messages) == bool(ignored)
    assert not ignored or re.search(f"{name}: there is no column {ignored}", caplog.text)


def test_a_set_that_a_run_keeps_has_the_names_of_this_package(make):
    directory = make({"config.json": "{}", "data/documents.tsv": "1\ta\n"}) / "data"
    check_columns(DataSettings(data_dir=str(directory), columns="text=body"))
    (directory.parent / "config.json").unlink()
    with pytest.raises(InputError, match="no table has the column 'body'"):
        check_columns(DataSettings(data_dir=str(directory), columns="text=body"))


def test_a_collection_needs_one_of_the_names_of_a_column(make):
    files = open_files(make({"pages.csv": "Seite,Inhalt\n1,a\n"}) / "pages.csv", "--collection")
    check_columns(DataSettings(columns="id=Nr,id=Seite,text=Inhalt"), files)
    with pytest.raises(InputError, match="id=Nr: no table has the column 'Nr'; there are: Seite"):
        check_columns(DataSettings(columns="id=Nr,text=Inhalt"), files)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"documents.tsv": "1\ta\n", "judgments.tsv": ""}, "contains no queries (.tsv"),
        ({"queries.tsv": ""}, "contains no documents.* and no pairs.*: queries.tsv, queries.txt"),
    ],
)
def test_a_file_that_is_there_and_not_read_is_named(files, message, make):
    directory = make({**files, "queries.txt": "1\ta\n"})
    with pytest.raises(InputError) as error:
        source_of(DataSettings(data_dir=str(directory)))
    assert message in str(error.value)
    assert "; not read because of its ending: queries.txt. " in str(error.value)


def test_documents_alone_say_which_other_files_they_do_not_read(make):
    directory = make({"documents.tsv": "1\ta\n", "clicks.txt": "", "judgments.xlsx": ""})
    unread = source_of(DataSettings(data_dir=str(directory))).unread
    assert unread == "; not read because of its ending: clicks.txt, judgments.xlsx"


@pytest.mark.parametrize("form", ["wiki", "csv", "files"])
def test_languages_that_a_run_leaves_out_are_named_with_the_flag(form, make, caplog):
    settings = DataSettings(data_dir=str(make(FORMS[form])), document_language="fr")
    both = dataclasses.replace(settings, document_language="fr,he", query_language="all")
    with caplog.at_level("WARNING", logger="absl"):
        warn_of_left_out(settings, ["document_language"])
        warn_of_left_out(both, ["document_language", "query_language"])
    (record,) = caplog.records
    assert record.getMessage().endswith(
        "documents in he are left out, as the run has --document_language=fr."
        " --document_language=all reads them too."
    )


@pytest.mark.parametrize("name", ["queries.tsv", "queries.jsonl"])
def test_a_query_without_text_is_an_error(name, make):
    texts = {"tsv": "q1\ta\nq2\t \n", "jsonl": '{"id": 1, "text": "a"}\n{"id": 2, "text": ""}\n'}
    files = {key: text for key, text in TSV.items() if "queries" not in key}
    source = source_of(DataSettings(data_dir=str(make({**files, name: texts[name[8:]]}))))
    with pytest.raises(InputError, match=rf"{name}:2: the text of query q?2 is empty\. Fill"):
        list(source.queries())
    assert [document.text for document in source.documents()] == ["un liquide", ""]
