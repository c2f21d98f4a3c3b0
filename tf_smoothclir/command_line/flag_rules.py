"""Rules for combinations of the flags of one command.

Rules of settings stand beside these. Here a flag that is not given, or
given as its default, is None.
"""

from __future__ import annotations

import dataclasses

from absl import flags

from tf_smoothclir.settings.base import LEAVE_OUT, Rule
from tf_smoothclir.settings.data import DataSettings

_DATA = [field.name for field in dataclasses.fields(DataSettings)]
_DATA = [name for name in _DATA if name not in ("cache_dir", "columns")]

_OF_ENGINES = ("uri", "engine_collection")
_OF_NEW_ONES = ("index_type", "overwrite")


def _not_beside(name: str, others, reason: str) -> tuple[Rule, ...]:
    """Rules that refuse each of some flags where `name` is given."""
    return tuple(
        Rule(lambda *given: None not in given, reason, LEAVE_OUT, (name, other)) for other in others
    )


def _needs(name: str, other: str, reason: str) -> Rule:
    """A rule that refuses a flag without another one."""
    return Rule(
        lambda value, needed: value is not None and needed is None,
        reason,
        f"Give --{other} too, or leave --{name} out",
        (name, other),
    )


_ON_DISK = "an engine keeps the collection, no directory does"
_CHANGES_A_COLLECTION = "documents are added to and removed from the collection as it is"
FLAG_RULES = (
    # smoothclir-search
    *_not_beside("queries", ["query"], "both give the queries"),
    *_not_beside("trec_run", ["json", "explain"], "a TREC run holds ids and scores only"),
    # smoothclir-index
    *_not_beside("add", ["collection", *_OF_NEW_ONES, *_DATA], _CHANGES_A_COLLECTION),
    *_not_beside("remove", ["collection", *_OF_NEW_ONES, *_DATA], _CHANGES_A_COLLECTION),
    *_not_beside("update", ["overwrite"], "the one keeps what has not changed, the other nothing"),
    *_not_beside("update", ["engine"], "an engine takes changes by --add and --remove"),
    *_not_beside("collection", _DATA, "both name the documents to index"),
    *_not_beside("collection", ["search_model"], "the search model holds the collection"),
    # engines
    *_not_beside("engine", ["index_dir"], _ON_DISK),
    _needs("engine", "uri", "an engine has an address"),
    *(_needs(name, "engine", "it is about an engine") for name in _OF_ENGINES),
    *(
        _needs(name, "engine", "an index on disk is built in one go; an engine takes changes")
        for name in ("add", "remove")
    ),
)


def check_flags(given: flags.FlagValues = flags.FLAGS) -> None:
    """Checks the flags of a command."""
    values = {
        name: given[name].value if given[name].value != given[name].default else None
        for name in given
    }
    for rule in FLAG_RULES:
        if rule.breaks(values):
            raise rule.error(values)
