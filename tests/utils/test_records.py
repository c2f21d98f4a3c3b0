"""JSON becomes dataclasses and comes back; what does not fit is named."""

import dataclasses
import json
from typing import Any

import pytest

from tf_smoothclir.utils.records import record_from_json


@dataclasses.dataclass(frozen=True)
class Part:
    file: str
    size: int


@dataclasses.dataclass(frozen=True)
class Whole:
    parts: tuple[Part, ...]
    cuts: tuple[float, ...]
    hashes: dict[str, str]
    settings: dict
    anything: Any
    perhaps: Part | None
    done: bool = False


WHOLE = {
    "parts": [{"file": "a", "size": 3}, {"file": "b", "size": 0}],
    "cuts": [0.2, 1],
    "hashes": {"a": "00"},
    "settings": {"dim": 64},
    "anything": None,
    "perhaps": {"file": "c", "size": 1},
    "done": True,
}


def test_every_field_is_read_and_written_back():
    whole = record_from_json(Whole, {**WHOLE, "unknown": 1})
    assert whole.parts == (Part("a", 3), Part("b", 0))
    assert (whole.cuts, whole.hashes, whole.done) == ((0.2, 1), {"a": "00"}, True)
    assert json.loads(json.dumps(dataclasses.asdict(whole))) == WHOLE
    assert whole.perhaps == Part("c", 1)
    assert record_from_json(Whole, {**WHOLE, "perhaps": None}).perhaps is None
    without = {key: value for key, value in WHOLE.items() if key != "done"}
    assert record_from_json(Whole, without).done is False  # the default


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parts": {}}, r"parts must be a list, not \{\}"),
        ({"parts": [{"file": "a", "size": "3"}]}, r"parts\[0\]\.size must be an integer, not '3'"),
        ({"perhaps": {"file": "a", "size": True}}, "perhaps.size must be an integer, not True"),
        ({"perhaps": {"file": "a", "size": 3.0}}, r"perhaps.size must be an integer, not 3\.0"),
        ({"parts": [{"file": "a"}]}, r"parts\[0\]\.size is missing"),
        ({"parts": ["a"]}, r"parts\[0\] must be an object, not 'a'"),
        ({"cuts": [0.2, None]}, r"cuts\[1\] must be a number, not None"),
        ({"hashes": {"a": 0}}, r"hashes\.a must be a string, not 0"),
        ({"settings": []}, r"settings must be an object, not \[\]"),
        ({"perhaps": []}, r"perhaps must be an object, not \[\]"),
        ({"done": 1}, "done must be true or false, not 1"),
        ({"done": "x" * 99}, r"done must be true or false, not 'x{39}\.\.\.$"),
    ],
)
def test_value_of_another_type_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        record_from_json(Whole, {**WHOLE, **change})


@pytest.mark.parametrize("value", [None, [], 3, "x"])
def test_what_is_no_object_is_named(value):
    with pytest.raises(ValueError, match="the content must be an object, not"):
        record_from_json(Whole, value)
