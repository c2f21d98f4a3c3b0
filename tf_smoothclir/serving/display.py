"""Search results for people."""

from __future__ import annotations

from collections.abc import Sequence

from tf_smoothclir.serving.index import Result


def print_results(query: str, results: Sequence[Result], width: int = 150) -> None:
    """Prints a query and what was found: rank, score, predicted grade, id, beginning of the text.

    Args:
        query: As it was asked.
        results: Best first.
        width: Characters of a text shown.
    """
    print(f"\n{query}")
    print("  rank   score  grade  id")
    for result in results:
        text = f"{result.title}: {result.text}" if result.title else result.text
        shown = text if len(text) <= width else text[: width - 1] + "…"
        print(f"  {result.rank:4}  {result.score:6.3f}  {result.grade:5}  {result.id}  {shown}")
