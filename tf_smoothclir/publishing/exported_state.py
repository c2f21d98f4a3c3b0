"""The models of plug-in families in an export: a directory of arrays for each of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tf_smoothclir.storage.digests import digest_as_saved

ROLE = "family"


class ExportedState:
    """Published models as a part of an export, for `publish_version`; no SavedModel."""

    def __init__(self, family: Any, model: Any, before: ExportedState | None = None):
        self.pair_id = ""
        self._models = [*(before._models if before else ()), (family, model)]

    def save(self, path: str | os.PathLike) -> None:
        """Writes everything into a directory."""
        Path(path).mkdir(exist_ok=True)
        for family, model in self._models:
            family.save(model, Path(path, family.name))

    def digest(self) -> str:
        """A digest of everything that determines the scores."""
        return digest_as_saved(self.save)
