"""Progress bars, nested and in threads; others' texts, printed without control characters."""

import contextlib
import io
import json
import os
import pty
import re
import select
import subprocess
import sys
from concurrent import futures

import pytest

from tests.cases import cases
from tests.command_line.forked import program
from tf_smoothclir.utils import errors, printing, progress_display
from tf_smoothclir.utils.progress import progress_bar, progress_shown

WORK = """
import time
from absl import flags, logging
from tf_smoothclir.utils.progress import progress_bar
flags.FLAGS(["program"])
logging.use_absl_handler()
logging.set_verbosity({verbosity})
with progress_bar(2000, "Epoch 1/3", "pairs", initial=500) as bar:
    bar.update(1000)
    bar.note("loss 0.125")
    logging.warning("a line of the log")
    with progress_bar(None, "Encode", "texts") as inner:
        inner.update(7)
        time.sleep(0.5)
"""
CODE = """
from tf_smoothclir.utils.printing import *
print_any_text()
print("三 \\udcff")
print_json({"query": "三\\x1b\\x9b31m"})
"""


def on_terminal(verbosity=0):
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    command = [sys.executable, "-c", WORK.format(verbosity=verbosity)]
    process = subprocess.Popen(command, stderr=theirs, stdout=theirs, env=environment)
    os.close(theirs)
    written = b""
    with contextlib.suppress(OSError):  # how Linux reports the end of a terminal
        while select.select([ours], [], [], 60)[0]:
            written += os.read(ours, 65536)
    os.close(ours)
    assert process.wait(60) == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode())


def test_a_terminal_shows_numbers_loss_and_whole_log_lines():
    shown = on_terminal()
    assert "1500 of 2000 pairs" in shown
    assert "loss 0.125" in shown
    assert re.search(r"7 of \? +texts", shown)
    assert re.search(r"[\r\n]W[^\r\n]* a line of the log\r\n", shown)
    assert max(map(len, re.split(r"[\r\n]+", shown))) <= 80


def test_quiet_by_verbosity_and_without_a_terminal_where_rich_is_not_even_loaded():
    assert "pairs" not in on_terminal(verbosity=-1)
    code = WORK.format(verbosity=0) + "import sys; assert 'rich' not in sys.modules"
    assert "pairs" not in program(code)[1]


def test_bars_of_several_threads_share_one_display_which_an_error_ends(capsys):
    def work(_):
        with progress_shown(True), progress_bar(10, "Work", "units") as bar:
            for _ in range(10):
                bar.update()

    with futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert progress_display._displays == []
    with pytest.raises(KeyboardInterrupt), progress_shown(True), progress_bar(3, "Work", "units"):
        raise KeyboardInterrupt
    assert progress_display._displays == []


def test_control_characters_are_shown_in_lines_and_in_tables():
    assert printing.visible_lines("a\x1b[2J\x9b\tb\nc\r\u202e") == "a␛[2J\\u009b b\nc \\u202e"
    assert str(errors.input_error("a\x1b", "b", "c")) == "a␛: b. c."
    assert printing.markdown_table(["a\x1b"], [["b|\nc\x07"]]) == "| a␛ |\n| --- |\n| b\\| c␇ |\n"


@cases("encoding, shown", ("ascii", b"\\u4e09"), ("utf-8", "三".encode()))
def test_any_locale_prints_everything_and_json_is_utf8(encoding, shown):
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, stdout=subprocess.PIPE)
    text, line = done.stdout.splitlines()
    assert text == shown + b" \\udcff"
    assert b"\\u009b" in line
    assert json.loads(line.decode()) == {"query": "三\x1b\x9b31m"}


def test_a_file_gets_markdown_and_a_terminal_no_line_that_is_too_wide(capsys, monkeypatch):
    printing.print_table(["a", "b"], [["x|y", 1]], title="Title")
    assert capsys.readouterr().out == "Title\n\n| a | b |\n| --- | --- |\n| x\\|y | 1 |\n\n"
    monkeypatch.setenv("COLUMNS", "80")
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    with contextlib.redirect_stdout(terminal):
        printing.print_table(*(["a", "b"], [["x|y", 1], ["\x1b[2J", "words " * 30]]))
    text = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("words") == 30
    assert "x|y" in text
    assert "\x1b[2J" not in text
