"""The toy world: what is promised to its readers, in every language."""

import re
import string
from collections import Counter, defaultdict

import pytest

from tests.cases import cases
from tests.command_line.forked import program
from tf_smoothclir.data.sources.toy_languages import ATTRIBUTES, KINDS, LANGUAGES, load_language
from tf_smoothclir.data.sources.toy_world import ToyWorld, entity_name, example_queries
from tf_smoothclir.utils.errors import InputError

# Every language once on each side.
PAIRS = [("en", "fr"), ("fr", "it"), ("it", "sw"), ("sw", "tl"), ("tl", "en")]


@pytest.fixture(scope="module", params=PAIRS, ids="-".join)
def world(request):
    return ToyWorld(*request.param[::-1], entities=600)


def slots(pattern: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(pattern) if name is not None}


def texts_of(world):
    return list(world.queries()), list(world.documents())


def content_of(*settings):
    world = ToyWorld(*settings)
    return *texts_of(world), list(world.judgments()), world.fingerprint()


def mates(world: ToyWorld) -> dict[str, str]:
    return {j.query_id: j.document_id for j in world.judgments() if j.grade == 2}


@cases("code", *LANGUAGES)
def test_languages_have_the_same_values_and_patterns(code):
    language = load_language(code)
    assert {a: len(set(values)) for a, values in language.values.items()} == ATTRIBUTES
    assert all(phrase and "{" not in phrase for v in language.values.values() for phrase in v)
    assert list(language.kinds) == list(KINDS)
    assert language.join(["a"]) == "a"
    assert language.join("abc").startswith("a, b")
    assert list(map(slots, language.links)) == [{"links"}] * 2
    for kind, wording in language.kinds.items():
        assert list(map(slots, wording.openings)) == [{"name", "region"}] * 2
        assert list(map(slots, wording.questions)) == [{"clauses"}] * 2
        assert tuple(wording.clauses) == KINDS[kind]
        assert all(slots(pattern) == {a} for a, pattern in wording.clauses.items())
        assert ("region", *wording.sentences) == KINDS[kind]
        for attribute, patterns in wording.sentences.items():
            assert list(map(slots, set(patterns))) == [{attribute}] * 2


def test_the_same_in_another_process():
    settings = ("tl", "fr", 600, 13)
    script = f"""
from tests.data.sources.test_toy_world import content_of
print(ascii(content_of{settings}))"""
    printed, _ = program(script, PYTHONHASHSEED="4711")
    assert printed.strip() == ascii(content_of(*settings))
    world = ToyWorld(*settings)
    others = [(), ("fr", "en", 2001), ("fr", "en", 2000, 14), ("it",), ("it", "fr"), ("en", "fr")]
    assert len({ToyWorld(*each).fingerprint() for each in others}) == len(others)
    examples = example_queries(world, {"q1", "q2", "q3"}, 10)
    assert example_queries(world, {"q1", "q2", "q3"}, 1) == examples[:1] != []
    assert set(examples) <= {query.text for query in world.queries()}
    assert world.place("documents", 4) == "toy world fr-tl, documents record 5"


def test_one_mate_and_symmetric_links_and_neither_numbers_nor_order_give_the_mate_away(world):
    queries, documents = ({text.id: text for text in stream} for stream in texts_of(world))
    graded = defaultdict(list)
    for query, document, grade, _ in world.judgments():
        graded[grade].append((queries[query].title, documents[document].title))
    texts = {document.title: document.text for document in documents.values()}
    assert set(graded) == {1, 2}
    assert sorted(graded[2]) == sorted((title, title) for title in texts)
    links = set(graded[1])
    assert len(links) == len(graded[1])
    assert links == {(b, a) for a, b in links}
    assert not links & set(graded[2])
    assert 2.5 < len(links) / 600 < 3.5
    assert max(Counter(a for a, _ in links).values()) <= 6
    assert all(b in texts[a] for a, b in links)
    mate, places = mates(world), list(documents)
    assert sorted(mate) == sorted(f"q{i}" for i in range(600))
    assert sorted(places) == sorted(f"d{i}" for i in range(600))
    assert sum(query[1:] == document[1:] for query, document in mate.items()) < 10
    assert sum(places[i] == mate[query] for i, query in enumerate(queries)) < 10
    # Names are unique beyond the four syllables.
    indices = [*range(5000), *range(60**4 - 2500, 60**4 + 2500)]
    assert len({entity_name(index) for index in indices}) == len(indices)


def test_texts_are_clean(world):
    for text in [*world.queries(), *world.documents()]:
        assert re.fullmatch(r"[^\W\d_].*[.?]", text.text)
        assert not re.search(r"[{}]|\s\s|[.,][.,]|\.\S", text.text)
    assert not any(query.title in query.text for query in world.queries())


def test_several_languages_say_the_same_of_each_entity():
    several = ToyWorld("all", "en", 300)
    alone = {code: ToyWorld(code, "en", 300) for code in ("fr", "tl")}
    assert list(several.queries()) == list(alone["fr"].queries())
    for code, world in alone.items():
        own = [text for text in several.documents() if text.language == code]
        assert own == [text._replace(id=f"{code}:{text.id}") for text in world.documents()]
        judged = [one for one in several.judgments() if one.document_id.startswith(code)]
        judged = [one._replace(document_id=one.document_id[3:]) for one in judged]
        assert judged == list(world.judgments())
    asked = [text.language for text in ToyWorld("fr", "en,it", 300).queries()]
    assert asked.count("en") == asked.count("it") == 150
    assert several.fingerprint() != alone["fr"].fingerprint()


def test_errors_say_what_to_do():
    for settings, message in (
        ({"entities": 299}, "--toy_entities=299: .* at least 300"),
        ({"document_language": "de"}, "--document_language=de: .*en, fr, it, sw, tl"),
        ({"document_language": "en"}, "--document_language=en: .* same language"),
    ):
        with pytest.raises(InputError, match=message):
            ToyWorld(**settings)
