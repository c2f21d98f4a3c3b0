"""Unknown words of queries that are known words written as one, or parts of a known one.

`phones` after `head` is read as `headphones`: with the word before it, else with that after it.
`timezone` is read as `time` and `zone`. Words of seven characters or more are cut, since shorter
ones are often typing errors, into words of the vocabulary of four or more, or of three if they are
among its frequent tenth, which most fragments are not. Of all ways to cut a word, that with the
largest sum of squared lengths counts: few and long parts.
"""

import itertools
from collections.abc import Callable, Sequence

SHORTEST, SHORTEST_FREQUENT = 4, 3
FREQUENT = 0.1  # of a vocabulary, whose first words are the most frequent ones
FEWEST_CUT, MOST_CUT = 7, 64  # characters of words that are cut


def joined_with_neighbour(
    words: Sequence[str], place: int, known_id: Callable[[str], int | None]
) -> int | None:
    """The id of an unknown word and a neighbour written as one; none or 0 where there is none."""
    pairs = itertools.pairwise(words[max(0, place - 1) : place + 2])
    return next(filter(None, map(known_id, map("".join, pairs))), None)


def parts_of(word: str, known_id: Callable[[str], int | None], frequent: int) -> list[int]:
    """The ids of the parts of a word; none where it cannot be cut.

    `known_id` gives the id of a part, none or 0 for others; those below `frequent` are of frequent
    words.
    """
    length = len(word)
    if not FEWEST_CUT <= length <= MOST_CUT:
        return []
    # The best way to cut the word up to each place: a sum, and the parts.
    best: dict[int, tuple[int, list[int]]] = {0: (0, [])}
    for end in range(SHORTEST_FREQUENT, length + 1):
        for begin, (total, before) in list(best.items()):
            size = end - begin
            total += size * size
            if not SHORTEST_FREQUENT <= size < length or total <= best.get(end, (0,))[0]:
                continue  # of equal ones the first
            id_ = known_id(word[begin:end])
            if id_ and (size >= SHORTEST or id_ < frequent):
                best[end] = total, [*before, id_]
    return best.get(length, (0, []))[1]
