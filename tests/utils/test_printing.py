"""What is printed of others' texts: no control characters, any locale, JSON in UTF-8."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys

import pytest

from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.printing import markdown_table, print_table, visible_lines

CODE = """
from tf_smoothclir.utils.printing import *
print_any_text()
print("三 \\udcff")
print_json({"query": "三\\x1b\\x9b31m"})
"""


def test_control_characters_are_shown_in_lines_and_in_tables():
    assert visible_lines("a\x1b[2J\x9b\tb\nc\r\u202e") == "a␛[2J\\u009b b\nc \\u202e"
    assert str(input_error("a\x1b", "b", "c")) == "a␛: b. c."
    assert markdown_table(["a\x1b"], [["b|\nc\x07"]]) == "| a␛ |\n| --- |\n| b\\| c␇ |\n"


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", b"\\u4e09"), ("utf-8", "三".encode())])
def test_any_locale_prints_everything_and_json_is_utf8(encoding, shown):
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, stdout=subprocess.PIPE)
    text, line = done.stdout.splitlines()
    assert text == shown + b" \\udcff"
    assert b"\\u009b" in line
    assert json.loads(line.decode()) == {"query": "三\x1b\x9b31m"}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_file_gets_markdown_and_a_terminal_no_line_that_is_too_wide(capsys, monkeypatch):
    table = ["a", "b"], [["x|y", 1], ["\x1b[2J", "words " * 30]]
    print_table(["a", "b"], [["x|y", 1]], title="Title")
    assert capsys.readouterr().out == "Title\n\n| a | b |\n| --- | --- |\n| x\\|y | 1 |\n\n"
    monkeypatch.setenv("COLUMNS", "80")
    with contextlib.redirect_stdout(Terminal()) as terminal:
        print_table(*table)
    text = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("words") == 30
    assert "x|y" in text
    assert "\x1b[2J" not in text
