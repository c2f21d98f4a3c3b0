"""What a group of settings is: fields with a default, a help text and the values that they take."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence


def setting(
    default,
    help_text: str,
    *,
    minimum=None,
    choices: Sequence[str] | None = None,
    is_path: bool = False,
):
    """Returns a dataclass field with a default, a help text and the values that it takes.

    Args:
        default: The default.
        help_text: For newcomers, one or two sentences.
        minimum: Least number, or None.
        choices: The possible values, or None.
        is_path: On the command line it may be relative to the working directory, if it is no URL.
    """
    return dataclasses.field(
        default=default,
        metadata={"help": help_text, "minimum": minimum, "choices": choices, "is_path": is_path},
    )


@dataclasses.dataclass(frozen=True)
class Settings:
    """Base of all groups: checks values, and converts to and from JSON."""

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value, rule = getattr(self, field.name), field.metadata
            if isinstance(value, list):
                object.__setattr__(self, field.name, value := tuple(value))
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"--{field.name} must be a finite number, but is {value}.")
            if rule["minimum"] is not None and value < rule["minimum"]:
                raise ValueError(
                    f"--{field.name} must be at least {rule['minimum']}, but is {value}."
                )
            if rule["choices"] and value not in rule["choices"]:
                raise ValueError(
                    f"--{field.name} must be one of {', '.join(rule['choices'])}, but is {value!r}."
                )
