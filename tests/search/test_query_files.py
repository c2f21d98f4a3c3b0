"""Query files, TREC runs, and hits, printed for people."""

import dataclasses
import functools
import gzip
import itertools
import os
import threading

import pytest

from tests.cases import cases
from tf_smoothclir.evaluation.trec import read_run, write_run
from tf_smoothclir.protocols import text_search
from tf_smoothclir.protocols.text_search import Explanation, SearchHit, WordMatch, WordShare
from tf_smoothclir.search.display import carrying_words, highlighted, print_hits, shares
from tf_smoothclir.search.query_files import numbered, ranking_of, read_queries
from tf_smoothclir.utils.errors import InputError

OTHERS = ("[", '[{"id": 1}]', "<top>", "<?xml version='1.0'?>")


def read(path, content):
    with gzip.open(path, "wt") if path.suffix == ".gz" else open(path, "w") as file:
        file.write(content)
    return list(read_queries(path))


def test_lines_with_a_tab_have_an_id_others_are_numbered(tmp_path, caplog):
    caplog.set_level("INFO", logger="absl")
    path = tmp_path / "queries"
    assert read(path, "q1\tred apple\nq2\t\n") == [("q1", "red apple"), ("q2", "")]
    assert read(path, "red apple\n日本\n") == [("1", "red apple"), ("2", "日本")]
    objects = '{"_id": 7, "text": "a\\tb"}\n{"qid": "q", "query": "{", "title": null}\n'
    assert read(path, objects) == [("7", "a\tb"), ("q", "{")]
    for content in ('id,title,text\n1,b,a\n2,,"c\nd"\n', '"qid","Query"\n1,a\n2,"c\nd"\n'):
        assert read(path, content) == [("1", "a"), ("2", "c\nd")]
    assert "queries: 1 queries have titles, which are not read" in caplog.text
    caplog.clear()
    titled = "q1\tApple\tred apple\nq2\t\tb\n"  # as in WikiCLIR
    for name in ("wiki_en.queries", "wiki_en.queries.gz", "WIKI_DE.DOCUMENTS"):
        assert read(tmp_path / name, titled) == [("q1", "red apple"), ("q2", "b")]
    assert not caplog.text
    # Bytes that are no text are replaced: as a terminal gives them.
    typed = b"caf\xe9 au lait, \xe6\x97\xa5".decode("utf-8", "surrogateescape")
    with pytest.raises(InputError, match=r"query 2: it is a JSON object with an id.*--queries"):
        list(numbered(["{a}", '{"id": "q1", "text": "a"}']))
    assert list(numbered(["a", typed])) == [("1", "a"), ("2", "caf\ufffd au lait, 日")]


@cases(
    "content, message",
    ("q1\ta\nb\n", ":2: 1 tab-separated columns"),
    ("a\nq2\tb\n", ":2: the line has a tab, the first line has none"),
    ("q1\ta\nq2\tb\nq1\tc\n", ":3: id 'q1' stands already in line 1"),
    ("q 1\ta\n", ":1: id 'q 1' is empty or contains white space"),
    ("a\n\nb\n", ":2: the line is blank"),
    ("", ": the file is empty"),
    ('{"text": "a"}\n', r":1: there is no column 'id'; there are: text\. Rename one of them\.$"),
    ('{"id": 1, "text": "a"}\n{"id": "1", "text": "b"}\n', ":2: id '1' stands already in"),
    *((f"{first}\n", ":1: this is no file of queries, but XML") for first in OTHERS),
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
    hit = functools.partial(SearchHit, grade=0, title="", text="")
    of_1 = [hit(1, 0.5, id="d2"), hit(2, 0.5, id="d1"), hit(3, -0.25, id="d3")]
    hits = {"q1": of_1, "q2": [], "q3": [hit(1, 0.75, id="d1")]}
    write_run(tmp_path / "run", itertools.starmap(ranking_of, hits.items()))
    lines = [line.split() for line in (tmp_path / "run").read_text().splitlines()]
    ranks = ["q1 Q0 d2 1", "q1 Q0 d1 2", "q1 Q0 d3 3", "q3 Q0 d1 1"]
    assert [" ".join(line[:4]) for line in lines] == ranks
    assert {" ".join(line[5:]) for line in lines} == {"tf_smoothclir"}
    found = read_run(tmp_path / "run")
    assert found["q1"]["d2"] > found["q1"]["d1"] > found["q1"]["d3"] == -0.25
    assert found["q1"]["d1"] == pytest.approx(0.5, abs=1e-6)


def explained(score=500.0, remainder=0.0, **shares):
    words = tuple(WordShare(word, share) for word, share in shares.items())
    return Explanation(score, words, remainder)


def test_one_line_per_hit_with_shares_below_and_carrying_words_bold_on_a_terminal(capsys):
    explanation = explained(0.5, 0.07, **{"apfel": 0.4, "rot": 0.05, ".": -0.02})
    first = SearchHit(1, 0.5, 1, "d1", "Obst", "Ein Apfel")
    print_hits("apple", [first, SearchHit(2, 0.2, None, "d2", "", "x" * 50)], width=20)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "apple"
    assert lines[3].split() == ["1", "0.500", "1", "d1", "Obst:", "Ein", "Apfel"]
    assert lines[4].split() == ["2", "0.200", "-", "d2", "x" * 19 + "…"]
    print_hits("apple", [dataclasses.replace(first, passage="rot")])
    assert "Obst: … rot …" in capsys.readouterr().out
    for bold, text in ((False, "Ein Apfel"), (True, "Ein \033[1mApfel\033[0m")):
        print_hits("apple", [first], explanations=[explanation], bold=bold)
        shown = capsys.readouterr().out
        assert "0.500 = apfel +0.400, rot +0.050, . -0.020, remainder +0.070" in shown
        assert text in shown


@cases(
    "words, expected",
    ({"rot": 0.15, "apfel": 0.4, "ein": 0.17}, ["apfel", "ein"]),  # two fifths of the largest
    ({"a": 0.0, "b": -1.0}, []),
    ({".": 9.0, "apfel": 0.4}, ["apfel"]),  # punctuation neither carries nor keeps others off
    ({f"w{n}": 1 - n / 100 for n in range(20)}, [f"w{n}" for n in range(6)]),
)
def test_which_words_carry_whatever_else_adds_to_the_score(words, expected):
    assert carrying_words(dataclasses.replace(explained(**words), feedback=400.0)) == expected


def test_whole_words_are_highlighted_and_parts_of_runs_without_spaces():
    shown = highlighted("Der Apfel, apfelrot: 日本語", ["apfel", "本"])
    assert shown == "Der \033[1mApfel\033[0m, apfelrot: 日\033[1m本\033[0m語"


def test_what_a_word_met_and_what_else_adds_to_the_score():
    met = (WordMatch("apple", 0.93, 0.4), WordMatch("fruit", 0.01, 0.1))
    explanation = Explanation(9.0, (WordShare("apfel", 0.5, met),), -1e-5, 1.5, 0.5, 7.0)
    others = "towers +1.500, encoder +0.500, feedback +7.000, remainder +0.000"
    assert shares(explanation) == f"9.000 = apfel (apple 0.93) +0.500, {others}"
    many = shares(explained(0.6, 0.06, **{f"w{n}": 0.1 - 0.01 * n for n in range(12)}))
    assert many.count("w") == 8 + 1  # and one in "words"
    assert "4 other words +0.0" in many
    # What a re-ranker adds is shown without pairs of words too.
    reranked = Explanation(3.0, (), 0.5, towers=1.5, reranker=-1.0)
    assert shares(reranked) == "3.000 = towers +1.500, re-ranker -1.000, remainder +0.500"
    pair = text_search.MatchedPair("apfel", "apple", 0.93, 1.0)
    paired = dataclasses.replace(reranked, pairs=(pair,))
    assert "re-ranker -1.000 (apfel~apple 0.93)" in shares(paired)


def test_escape_sequences_are_shown_not_sent_to_the_terminal(capsys):
    text = "red\x1b[2J\x1b]0;title\x07 \x9b31m\x7f a\tb\nc \u202etxt.exe"
    print_hits("sea\x1b[2J", [SearchHit(1, 0.5, 1, "d\x1b[1m", "T\x1b[5m", text)])
    shown = capsys.readouterr().out
    assert not {*shown} & {"\x1b", "\x07", "\x9b", "\x7f", "\u202e", "\t"}
    for part in ("T␛[5m: red␛[2J␛]0;title␇ \\u009b31m␡ a b c \\u202etxt.exe", "sea␛[2J", "d␛[1m"):
        assert part in shown
