"""`scipy.sparse`, imported when something of it is used: a search takes less time than that."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module("scipy.sparse"), name)
