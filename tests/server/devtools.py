"""A headless Chromium driven over its DevTools pipe, with the standard library alone."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


class Tab:
    def __init__(self, reader, writer):
        self._reader, self._writer, self._number, self._session = reader, writer, 0, None
        self._buffer = b""
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]

    def call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._writer.write(json.dumps(message).encode() + b"\0")
        self._writer.flush()
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _read(self):
        while b"\0" not in self._buffer:
            piece = self._reader.read(1 << 16)
            assert piece, "the browser has gone"
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def close(self):
        self._session = None
        self.call("Browser.close")

    def open(self, url):
        self.call("Page.navigate", url=url)

    def evaluate(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait_for(self, script, seconds=20):
        end = time.monotonic() + seconds
        while not self.evaluate(script):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.05)

    def press(self, key, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, text=text)

    def type(self, text):
        self.call("Input.insertText", text=text)


@contextlib.contextmanager
def browser():
    """Yields a `Tab`; skips where there is no Chromium."""
    command = next(filter(None, map(shutil.which, NAMES)), None)
    if command is None:
        pytest.skip(f"none of {', '.join(NAMES)} on the PATH: the page is not tried out")
    to_browser, from_us = os.pipe()
    to_us, from_browser = os.pipe()
    profile = tempfile.mkdtemp()
    # The protocol is on the descriptors 3 and 4.
    shell = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
    options = ["--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"]
    child = subprocess.Popen(
        ["/bin/bash", "-c", shell, command, *options, f"--user-data-dir={profile}"],
        pass_fds=(to_browser, from_browser),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        with os.fdopen(to_us, "rb", 0) as reader, os.fdopen(from_us, "wb") as writer:
            tab = Tab(reader, writer)
            yield tab
            tab.close()
        child.wait(20)
    finally:
        child.kill()
        child.wait()
        shutil.rmtree(profile, ignore_errors=True)
