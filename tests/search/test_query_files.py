"""Query files and TREC runs."""

import functools
import os
import threading

import pytest

from tf_smoothclir.evaluation.trec import read_run
from tf_smoothclir.protocols.text_search import SearchHit
from tf_smoothclir.search.query_files import RunFile, numbered, read_queries
from tf_smoothclir.utils.errors import InputError


def read(path, content):
    path.write_text(content, encoding="utf-8")
    return list(read_queries(path))


def test_lines_with_a_tab_have_an_id_others_are_numbered(tmp_path):
    path = tmp_path / "queries"
    assert read(path, "q1\tred apple\nq2\t\n") == [("q1", "red apple"), ("q2", "")]
    assert read(path, "red apple\n日本\n") == [("1", "red apple"), ("2", "日本")]
    objects = '{"_id": 7, "text": "a\\tb"}\n{"qid": "q", "query": "{", "title": null}\n'
    assert read(path, objects) == [("7", "a\tb"), ("q", "{")]
    for content in ('id,title,text\n1,b,a\n2,,"c\nd"\n', '"qid","Query"\n1,a\n2,"c\nd"\n'):
        assert read(path, content) == [("1", "a"), ("2", "c\nd")]
    titled = "q1\tApple\tred apple\nq2\t\tb\n"  # as in WikiCLIR
    for name in ("wiki_en.queries", "WIKI_EN.QUERIES"):
        assert read(tmp_path / name, titled) == [("q1", "red apple"), ("q2", "b")]
    # Bytes that are no text are replaced: as a terminal gives them.
    typed = b"caf\xe9 au lait, \xe6\x97\xa5".decode("utf-8", "surrogateescape")
    with pytest.raises(InputError, match=r"query 2: it is a JSON object with an id.*--queries"):
        list(numbered(["{a}", '{"id": "q1", "text": "a"}']))
    assert list(numbered(["a", typed])) == [("1", "a"), ("2", "caf\ufffd au lait, 日")]


OTHERS = ("[", '[{"id": 1}]', "<top>", "<?xml version='1.0'?>")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("q1\ta\nb\n", ":2: 1 tab-separated columns"),
        ("q1\ta\nq2\tb\tc\n", ":2: 3 tab-separated columns"),
        ("a\nq2\tb\n", ":2: the line has a tab, the first line has none"),
        ("q1\ta\nq2\tb\nq1\tc\n", ":3: id 'q1' stands already in line 1"),
        ("q 1\ta\n", ":1: id 'q 1' is empty or contains white space"),
        ("a\n\nb\n", ":2: the line is blank"),
        ("", ": the file is empty"),
        ('{"text": "a"}\n', ":1: there is no column 'id'"),
        ('{"id": 1, "text": "a"}\n{"id": "1", "text": "b"}\n', ":2: id '1' stands already in"),
        *((f"{first}\n", ":1: this is no file of queries, but XML") for first in OTHERS),
    ],
)
def test_defect_is_named_by_its_line(tmp_path, content, message):
    with pytest.raises(InputError, match=f"queries{message}"):
        read(tmp_path / "queries", content)


def test_queries_come_through_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=["q1\ta\nq2\tb\n"])
    writer.start()
    assert list(read_queries(tmp_path / "pipe")) == [("q1", "a"), ("q2", "b")]
    writer.join()


def test_run_is_read_back_and_equal_scores_keep_their_order(tmp_path):
    run, hit = RunFile(), functools.partial(SearchHit, grade=0, title="", text="")
    run.add("q1", [hit(1, 0.5, id="d2"), hit(2, 0.5, id="d1"), hit(3, -0.25, id="d3")])
    run.add("q2", [])
    run.add("q3", [hit(1, 0.75, id="d1")])
    run.write(tmp_path / "run")
    lines = [line.split() for line in (tmp_path / "run").read_text().splitlines()]
    assert [" ".join(line[:4] + line[5:]) for line in lines] == [
        "q1 Q0 d2 1 tf_smoothclir",
        "q1 Q0 d1 2 tf_smoothclir",
        "q1 Q0 d3 3 tf_smoothclir",
        "q3 Q0 d1 1 tf_smoothclir",
    ]
    found = read_run(tmp_path / "run")
    assert found["q1"]["d2"] > found["q1"]["d1"] > found["q1"]["d3"] == -0.25
    assert found["q1"]["d1"] == pytest.approx(0.5, abs=1e-6)
