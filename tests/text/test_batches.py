"""Batches: how many items, how many characters."""

import pytest

from tf_smoothclir.text import batches
from tf_smoothclir.text.batches import in_batches, text_batches


@pytest.mark.parametrize(
    ("items", "expected"), [([], []), ([1, 2], [[1, 2]]), ([1, 2, 3], [[1, 2], [3]])]
)
def test_batches_have_a_number_of_items(items, expected):
    assert list(in_batches(iter(items), 2)) == expected


def test_text_batches_end_at_a_number_of_texts_or_of_characters(monkeypatch):
    monkeypatch.setattr(batches, "TEXTS_PER_BATCH", 3)
    monkeypatch.setattr(batches, "CHARACTERS_PER_BATCH", 10)
    assert list(text_batches([])) == []
    assert list(text_batches(iter("abcd"))) == [["a", "b", "c"], ["d"]]
    assert list(text_batches("abc")) == [["a", "b", "c"]]
    long = "x" * 99
    assert list(text_batches([long, "a", "bc" * 5, "d"])) == [[long], ["a", "bc" * 5], ["d"]]
