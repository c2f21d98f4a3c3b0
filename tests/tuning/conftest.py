"""The tiny set of the training tests, and an oracle on a made-up metric."""

from tests.training.conftest import tiny, tiny_dir  # noqa: F401
