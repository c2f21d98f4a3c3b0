"""This stack against `golden.json`, which one of the two has written: `python -m tests.golden`."""

import json

import numpy as np

from tests import golden
from tests.cases import cases

WRITTEN = json.loads(golden.PATH.read_text(encoding="utf-8"))["cases"]
TOLERANCE = 1e-6
# Adam divides by the root of mean squares: a rounding error of the gradient is not small there.
TOLERANCE_OF_STEPS = 1e-5


def test_the_file_has_every_case_and_no_trivial_one():
    assert set(WRITTEN) == set(golden.CASES)
    assert all(any(value["numbers"]) for parts in WRITTEN.values() for value in parts.values())


@cases("name", *golden.CASES)
def test_numbers_are_those_of_the_other_stack(name):
    found, expected = golden.plain(golden.CASES[name]()), WRITTEN[name]
    assert set(found) == set(expected)
    tolerance = TOLERANCE_OF_STEPS if name.startswith("steps") else TOLERANCE
    for part, value in expected.items():
        assert found[part]["shape"] == value["shape"], part
        numbers = [np.array(of["numbers"], float) for of in (found[part], value)]  # None is NaN
        np.testing.assert_allclose(*numbers, rtol=tolerance, atol=tolerance, err_msg=part)
