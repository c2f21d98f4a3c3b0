"""The search page: its JSON answers, and what a person sees in a real browser."""

import datetime
import re
import urllib.request
from typing import ClassVar

import pytest

from tests.cases import cases
from tests.server.devtools import browser
from tests.server.local_server import local_server, rest
from tf_smoothclir.encoder.tokenizer import tokens_of
from tf_smoothclir.index import builder, document_collections
from tf_smoothclir.protocols import text_search
from tf_smoothclir.protocols.text_search import Explanation, QueryReading, SearchHit, WordShare
from tf_smoothclir.search.opening import open_search
from tf_smoothclir.server.search_page import SearchPage, open_page, text_parts

EVIL = '<script>document.title = "broken"</script><img src=x onerror="document.title=1">'
EXAMPLES = ["red apple", f"example {EVIL}"]
TEXTS = [f"Une pomme rouge. {EVIL}", "Rouge, rougeâtre: " + "mot " * 400, "x" * 400]
TEXTS += ["مرحبا rouge " + "https://example.org/" + "y" * 90]
RETRIEVERS = ("reranked", "hybrid", "dense", "lexical")
ADDED = {"towers": 0.75, "encoder": 0.25, "feedback": 6.0, "reranker": 0.5}
RESULTS = "document.querySelectorAll('#results > li').length"


class Documents:
    """Finds the same documents for every query, none for "none", and fails for "fail"."""

    collection = text_search.SearchedCollection("en", "fr", 3, None, 3000, RETRIEVERS)
    facets: ClassVar = {"section": ["Web", "it's"], "day": []}
    leaves_none = staticmethod("none".__eq__)

    def search(self, queries, depth, filter=""):
        (query,) = queries
        if query == "fail":
            raise RuntimeError("the search is broken")
        texts = [] if query in ("none", "zebra") else (TEXTS * 30)[:depth]
        more = {"section": filter, "day": datetime.date(2021, 5, 6)} if filter else {}
        more |= {"language": "he"} if query == "several" else {}
        hits = [
            SearchHit(n, 0.9 - n / 100, n % 3, f"d{n}", f"Titre {EVIL}", text, metadata=more)
            for n, text in enumerate(texts, start=1)
        ]
        known = {"zebra": QueryReading("nothing", ("zebra",)), "none": QueryReading("words")}
        return [text_search.Answer(hits, known.get(query, QueryReading("words", ("lilac",))))]

    def explain(self, query, results):
        words = (WordShare("rouge", 0.5), WordShare("pomme", 0.2), WordShare("une", 0.001))
        return [Explanation(0.8, words, 0.099) for _ in results]


class Words(Documents):
    """Explains scores by words that met words of the query."""

    def search(self, queries, depth, filter=""):
        passage = "pomme Rouge." if queries == ["passage"] else None
        hits = [SearchHit(1, 9.0, None, "d1", "", "Une pomme Rouge.", passage)]
        return [text_search.Answer(hits, QueryReading("words", ("lilac",)))]

    def explain(self, query, results):
        match, pair = text_search.WordMatch, text_search.MatchedPair
        met = (match("red", 0.75, 1.5), match("apple", 0.125, 0.5))
        words = (WordShare(".", 3.0), WordShare("rouge", 2.0, met), WordShare("une", 0.001, met))
        pairs = (pair("apple", "pomme", 0.875, 0.4), pair(".", ".", 1.0, 0.1))
        return [Explanation(9.5, words, -0.001, **ADDED, pairs=pairs)]


@pytest.fixture(scope="module")
def address(export):
    page = SearchPage(Documents(), EXAMPLES, {"dense": Words(), "hybrid": Documents()}.get)
    with local_server(export, page=page) as address:
        yield address


def test_answer_has_rank_score_grade_and_the_words_that_carry_the_score(address):
    _, answer = rest(address, "/api/search?q=red&k=2")
    first, second = answer["results"]
    assert (first["rank"], first["grade"], first["id"]) == (1, 1, "d1")
    assert first["score"] == pytest.approx(0.89)
    marked = [["Une ", None, None], ["pomme", 0.2, "pomme"], [" ", None, None]]
    marked += [["rouge", 0.5, "rouge"], [f". {EVIL}", None, None]]
    assert first["parts"] == marked
    assert [part for part in second["parts"] if part[1]] == [["Rouge", 0.5, "rouge"]]
    assert first["matches"] == {"rouge": [], "pomme": []}
    assert first["added"] == {"words": 0.8, **dict.fromkeys(ADDED, 0)}


def test_a_filter_is_asked_and_columns_are_shown(address):
    condition = "section = 'it''s'"
    _, answer = rest(address, f"/api/search?q=red&k=1&filter={urllib.parse.quote(condition)}")
    assert answer["results"][0]["metadata"] == {"section": condition, "day": "2021-05-06"}
    assert rest(address, "/api/about")[1]["columns"] == Documents.facets


def test_answer_says_which_words_met_and_what_towers_and_feedback_add():
    (result,) = SearchPage(Words()).search({"q": "red apple"})["results"]
    assert result["grade"] is None
    # A tenth of what words add is 0.2: "une" has less. Punctuation is never marked.
    parts = [("Une pomme ", None, None), ("Rouge", 2.0, "rouge"), (".", None, None)]
    assert result["parts"] == parts
    assert result["matches"] == {"rouge": [("red", 0.75), ("apple", 0.125)]}
    assert result["added"] == {"words": 2.0, **ADDED}
    assert result["pairs"] == [("apple", "pomme", 0.875)]  # punctuation says nothing
    assert result["whole"] is None
    (result,) = SearchPage(Words()).search({"q": "passage"})["results"]
    shown = [("… ", None, None), ("pomme ", None, None), *parts[1:], (" …", None, None)]
    assert (result["parts"], result["whole"]) == (shown, parts)


@cases(
    "fields, message",
    *((fields, "query") for fields in ("q=%20", "q=" + "a" * 10_001)),
    *((f"q=a&k={k}", f"k: '{k}' is no number in this range. Give") for k in ("0", "101", "x")),
    ("q=red&retriever=best", "best"),
    ("q=red&top_k=3", "top_k: there is no such field. Give q, and perhaps k, retriever, filter"),
)
def test_bad_request_is_explained(address, fields, message):
    status, answer = rest(address, f"/api/search?{fields}")
    assert status == 400
    assert message in answer["error"]


def test_any_query_is_answered_and_a_failed_search_survived(address):
    status, answer = rest(address, "/api/search?q=fail")
    assert (status, set(answer)) == (500, {"error"})
    for query in ("%FF%FE", "%00", "a%F0%9F", "%E6%97%A5", "%3Cscript%3E"):
        status, answer = rest(address, f"/api/search?q={query}")
        assert status == 200
        assert answer["results"]


def test_page_runs_only_its_own_script_and_loads_nothing_else(address):
    with urllib.request.urlopen(address) as response:
        policy, page = response.headers["Content-Security-Policy"], response.read().decode()
    assert policy.startswith("default-src 'self';")
    assert "unsafe" not in policy
    assert len(re.findall("'sha256-", policy)) == 2
    assert not re.findall(r"(?:src|href)=\"(?!data:,)", page)
    assert not re.findall(r"\bon\w+=|style=|innerHTML|https?://", page)


@cases(
    "text, words, marked",
    ("a b", [], "a b"),
    ("Le Chat, chats chat-chat", ["chat"], "Le [Chat], chats [chat]-[chat]"),
    ("日本語", ["本"], "日[本]語"),
    # A pair is one piece, with the share and the word of both characters.
    ("日本語、日本語", ["日本"], "[日本]語、[日本]語"),
    ("日本語", ["日本", "本語"], "[日本][語]"),
    ("(a.b)", [".", "a"], "([a][.]b)"),
    ("voilà À a\u0300", ["à"], "voilà [À] [a\u0300]"),
    ("Straße, ＡＢ STRASSEN", ["strasse", "ab"], "[Straße], [ＡＢ] STRASSEN"),
    ("قال السَّلام", ["السلام"], "قال [السَّلام]"),
)
def test_text_is_cut_at_whole_words(text, words, marked):
    shares = {word: 0.5 + place for place, word in enumerate(words)}
    parts = text_parts(text, shares)
    assert all(share == shares.get(word) for _, share, word in parts)
    assert all(word is None or tokens_of(part)[0] in word for part, _, word in parts)
    assert "".join(part if share is None else f"[{part}]" for part, share, _ in parts) == marked


def test_long_texts_are_cut_around_the_words():
    parts = text_parts("mot " * 1000 + "rouge " + "mot " * 1000, {"rouge": 0.5})
    assert ("rouge", 0.5, "rouge") in parts
    assert parts[0][0].startswith("…")
    assert parts[-1][0].endswith("…")
    assert sum(len(part) for part, _, _ in parts) < 800


def test_page_over_an_export_searches_as_the_command_does(export_dir, tmp_path, commands):
    page = open_page(open_search(export_dir, tmp_path / "index", lambda data: data))
    answer = page.search({"q": "wordb wordc", "k": "3"})
    assert [result["rank"] for result in answer["results"]] == [1, 2, 3]
    parts = [part for result in answer["results"] for part in result["parts"]]
    assert parts[0][0].startswith("mot")
    assert any(share for _, share, _ in parts)
    about = page.about()
    assert (about["query_language"], about["document_language"], about["grades"]) == ("en", "fr", 3)
    assert about["examples"][0].startswith("word")
    # A collection of files has the languages of the towers.
    (tmp_path / "own.tsv").write_text("id\ttext\tyear\na\tmotb motc\t1\nb\tmotd\t2\n")
    collection = document_collections.open_files(tmp_path / "own.tsv", "--collection")
    builder.build_index(tmp_path / "own", collection, *builder.export_halves(export_dir))
    page = open_page(open_search(export_dir, tmp_path / "own", lambda data: data))
    facts = {"query_language": "en", "document_language": "fr", "examples": ()}
    assert page.about().items() >= facts.items()
    (said,) = page.search({"q": "wordb", "filter": "year > 2"})["remarks"]
    assert said.startswith("The filter holds for no document")
    where = [f"--export_dir={export_dir}", f"--index_dir={tmp_path / 'own'}"]
    assert said in commands.run("export.search", *where, "--query=a", "--filter=year > 2").stdout


@pytest.fixture(scope="module")
def show(address):
    """`show(path, results)` opens a page, waits for its examples and results, and returns it."""

    def opened(path="/", results=0):
        tab.open(address + path)
        tab.wait_for("document.readyState === 'complete' && !!document.getElementById('title')")
        tab.wait_for("!document.getElementById('examples').hidden")
        tab.wait_for(f"{RESULTS} === {results}")
        return tab

    with browser() as tab:
        yield opened


def text(tab, selector):
    return tab.evaluate(f"document.querySelector('{selector}')?.textContent ?? ''")


def test_deep_link_shows_results_with_languages_grade_score_and_shares(show):
    tab = show("/?q=red&k=3", 3)
    tab.wait_for("document.querySelector('#results .shares') !== null")
    query = "document.getElementById('query')"
    assert tab.evaluate(f"[{query}.value, {query}.lang]") == ["red", "en"]
    assert tab.evaluate("document.querySelector('#results .text').lang") == "fr"
    facts = text(tab, "#results .facts")
    assert "Grade 1 of 2" in facts
    assert "Score 0.890" in facts
    marks = "[...document.querySelectorAll('#results li:first-child mark')]"
    assert tab.evaluate(f"{marks}.map((mark) => mark.textContent)") == ["pomme", "rouge"]
    assert text(tab, "#results .shares") == "rouge +0.500 · pomme +0.200"
    tab = show("/?q=red&k=1&retriever=dense", 1)
    shares = "document.querySelector('#results .shares')?.textContent"
    tab.wait_for(f"{shares} === 'rouge +2.000 (red 0.75, apple 0.13)'")


def test_a_hit_has_the_language_of_its_document_and_none_where_it_may_be_one_of_several(show):
    tab = show("/?q=several&k=1", 1)
    language = "(one) => document.querySelector(`#results ${one}`).lang"
    assert tab.evaluate(f"['h3', '.text', '.shares b'].map({language})") == ["he"] * 3
    assert tab.evaluate("document.querySelector('#query').lang") == "en"
    assert tab.evaluate("[only('de'), only('de,he')]") == ["de", ""]
    assert tab.evaluate("[nameOf('de'), nameOf('de,he')]") == ["German", "German, Hebrew"]


def test_markup_in_documents_examples_and_queries_is_shown_and_never_run(show):
    tab = show(f"/?q={urllib.request.quote(EVIL)}", 10)
    for place in ("#results h3", "#results .text", "#examples ul", "title"):  # not "broken"
        assert EVIL in text(tab, place)
    assert tab.evaluate("document.querySelectorAll('main script, img').length") == 0


def test_keyboard_is_enough_and_an_example_is_a_click_away(show):
    tab = show()
    tab.wait_for("document.activeElement.id === 'query'")
    tab.type("green")
    tab.press("Enter", "\r")
    tab.wait_for(f"{RESULTS} === 10")
    assert tab.evaluate("location.search") == "?q=green"
    tab.evaluate("document.getElementById('more').focus()")
    tab.press("Enter", "\r")
    for results in (20, 10, 0):
        tab.wait_for(f"{RESULTS} === {results}")
        tab.evaluate("history.back()")
    tab = show()
    tab.evaluate("document.querySelector('#examples button').click()")
    tab.wait_for(f"{RESULTS} === 10")
    assert tab.evaluate("document.getElementById('query').value") == "red apple"


@cases(
    "query, place, results, said",
    ("fail", "[role=alert]:not([hidden])", 0, "RuntimeError"),
    ("none", "#state", 0, "No document has anything to do with the query"),
    ("none&filter=none", "#state", 0, "The filter holds for no document"),
    ("zebra", "#state", 0, "No word of the query is known"),
    ("red", "#state", 10, "Not known, so not searched for by meaning: lilac"),
)
def test_page_says_what_failed_or_was_not_understood(show, query, place, results, said):
    tab = show(f"/?q={query}", results)
    tab.wait_for(f"(document.querySelector('{place}')?.textContent ?? '').includes('{said}')")


def choose(tab, place, change):
    tab.evaluate(f"document.querySelector('{place}').{change}")
    tab.evaluate(f"document.querySelector('{place}').dispatchEvent(new Event('change'))")


def test_two_retrievers_are_compared(show):
    tab = show("/?q=red", 10)
    choose(tab, "#other", "value = 'dense'")
    tab.wait_for("document.querySelectorAll('#others > li').length === 1")
    assert tab.evaluate("location.search") == "?q=red&other=dense"


def test_a_value_of_a_column_is_chosen_and_asked(show):
    tab = show("/?q=red", 10)
    choose(tab, "#narrow select", "selectedIndex = 2")
    tab.wait_for("document.querySelector('#results .facts').textContent.includes('2021-05-06')")
    assert tab.evaluate("document.getElementById('filter').value") == "\"section\" = 'it''s'"
    assert "filter=%22section%22+%3D+%27it%27%27s%27" in tab.evaluate("location.search")
