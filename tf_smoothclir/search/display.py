"""Search hits, printed for people."""

from collections.abc import Sequence

from tf_smoothclir.encoder.tokenizer import has_letters, places_of
from tf_smoothclir.protocols.text_search import (
    DOUBTS,
    Explanation,
    QueryReading,
    SearchHit,
    WordShare,
)
from tf_smoothclir.utils.printing import visible

_BOLD, _PLAIN = "\033[1m", "\033[0m"
_UNDERSTOOD = QueryReading("words")
NONE_LEFT = "The filter holds for no document, so there is nothing to find."
_MOST_WORDS = 8  # whose shares are shown
_MOST_CARRYING = 6  # words that are highlighted
_CARRYING = 0.4  # of the largest share: that of a highlighted word at least


def print_hits(
    query: str,
    hits: Sequence[SearchHit],
    width: int = 150,
    explanations: Sequence[Explanation] | None = None,
    *,
    bold: bool = False,
    reading: QueryReading = _UNDERSTOOD,
    none_left: bool = False,
) -> None:
    """Prints a query and its hits: rank, score, grade, id, start of the text or best passage."""
    print(f"\n{visible(query)}")
    for line in remarks(reading, hits, none_left):
        print(f"  {visible(line)}")
    if not hits:
        return
    print("  rank   score  grade  id")
    for place, hit in enumerate(hits):
        text = hit.text if hit.passage is None else f"… {hit.passage} …"
        text = visible(f"{hit.title}: {text}" if hit.title else text)
        shown = text if len(text) <= width else text[: width - 1] + "…"
        if explanations and bold:
            shown = highlighted(shown, carrying_words(explanations[place]))
        grade = "-" if hit.grade is None else hit.grade
        print(f"  {hit.rank:4}  {hit.shown_score:6.3f}  {grade:>5}  {visible(hit.id)}  {shown}")
        if explanations:
            print(f"        {visible(shares(explanations[place].without(hit.constant)))}")


def remarks(reading: QueryReading, hits: Sequence[SearchHit], none_left: bool = False) -> list[str]:
    """Remarks on an answer: what was not understood of the query, or that a filter leaves none."""
    lines = []
    if none_left:
        lines.append(NONE_LEFT)
    elif reading.evidence in DOUBTS:
        lines.append(DOUBTS[reading.evidence])
    elif not hits:
        lines.append("No document has anything to do with the query.")
    elif reading.unknown:
        words = ", ".join(dict.fromkeys(reading.unknown))
        lines.append(f"Not known, so not searched for by meaning: {words}.")
    if reading.read_as:
        words = ", ".join(f"{word} as {known}" for word, known in reading.read_as.items())
        lines.append(f"Not known, so read by their spelling: {words}.")
    if reading.cut:
        lines.append(f"The query is long: its last {reading.cut:,} tokens were not read.")
    return lines


def carrying_words(explanation: Explanation) -> list[str]:
    """At most six words that carry the score, with 2/5 of the largest share or more."""
    words = [word for word in explanation.words if word.share > 0 and has_letters(word.word)]
    words = sorted(words, key=lambda word: -word.share)[:_MOST_CARRYING]
    return [word.word for word in words if word.share >= _CARRYING * words[0].share]


def shares(explanation: Explanation) -> str:
    """A line with the score, the words with the largest shares, and all other parts."""
    first = sorted(explanation.words, key=lambda word: -abs(word.share))[:_MOST_WORDS]
    others = sum(word.share for word in explanation.words) - sum(word.share for word in first)
    parts = [f"{word.word}{_met(word)} {word.share:+.3f}" for word in first]
    if len(explanation.words) > len(first):
        parts.append(f"{len(explanation.words) - len(first)} other words {others:+.3f}")
    for name in ("towers", "encoder", "feedback"):
        if added := getattr(explanation, name):
            parts.append(f"{name} {added:+.3f}")
    if explanation.reranker or explanation.pairs:
        best = ", ".join(
            f"{pair.query_word}~{pair.document_word} {pair.similarity:.2f}"
            for pair in explanation.pairs[:_MOST_WORDS]
        )
        pairs = f" ({best})" if best else ""
        parts.append(f"re-ranker {explanation.reranker:+.3f}{pairs}")
    remainder = round(explanation.remainder, 3) + 0.0  # never -0.000
    parts.append(f"remainder {remainder:+.3f}")
    return f"{explanation.score:.3f} = {', '.join(parts)}"


def _met(word: WordShare) -> str:
    """Best match of a word, with the probability, such as " (house 0.92)"."""
    return f" ({word.matches[0].word} {word.matches[0].probability:.2f})" if word.matches else ""


def highlighted(text: str, words: Sequence[str]) -> str:
    """A text with some tokens in bold for a terminal."""
    parts, position = [], 0
    for begin, end, _ in places_of(text, words):
        parts += [text[position:begin], f"{_BOLD}{text[begin:end]}{_PLAIN}"]
        position = end
    return "".join([*parts, text[position:]])
