"""Apache Beam, an optional dependency that spreads work over many machines."""

from __future__ import annotations

from tf_smoothclir.utils.errors import input_error


def load_beam():
    """The module `apache_beam`."""
    try:
        import apache_beam
    except ImportError as error:
        reason = f"it needs Apache Beam ({error})"
        raise input_error("--beam", reason, "pip install '.[beam]' in the checkout") from None
    return apache_beam
