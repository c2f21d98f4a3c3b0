"""Progress bars: on terminals only, and not with `--verbosity=-1`, unless a program decides."""

import contextlib
import contextvars
import sys
from collections.abc import Iterator

from absl import logging

_decided: contextvars.ContextVar[bool] = contextvars.ContextVar("progress")


class Bar:
    """Counter of the units of a piece of work that are done; this one is not seen."""

    def update(self, done: int = 1) -> None:
        """Counts so many more units."""

    def note(self, text: str) -> None:
        """Shows a short text after the numbers, such as the current loss."""


@contextlib.contextmanager
def progress_shown(shown: bool | None) -> Iterator[None]:
    """Shows progress bars inside the context, or none."""
    is_watched = sys.stderr.isatty() or "ipykernel" in sys.modules
    token = _decided.set(is_watched if shown is None else shown)
    try:
        yield
    finally:
        _decided.reset(token)


@contextlib.contextmanager
def progress_bar(
    total: int | None, description: str, unit: str, *, initial: int = 0
) -> Iterator[Bar]:
    """Shows a progress bar on standard error inside the context."""
    shown = _decided.get(None)
    if shown is None:
        shown = logging.get_verbosity() >= logging.INFO and sys.stderr.isatty()
    if not shown:
        yield Bar()
        return
    from tf_smoothclir.utils.progress_display import shown_bar  # loading it takes a moment

    with shown_bar(total, description, unit, initial) as bar:
        yield bar
