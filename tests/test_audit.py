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


@pytest.fixture
def files(tmp_path):
    pins = "# Exact versions\nsome-package==2\nother==3.1 ; python_version < '3.12'\n"
    (tmp_path / "pins.txt").write_text(pins)
    (tmp_path / "osv.jsonl").write_text("".join(json.dumps(one) + "\n" for one in RECORDS))
    return tmp_path


def audit(files, *flags):
    command = [sys.executable, AUDIT, "pins.txt", *flags]
    return subprocess.run(command, cwd=files, capture_output=True, text=True, check=True)


def test_advisories_of_a_local_file_are_listed(files):
    lines = audit(files, "--advisories=osv.jsonl").stdout.splitlines()
    assert lines == ["pins.txt: 2 pins, of unknown age", "  some-package 2: X-1"]


def test_without_an_answer_the_ages_are_what_it_says(files):
    done = audit(files, "--advisories=missing")
    assert done.stdout == "pins.txt: 2 pins, of unknown age\n"
    assert "advisories were not asked for" in done.stderr


def test_the_database_is_asked_for_each_pin_at_once(monkeypatch):
    module = runpy.run_path(str(AUDIT))
    sent = []

    class Answer:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def read(self):
            return b'{"results": [{"vulns": [{"id": "X-1"}]}, {}]}'

    def urlopen(request, timeout):
        sent.append((json.loads(request.data), timeout))
        return Answer()

    monkeypatch.setattr(module["urllib"].request, "urlopen", urlopen)
    assert module["asked"]([("a", "1"), ("b", "2")]) == [("a", "1", "X-1")]
    ((body, timeout),) = sent
    assert [query["version"] for query in body["queries"]] == ["1", "2"]
    assert timeout <= 20


def test_constraints_of_the_checkout_have_pins():
    pins = runpy.run_path(str(AUDIT))["pins_of"]
    for path in (AUDIT.parents[1] / "constraints").glob("*.txt"):
        assert len(pins(path)) > 50
