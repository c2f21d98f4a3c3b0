"""Progress bars: shown on terminals only, and not with `--verbosity=-1`."""

from __future__ import annotations

import sys

import tqdm
from absl import logging


def progress_bar(total: int | None, description: str, unit: str, **kwargs) -> tqdm.tqdm:
    """Returns a progress bar on standard error, a context manager with `update(n)`.

    Args:
        total: Number of units in all; None if unknown.
        description: The work in progress, such as "Tokenise documents".
        unit: Plural of the unit, such as "pairs".
        **kwargs: Further arguments of `tqdm.tqdm`.
    """
    quiet = logging.get_verbosity() < logging.INFO or not sys.stderr.isatty()
    return tqdm.tqdm(
        total=total,
        desc=description,
        unit=f" {unit}",
        unit_scale=True,
        disable=quiet,
        leave=False,
        dynamic_ncols=True,
        **kwargs,
    )
