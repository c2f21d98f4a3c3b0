"""Tables: Markdown in files, drawn on terminals, in parts where they are too wide."""

import contextlib
import io
import re

from tf_smoothclir.utils.tables import print_table

HEADER = ["metric", "system", *(f"column {number}" for number in range(8))]
ROWS = [["NDCG@5", "first", *("[0.1234] (long)" for _ in range(8))], ["MAP", "b", *"12345678"]]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_file_gets_markdown(capsys):
    print_table(["a", "b"], [["x|y", 1]], title="Title")
    assert capsys.readouterr().out == "Title\n\n| a | b |\n| --- | --- |\n| x\\|y | 1 |\n\n"


def test_no_line_is_wider_than_the_terminal_and_no_cell_is_broken(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with contextlib.redirect_stdout(Terminal()) as terminal:
        print_table(HEADER, ROWS, keys=2)
    text = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("[0.1234] (long)") == 8
    for name in HEADER[2:]:
        assert text.count(name) == 1
    assert text.count("metric ") == len(re.findall(r"\bsystem ", text)) == text.count("NDCG@5") > 2
