"""Vocabularies: text files of tokens."""

import os

from tf_smoothclir.storage.files import open_text_to_write
from tf_smoothclir.utils.errors import input_error

PADDING, UNKNOWN = "[PAD]", "[UNK]"
PADDING_ID, UNKNOWN_ID = 0, 1


def write_vocabulary(path: str | os.PathLike, tokens: list[str]) -> None:
    """Writes one token per line; the line number, from 0, is the token's id."""
    with open_text_to_write(path) as file:
        file.writelines(f"{token}\n" for token in tokens)


def read_vocabulary(path: str | os.PathLike) -> list[str]:
    """Reads a file of `write_vocabulary`."""
    with open(path, encoding="utf-8", newline="\n") as file:
        tokens = file.read().split("\n")[:-1]
    if tokens[:2] != [PADDING, UNKNOWN]:
        reason = (
            f"a vocabulary begins with the lines {PADDING} and {UNKNOWN}, but this file with"
            f" {tokens[:2]}"
        )
        raise input_error(path, reason, "Use the file that training wrote")
    return tokens
