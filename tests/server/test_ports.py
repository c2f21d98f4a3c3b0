"""A busy port is noticed before models are loaded."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tf_smoothclir.server.ports import check_ports
from tf_smoothclir.utils.errors import InputError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def busy():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.mark.parametrize("flag", ["--port", "--rest_api_port"])
def test_the_command_names_a_busy_port_before_it_loads_anything(busy, tmp_path, flag):
    # The export is empty: whoever looked for models first would say that.
    done = subprocess.run(
        [sys.executable, "-m", "export.serve", f"{flag}={busy}", f"--export_dir={tmp_path}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert f"error: {flag}={busy}: the port cannot be used" in done.stderr


def test_free_ports_stay_free(busy):
    with socket.create_server(("127.0.0.1", 0)) as other:
        free = other.getsockname()[1]
    check_ports("127.0.0.1", {"--port": 0, "--rest_api_port": free})
    check_ports("localhost", {"--rest_api_port": free})
    with pytest.raises(InputError, match=f"--port={busy}: the port cannot be used"):
        check_ports("127.0.0.1", {"--rest_api_port": free, "--port": busy})
