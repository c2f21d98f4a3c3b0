"""The toy world: a small generated world, readable in five languages, with graded judgments.

Cities, rivers, persons, dishes, animals and festivals have attributes (a region, a season, ...). A
document states all of them; a query, in another language, some of them but never the name. A model
that learns which words correspond in the two languages finds entities it has never seen.
"""

import hashlib
import itertools
import struct
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tf_smoothclir.data.hashing import permutation
from tf_smoothclir.data.sources import toy_languages
from tf_smoothclir.data.sources.file_source import set_name
from tf_smoothclir.data.sources.languages import ALL
from tf_smoothclir.data.sources.source import Judgment, Source, Text
from tf_smoothclir.data.sources.toy_languages import ATTRIBUTES, KINDS, LANGUAGES, Language
from tf_smoothclir.utils.errors import input_error

VERSION = "1"
MIN_ENTITIES = 300
MATE, LINKED = 2, 1
MAX_LINKS = 6

# Approximate number of entities that are linked among each other; larger blocks give more links.
_BLOCK = 300

_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprtv" for vowel in "aeiou"]
_NAME_SYLLABLES = 4
_NAMES = len(_SYLLABLES) ** _NAME_SYLLABLES


class Entity(NamedTuple):
    """An entity of the toy world; `values` maps its attributes to value numbers."""

    index: int
    kind: str
    values: dict[str, int]


class ToyWorld(Source):
    """A generated retrieval set, the same on every machine.

    Every query has one mate in each language, the document about the same entity (grade 2).
    Entities that are linked share their region and another attribute; the document of a linked
    entity has grade 1. Where there are several query languages, entities have them in turn.
    """

    titles_are_answers = True

    def __init__(
        self,
        document_language: str = "",
        query_language: str = "",
        entities: int = 2000,
        seed: int = 13,
    ):
        document_language, query_language = document_language or "fr", query_language or "en"
        if document_language == ALL:
            document_language = ",".join(code for code in LANGUAGES if code != query_language)
        for flag, codes in (("document", document_language), ("query", query_language)):
            if not {*codes.split(",")} <= {*LANGUAGES}:
                reason = "the toy world does not exist in this language"
                remedy = f"Give one of {', '.join(LANGUAGES)}, or --data_dir for your own set"
                raise input_error(f"--{flag}_language={codes}", reason, remedy)
        if document_language == query_language:
            reason = "the queries would be in the same language"
            remedy = f"Give two different ones of {', '.join(LANGUAGES)}"
            raise input_error(f"--document_language={document_language}", reason, remedy)
        if entities < MIN_ENTITIES:
            reason = "the toy world would be too small to split and link"
            raise input_error(f"--toy_entities={entities}", reason, f"Give at least {MIN_ENTITIES}")
        self.name = set_name("toy", query_language, document_language)
        self.query_language = query_language
        self.document_language = document_language
        self._size = entities
        self._seed = seed
        self._query_words = _words_of(query_language)
        self._document_words = _words_of(document_language)

    def queries(self) -> Iterator[Text]:
        """Yields one query per entity; its title is the entity's name, which its text omits."""
        for row, entity in enumerate(self._queried_entities()):
            name, (code, _) = entity_name(entity.index), self._asked_in(entity)
            yield Text(f"q{row}", name, self._query_text(entity), code)

    def documents(self) -> Iterator[Text]:
        """Yields one document per entity and language, in a different order from the queries."""
        numbers = self._document_numbers()
        for code in self._document_words:
            for entity, links in self._linked_entities():
                text = self._document_text(entity, links, self._document_words[code])
                id_ = self._document_id(code, numbers[entity.index])
                yield Text(id_, entity_name(entity.index), text, code)

    def judgments(self) -> Iterator[Judgment]:
        """Yields the judgments of each entity's query: first the mate, then the linked entities."""
        queries = np.argsort(self._query_order())  # the inverse of the permutation
        documents = self._document_numbers()
        for entity, links in self._linked_entities():
            query = f"q{queries[entity.index]}"
            for code in self._document_words:
                mate = self._document_id(code, documents[entity.index])
                yield Judgment(query, mate, MATE)
                for linked in links:
                    yield Judgment(query, self._document_id(code, documents[linked]), LINKED)

    def place(self, stream: str, index: int) -> str:
        """For example "toy world en-fr, documents record 5" for index 4."""
        languages = f"{self.query_language}-{self.document_language}"
        return f"toy world {languages}, {stream} record {index + 1}"

    def fingerprint(self) -> str:
        """A digest of the settings and of the words of both languages."""
        settings = (VERSION, self.name, self._size, self._seed)
        roles = self._query_words, self._document_words
        words = (words if len(words) > 1 else next(iter(words.values())) for words in roles)
        content = repr((settings, *words))
        return hashlib.sha256(content.encode()).hexdigest()

    def entity(self, index: int) -> Entity:
        """Entity `index`, which depends on the seed and the index alone."""
        draw, *draws = self._draws(index, "entity")
        kind = list(KINDS)[draw % len(KINDS)]
        values = {a: d % ATTRIBUTES[a] for a, d in zip(KINDS[kind], draws)}
        return Entity(index, kind, values)

    def _query_order(self) -> np.ndarray:
        return permutation(self._size, self._draws(0, "query ids")[0])

    def _document_numbers(self) -> np.ndarray:
        return permutation(self._size, self._draws(0, "document ids")[0])

    def _queried_entities(self) -> Iterator[Entity]:
        return map(self.entity, self._query_order().tolist())

    def _linked_entities(self) -> Iterator[tuple[Entity, list[int]]]:
        # Links stay within a block: time is linear in the size, memory is constant.
        blocks = (self._size + _BLOCK // 2) // _BLOCK
        for block in range(blocks):
            indices = range(block * self._size // blocks, (block + 1) * self._size // blocks)
            entities = [self.entity(index) for index in indices]
            links = _links(entities)
            for entity in entities:
                yield entity, links[entity.index]

    def _query_text(self, entity: Entity) -> str:
        draw, more, *draws = self._draws(entity.index, "query")
        # The region is always there: a query shares it with the documents of linked entities.
        others = _shuffled([a for a in entity.values if a != "region"], draws[:4])
        chosen = _shuffled(["region", *others[: 2 + more % 2]], draws[4:])
        _, words = self._asked_in(entity)
        wording = words.kinds[entity.kind]
        clauses = [
            wording.clauses[a].format(**{a: words.values[a][entity.values[a]]}) for a in chosen
        ]
        return _pick(wording.questions, draw).format(clauses=words.join(clauses))

    def _asked_in(self, entity: Entity) -> tuple[str, Language]:
        """The language of the query about an entity: each in turn."""
        return list(self._query_words.items())[entity.index % len(self._query_words)]

    def _document_id(self, code: str, index: int) -> str:
        return f"{code}:d{index}" if len(self._document_words) > 1 else f"d{index}"

    def _document_text(self, entity: Entity, links: list[int], words: Language) -> str:
        opening, ending, *draws = self._draws(entity.index, "document")
        wording = words.kinds[entity.kind]
        values = {a: words.values[a][value] for a, value in entity.values.items()}
        sentences = [
            _pick(wording.openings, opening).format(name=entity_name(entity.index), **values)
        ]
        for a, draw in zip(_shuffled(list(wording.sentences), draws[:4]), draws[4:]):
            sentences.append(_pick(wording.sentences[a], draw).format(**values))
        if links:
            names = words.join([entity_name(linked) for linked in links])
            sentences.append(_pick(words.links, ending).format(links=names))
        return " ".join(sentences)

    def _draws(self, index: int, purpose: str) -> tuple[int, ...]:
        # A hash, because the choices of `random` may differ between Python versions.
        key = f"{self._seed}/{index}/{purpose}".encode()
        return struct.unpack("<16I", hashlib.blake2b(key).digest())


def entity_name(index: int) -> str:
    """The invented name of an entity: unique, and the same in all languages."""
    # A bijection, as the factor is coprime to the count; it makes names of neighbours different.
    rest = index // _NAMES * _NAMES + (index * 8_009_429 + 2_718_281) % _NAMES
    syllables = []
    while rest or len(syllables) < _NAME_SYLLABLES:
        rest, syllable = divmod(rest, len(_SYLLABLES))
        syllables.append(_SYLLABLES[syllable])
    return "".join(syllables).capitalize()


def _words_of(codes: str) -> dict[str, Language]:
    return {code: toy_languages.load_language(code) for code in codes.split(",")}


def example_queries(source: ToyWorld, among: Collection[str], most: int = 3) -> list[str]:
    """The first queries whose id is in `among`, at most one per kind of entity."""
    examples: dict[str, str] = {}
    for row, entity in enumerate(source._queried_entities()):
        if len(examples) == min(most, len(KINDS)):
            break
        if f"q{row}" in among and entity.kind not in examples:
            examples[entity.kind] = source._query_text(entity)
    return list(examples.values())


def _links(entities: list[Entity]) -> dict[int, list[int]]:
    """Index -> indices of the most similar entities of the same region."""
    regions = defaultdict(list)
    for entity in entities:
        regions[entity.values["region"]].append(entity)
    pairs = []
    for neighbours in regions.values():
        for a, b in itertools.combinations(neighbours, 2):
            shared = len(a.values.items() & b.values.items())
            if shared > 1:
                pairs.append((-shared, a.index, b.index))
    links: dict[int, list[int]] = {entity.index: [] for entity in entities}
    for _, a, b in sorted(pairs):
        if max(len(links[a]), len(links[b])) < MAX_LINKS:
            links[a].append(b)
            links[b].append(a)
    return links


def _shuffled(items: list[str], draws: Sequence[int]) -> list[str]:
    return [item for _, item in sorted(zip(draws, items))]


def _pick(items: tuple[str, ...], draw: int) -> str:
    return items[draw % len(items)]
