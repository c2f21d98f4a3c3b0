"""Doing something when a library is loaded, by whoever needs it first."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager


def around_import(library: str, context: Callable[[], AbstractContextManager]) -> None:
    """Has the first import of a library take place inside of a context.

    Args:
        library: Name of a package that has not been imported.
        context: Makes the context; called when the import begins, if ever.
    """
    sys.meta_path.insert(0, _Finder(library, context))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one package, once, where Python does."""

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
