"""Unknown words of queries read as several known ones; `test_nearest_words` compares the graph."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from tf_smoothclir.lexical.joined_words import parts_of

FREQUENT = {"the", "ten", "web"}
RARE = {"time", "zone", "sea", "one", "tone", "at", "webs", "erver"}
IDS = {word: place for place, word in enumerate(sorted(FREQUENT) + sorted(RARE), start=2)}


def read(word):
    names = {id_: word for word, id_ in IDS.items()}
    return [names[id_] for id_ in parts_of(word, IDS.get, 2 + len(FREQUENT))]


@cases(
    "word, parts",
    ("timezone", ["time", "zone"]),
    ("zonetimezone", ["zone", "time", "zone"]),
    ("thezone", ["the", "zone"]),
    ("tenzones", []),  # `zones` is no word
    ("seazone", []),  # three letters, and rare
    ("theten", []),  # six letters
    ("thetenweb", ["the", "ten", "web"]),
    ("tenzone", ["ten", "zone"]),  # 9 + 16
    ("webserver", ["webs", "erver"]),  # not `web` and the unknown `server`
    ("time", []),  # not as itself
    ("", []),
    ("time" * 16, ["time"] * 16),
    ("time" * 17, []),  # more than 64 characters
)
def test_by_hand(word, parts):
    assert read(word) == parts


@given(st.lists(st.sampled_from([*IDS, "s"]), max_size=3).map("".join))
def test_it_is_the_cut_of_the_fewest_and_longest_parts(word):
    def is_part(begin, end):
        part = word[begin:end]
        return part in IDS and (len(part) > 3 or part in FREQUENT) and len(word) > 6

    sums = [
        sum((end - begin) ** 2 for begin, end in pairs)
        for number in range(1, len(word))
        for cuts in itertools.combinations(range(1, len(word)), number)
        if all(itertools.starmap(is_part, pairs := [*itertools.pairwise((0, *cuts, len(word)))]))
    ]
    assert sum(len(part) ** 2 for part in read(word)) == max(sums, default=0)
