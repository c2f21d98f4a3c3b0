"""Tables of cases, the one way to write them; no test has parameters in another way."""

import pytest


def cases(names, *values, ids=None):
    """A test for each of the values of `names`; several are a string with commas, and tuples."""
    return pytest.mark.parametrize(names, values, ids=ids)


def word(first, number):
    """A word for a number, "qbc" for 12: in letters, since digits are words of their own."""
    return first + "".join("abcdefghij"[int(digit)] for digit in str(number))
