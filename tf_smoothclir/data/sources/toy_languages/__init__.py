"""Word lists and sentence patterns of the toy world, one module per language, written by hand.

Values are ready phrases that need no agreement ("sur la côte du nord"), so that every pattern is
grammatical with every value. Value 3 of an attribute means the same in all languages.
"""

from __future__ import annotations

import importlib
from typing import NamedTuple

LANGUAGES = ("en", "fr", "it", "sw", "tl")

# Kind of entity -> its attributes. Kinds share attributes, so that a model can learn a word from
# one kind and meet it again in another.
KINDS = {
    "city": ("region", "century", "climate", "landmark", "product"),
    "river": ("region", "climate", "colour", "season", "product"),
    "person": ("region", "century", "profession", "theme", "product"),
    "dish": ("region", "ingredient", "season", "colour", "profession"),
    "animal": ("region", "habitat", "diet", "colour", "season"),
    "festival": ("region", "season", "theme", "profession", "landmark"),
}

# Attribute -> number of its values.
ATTRIBUTES = {
    "region": 16,
    "century": 8,
    "climate": 8,
    "landmark": 14,
    "product": 16,
    "colour": 10,
    "season": 6,
    "profession": 16,
    "theme": 12,
    "ingredient": 20,
    "habitat": 10,
    "diet": 8,
}


class Wording(NamedTuple):
    """How a language speaks of one kind of entity.

    Attributes:
        openings: First sentences of a document; slots `{name}` and `{region}`.
        sentences: Attribute other than the region -> further sentences; one slot, the attribute.
        questions: Queries; one slot, `{clauses}`.
        clauses: Attribute -> what stands for it in a query; one slot, the attribute.
    """

    openings: tuple[str, ...]
    sentences: dict[str, tuple[str, ...]]
    questions: tuple[str, ...]
    clauses: dict[str, str]


class Language(NamedTuple):
    """One language of the toy world.

    Attributes:
        conjunction: What joins the last two parts of a list, such as " and ".
        links: Last sentences of a document; one slot, `{links}`.
        values: Attribute -> its values.
        kinds: Kind -> its wording.
    """

    conjunction: str
    links: tuple[str, ...]
    values: dict[str, tuple[str, ...]]
    kinds: dict[str, Wording]

    def join(self, parts: list[str]) -> str:
        """The parts as a list in running text: "a, b and c"."""
        *head, last = parts
        return f"{', '.join(head)}{self.conjunction}{last}" if head else last


def phrases(text: str) -> tuple[str, ...]:
    """The phrases that commas separate; line breaks count as spaces."""
    return tuple(" ".join(phrase.split()) for phrase in text.split(","))


def load_language(code: str) -> Language:
    """The language with one of the codes in `LANGUAGES`."""
    return importlib.import_module(f"{__name__}.{code}").LANGUAGE
