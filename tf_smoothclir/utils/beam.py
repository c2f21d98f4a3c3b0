"""Apache Beam, an optional dependency that spreads work over many machines, and its pipelines."""

from __future__ import annotations

from collections.abc import Sequence

from tf_smoothclir.utils.errors import input_error


def load_beam():
    """The module `apache_beam`."""
    try:
        import apache_beam
    except ImportError as error:
        raise input_error(
            "--beam", f"it needs Apache Beam ({error})", "pip install '.[beam]' in the checkout"
        ) from None
    return apache_beam


def new_pipeline(options: Sequence[str]):
    """A pipeline that runs at the end of its `with` block."""
    beam = load_beam()
    from apache_beam.options.pipeline_options import PipelineOptions

    try:
        return beam.Pipeline(options=PipelineOptions(list(options)))
    except ValueError as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise input_error("--beam", reason, "Give pipeline options of Apache Beam") from None
