"""What is said of files, columns and languages of a set; the first queries of it."""

import dataclasses
import functools
import re

import pytest

from tests.cases import cases
from tests.data.sources.test_languages import FORMS
from tests.data.sources.test_user_files import JSONL, NAMED, PAIRS, TSV, WIKI
from tests.small_world import DOCUMENTS, JUDGMENTS, QUERIES, SPLITS, SmallWorld
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources import opening
from tf_smoothclir.data.sources.opening import check_columns, source_of, warn_of_left_out
from tf_smoothclir.data.sources.source import SPLITS as SPLIT_NAMES
from tf_smoothclir.data.sources.splits import SelectedJudgments
from tf_smoothclir.index.document_collections import open_files
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

limits = functools.partial(DataSettings, split_seed=1)
TEXTS = {"documents.tsv": "1\ta\n2\tb\n", "queries.tsv": "1\ta\n"}
OF_NAMED = "id=Nr,id=Seite,text=Frage,text=Inhalt,query_id=NR,document_id=Seite"


@cases(
    "files, columns, message",
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
)
def test_a_name_of_no_table_is_an_error_with_the_others(files, columns, message, make, caplog):
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
    opening.check_named({"text": "inhalt"}, names)
    assert list(names) == ["Titel"]


@cases(
    "name, content, ignored",
    ("judgments.csv", "query_id,document_id,stars\n1,1,4\n1,2,1\n", "'grade'.*: stars"),
    ("judgments.tsv", "query_id\tdocument_id\ta\tstars\n1\t1\tb\t4\n", "'grade'.*: a, stars"),
    ("clicks.csv", "query,document_id,views\na,1,4\n", "'count'.*: views"),
    ("clicks.csv", "query,document_id,clicks,count\na,1,4,1\n", "'count'.* is read; .*: clicks"),
    ("judgments.csv", "query_id,document_id,weight\n1,1,0.5\n", ""),
    ("judgments.csv", "query_id,document_id,stars,rel\n1,1,4,2\n", ""),
    ("judgments.tsv", "1\t1\n", ""),
)
def test_columns_beside_a_missing_one_are_told_once(name, content, ignored, make, read_all, caplog):
    source = source_of(DataSettings(data_dir=str(make({**TEXTS, name: content}))))
    for _ in range(2):
        read_all(source)
    assert len(caplog.messages) == bool(ignored)
    assert not ignored or re.search(f"{name}: (there is no|the) column {ignored}", caplog.text)


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


@cases(
    "files, message",
    ({"documents.tsv": "1\ta\n", "judgments.tsv": ""}, "contains no queries (.tsv"),
    ({"queries.tsv": ""}, "contains no documents.* and no pairs.*: queries.tsv, queries.txt"),
)
def test_a_file_that_is_there_and_not_read_is_named(files, message, make):
    with pytest.raises(InputError) as error:
        source_of(DataSettings(data_dir=str(make({**files, "queries.txt": "1\ta\n"}))))
    assert message in str(error.value)
    assert "; not read because of its ending: queries.txt. " in str(error.value)


def test_documents_alone_say_which_other_files_they_do_not_read(make):
    directory = make({"documents.tsv": "1\ta\n", "clicks.txt": "", "judgments.xlsx": ""})
    unread = source_of(DataSettings(data_dir=str(directory))).unread
    assert unread == "; not read because of its ending: clicks.txt, judgments.xlsx"


@cases("form", "wiki", "csv", "files")
def test_languages_that_a_run_leaves_out_are_named_with_the_flag(form, make, caplog):
    settings = DataSettings(data_dir=str(make(FORMS[form])), document_language="fr")
    both = dataclasses.replace(settings, document_language="fr,he", query_language="all")
    with caplog.at_level("WARNING", logger="absl"):
        warn_of_left_out(settings, ["document_language"])
        warn_of_left_out(both, ["document_language", "query_language"])
    (record,) = caplog.records
    said = "documents in he are left out, as the run has --document_language=fr."
    assert record.getMessage().endswith(f"{said} --document_language=all reads them too.")


def test_first_queries_are_those_that_the_judgments_name_first():
    order = list(dict.fromkeys(judgment[0] for judgment in JUDGMENTS))
    selected = source_of(limits(max_queries=3), SmallWorld())
    assert {query.id for query in selected.queries()} == set(order[:3])
    assert [j[:3] for j in selected.judgments()] == [j for j in JUDGMENTS if j[0] in order[:3]]
    assert [document.id for document in selected.documents()] == list(DOCUMENTS)
    assert selected.splits() == {id_: SPLITS[id_] for id_ in SPLITS if id_ in order[:3]}
    every = source_of(limits(max_queries=100), SmallWorld())  # more than there are
    assert [query.id for query in every.queries()] == [id_ for id_ in QUERIES if id_ in order]


def test_places_are_those_in_the_whole_set():
    world = SmallWorld(judgments=JUDGMENTS[::-1])
    selected = source_of(limits(max_queries=1), world)
    (kept,) = selected.queries()
    assert kept.id == JUDGMENTS[-1][0]
    assert selected.place("queries", 0) == world.place("queries", list(QUERIES).index(kept.id))
    assert selected.place("documents", 2) == world.place("documents", 2)
    assert selected.place("judgments", 0) == world.place("judgments", 0)
    of_one = source_of(limits(max_queries=2), SmallWorld(splits={"q1": "train"}))
    with pytest.raises(InputError, match=r"^splits\.tsv: query 'q2' has no split"):
        RetrievalSet.load(of_one)
    # Hazard: nothing of a stream is kept, of which something has to be said.
    of_others = source_of(limits(max_queries=1), SmallWorld(splits={"q9": "train"}))
    assert of_others.place("splits", 0) == SmallWorld().place("splits", 0)


def test_fingerprint_tells_selections_apart():
    names = "max_queries", "max_train_queries"
    settings = [{}, dict.fromkeys(names, 50), *({name: n} for name in names for n in (50, 51))]
    prints = {source_of(DataSettings(toy_entities=300, **one)).fingerprint() for one in settings}
    assert len(prints) == len(settings)
    assert not isinstance(source_of(DataSettings(toy_entities=300)), SelectedJudgments)


@cases("max_queries", 0, 100)
def test_fewer_training_queries_leave_the_other_splits_as_they_were(max_queries):
    before = DataSettings(toy_entities=300, max_queries=max_queries)
    fewer = dataclasses.replace(before, max_train_queries=20)
    whole, loaded = (RetrievalSet.load(source_of(settings)) for settings in (before, fewer))
    (whole_train, *whole_others), (train, *others) = (
        [[each.query_ids[row] for row in each.queries_in(split)] for split in SPLIT_NAMES]
        for each in (whole, loaded)
    )
    sizes = [(max_queries or 300) * share // 5 for share in (3, 1, 1)]  # of those that are kept
    assert [*map(len, (whole_train, *whole_others))] == sizes
    assert len(train) == 20
    assert set(train) < set(whole_train)
    assert others == whole_others
    # The words of queries that are left out must not get into the vocabulary.
    assert set(loaded.query_ids) & set(whole_train) == set(train)
    more = RetrievalSet.load(source_of(dataclasses.replace(before, max_train_queries=30)))
    assert set(train) < set(more.query_ids)


def test_fewer_training_queries_leave_the_splits_of_the_set():
    training = {id_ for id_, *_ in JUDGMENTS if SPLITS[id_] == "train"}
    splits = source_of(limits(max_train_queries=1), SmallWorld()).splits()
    assert len([id_ for id_ in splits if id_ in training]) == 1 < len(training)
    assert {id_ for id_ in splits if id_ not in training} == set(SPLITS) - training
