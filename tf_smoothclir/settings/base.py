"""What a group of settings is: fields with a default, a help text and the values they accept."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Collection

MAX_SEED = (1 << 31) - 2  # TensorFlow takes 32 bits, and one more than the seed is used too


def setting(
    default,
    help_text: str | Callable[[], str],
    *,
    minimum=None,
    maximum=None,
    choices: Collection[str] | None = None,
    is_path: bool = False,
    has_effect: bool = True,
    searched: Collection = (),
    python_only: bool = False,
):
    """Returns a dataclass field with a default, a help text and the values it accepts.

    Args:
        default: The default.
        help_text: One or two sentences for newcomers, or what makes them once plug-ins are loaded.
        minimum: Least number, or None.
        maximum: Largest number, or None.
        choices: The possible values, or None; a `plugins.Registry` grows with plug-ins.
        is_path: A path relative to the working directory is made absolute, unless it is a URL.
        has_effect: Whether it can change a result. Where data are has none; what they are is
            compared by itself.
        searched: Values that `smoothclir-tune` tries; a `plugins.Registry` grows with plug-ins.
        python_only: Whether it has no flag.
    """
    metadata = {
        "help": help_text,
        "minimum": minimum,
        "maximum": maximum,
        "choices": choices,
        "is_path": is_path,
        "has_effect": has_effect,
        "searched": searched,
        "python_only": python_only,
    }
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Settings:
    """Base of all groups of settings, those of plug-ins too: checks each value by itself.

    Raises:
        ValueError: A value is out of range; the message starts with its flag.
    """

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
            if rule["maximum"] is not None and value > rule["maximum"]:
                raise ValueError(
                    f"--{field.name} must be at most {rule['maximum']}, but is {value}."
                )
            if rule["choices"] and value not in rule["choices"]:
                more = "" if isinstance(rule["choices"], tuple) else " A plug-in may bring it."
                raise ValueError(
                    f"--{field.name} must be one of {', '.join(rule['choices'])}, but is"
                    f" {value!r}.{more}"
                )

    def values(self) -> dict[str, object]:
        """Name -> value of each setting."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


def fields_with_flags(group: type[Settings]) -> list[dataclasses.Field]:
    """The settings of a group that are flags."""
    return [field for field in dataclasses.fields(group) if not field.metadata["python_only"]]


def help_of(field: dataclasses.Field) -> str:
    """The help text of a setting, with those of its choices that are registered."""
    text, choices = field.metadata["help"], field.metadata["choices"]
    text = text() if callable(text) else text
    return f"{text} {choices.help()}" if hasattr(choices, "help") else text


def absolute(field: dataclasses.Field, value):
    """The value of a setting; a relative path is made absolute, as `is_path` asks for."""
    if field.metadata["is_path"] and value and "://" not in value:
        return os.path.abspath(value)  # a run is used from other directories too
    return value


def value_text(value) -> str:
    """A value as its flag takes it, such as "0.2,0.7" for a tuple."""
    return ",".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
