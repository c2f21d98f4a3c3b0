"""Progress bars: drawn on a terminal, silent with `--verbosity=-1` and everywhere else."""

from __future__ import annotations

import sys

import tqdm
from absl import logging


def progress_bar(total: int | None, description: str, unit: str, **kwargs) -> tqdm.tqdm:
    """Returns a bar on standard error, a context manager with `update(n)`.

    Args:
        total: Number of units that make it full; None where it is not known.
        description: What is going on, such as "Tokenise documents".
        unit: Plural name of the units, such as "pairs".
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
