"""Tables of cases, the one way to write them; no test has parameters in another way."""

import pytest


def cases(names, *values, ids=None):
    """A test for each of the values of `names`; several are a string with commas, and tuples."""
    return pytest.mark.parametrize(names, values, ids=ids)
