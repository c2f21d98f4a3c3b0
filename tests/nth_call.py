"""A fault at one call of a function."""

import itertools


def at_call(number, function, fault):
    """`function`, whose call `number`, from 1, is preceded by `fault()`."""
    calls = itertools.count(1)

    def faulty(*arguments, **keywords):
        if next(calls) == number:
            fault()
        return function(*arguments, **keywords)

    return faulty
