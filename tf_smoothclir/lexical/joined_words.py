"""Unknown words of queries that are known words written as one: compounds, hashtags, codes.

`timezone` is read as `time` and `zone`, `ab0002` as `ab` and `0002`. Parts are words of the
vocabulary. They have four characters or more, three if they are among its frequent
tenth, which most fragments are not, and the word has seven or more: shorter ones are often typing
errors. Between two digits nothing is cut; a run of digits, and one of letters beside digits, may be
of any length. Of all ways to cut a word, that with the largest sum of squared lengths counts: few
and long parts.
"""

import itertools
from collections.abc import Callable

SHORTEST, SHORTEST_FREQUENT, SHORTEST_WORD = 4, 3, 7
FREQUENT = 0.1  # of a vocabulary, whose first words are the most frequent ones
LONGEST = 64  # characters of a word that is cut


def parts_of(word: str, known_id: Callable[[str], int | None], frequent: int) -> list[int]:
    """The ids of the parts of a word; none where it cannot be cut.

    `known_id` gives the id of a part, none or 0 for others; those below `frequent` are of frequent
    words.
    """
    length, are_digits = len(word), [character in "0123456789" for character in word]
    if length > LONGEST:
        return []
    is_long = length >= SHORTEST_WORD
    neighbours = list(itertools.pairwise(are_digits))
    cuts = [place for place, pair in enumerate(neighbours, start=1) if not all(pair)]
    changes = {0, length, *(place for place in cuts if any(neighbours[place - 1]))}
    # The best way to cut the word up to each place: a sum, and the parts.
    best: dict[int, tuple[int, list[int]]] = {0: (0, [])}
    for end in (*cuts, length):
        for begin, (total, before) in list(best.items()):
            size, is_run = end - begin, {begin, end} <= changes
            total += size * size
            if size == length or not (is_run or (size >= SHORTEST_FREQUENT and is_long)):
                continue
            if end in best and total <= best[end][0]:  # of equal ones the first
                continue
            id_ = known_id(word[begin:end])
            if id_ and (is_run or size >= SHORTEST or id_ < frequent):
                best[end] = total, [*before, id_]
    return best.get(length, (0, []))[1]
