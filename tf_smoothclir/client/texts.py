"""Texts as requests carry them: bytes."""

from __future__ import annotations

from collections.abc import Sequence

from tf_smoothclir.utils.errors import input_error


def texts_as_bytes(argument: str, texts: Sequence[str | bytes]) -> list[bytes]:
    """Texts as UTF-8.

    Args:
        texts: Strings, or bytes, which stay as they are.
    """
    if isinstance(texts, (str, bytes)):
        raise input_error(argument, f"it is a single text, {texts!r}", "Give a list of texts")
    return [_as_bytes(argument, text) for text in texts]


def _as_bytes(argument: str, text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise input_error(argument, f"{text!r} is no text", "Give strings or bytes")
    try:
        return text.encode("utf-8", "surrogateescape")  # arguments that are not UTF-8
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")
