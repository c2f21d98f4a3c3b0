"""Marks of tests that Apache Beam takes part in, which is an extra."""

import importlib.util

import pytest

HAS_BEAM = importlib.util.find_spec("apache_beam") is not None
LOCAL_RUNNER = ["--runner=DirectRunner"]
needs_beam = pytest.mark.skipif(not HAS_BEAM, reason="Apache Beam is an extra, .[beam]")
without_beam = pytest.mark.skipif(HAS_BEAM, reason="Apache Beam is installed")
