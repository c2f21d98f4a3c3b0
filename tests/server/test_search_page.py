"""The search page: its JSON answers, and what a person sees in a real browser."""

import json
import os
import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.published import publish_small
from tests.server.devtools import browser
from tests.server.local_server import local_server
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
from tf_smoothclir.utils.digests import with_own_digest

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
def address(tmp_path_factory):
    """Of a server with the page over `Documents`."""
    export = tmp_path_factory.mktemp("export")
    publish_small(tmp_path_factory.mktemp("vocabulary"), export)
    page = SearchPage(Documents(), EXAMPLES, {"dense": Words(), "lexical": Nothing()}.get)
    with local_server(export, page=page) as address:
        yield address


@pytest.fixture(scope="module")
def tab():
    with browser() as one:
        yield one


def get(address, path):
    try:
        with urllib.request.urlopen(address + path, timeout=20) as response:
            return response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


def test_answer_has_rank_score_grade_and_the_words_that_carry_the_score(address):
    _, _, body = get(address, "/api/search?q=red&k=2")
    answer = json.loads(body)
    assert answer["query"] == "red"
    first, second = answer["results"]
    assert (first["rank"], first["grade"], first["id"]) == (1, 1, "d1")
    assert first["score"] == pytest.approx(0.89)
    assert first["parts"] == [
        ["Une ", None],
        ["pomme", 0.2],
        [" ", None],
        ["rouge", 0.5],
        [f". {EVIL}", None],
    ]
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
        ("q=", "query"),
        ("q=%20", "query"),
        ("q=" + "a" * 10_001, "query"),
        ("q=a&k=0", "k from 1 to 100"),
        ("q=a&k=101", "k from 1 to 100"),
        ("q=a&k=-1", "k from 1 to 100"),
        ("q=a&k=x", "k from 1 to 100"),
    ],
)
def test_bad_request_is_explained(address, fields, message):
    status, _, body = get(address, f"/api/search?{fields}")
    assert status == 400
    assert message in json.loads(body)["error"]


@pytest.mark.parametrize("query", ["%FF%FE", "%00", "a%F0%9F", "日本", "%3Cscript%3E"])
def test_any_query_is_answered(address, query):
    status, _, body = get(address, f"/api/search?q={urllib.request.quote(query, safe='%')}")
    assert status == 200
    assert json.loads(body)["results"]


def test_server_survives_a_failed_search(address):
    status, _, body = get(address, "/api/search?q=fail")
    assert (status, set(json.loads(body))) == (500, {"error"})
    assert get(address, "/api/search?q=red")[0] == 200


def test_page_runs_only_its_own_script_and_loads_nothing_else(address):
    _, headers, body = get(address, "/")
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'self';")
    assert "unsafe" not in policy
    assert len(re.findall("'sha256-", policy)) == 2
    page = body.decode()
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


@pytest.mark.parametrize(
    "text",
    ["mot rouge bleu", "Rouge, mot", "mot-rouge 漢字", "x " * 500 + "bleu " + "mot rouge " * 90],
)
def test_words_of_other_texts_are_not_highlighted(text):
    shares = {"rouge": 0.5, "字": 0.2}
    pattern = word_pattern(("rouge", "mot", "bleu", "字", "漢"))
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
    assert (about["query_language"], about["document_language"]) == ("en", "fr")
    assert about["grades"] == 3
    assert about["examples"][0].startswith("word")


def test_collection_of_files_has_the_languages_of_the_towers(export_dir, tmp_path):
    export = shutil.copytree(export_dir, tmp_path / "export")
    for manifest in export.glob("*_tower/*/manifest.json"):
        content = json.loads(manifest.read_text())
        content["data"]["document_language"] = "tl"
        manifest.write_text(json.dumps(with_own_digest(content)))
    (tmp_path / "own.tsv").write_text("a\tmot1 mot2\nb\tmot3\n")
    collection = open_files(tmp_path / "own.tsv", "--collection")
    build_index(tmp_path / "index", collection, *export_halves(export))
    page = open_page(open_search(export, tmp_path / "index", lambda data: data))
    about = page.about()
    assert (about["query_language"], about["document_language"]) == ("en", "tl")


RESULTS = "document.querySelectorAll('#results > li').length"


def show(tab, address, path="/", width=1200):
    tab.size(width, 900)
    tab.open(address + path)
    tab.wait_for("document.readyState === 'complete' && !!document.getElementById('title')")
    tab.wait_for("!document.getElementById('examples').hidden")


def test_deep_link_shows_results_with_languages_grade_score_and_marks(tab, address):
    show(tab, address, "/?q=red&k=3")
    tab.wait_for(f"{RESULTS} === 3")
    assert tab.evaluate("document.getElementById('title').textContent") == (
        "Ask in English, read in French"
    )
    assert tab.evaluate("document.getElementById('query').value") == "red"
    assert tab.evaluate("document.getElementById('query').lang") == "en"
    first = "document.querySelector('#results li')"
    assert tab.evaluate(f"{first}.querySelector('.text').lang") == "fr"
    facts = tab.evaluate(f"{first}.querySelector('.facts').textContent")
    assert "Grade 1 of 2" in facts
    assert "Score 0.890" in facts
    marks = f"[...{first}.querySelectorAll('mark')].map((m) => m.className + m.textContent)"
    assert tab.evaluate(marks) == ["s2pomme", "s3rouge"]


def test_markup_in_documents_examples_and_queries_is_shown_and_never_run(tab, address):
    show(tab, address, f"/?q={urllib.request.quote(EVIL)}")
    tab.wait_for(f"{RESULTS} === 10")
    assert tab.evaluate("document.querySelector('#results h3').textContent") == f"Titre {EVIL}"
    assert EVIL in tab.evaluate("document.querySelector('#results .text').textContent")
    assert EVIL in tab.evaluate("document.querySelector('#examples ul').textContent")
    assert tab.evaluate("document.querySelectorAll('main script, img').length") == 0
    assert EVIL in tab.evaluate("document.title")  # as the query has it, and not "broken"


@pytest.mark.parametrize("width", [320, 390, 1200])
@pytest.mark.parametrize("path", ["/", "/?q=red", f"/?q={'q' * 300}"])
def test_nothing_is_wider_than_the_screen(tab, address, width, path):
    show(tab, address, path, width)
    tab.wait_for(f"{RESULTS} === {10 if 'q=' in path else 0}")
    assert tab.evaluate("innerWidth") == width
    assert tab.evaluate("document.scrollingElement.scrollWidth") <= width


def test_keyboard_is_enough(tab, address):
    show(tab, address)
    tab.wait_for("document.activeElement.id === 'query'")
    tab.type("green")
    tab.press("Enter", "\r")
    tab.wait_for(f"{RESULTS} === 10")
    assert tab.evaluate("location.search") == "?q=green"
    tab.evaluate("document.getElementById('more').focus()")
    tab.press("Enter", "\r")
    tab.wait_for(f"{RESULTS} === 20")
    tab.evaluate("history.back()")
    tab.wait_for(f"{RESULTS} === 10")
    tab.evaluate("history.back()")
    tab.wait_for(f"{RESULTS} === 0")


def test_example_is_a_click_away(tab, address):
    show(tab, address)
    assert tab.evaluate("document.getElementById('examples').open")
    tab.evaluate("document.querySelector('#examples button').click()")
    tab.wait_for(f"{RESULTS} === 10")
    assert tab.evaluate("document.getElementById('query').value") == "red apple"
    assert not tab.evaluate("document.getElementById('examples').open")


@pytest.mark.parametrize(
    ("path", "message"), [("/?q=fail", "RuntimeError"), ("/?q=a&k=999", "k from 1 to 100")]
)
def test_error_is_shown_as_an_alert(tab, address, path, message):
    show(tab, address, path)
    error = "document.querySelector('[role=alert]:not([hidden])')"
    tab.wait_for(f"!!{error}")
    assert message in tab.evaluate(f"{error}.textContent")
    assert tab.evaluate(RESULTS) == 0


def test_a_long_document_is_whole_after_a_click(tab, address):
    show(tab, address, "/?q=red&k=2", 390)
    tab.wait_for(f"{RESULTS} === 2")
    second = "document.querySelectorAll('#results li')[1]"
    shown = f"{second}.querySelector('.text').textContent"
    assert len(tab.evaluate(shown)) < len(TEXTS[1])
    assert tab.evaluate("document.querySelectorAll('#results .whole').length") == 1
    tab.evaluate(f"{second}.querySelector('.whole').click()")
    assert tab.evaluate(shown) == TEXTS[1]
    assert tab.evaluate(f"{second}.querySelector('.whole').ariaExpanded") == "true"
    tab.evaluate(f"{second}.querySelector('.whole').click()")
    assert len(tab.evaluate(shown)) < len(TEXTS[1])


def test_shares_stand_below_a_text_for_those_who_cannot_point_at_words(tab, address):
    show(tab, address, "/?q=red&k=1")
    tab.wait_for(f"{RESULTS} === 1")
    tab.wait_for("document.querySelector('#results .shares') !== null")
    shares = "document.querySelector('#results .shares').textContent"
    assert tab.evaluate(shares) == "rouge +0.500 · pomme +0.200"
    show(tab, address, "/?q=red&k=1&retriever=dense")
    tab.wait_for("document.getElementById('retriever').value === 'dense'")
    tab.wait_for("document.querySelector('#results .shares') !== null")
    tab.wait_for(f"{shares} === 'rouge +2.000 (red 0.75, apple 0.13)'")


def test_the_state_says_of_how_many_documents_these_are_the_best(tab, address):
    show(tab, address, "/?q=red")
    state = "document.getElementById('state').textContent"
    tab.wait_for(f"{state}.startsWith('Best 10 of 3,000 documents in ')")
    legend, results = (f"document.getElementById('{name}')" for name in ("legend", "results"))
    following = "Node.DOCUMENT_POSITION_FOLLOWING"
    assert tab.evaluate(f"{legend}.compareDocumentPosition({results}) & {following}")


def test_two_retrievers_stand_side_by_side(tab, address):
    show(tab, address, "/?q=red")
    tab.wait_for(f"{RESULTS} === 10")
    assert tab.evaluate("document.getElementById('compared').hidden")
    tab.evaluate("document.getElementById('other').value = 'dense'")
    tab.evaluate("document.getElementById('other').dispatchEvent(new Event('change'))")
    tab.wait_for("document.querySelectorAll('#others > li').length === 1")
    assert tab.evaluate("location.search") == "?q=red&other=dense"
    places = "['results', 'others'].map((id) => document.getElementById(id)"
    left, right = tab.evaluate(f"{places}.getBoundingClientRect().left)")
    assert left < right
    headings = "[...document.querySelectorAll('.column > h2')].map((one) => one.textContent)"
    assert tab.evaluate(headings) == ["Ranked by the re-ranker", "Ranked by dense"]
    tab.size(390, 900)
    left, right = tab.evaluate(f"{places}.getBoundingClientRect().left)")
    assert left == right
    show(tab, address, "/?q=red&retriever=lexical&other=dense")
    tab.wait_for("document.querySelectorAll('#others > li').length === 1")
    assert tab.evaluate(RESULTS) == 0


def test_a_retriever_that_is_not_there_is_refused(address):
    status, _, body = get(address, "/api/search?q=red&retriever=best")
    assert (status, "best" in json.loads(body)["error"]) == (400, True)


def test_a_long_query_can_be_read_on_a_phone(tab, address):
    show(tab, address, f"/?q={'red apples ' * 20}", 390)
    tab.wait_for(f"{RESULTS} === 10")
    query = "document.getElementById('query')"
    assert tab.evaluate(f"{query}.scrollHeight <= {query}.clientHeight + 1")
    assert tab.evaluate(f"{query}.clientHeight") > 100


def axe():
    """The source of axe-core, which looks for barriers; skips where it is not installed."""
    named = os.environ.get("AXE_CORE", "node_modules/axe-core/axe.min.js")
    if not Path(named).is_file():
        pytest.skip("no axe-core: npm install --no-save axe-core, or name axe.min.js in $AXE_CORE")
    return Path(named).read_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/?q=red&k=3",
        "/?q=red&other=dense",
        "/?q=red&retriever=dense&other=lexical",
        "/?q=zebra",
        "/?q=fail",
    ],
)
@pytest.mark.parametrize("width", [390, 1200])
def test_there_is_no_barrier_by_wcag_aa(tab, address, path, width, scheme):
    source = axe()
    feature = {"name": "prefers-color-scheme", "value": scheme}
    tab.call("Emulation.setEmulatedMedia", features=[feature])
    show(tab, address, path, width)
    tab.wait_for("!document.getElementById('state').textContent.startsWith('Searching')")
    if "red" in path:
        tab.wait_for(f"{RESULTS} > 0")
        tab.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        tab.evaluate("for (const one of document.querySelectorAll('.whole')) one.click()")
    tab.evaluate(source + "; null")
    tab.evaluate(
        "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})"
        ".then((found) => { window.found = found; }); null"
    )
    tab.wait_for("!!window.found")
    violations = "window.found.violations.map((v) => [v.id, v.nodes.map((n) => n.html)])"
    assert tab.evaluate(violations) == []
    assert tab.evaluate("window.found.passes.length") > 10


@pytest.mark.parametrize(
    ("query", "remark"),
    [
        ("none", "No document has anything to do with the query"),
        ("zebra", "No word of the query is known"),
        ("red", "Not known, so not searched for by meaning: lilac"),
    ],
)
def test_page_says_what_it_did_not_understand(tab, address, query, remark):
    show(tab, address, f"/?q={query}")
    tab.wait_for(f"document.getElementById('state').textContent.includes('{remark}')")
    assert (tab.evaluate(RESULTS) > 0) == (query == "red")
