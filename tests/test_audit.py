"""`.ci/audit`: advisories of pins from a local file, and what it says where it cannot ask."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

AUDIT = Path(__file__).resolve().parents[1] / ".ci" / "audit"
RECORDS = [
    {"id": "X-1", "affected": [{"package": {"name": "Some.Package"}, "versions": ["1", "2"]}]},
    {"id": "X-2", "affected": [{"package": {"name": "other"}, "versions": ["3"]}]},
]


@pytest.mark.parametrize(
    ("advisories", "more", "error"),
    [
        ("osv.jsonl", "  some-package 2: X-1\n", ""),
        ("missing", "", "advisories were not asked for"),  # the ages are what it says then
    ],
)
def test_advisories_of_a_local_file_are_listed(tmp_path, advisories, more, error):
    pins = "# Exact versions\nsome-package==2\nother==3.1 ; python_version < '3.12'\n"
    (tmp_path / "pins.txt").write_text(pins)
    (tmp_path / "osv.jsonl").write_text("".join(json.dumps(one) + "\n" for one in RECORDS))
    command = [sys.executable, AUDIT, "pins.txt", f"--advisories={advisories}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"pins.txt: 2 pins, of unknown age\n{more}"
    assert error in done.stderr


def test_constraints_of_the_checkout_have_pins():
    paths = [*(AUDIT.parents[1] / "constraints").glob("*.txt")]
    assert min(len(runpy.run_path(str(AUDIT))["pins_of"](path)) for path in paths) > 50
