"""Tables of cases."""

import pytest


def cases(names, *values, ids=None):
    """A test for each of the values of `names`; several are a string with commas, and tuples."""
    return pytest.mark.parametrize(names, values, ids=ids)
