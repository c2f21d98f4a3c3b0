"""Scripts that are written without spaces between words."""

from __future__ import annotations

import unicodedata

_UNSPACED = (
    *("CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA"),
    *("THAI", "LAO", "KHMER", "MYANMAR"),
)


def is_unspaced(token: str) -> bool:
    """Whether a token is of a script whose words stand together, each character a token."""
    return unicodedata.name(token[0], "").startswith(_UNSPACED)
