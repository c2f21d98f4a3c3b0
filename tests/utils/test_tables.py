"""Tables: Markdown in files, drawn on terminals, in parts where they are too wide."""

import contextlib
import io
import re

import pytest

from tf_smoothclir.utils.tables import print_table

HEADER = ["metric", "system", *(f"column {number}" for number in range(8))]
ROWS = [["NDCG@5", "first", *("[0.1234] (long)" for _ in range(8))], ["MAP", "b", *"12345678"]]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 80 columns; `printed(...)` returns what `print_table` writes to it."""
    monkeypatch.setenv("COLUMNS", "80")

    def printed(*args, **kwargs):
        with contextlib.redirect_stdout(Terminal()) as terminal:
            print_table(*args, **kwargs)
        return re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())

    return printed


def test_a_file_gets_markdown(capsys):
    print_table(["a", "b"], [["x|y", 1]], title="Title")
    assert capsys.readouterr().out == "Title\n\n| a | b |\n| --- | --- |\n| x\\|y | 1 |\n\n"


def test_no_line_is_wider_than_the_terminal_and_no_cell_is_broken(terminal):
    text = terminal(HEADER, ROWS, keys=2)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("[0.1234] (long)") == 8
    for name in HEADER[2:]:
        assert text.count(name) == 1
    assert text.count("metric ") == len(re.findall(r"\bsystem ", text)) == text.count("NDCG@5") > 2
