"""Milvus Lite for tests, where it is installed."""

import importlib.util

import pytest

_missing = [name for name in ("pymilvus", "milvus_lite") if not importlib.util.find_spec(name)]
needs_milvus = pytest.mark.skipif(
    bool(_missing), reason=f"{' and '.join(_missing)}: an extra, .[milvus], from Python 3.12 on"
)
