"""The search page: its JSON answers, and what a person sees in a real browser."""

import os
import re
import urllib.request
from pathlib import Path

import pytest

from tests.server.devtools import browser
from tests.server.local_server import local_server, rest
from tf_smoothclir.index.builder import build_index
from tf_smoothclir.index.document_collections import open_files
from tf_smoothclir.index.export_halves import export_halves
from tf_smoothclir.protocols.text_search import (
    Explanation,
    MatchedPair,
    QueryReading,
    SearchedCollection,
    SearchHit,
    WordMatch,
    WordShare,
)
from tf_smoothclir.search.display import word_pattern
from tf_smoothclir.search.opening import open_search
from tf_smoothclir.server.search_page import SearchPage, open_page, text_parts

EVIL = '<script>document.title = "broken"</script><img src=x onerror="document.title=1">'
EXAMPLES = ["red apple", f"example {EVIL}"]
TEXTS = [
    f"Une pomme rouge. {EVIL}",
    "Rouge, rougeâtre: " + "mot " * 400,
    "x" * 400,
    "مرحبا rouge " + "https://example.org/" + "y" * 90,
]


class Documents:
    """Finds the same documents for every query, none for "none", and fails for "fail"."""

    collection = SearchedCollection(
        "en", "fr", 3, None, 3000, ("reranked", "hybrid", "dense", "lexical")
    )

    def read(self, queries):
        known = {"zebra": QueryReading("nothing", ("zebra",)), "none": QueryReading("words")}
        return [known.get(query, QueryReading("words", ("lilac",))) for query in queries]

    def search(self, queries, depth):
        (query,) = queries
        if query == "fail":
            raise RuntimeError("the search is broken")
        if query in ("none", "zebra"):
            return [[]]
        results = [
            SearchHit(rank, 0.9 - rank / 100, rank % 3, f"d{rank}", f"Titre {EVIL}", text)
            for rank, text in enumerate((TEXTS * 30)[:depth], start=1)
        ]
        return [results]

    def explain(self, query, results):
        words = (WordShare("rouge", 0.5), WordShare("pomme", 0.2), WordShare("une", 0.001))
        return [Explanation(0.8, words, 0.099) for _ in results]


class Words(Documents):
    """Explains scores by words that met words of the query."""

    def search(self, queries, depth):
        return [[SearchHit(1, 9.0, None, "d1", "", "Une pomme Rouge.")]]

    def explain(self, query, results):
        met = (WordMatch("red", 0.75, 1.5), WordMatch("apple", 0.125, 0.5))
        words = (WordShare(".", 3.0), WordShare("rouge", 2.0, met), WordShare("une", 0.001, met))
        pairs = (MatchedPair("apple", "pomme", 0.875, 0.4), MatchedPair(".", ".", 1.0, 0.1))
        parts = {"towers": 1.0, "feedback": 6.0, "reranker": 0.5, "pairs": pairs}
        return [Explanation(9.5, words, -0.001, **parts)]


class Nothing(Documents):
    """Finds nothing."""

    def search(self, queries, depth):
        return [[]]


@pytest.fixture(scope="module")
def address(export):
    """Of a server with the page over `Documents`."""
    page = SearchPage(Documents(), EXAMPLES, {"dense": Words(), "lexical": Nothing()}.get)
    with local_server(export, page=page) as address:
        yield address


@pytest.fixture(scope="module")
def tab():
    with browser() as one:
        yield one


def test_answer_has_rank_score_grade_and_the_words_that_carry_the_score(address):
    _, answer = rest(address, "/api/search?q=red&k=2")
    assert answer["query"] == "red"
    first, second = answer["results"]
    assert (first["rank"], first["grade"], first["id"]) == (1, 1, "d1")
    assert first["score"] == pytest.approx(0.89)
    parts = [["Une ", None], ["pomme", 0.2], [" ", None], ["rouge", 0.5], [f". {EVIL}", None]]
    assert first["parts"] == parts
    assert [part for part in second["parts"] if part[1]] == [["Rouge", 0.5]]
    assert first["matches"] == {"rouge": [], "pomme": []}
    assert first["added"] == {"words": 0.8, "towers": 0, "feedback": 0, "reranker": 0}
    assert first["pairs"] == []


def test_answer_says_which_words_met_and_what_towers_and_feedback_add():
    answer = SearchPage(Words()).search({"q": "red apple"})
    (result,) = answer["results"]
    assert result["grade"] is None
    # A tenth of what words add is 0.2: "une" has less. Punctuation is never marked.
    assert result["parts"] == [("Une pomme ", None), ("Rouge", 2.0), (".", None)]
    assert result["matches"] == {"rouge": [("red", 0.75), ("apple", 0.125)]}
    assert result["added"] == {"words": 2.0, "towers": 1.0, "feedback": 6.0, "reranker": 0.5}
    assert result["pairs"] == [("apple", "pomme", 0.875)]  # punctuation says nothing


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("", "query"),
        ("q=%20", "query"),
        ("q=" + "a" * 10_001, "query"),
        ("q=a&k=0", "k from 1 to 100"),
        ("q=a&k=101", "k from 1 to 100"),
        ("q=a&k=-1", "k from 1 to 100"),
        ("q=a&k=x", "k from 1 to 100"),
        ("q=red&retriever=best", "best"),
    ],
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


@pytest.mark.parametrize(
    ("text", "shares", "parts"),
    [
        ("", {"a": 1.0}, []),
        ("a b", {}, [("a b", None)]),
        (
            "Le Chat, chat.",
            {"chat": 0.5},
            [("Le ", None), ("Chat", 0.5), (", ", None), ("chat", 0.5), (".", None)],
        ),
        (
            "chats chat-chat",
            {"chat": 0.5},
            [("chats ", None), ("chat", 0.5), ("-", None), ("chat", 0.5)],
        ),
        ("日本語", {"本": 0.5}, [("日", None), ("本", 0.5), ("語", None)]),
        ("(a.b)", {".": 0.1, "a": 0.2}, [("(", None), ("a", 0.2), (".", 0.1), ("b)", None)]),
        ("voilà à", {"à": 0.5}, [("voilà ", None), ("à", 0.5)]),
        ("STRASSE", {"strasse": 1.0}, [("STRASSE", 1.0)]),
    ],
)
def test_text_is_cut_at_whole_words(text, shares, parts):
    assert text_parts(text, shares) == parts


def test_words_of_other_texts_are_not_highlighted():
    shares = {"rouge": 0.5, "字": 0.2}
    pattern = word_pattern(("rouge", "mot", "bleu", "字", "漢"))
    for text in ("mot-rouge 漢字", "x " * 500 + "bleu " + "mot rouge " * 90):
        assert text_parts(text, shares, pattern=pattern) == text_parts(text, shares)


def test_long_text_is_cut_around_the_first_word_that_counts():
    parts = text_parts("mot " * 1000 + "rouge " + "mot " * 1000, {"rouge": 0.5})
    assert ("rouge", 0.5) in parts
    assert parts[0][0].startswith("…")
    assert parts[-1][0].endswith("…")
    assert sum(len(part) for part, _ in parts) < 800


def test_page_over_an_export_searches_as_the_command_does(export_dir, tmp_path):
    page = open_page(open_search(export_dir, tmp_path / "index", lambda data: data))
    answer = page.search({"q": "word1 word2", "k": "3"})
    assert [result["rank"] for result in answer["results"]] == [1, 2, 3]
    texts = ["".join(part for part, _ in result["parts"]) for result in answer["results"]]
    assert all(text.startswith("mot") for text in texts)
    assert any(share for result in answer["results"] for _, share in result["parts"])
    about = page.about()
    assert (about["query_language"], about["document_language"], about["grades"]) == ("en", "fr", 3)
    assert about["examples"][0].startswith("word")


def test_collection_of_files_has_the_languages_of_the_towers(export_dir, tmp_path):
    (tmp_path / "own.tsv").write_text("a\tmot1 mot2\nb\tmot3\n")
    collection = open_files(tmp_path / "own.tsv", "--collection")
    build_index(tmp_path / "index", collection, *export_halves(export_dir))
    about = open_page(open_search(export_dir, tmp_path / "index", lambda data: data)).about()
    assert (about["query_language"], about["document_language"]) == ("en", "fr")


RESULTS = "document.querySelectorAll('#results > li').length"
STATE = "document.getElementById('state').textContent"


def show(tab, address, path="/", results=0, width=1200):
    """Opens a page, and waits for its examples and its results."""
    tab.size(width, 900)
    tab.open(address + path)
    tab.wait_for("document.readyState === 'complete' && !!document.getElementById('title')")
    tab.wait_for("!document.getElementById('examples').hidden")
    tab.wait_for(f"{RESULTS} === {results}")


def test_deep_link_shows_results_with_languages_grade_score_and_shares(tab, address):
    show(tab, address, "/?q=red&k=3", 3)
    title = tab.evaluate("document.getElementById('title').textContent")
    assert title == "Ask in English, read in French"
    query, first = "document.getElementById('query')", "document.querySelector('#results li')"
    assert tab.evaluate(f"[{query}.value, {query}.lang]") == ["red", "en"]
    assert tab.evaluate(f"{first}.querySelector('.text').lang") == "fr"
    facts = tab.evaluate(f"{first}.querySelector('.facts').textContent")
    assert "Grade 1 of 2" in facts
    assert "Score 0.890" in facts
    marks = f"[...{first}.querySelectorAll('mark')].map((m) => m.className + m.textContent)"
    assert tab.evaluate(marks) == ["s2pomme", "s3rouge"]
    tab.wait_for(f"{STATE}.startsWith('Best 3 of 3,000 documents in ')")
    legend, results = (f"document.getElementById('{name}')" for name in ("legend", "results"))
    following = "Node.DOCUMENT_POSITION_FOLLOWING"
    assert tab.evaluate(f"{legend}.compareDocumentPosition({results}) & {following}")
    # For those who cannot point at words, shares stand below the text.
    tab.wait_for(f"{first}.querySelector('.shares') !== null")
    shares = f"{first}.querySelector('.shares').textContent"
    assert tab.evaluate(shares) == "rouge +0.500 · pomme +0.200"
    show(tab, address, "/?q=red&k=1&retriever=dense", 1)
    tab.wait_for("document.getElementById('retriever').value === 'dense'")
    tab.wait_for(f"{first}.querySelector('.shares') !== null")
    tab.wait_for(f"{shares} === 'rouge +2.000 (red 0.75, apple 0.13)'")


def test_markup_in_documents_examples_and_queries_is_shown_and_never_run(tab, address):
    show(tab, address, f"/?q={urllib.request.quote(EVIL)}", 10)
    assert tab.evaluate("document.querySelector('#results h3').textContent") == f"Titre {EVIL}"
    assert EVIL in tab.evaluate("document.querySelector('#results .text').textContent")
    assert EVIL in tab.evaluate("document.querySelector('#examples ul').textContent")
    assert tab.evaluate("document.querySelectorAll('main script, img').length") == 0
    assert EVIL in tab.evaluate("document.title")  # as the query has it, and not "broken"


@pytest.mark.parametrize("width", [320, 390, 1200])
def test_nothing_is_wider_than_the_screen_and_long_queries_can_be_read(tab, address, width):
    long = "red apples " * 20
    for path, results in (("/", 0), ("/?q=red", 10), (f"/?q={'q' * 300}", 10), (f"/?q={long}", 10)):
        show(tab, address, path.replace(" ", "%20"), results, width)
        assert tab.evaluate("innerWidth") == width
        assert tab.evaluate("document.scrollingElement.scrollWidth") <= width
    query = "document.getElementById('query')"
    assert tab.evaluate(f"{query}.scrollHeight <= {query}.clientHeight + 1")
    assert tab.evaluate(f"{query}.clientHeight") > (100 if width < 600 else 20)


def test_keyboard_is_enough(tab, address):
    show(tab, address)
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


def test_example_is_a_click_away(tab, address):
    show(tab, address)
    assert tab.evaluate("document.getElementById('examples').open")
    tab.evaluate("document.querySelector('#examples button').click()")
    tab.wait_for(f"{RESULTS} === 10")
    assert tab.evaluate("document.getElementById('query').value") == "red apple"
    assert not tab.evaluate("document.getElementById('examples').open")


@pytest.mark.parametrize(
    ("query", "place", "results", "said"),
    [
        ("fail", "[role=alert]:not([hidden])", 0, "RuntimeError"),
        ("a&k=999", "[role=alert]:not([hidden])", 0, "k from 1 to 100"),
        ("none", "#state", 0, "No document has anything to do with the query"),
        ("zebra", "#state", 0, "No word of the query is known"),
        ("red", "#state", 10, "Not known, so not searched for by meaning: lilac"),
    ],
)
def test_page_says_what_failed_or_was_not_understood(tab, address, query, place, results, said):
    show(tab, address, f"/?q={query}", results)
    tab.wait_for(f"(document.querySelector('{place}')?.textContent ?? '').includes('{said}')")
    assert tab.evaluate(RESULTS) == results


def test_a_long_document_is_whole_after_a_click(tab, address):
    show(tab, address, "/?q=red&k=2", 2, width=390)
    second = "document.querySelectorAll('#results li')[1]"
    shown, button = (f"{second}.querySelector('{name}')" for name in (".text", ".whole"))
    assert len(tab.evaluate(f"{shown}.textContent")) < len(TEXTS[1])
    assert tab.evaluate("document.querySelectorAll('#results .whole').length") == 1
    tab.evaluate(f"{button}.click()")
    assert tab.evaluate(f"{shown}.textContent") == TEXTS[1]
    assert tab.evaluate(f"{button}.ariaExpanded") == "true"
    tab.evaluate(f"{button}.click()")
    assert len(tab.evaluate(f"{shown}.textContent")) < len(TEXTS[1])


def test_two_retrievers_stand_side_by_side(tab, address):
    show(tab, address, "/?q=red", 10)
    assert tab.evaluate("document.getElementById('compared').hidden")
    tab.evaluate("document.getElementById('other').value = 'dense'")
    tab.evaluate("document.getElementById('other').dispatchEvent(new Event('change'))")
    tab.wait_for("document.querySelectorAll('#others > li').length === 1")
    assert tab.evaluate("location.search") == "?q=red&other=dense"
    lefts = "['results', 'others'].map((id) => document.getElementById(id)"
    lefts += ".getBoundingClientRect().left)"
    left, right = tab.evaluate(lefts)
    assert left < right
    headings = "[...document.querySelectorAll('.column > h2')].map((one) => one.textContent)"
    assert tab.evaluate(headings) == ["Ranked by the re-ranker", "Ranked by dense"]
    tab.size(390, 900)
    left, right = tab.evaluate(lefts)
    assert left == right
    show(tab, address, "/?q=red&retriever=lexical&other=dense")
    tab.wait_for("document.querySelectorAll('#others > li').length === 1")
    assert tab.evaluate(RESULTS) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize(
    ("path", "results"),
    [
        ("/", 0),
        ("/?q=red&k=3", 3),
        ("/?q=red&other=dense", 10),
        ("/?q=red&retriever=dense&other=lexical", 1),
        ("/?q=zebra", 0),
        ("/?q=fail", 0),
    ],
)
def test_there_is_no_barrier_by_wcag_aa(tab, address, path, results, width, scheme):
    axe = Path(os.environ.get("AXE_CORE", "node_modules/axe-core/axe.min.js"))
    if not axe.is_file():
        pytest.skip("no axe-core: npm install --no-save axe-core, or name axe.min.js in $AXE_CORE")
    feature = {"name": "prefers-color-scheme", "value": scheme}
    tab.call("Emulation.setEmulatedMedia", features=[feature])
    show(tab, address, path, results, width)
    tab.wait_for(f"!{STATE}.startsWith('Searching')")
    tab.evaluate("for (const one of document.querySelectorAll('#results details')) one.open = true")
    tab.evaluate("for (const one of document.querySelectorAll('.whole')) one.click()")
    tab.evaluate(axe.read_text() + "; null")
    tab.evaluate(
        "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})"
        ".then((found) => { window.found = found; }); null"
    )
    tab.wait_for("!!window.found")
    violations = "window.found.violations.map((v) => [v.id, v.nodes.map((n) => n.html)])"
    assert tab.evaluate(violations) == []
    assert tab.evaluate("window.found.passes.length") > 10
