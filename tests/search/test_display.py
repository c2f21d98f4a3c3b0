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


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"rot": 0.15, "apfel": 0.4, "ein": 0.17}, ["apfel", "ein"]),  # two fifths of the largest
        ({"a": 0.0, "b": -1.0}, []),
        ({".": 9.0, "apfel": 0.4}, ["apfel"]),  # punctuation neither carries nor keeps others off
        ({f"w{n}": 1 - n / 100 for n in range(20)}, [f"w{n}" for n in range(6)]),
    ],
)
def test_which_words_carry_whatever_else_adds_to_the_score(words, expected):
    assert carrying_words(dataclasses.replace(explained(**words), feedback=400.0)) == expected


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("Der Apfel, apfelrot", ["apfel"], "Der <Apfel>, apfelrot"),
        ("日本語", ["本"], "日<本>語"),
        ("a+b", ["+"], "a<+>b"),
        ("voilà à", ["à"], "voilà <à>"),
        ("rot roter", ["rot", "roter"], "<rot> <roter>"),
        ("ab", ["b"], "ab"),
    ],
)
def test_whole_words_are_highlighted_and_parts_of_runs_without_spaces(text, words, expected):
    bold = expected.replace("<", "\033[1m").replace(">", "\033[0m")
    assert highlighted(text, words) == bold


def test_what_a_word_met_and_what_else_adds_to_the_score():
    met = (WordMatch("apple", 0.93, 0.4), WordMatch("fruit", 0.01, 0.1))
    explanation = Explanation(9.0, (WordShare("apfel", 0.5, met),), 0.0, 1.5, 0.5, 7.0)
    others = "towers +1.500, encoder +0.500, feedback +7.000, remainder +0.000"
    assert shares(explanation) == f"9.000 = apfel (apple 0.93) +0.500, {others}"
    many = shares(explained(0.6, 0.06, **{f"w{n}": 0.1 - 0.01 * n for n in range(12)}))
    assert many.count("w") == 8 + 1  # and one in "words"
    assert "4 other words +0.0" in many
    # What a re-ranker adds is shown without pairs of words too.
    reranked = Explanation(3.0, (), 0.5, towers=1.5, reranker=-1.0)
    assert shares(reranked) == "3.000 = towers +1.500, re-ranker -1.000, remainder +0.500"
    paired = dataclasses.replace(reranked, pairs=(MatchedPair("apfel", "apple", 0.93, 1.0),))
    assert "re-ranker -1.000 (apfel~apple 0.93)" in shares(paired)


def test_escape_sequences_are_shown_not_sent_to_the_terminal(capsys):
    text = "red\x1b[2J\x1b]0;title\x07 \x9b31m\x7f a\tb\nc \u202etxt.exe"
    print_hits("sea\x1b[2J", [SearchHit(1, 0.5, 1, "d\x1b[1m", "T\x1b[5m", text)])
    shown = capsys.readouterr().out
    assert not {*shown} & {"\x1b", "\x07", "\x9b", "\x7f", "\u202e", "\t"}
    for part in ("T␛[5m: red␛[2J␛]0;title␇ \\u009b31m␡ a b c \\u202etxt.exe", "sea␛[2J", "d␛[1m"):
        assert part in shown
