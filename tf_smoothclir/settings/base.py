"""Groups of settings: fields with a default, a help text and accepted values; rules of several."""

import dataclasses
import inspect
import math
import operator
import os
from collections.abc import Callable, Collection, Mapping

from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.paths import local_path

LEAVE_OUT = "Leave one of the two out"  # the remedy of many rules
MAX_SEED = (1 << 31) - 2  # TensorFlow takes 32 bits, and one more than the seed is used too


def setting(
    default,
    help_text: str | Callable[[], str],
    *,
    minimum=None,
    maximum=None,
    choices: Collection[str] | None = None,
    is_path: bool | str = False,
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
        is_path: A path relative to the working directory is made absolute, unless it is a URL;
            "several": each of those between commas.
        has_effect: Whether it can change a result. Where data are has none; what they are is
            compared by itself.
        searched: Values that `smoothclir-tune` tries; a `plugins.Registry` grows with plug-ins.
        python_only: Whether it has no flag.
    """
    return dataclasses.field(default=default, metadata=locals())


@dataclasses.dataclass(frozen=True)
class Settings:
    """Base of all groups of settings, those of plug-ins too: checks each value by itself.

    Raises:
        ValueError: A value is out of range; the message starts with its flag.
    """

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list):
                object.__setattr__(self, field.name, value := tuple(value))
            if wrong := refused(field, value):
                raise ValueError(f"--{field.name} {wrong}")

    def values(self) -> dict[str, object]:
        """Name -> value of each setting."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


def fields_with_flags(group: type[Settings]) -> list[dataclasses.Field]:
    """The settings of a group that are flags."""
    return [field for field in dataclasses.fields(group) if not field.metadata["python_only"]]


def refused(field: dataclasses.Field, value) -> str:
    """What is wrong with a value, such as "must be at least 1, but is 0."; else ""."""
    rule = field.metadata
    if isinstance(value, float) and not math.isfinite(value):
        return f"must be a finite number, but is {value}."
    if rule["minimum"] is not None and value < rule["minimum"]:
        return f"must be at least {rule['minimum']}, but is {value}."
    if rule["maximum"] is not None and value > rule["maximum"]:
        return f"must be at most {rule['maximum']}, but is {value}."
    if rule["choices"] and value not in rule["choices"]:
        more = " A plug-in (--plugin) may bring it." if hasattr(rule["choices"], "help") else ""
        return f"must be one of {', '.join(rule['choices'])}, but is {value!r}.{more}"
    return ""


def kind_of(field: dataclasses.Field) -> str:
    """What the values of a setting are, in words."""
    kind = type(field.default)
    if kind is tuple:
        return "a list of names" if isinstance((*field.default, 0)[0], str) else "a list of numbers"
    return {bool: "True or False", int: "a whole number", float: "a number"}.get(kind, "a string")


def typed(field: dataclasses.Field, value):
    """A value in the type of its setting; a relative path as an absolute one."""
    default, path = field.default, field.metadata["is_path"]
    if isinstance(default, tuple):
        parts = filter(None, map(str.strip, value.split(","))) if isinstance(value, str) else value
        return tuple(_in_type((*default, 0)[0], part) for part in parts)
    if path == "several" and value:
        return ",".join(os.path.abspath(local_path(p)) for p in os.fspath(value).split(","))
    if path and value and "://" not in (value := local_path(value)):
        value = os.path.abspath(value)  # a run is used from other directories too
        if os.path.exists(value) and not (os.path.isfile(value) or os.path.isdir(value)):
            reason = "it is a pipe or a device, and would be read more than once"
            raise input_error(f"--{field.name}={value}", reason, "Write it to a file first")
        return value
    return _in_type(default, value)


def _in_type(default, value):
    if type(value).__name__ in ("bool", "bool_"):  # NumPy's too, which is no number here
        value = bool(value)
    if isinstance(value, bool) != isinstance(default, bool):
        raise TypeError
    if isinstance(default, int) and not isinstance(value, (bool, str)):
        return operator.index(value)
    if isinstance(default, str) and not isinstance(value, str):
        raise TypeError
    return type(default)(value)


def help_of(field: dataclasses.Field) -> str:
    """The help text of a setting, with those of its choices that are registered."""
    text, choices = field.metadata["help_text"], field.metadata["choices"]
    text = text() if callable(text) else text
    return f"{text} {choices.help()}" if hasattr(choices, "help") else text


def value_text(value) -> str:
    """A value as its flag takes it, such as "0.2,0.7" for a tuple."""
    return ",".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


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
