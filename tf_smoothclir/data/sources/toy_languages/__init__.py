"""Word lists and sentence patterns of the toy world, one file per language, written by hand.

Values are ready phrases that need no agreement ("sur la côte du nord"), so that every pattern is
grammatical with every value. Value 3 of an attribute means the same in all languages.
"""

import functools
import tomllib
from importlib import resources
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
    **{"region": 16, "century": 8, "climate": 8, "landmark": 14, "product": 16, "colour": 10},
    **{"season": 6, "profession": 16, "theme": 12, "ingredient": 20, "habitat": 10, "diet": 8},
}


class Wording(NamedTuple):
    """Sentence patterns of a language for one kind of entity."""

    openings: tuple[str, ...]  # first sentences of a document; slots `{name}` and `{region}`
    # Attribute other than the region -> further sentences; one slot, the attribute.
    sentences: dict[str, tuple[str, ...]]
    questions: tuple[str, ...]  # queries; one slot, `{clauses}`
    clauses: dict[str, str]  # attribute -> what stands for it in a query; one slot, the attribute


class Language(NamedTuple):
    """A language of the toy world: its word lists and patterns."""

    conjunction: str  # what joins the last two parts of a list, such as " and "
    links: tuple[str, ...]  # last sentences of a document; one slot, `{links}`
    values: dict[str, tuple[str, ...]]
    kinds: dict[str, Wording]

    def join(self, parts: list[str]) -> str:
        """The parts as a list in running text: "a, b and c"."""
        *head, last = parts
        return f"{', '.join(head)}{self.conjunction}{last}" if head else last


@functools.cache
def load_language(code: str) -> Language:
    """The language with one of the codes in `LANGUAGES`."""
    text = resources.files(__name__).joinpath(f"{code}.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    kinds = {kind: _wording(content["kinds"][kind]) for kind in KINDS}
    return Language(
        content["conjunction"], tuple(content["links"]), _tuples(content["values"]), kinds
    )


def _wording(content: dict) -> Wording:
    return Wording(
        tuple(content["openings"]),
        _tuples(content["sentences"]),
        tuple(content["questions"]),
        content["clauses"],
    )


def _tuples(lists: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(items) for name, items in lists.items()}
