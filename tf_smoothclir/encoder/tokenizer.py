"""The tokens of `text/tokenizer.py`, which works in graphs, in plain Python.

A property test compares the two on hostile texts, and another one on every Unicode character.
"""

import bisect
import functools
import itertools
import operator
import re
import tomllib
from collections.abc import Container, Iterator
from importlib import resources

from tf_smoothclir.utils.composition import AM, cluster, compose, has_marks

_REPLACEMENT, _LONE = "\ufffd", re.compile("[\ud800-\udfff]")  # no characters
_NUMBER = re.compile("[0-9]+")


def tokens_of(text: str, pretokenized: bool = False) -> list[str]:
    """The tokens of a text; of a text of several words, they are those of its words."""
    if pretokenized:
        return _LONE.sub(_REPLACEMENT, _space_between_words().sub(" ", text)).split()
    if text.isascii():
        return _NUMBER.sub(r" \g<0> ", text.translate(_replacements())).split()
    if has_marks(text):  # invisible characters may stand before a mark
        text = compose(_invisible().sub("", text))
    text = _NUMBER.sub(r" \g<0> ", text.translate(_replacements()))
    return _run().sub(_in_pairs, text).split()


def _in_pairs(run: re.Match) -> str:
    characters = _unspaced().findall(run[0])
    for parts, am in AM:
        if parts[0] in run[0]:
            characters = [re.sub(parts, am, character) for character in characters]
    pairs = map(operator.add, characters, characters[1:])
    both = itertools.zip_longest(characters, pairs, fillvalue="")
    return f" {' '.join(itertools.chain.from_iterable(both))} "


def is_unspaced(token: str) -> bool:
    """Whether a token begins with a character of a script that is written without spaces."""
    return not token.isascii() and _unspaced().match(token) is not None


def is_pair(token: str) -> bool:
    """Whether a token is two characters of an unspaced script, which are tokens themselves."""
    return not token.isascii() and len(_unspaced().findall(token)) > 1


def passage_text(
    text: str, index: int, longest: int, title: str = "", pretokenized: bool = False
) -> str:
    """A passage, as `Words.passages` cuts it, in whole words; `longest` counts the title."""
    tokens = functools.partial(tokens_of, pretokenized=pretokenized)
    words = list(re.finditer(r"\S+", text)) if pretokenized else words_of(text)
    first = len(tokens(title))
    counts = [len(tokens(word[0])) for word in words]
    pairs = [False] * len(words)  # whether one stands after the word, its first character
    if not pretokenized:
        unspaced = [is_unspaced(word[0]) for word in words]
        for place, (before, word) in enumerate(itertools.pairwise(words)):
            pairs[place] = before.end() == word.start() and all(unspaced[place : place + 2])
    ends = list(itertools.accumulate(map(operator.add, counts, pairs), initial=first))
    begin = max(0, min(index * max(1, longest // 2), ends[-1] - longest))
    passage = slice(bisect.bisect_right(ends, begin) - 1, bisect.bisect_left(ends, begin + longest))
    if ends[passage.stop : passage.stop + 1] == [begin + longest]:  # perhaps the first of a pair
        ends_with_pair = any(pairs[max(0, passage.stop - 1) : passage.stop])
        passage = slice(passage.start, passage.stop + ends_with_pair)
    passage = words[max(0, passage.start) : passage.stop]
    return text[passage[0].start() : passage[-1].end()] if passage else text


def words_of(text: str) -> list[re.Match]:
    """The words of a text with their punctuation; of an unspaced script, single characters."""
    return list(_word().finditer(text))


def places_of(text: str, words: Container[str]) -> Iterator[tuple[int, int, str]]:
    """Yields begin, end and token of each place where a text has one of some tokens."""
    for chunk in re.finditer(r"\S+", text):
        if chunk[0] in words:  # as users split them, too
            yield *chunk.span(), chunk[0]
            continue
        pieces = [(piece, tokens_of(piece[0])) for piece in _piece().finditer(chunk[0])]
        pieces = [(piece, tokens[0]) for piece, tokens in pieces if len(tokens) == 1]
        for place, (piece, token) in enumerate(pieces):
            # A character is marked for a pair too, of it and the one after or before it.
            ones = [neighbour for _, neighbour in pieces[max(0, place - 1) : place + 2]]
            pairs = filter(is_pair, map(operator.add, ones, ones[1:]))
            if (word := next(filter(words.__contains__, (token, *pairs)), None)) is not None:
                yield chunk.start() + piece.start(), chunk.start() + piece.end(), word


def has_letters(token: str) -> bool:
    """Whether a token has a letter or a digit; others are punctuation, or marks alone."""
    if token.isascii():
        return any(map(str.isalnum, token))
    return any(ord(character) in _class("letter") for character in token)


class _Class:
    """A set of code points."""

    def __init__(self, ranges: str):
        self.ranges, end = [], 0
        for gap, length in (word.partition("+")[::2] for word in ranges.split()):
            begin = end + int(gap, 16)
            end = begin + int(length or "1", 16)
            self.ranges.append((begin, end))
        self._begins = [begin for begin, _ in self.ranges]

    def __contains__(self, code: int) -> bool:
        place = bisect.bisect_right(self._begins, code)
        return place > 0 and code < self.ranges[place - 1][1]

    def pattern(self) -> str:
        """A regular expression for one character."""
        return "[{}]".format(
            "".join(f"\\U{begin:08x}-\\U{end - 1:08x}" for begin, end in self.ranges)
        )


class _Replacements(dict):
    """Code point -> what stands for it in a text whose tokens are separated by spaces."""

    # Only characters of unspaced scripts stay as they are: what is right depends on their marks.

    def __init__(self):
        super().__init__(_lower_case())
        names = ("space", "invisible", "single")
        self._space, self._invisible, self._single = map(_class, names)

    def __missing__(self, code: int) -> str:
        self[code] = self._replacement(code)
        return self[code]

    def _replacement(self, code: int) -> str:
        if code in self._space:
            return " "
        if code in self._invisible:
            return ""
        if 0xD800 <= code < 0xE000:
            return f" {_REPLACEMENT} "
        return f" {chr(code)} " if code in self._single else chr(code)


def _lower_case() -> dict[int, str]:
    single, end = _class("single"), 0
    lower_case = {int(code, 16): lower for code, lower in _tables()["long_lower"].items()}
    for word in _tables()["lower"].split():
        place, _, distance = word.partition(":")
        place, _, step = place.partition("/")
        gap, _, length = place.partition("+")
        begin = end + int(gap, 16)
        end = begin + int(length or "1", 16)
        for code in range(begin, end, int(step or "1")):
            lower = chr(code + int(distance, 16))
            lower_case[code] = f" {lower} " if code in single else lower
    return lower_case


@functools.cache
def _class(name: str) -> _Class:
    return _Class(_tables()[name])


@functools.cache
def _tables() -> dict:
    """The content of unicode_tables.toml, which says what its ranges mean."""
    path = resources.files(__package__).joinpath("unicode_tables.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


@functools.cache
def _replacements() -> _Replacements:
    return _Replacements()


@functools.cache
def _unspaced() -> re.Pattern:
    return re.compile(cluster(_class("unspaced").pattern(), _class("mark").pattern()))


@functools.cache
def _piece() -> re.Pattern:
    """What becomes one token, or none: unspaced, a number, a word, or any other character."""
    others = "".join(_class(name).pattern()[1:-1] for name in ("single", "space", "unspaced"))
    parts = _unspaced().pattern, _NUMBER.pattern, f"[^{others}0-9]+", "."
    return re.compile("|".join(parts), re.DOTALL)


@functools.cache
def _run() -> re.Pattern:
    unspaced, mark = _class("unspaced").pattern(), _class("mark").pattern()
    return re.compile(f"{unspaced}(?:{unspaced}|{mark})*")


@functools.cache
def _word() -> re.Pattern:
    unspaced, mark, invisible = (
        _class(name).pattern() for name in ("unspaced", "mark", "invisible")
    )
    return re.compile(rf"{cluster(unspaced, mark, f'{invisible}*')}|(?:(?!{unspaced})\S)+")


@functools.cache
def _space_between_words() -> re.Pattern:
    return re.compile(f"(?!_){_class('space').pattern()}")


@functools.cache
def _invisible() -> re.Pattern:
    return re.compile(_class("invisible").pattern())
