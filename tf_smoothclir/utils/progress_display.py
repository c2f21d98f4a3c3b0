"""The bars of `progress`, drawn by rich: all of a process in one block, log lines above it."""

import contextlib
import threading
from collections.abc import Iterator

from absl import logging
from rich import progress
from rich.console import Console
from rich.file_proxy import FileProxy


class _Display(progress.Progress):
    """The block of bars at the bottom of the terminal, as long as there are any."""

    def __init__(self):
        super().__init__(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(bar_width=20),
            progress.MofNCompleteColumn(" of "),
            progress.TextColumn("{task.fields[unit]}", markup=False),
            progress.TimeRemainingColumn(compact=True),
            progress.TextColumn("{task.fields[note]}", markup=False, style="dim"),
            console=Console(stderr=True, highlight=False),
            transient=True,
            refresh_per_second=5,
        )
        # The handler writes to the stream that it has found at its start.
        self._handler = logging.get_absl_handler().python_handler
        self._stream = self._handler.stream

    def start(self) -> None:
        super().start()
        self._handler.setStream(FileProxy(self.console, self._stream))

    def stop(self) -> None:
        super().stop()
        self._handler.setStream(self._stream)


class _ShownBar:
    """A line of the display."""

    def __init__(self, display: progress.Progress, task: progress.TaskID):
        self._display, self._task = display, task

    def update(self, done: int = 1) -> None:
        self._display.advance(self._task, done)

    def note(self, text: str) -> None:
        self._display.update(self._task, note=text)


_opening = threading.Lock()
_displays: list[_Display] = []  # at most one


@contextlib.contextmanager
def shown_bar(total: int | None, description: str, unit: str, initial: int) -> Iterator[_ShownBar]:
    """Shows a bar inside the context; the arguments are those of `progress_bar`."""
    with _opening:
        if not _displays:
            _displays.append(_Display())
            _displays[0].start()
        (display,) = _displays
        task = display.add_task(description, total=total, completed=initial, unit=unit, note="")
    try:
        yield _ShownBar(display, task)
    finally:
        with _opening:
            display.remove_task(task)
            if not display.task_ids:
                _displays.clear()
                display.stop()
