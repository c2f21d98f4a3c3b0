"""Progress bars: on terminals only, and not with `--verbosity=-1`, unless a program decides."""

from __future__ import annotations

import contextlib
import contextvars
import sys
from collections.abc import Iterator

import tqdm
from absl import logging

_decided: contextvars.ContextVar[bool] = contextvars.ContextVar("progress")


@contextlib.contextmanager
def progress_shown(shown: bool | None) -> Iterator[None]:
    """Shows progress bars inside the context, or none.

    Args:
        shown: None shows them on a terminal and in a notebook.
    """
    token = _decided.set(_is_watched() if shown is None else shown)
    try:
        yield
    finally:
        _decided.reset(token)


def _is_watched() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def progress_bar(total: int | None, description: str, unit: str, **kwargs) -> tqdm.tqdm:
    """Returns a progress bar on standard error, a context manager with `update(n)`.

    Args:
        total: Number of units in all; None if unknown.
        description: The work in progress, such as "Tokenise documents".
        unit: Plural of the unit, such as "pairs".
        **kwargs: Further arguments of `tqdm.tqdm`.
    """
    shown = _decided.get(None)
    if shown is None:
        shown = logging.get_verbosity() >= logging.INFO and sys.stderr.isatty()
    return tqdm.tqdm(
        total=total,
        desc=description,
        unit=f" {unit}",
        unit_scale=True,
        disable=not shown,
        leave=False,
        dynamic_ncols=True,
        **kwargs,
    )
