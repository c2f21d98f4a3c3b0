"""The loss that Python gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorflow import keras

from tf_smoothclir.settings.given import given_object


class GivenLoss:
    """Stands for a loss object among the loss classes."""

    settings = ()
    needs_lists = False  # the object may: it says so when the model is compiled

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> keras.losses.Loss:
        """The loss object."""
        return given_object(settings["objects"], "loss")
