"""Search results for people."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence

from tf_smoothclir.protocols.text_search import Explanation, SearchHit

_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
_BOLD, _PLAIN = "\033[1m", "\033[0m"
_MOST_WORDS = 8  # shown with their numbers
_HIGHLIGHTED = 0.1  # least part of the score that a highlighted word carries


def print_results(
    query: str,
    results: Sequence[SearchHit],
    width: int = 150,
    explanations: Sequence[Explanation] | None = None,
    *,
    bold: bool = False,
) -> None:
    """Prints a query and what was found: rank, score, predicted grade, id, beginning of the text.

    Args:
        query: As it was asked.
        results: Best first.
        width: Characters of a text shown.
        explanations: One a result: below each, the words that carry its score, with their shares.
        bold: Set these words off in the text, for a terminal.
    """
    print(f"\n{query}")
    print("  rank   score  grade  id")
    for number, result in enumerate(results):
        text = f"{result.title}: {result.text}" if result.title else result.text
        shown = text if len(text) <= width else text[: width - 1] + "…"
        if explanations and bold:
            shown = highlighted(shown, carrying_words(explanations[number]))
        print(f"  {result.rank:4}  {result.score:6.3f}  {result.grade:5}  {result.id}  {shown}")
        if explanations:
            print(f"        {shares(explanations[number])}")


def carrying_words(explanation: Explanation) -> list[str]:
    """Returns the words that each carry at least a tenth of the score, most first."""
    least = _HIGHLIGHTED * abs(explanation.score)
    return [word.word for word in explanation.words if word.share > 0 and word.share >= least]


def shares(explanation: Explanation) -> str:
    """Returns a line with the score, the words of the largest shares, and what is left over."""
    first = sorted(explanation.words, key=lambda word: -abs(word.share))[:_MOST_WORDS]
    others = sum(word.share for word in explanation.words) - sum(word.share for word in first)
    parts = [f"{word.word} {word.share:+.3f}" for word in first]
    if len(explanation.words) > len(first):
        parts.append(f"{len(explanation.words) - len(first)} other words {others:+.3f}")
    parts.append(f"remainder {explanation.remainder:+.3f}")
    return f"{explanation.score:.3f} = {', '.join(parts)}"


def highlighted(text: str, words: Sequence[str]) -> str:
    """Returns a text with some words set in bold for a terminal, in upper or lower case."""
    return word_pattern(tuple(words)).sub(lambda match: f"{_BOLD}{match[0]}{_PLAIN}", text)


@functools.lru_cache(maxsize=64)
def word_pattern(words: tuple[str, ...]) -> re.Pattern:
    """Returns what finds some tokens in a text, in upper or lower case; the longest that fits.

    Tokens are whole words there; but punctuation, and those of scripts without spaces, may have
    letters beside them.
    """
    patterns = (
        re.escape(word) if _stands_anywhere(word) else rf"(?<!\w){re.escape(word)}(?!\w)"
        for word in sorted(words, key=len, reverse=True)
    )
    return re.compile("|".join(patterns) or r"(?!)", re.IGNORECASE)


def _stands_anywhere(word: str) -> bool:
    return not word[0].isalnum() or unicodedata.name(word[0], "").startswith(_UNSPACED)
