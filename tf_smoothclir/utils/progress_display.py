"""The bars of `progress`, drawn by rich: all of a process in one block, log lines above it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from absl import logging
from rich.console import Console
from rich.file_proxy import FileProxy
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


class _Counts(ProgressColumn):
    """Counts and speed of a bar: "12.3k of 56.0k pairs, 4.4k/s"."""

    def render(self, task: Task) -> Text:
        total = "" if task.total is None else f" of {short(task.total)}"
        speed = f", {short(task.speed)}/s" if task.speed else ""
        return Text(f"{short(task.completed)}{total} {task.fields['unit']}{speed}", no_wrap=True)


def short(number: float) -> str:
    """A number in at most five characters, such as "999", "12.3k" and "4.56M"."""
    for divisor, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * divisor:
            return f"{number / divisor:#.3g}".rstrip(".") + unit
    return f"{number:.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"


class _Display:
    """The block of bars at the bottom of the terminal, as long as there are any."""

    def __init__(self):
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._bars = 0

    def open(self, total: int | None, description: str, unit: str, initial: int) -> _ShownBar:
        with self._lock:
            if self._progress is None:
                self._progress = _progress()
                self._progress.start()
                # The handler writes to the stream that it has found at its start.
                handler = logging.get_absl_handler().python_handler
                self._stream = handler.stream
                handler.setStream(FileProxy(self._progress.console, self._stream))
            self._bars += 1
            added = self._progress.add_task(
                description, total=total, completed=initial, unit=unit, note=""
            )
            return _ShownBar(self._progress, added)

    def close(self, bar: _ShownBar) -> None:
        with self._lock:
            bar.progress.remove_task(bar.task)
            self._bars -= 1
            if not self._bars:
                self._progress.stop()
                self._progress = None
                logging.get_absl_handler().python_handler.setStream(self._stream)


class _ShownBar:
    """A line of the display."""

    def __init__(self, progress: Progress, task):
        self.progress, self.task = progress, task

    def update(self, number: int = 1) -> None:
        self.progress.advance(self.task, number)

    def note(self, text: str) -> None:
        self.progress.update(self.task, note=text)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        _Counts(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[note]}", markup=False, style="dim"),
        console=Console(stderr=True, highlight=False),
        transient=True,
        refresh_per_second=5,
    )


_DISPLAY = _Display()


@contextlib.contextmanager
def shown_bar(total: int | None, description: str, unit: str, initial: int) -> Iterator[_ShownBar]:
    """Shows a bar inside the context; the arguments are those of `progress_bar`."""
    bar = _DISPLAY.open(total, description, unit, initial)
    try:
        yield bar
    finally:
        _DISPLAY.close(bar)
