"""The toy world: what is promised to its readers, in every language."""

from __future__ import annotations

import itertools
import os
import random
import re
import string
import subprocess
import sys
from collections import Counter, defaultdict

import pytest

from tf_smoothclir.data.sources import toy_languages
from tf_smoothclir.data.sources.toy_languages import ATTRIBUTES, KINDS, LANGUAGES, load_language
from tf_smoothclir.data.sources.toy_world import ToyWorld, entity_name, example_queries
from tf_smoothclir.utils.errors import InputError

# Every language once on each side.
PAIRS = [("en", "fr"), ("fr", "it"), ("it", "sw"), ("sw", "tl"), ("tl", "en")]


@pytest.fixture(scope="module", params=PAIRS, ids="-".join)
def world(request):
    query_language, document_language = request.param
    return ToyWorld(document_language, query_language, entities=600)


def content(world: ToyWorld) -> list:
    return [list(world.queries()), list(world.documents()), list(world.judgments())]


def slots(pattern: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(pattern) if name is not None}


def mates(world: ToyWorld) -> dict[str, str]:
    return {j.query_id: j.document_id for j in world.judgments() if j.grade == 2}


@pytest.mark.parametrize("code", LANGUAGES)
def test_languages_have_the_same_values_and_patterns(code):
    language = load_language(code)
    assert {a: len(set(values)) for a, values in language.values.items()} == ATTRIBUTES
    assert all(phrase and "{" not in phrase for v in language.values.values() for phrase in v)
    assert list(language.kinds) == list(KINDS)
    assert len(language.links) == 2
    assert all(slots(pattern) == {"links"} for pattern in language.links)
    for kind, wording in language.kinds.items():
        assert len(wording.openings) == len(wording.questions) == 2
        assert all(slots(pattern) == {"name", "region"} for pattern in wording.openings)
        assert all(slots(pattern) == {"clauses"} for pattern in wording.questions)
        assert tuple(wording.clauses) == KINDS[kind]
        assert all(slots(pattern) == {a} for a, pattern in wording.clauses.items())
        assert ("region", *wording.sentences) == KINDS[kind]
        for attribute, patterns in wording.sentences.items():
            assert len(set(patterns)) == 2
            assert all(slots(pattern) == {attribute} for pattern in patterns)


def test_lists_in_running_text():
    join = load_language("en").join
    assert [join(["a"]), join(["a", "b"]), join(["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


def test_the_same_everywhere(world):
    settings = (world.document_language, world.query_language, 600, 13)
    script = (
        "import hashlib, sys; from tf_smoothclir.data.sources.toy_world import ToyWorld;"
        f"w = ToyWorld{settings};"
        "c = [list(w.queries()), list(w.documents()), list(w.judgments())];"
        "print(ascii((c, w.fingerprint())))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    printed = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()
    other = ToyWorld(*settings)
    assert printed == ascii((content(other), other.fingerprint()))
    assert content(world) == content(other)


def test_an_entity_depends_on_seed_and_index_alone():
    small, large, other = ToyWorld(), ToyWorld("tl", "sw", 5000), ToyWorld(seed=14)
    indices = range(0, 2000, 100)
    assert [small.entity(i) for i in indices] == [large.entity(i) for i in indices]
    assert [small.entity(i) for i in indices] != [other.entity(i) for i in indices]


def test_counts_and_ids(world):
    queries, documents, _ = content(world)
    numbers = range(600)
    assert Counter(q.id for q in queries) == Counter(f"q{i}" for i in numbers)
    assert Counter(d.id for d in documents) == Counter(f"d{i}" for i in numbers)
    assert len({d.title for d in documents}) == 600
    # Neither the numbers nor the order give the mate away.
    mate = mates(world)
    positions = {d.id: i for i, d in enumerate(documents)}
    assert sum(q[1:] == d[1:] for q, d in mate.items()) < 10
    assert sum(positions[mate[q.id]] == i for i, q in enumerate(queries)) < 10


def test_names_are_unique_beyond_the_four_syllables():
    indices = [*range(5000), *range(60**4 - 2500, 60**4 + 2500)]
    assert len({entity_name(index) for index in indices}) == len(indices)


def test_one_mate_and_symmetric_links(world):
    titles = {d.id: d.title for d in world.documents()}
    query_titles = {q.id: q.title for q in world.queries()}
    graded = defaultdict(list)
    for judgment in world.judgments():
        query, document = query_titles[judgment.query_id], titles[judgment.document_id]
        graded[judgment.grade].append((query, document))
    assert set(graded) == {1, 2}
    assert sorted(graded[2]) == sorted((title, title) for title in titles.values())
    links = set(graded[1])
    assert len(links) == len(graded[1])
    assert links == {(b, a) for a, b in links}
    assert not links & set(graded[2])
    assert 2.5 < len(links) / 600 < 3.5
    assert max(Counter(a for a, _ in links).values()) <= 6
    texts = {d.title: d.text for d in world.documents()}
    assert all(b in texts[a] for a, b in links)


def test_linked_entities_share_their_region_and_another_attribute():
    world = ToyWorld(entities=600)
    entities = {entity_name(i): world.entity(i) for i in range(600)}
    queries = {q.id: q.title for q in world.queries()}
    documents = {d.id: d.title for d in world.documents()}
    for judgment in world.judgments():
        a = entities[queries[judgment.query_id]].values
        b = entities[documents[judgment.document_id]].values
        assert a["region"] == b["region"]
        assert len(a.items() & b.items()) >= 2


def test_texts_are_clean(world):
    for text in [*world.queries(), *world.documents()]:
        assert not re.search(r"[{}]|\s\s|[.,][.,]|\.\S", text.text)
        assert text.text == text.text.strip()
        assert text.text[0].isupper()
        assert text.text[-1] in ".?"


def test_lengths(world):
    for query in world.queries():
        assert query.title not in query.text
        assert 8 <= len(query.text.split()) <= 40
    for document in world.documents():
        assert document.title in document.text
        assert 5 <= document.text.count(". ") + 1 <= 6
        assert 30 <= len(document.text.split()) <= 80


def test_english_queries_have_10_to_25_words():
    lengths = [len(q.text.split()) for q in ToyWorld(seed=99).queries()]
    assert min(lengths) >= 10
    assert max(lengths) <= 25


def test_shared_attributes_find_the_mate(world):
    """The words of both languages are enough to find the mate, so a model can learn to."""
    query_values = load_language(world.query_language).values
    document_values = load_language(world.document_language).values
    documents = {d.id: d.text for d in world.documents()}
    mate = mates(world)
    rng = random.Random(13)
    found = 0
    for query in list(world.queries())[:200]:
        correct = mate[query.id]
        others = rng.sample(sorted(documents.keys() - {correct}), 40)
        meanings = [
            (attribute, number)
            for attribute, phrases in query_values.items()
            for number, phrase in enumerate(phrases)
            if phrase in query.text
        ]
        score = {
            d: sum(document_values[a][n] in documents[d] for a, n in meanings)
            for d in [correct, *others]
        }
        found += sum(score[d] >= score[correct] for d in others) < 3
    assert found >= 180


def test_fingerprint_tells_settings_and_words_apart(monkeypatch):
    worlds = [ToyWorld(), ToyWorld(seed=14), ToyWorld(entities=2001), ToyWorld("it")]
    worlds += [ToyWorld("it", "fr"), ToyWorld("en", "fr")]
    fingerprints = [world.fingerprint() for world in worlds]
    assert len(set(fingerprints)) == len(worlds)
    assert all(re.fullmatch("[0-9a-f]{64}", fingerprint) for fingerprint in fingerprints)
    monkeypatch.setitem(load_language("fr").values, "season", ("jamais",) * 6)
    assert ToyWorld().fingerprint() != fingerprints[0]


def test_names_and_places():
    world = ToyWorld("fr", "en")
    assert world.name == "toy-en-fr"
    assert world.splits() is None
    assert world.place("documents", 4) == "toy world en-fr, documents record 5"


def test_example_queries_are_about_different_kinds():
    world = ToyWorld()
    among = {query.id for query in itertools.islice(world.queries(), 50, 500)}
    texts = [query.text for query in world.queries() if query.id in among]
    examples = example_queries(world, among)
    assert len(examples) == 3
    assert examples[0] == texts[0]
    nouns = ["city", "river", "person", "dish", "animal", "festival"]
    every = example_queries(world, among, 10)
    assert set(every) <= set(texts)
    assert every[:3] == examples
    assert sorted(n for e in every for n in nouns if n in e) == sorted(nouns)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"entities": 299}, "--toy_entities=299: .* at least 300"),
        ({"document_language": "de"}, "--document_language=de: .*en, fr, it, sw, tl"),
        ({"query_language": "xx"}, "--query_language=xx: .*en, fr, it, sw, tl"),
        ({"document_language": "en"}, "--document_language=en: .* same language"),
    ],
)
def test_errors_say_what_to_do(settings, message):
    with pytest.raises(InputError, match=message):
        ToyWorld(**settings)


def test_a_damaged_language_names_its_file(monkeypatch, tmp_path):
    monkeypatch.setattr(toy_languages.resources, "files", lambda package: tmp_path)
    for damage in ('conjunction = " and "\n', "conjunction =\n", "values = 1\n"):
        tmp_path.joinpath("en.toml").write_text(damage)
        with pytest.raises(InputError, match=r"en\.toml: not a language of the toy world"):
            load_language.__wrapped__("en")
    with pytest.raises(InputError, match=r"fr\.toml: not a language .*No such file"):
        load_language.__wrapped__("fr")
