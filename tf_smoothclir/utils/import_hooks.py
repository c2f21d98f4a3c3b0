"""Running code around the first import of a library, whoever imports it."""

import contextlib
import functools
import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

# Keras 3 loads these because it can work with them: 1 s and 150 MB for what no command gives it.
OFFERS_OF_KERAS = ("matplotlib", "pandas", "sklearn")


def around_import(library: str, context: Callable[[], AbstractContextManager]) -> None:
    """Runs the first import of a library inside a context."""
    sys.meta_path.insert(0, _Finder(library, context))


@contextlib.contextmanager
def hiding(*libraries: str) -> Iterator[None]:
    """Lets what is imported inside the context find none of these libraries."""
    hidden = [library for library in libraries if library not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # None: as if it were not installed
    try:
        yield
    finally:
        for library in hidden:
            del sys.modules[library]


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one package once, in the place where Python would find it."""

    def __init__(self, library, context):
        self._library = library
        self._context = context

    def find_spec(self, name, path=None, target=None):
        if name != self._library:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec:
            execute = functools.partial(_execute, self._context, spec.loader.exec_module)
            spec.loader.exec_module = execute
        return spec


def _execute(context, execute, module) -> None:
    with context():
        execute(module)
