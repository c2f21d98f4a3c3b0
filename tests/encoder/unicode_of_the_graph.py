"""What the graph of text/tokenizer.py does with each Unicode character, found by asking it.

python -m tests.encoder.unicode_of_the_graph > tf_smoothclir/encoder/unicode_tables.toml
"""

from __future__ import annotations

import json
import textwrap

import tensorflow as tf

from tf_smoothclir.text.evidence import _WORD
from tf_smoothclir.text.tokenizer import normalize

CHARACTERS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
_HAN, _MARK, _SIGMA, _FINAL_SIGMA = "\u4e2d", "\u0301", "\u03a3", "\u03c2"
_HEADER = """\
# Classes of Unicode characters and lower-case letters, exactly as the graph has them.
# Written by `python -m tests.encoder.unicode_of_the_graph`, which asks the graph. Python's own
# tables are of another version of Unicode.
#
# Ranges are "gap" or "gap+length" in hexadecimal, the gap from the end of the range before. Those
# of `lower` also have "/step" if not every character counts, and ":distance" to the lower-case
# letters. `long_lower`: code -> a lower case of more than one character."""


def classes(characters: list[str]) -> tuple[dict[str, list[int]], dict[int, str]]:
    """Returns class -> codes of its characters, and code -> lower-case text where it differs."""
    found = {name: [] for name in ("space", "invisible", "single", "unspaced", "mark")}
    found["sign"] = []  # of unspaced scripts, but neither letter nor digit
    found |= {"cased": [], "ignorable": []}
    lower = {}
    for character, lettered, alone, marked, after_han, before, between in zip(
        characters,
        tf.strings.regex_full_match(characters, _WORD).numpy(),
        _normalized(characters),
        _normalized([f"{c}{_MARK}" for c in characters]),
        _normalized([f"{_HAN}{c}" for c in characters]),
        _normalized([f"{c}{_SIGMA}" for c in characters]),
        _normalized([f"A{c}{_SIGMA}" for c in characters]),
    ):
        code, visible = ord(character), alone.strip(" ")
        if not visible:
            found["space" if alone else "invisible"].append(code)
        elif visible != alone:
            unspaced = marked == f" {visible}{_MARK} "
            found["unspaced" if unspaced else "single"].append(code)
            if unspaced and not lettered:
                found["sign"].append(code)
        if visible and visible != character:
            lower[code] = visible
        if visible and after_han == f" {_HAN}{visible} ":
            found["mark"].append(code)
        if before[-1:] == _FINAL_SIGMA:
            found["cased"].append(code)
        elif between[-1:] == _FINAL_SIGMA:
            found["ignorable"].append(code)
    return found, lower


def _normalized(texts: list[str]) -> list[str]:
    return [text.decode() for text in normalize(tf.constant(texts)).numpy().tolist()]


def _ranges(codes: dict[int, str], steps: tuple[int, ...] = (1,)) -> str:
    """Codes as words, each of which is a range of codes with the same text behind it."""
    ranges = []
    for code, rest in codes.items():
        begin, last, step, other = ranges[-1] if ranges else (0, 0, 0, None)
        if other == rest and code - last in ((step,) if last > begin else steps):
            ranges[-1] = (begin, code, code - last, rest)
        else:
            ranges.append((code, code, 1, rest))
    position, words = 0, []
    for begin, last, step, rest in ranges:
        length = f"+{last + 1 - begin:x}" if last > begin else ""
        words.append(f"{begin - position:x}{length}{'' if step == 1 else f'/{step}'}{rest}")
        position = last + 1
    return " ".join(words)


def _entry(name: str, value: str) -> str:
    lines = "\n".join(textwrap.wrap(value, 100, break_on_hyphens=False))
    return f'{name} = """\n{lines}"""'


if __name__ == "__main__":
    by_class, lower_case = classes(CHARACTERS)
    short = {c: f":{ord(text) - c:x}" for c, text in lower_case.items() if len(text) == 1}
    print(_HEADER)
    for class_, codes in by_class.items():
        print(_entry(class_, _ranges(dict.fromkeys(codes, ""))))
    print(_entry("lower", _ranges(short, (1, 2))))
    print("\n[long_lower]")
    for code, text in lower_case.items():
        if len(text) > 1:
            print(f"{code:x} = {json.dumps(text)}")
