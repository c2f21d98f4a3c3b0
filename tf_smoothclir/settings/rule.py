"""One rule of what goes together with what."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping

from tf_smoothclir.settings.base import value_text
from tf_smoothclir.utils.errors import InputError, input_error

LEAVE_OUT = "Leave one of the two out"


@dataclasses.dataclass(frozen=True)
class Rule:
    """A combination of settings, or of flags of a command, that cannot be used."""

    is_broken: Callable[..., bool]  # of the values of what it reads
    reason: str  # why they do not go together; no full stop
    remedy: str  # what to do about it; no full stop
    # What it reads; by default the parameters of `is_broken`. The message has this order.
    names: tuple[str, ...] = ()

    def __post_init__(self):
        names = self.names or tuple(inspect.signature(self.is_broken).parameters)
        object.__setattr__(self, "names", names)

    def breaks(self, values: Mapping[str, object]) -> bool:
        """Whether values break the rule; never where it reads more than there is."""
        return values.keys() >= set(self.names) and self.is_broken(*map(values.get, self.names))

    def error(self, values: Mapping[str, object]) -> InputError:
        """The error for values that break it: `--a=1 --b: reason. Remedy.`"""
        where = " ".join(_flag(name, values[name]) for name in self.names)
        return input_error(where, self.reason, self.remedy)


def _flag(name: str, value: object) -> str:
    """A flag as a person would type it."""
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no{name}"
    text = "" if value is None else value_text(value)
    return f"--{name}={text}" if text else f"--{name}"
