"""Hits, printed for people."""

import dataclasses

import pytest

from tf_smoothclir.protocols.text_search import (
    Explanation,
    MatchedPair,
    SearchHit,
    WordMatch,
    WordShare,
)
from tf_smoothclir.search.display import carrying_words, highlighted, print_hits, shares

EXPLANATION = Explanation(
    0.5, (WordShare("apfel", 0.4), WordShare("rot", 0.05), WordShare(".", -0.02)), 0.07
)


def hit(text, title="", rank=1):
    return SearchHit(rank, 0.5, 1, "d1", title, text)


def test_one_line_per_hit(capsys):
    print_hits("apple", [hit("Ein Apfel", "Obst"), hit("x" * 50, rank=2)], width=20)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "apple"
    assert lines[3].split() == ["1", "0.500", "1", "d1", "Obst:", "Ein", "Apfel"]
    assert lines[4].split()[-1] == "x" * 19 + "…"


def test_shares_are_below_the_hit(capsys):
    print_hits("apple", [hit("Ein Apfel")], explanations=[EXPLANATION])
    out = capsys.readouterr().out
    assert "0.500 = apfel +0.400, rot +0.050, . -0.020, remainder +0.070" in out
    assert "\033" not in out


def test_carrying_words_are_bold_on_a_terminal(capsys):
    print_hits("apple", [hit("Ein roter Apfel.")], explanations=[EXPLANATION], bold=True)
    assert "Ein roter \033[1mApfel\033[0m." in capsys.readouterr().out


def test_many_words_are_summed_up():
    words = tuple(WordShare(f"w{n}", 0.1 - 0.01 * n) for n in range(12))
    line = shares(Explanation(0.6, words, 0.06))
    assert line.count("w") == 8 + 1  # and one in "words"
    assert "4 other words +0.0" in line


def explained(**shares):
    words = tuple(WordShare(word, share) for word, share in shares.items())
    return Explanation(500.0, words, 0.0, feedback=400.0)


def test_carrying_words_have_two_fifths_of_the_largest_share_whatever_else_adds_to_the_score():
    assert carrying_words(explained(rot=0.15, apfel=0.4, ein=0.17)) == ["apfel", "ein"]
    assert carrying_words(explained(a=0.0, b=-1.0)) == []


def test_punctuation_does_not_carry_and_does_not_keep_words_from_it():
    words = (WordShare(".", 9.0), WordShare("apfel", 0.4))
    assert carrying_words(Explanation(9.4, words, 0.0)) == ["apfel"]


def test_six_words_carry_a_long_text():
    assert carrying_words(explained(**{f"w{n}": 1 - n / 100 for n in range(20)})) == [
        f"w{n}" for n in range(6)
    ]


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("Der Apfel, apfelrot", ["apfel"], "Der <Apfel>, apfelrot"),
        ("日本語", ["本"], "日<本>語"),
        ("a+b", ["+"], "a<+>b"),
        ("voilà à", ["à"], "voilà <à>"),
        ("nothing", [], "nothing"),
        ("rot roter", ["rot", "roter"], "<rot> <roter>"),
        ("ab", ["b"], "ab"),
    ],
)
def test_whole_words_are_highlighted_and_parts_of_runs_without_spaces(text, words, expected):
    bold = expected.replace("<", "\033[1m").replace(">", "\033[0m")
    assert highlighted(text, words) == bold


def test_what_a_word_met_and_what_else_adds_to_the_score():
    met = (WordMatch("apple", 0.93, 0.4), WordMatch("fruit", 0.01, 0.1))
    explanation = Explanation(9.0, (WordShare("apfel", 0.5, met),), 0.0, towers=1.5, feedback=7.0)
    expected = "apfel (apple 0.93) +0.500, towers +1.500, feedback +7.000, remainder +0.000"
    assert shares(explanation) == f"9.000 = {expected}"
    assert carrying_words(explanation) == ["apfel"]


def test_what_a_re_ranker_adds_is_shown_without_pairs_of_words_too():
    explained = Explanation(3.0, (), 0.5, towers=1.5, reranker=-1.0)
    assert shares(explained) == "3.000 = towers +1.500, re-ranker -1.000, remainder +0.500"
    pairs = (MatchedPair("apfel", "apple", 0.93, 1.0),)
    line = shares(dataclasses.replace(explained, pairs=pairs))
    assert "re-ranker -1.000 (apfel~apple 0.93)" in line


def test_a_hit_without_a_grade(capsys):
    print_hits("apple", [SearchHit(1, 0.5, None, "d1", "", "Ein Apfel")])
    assert capsys.readouterr().out.splitlines()[3].split()[:4] == ["1", "0.500", "-", "d1"]


def test_escape_sequences_are_shown_not_sent_to_the_terminal(capsys):
    text = "red\x1b[2J\x1b]0;title\x07 \x9b31m\x7f a\tb\nc \u202etxt.exe"
    found = SearchHit(1, 0.5, 1, "d\x1b[1m", "T\x1b[5m", text)
    print_hits("sea\x1b[2J", [found])
    shown = capsys.readouterr().out
    assert not {*shown} & {"\x1b", "\x07", "\x9b", "\x7f", "\u202e", "\t"}
    assert "T␛[5m: red␛[2J␛]0;title␇ \\u009b31m␡ a b c \\u202etxt.exe" in shown
    assert "sea␛[2J" in shown
    assert "d␛[1m" in shown
