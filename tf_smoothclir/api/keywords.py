"""Types of arguments that several functions of the Python interface take."""

from __future__ import annotations

import os
from typing import Union

PathText = Union[str, "os.PathLike[str]"]
