"""Tables: Markdown in files, drawn on terminals."""

import contextlib
import io
import re

from tf_smoothclir.utils.tables import print_table


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
