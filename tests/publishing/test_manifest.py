"""Manifests: every change of a file is seen, and a damaged manifest is a message, not a crash."""

import hashlib
import json

import pytest

from tf_smoothclir.publishing.manifest import check_files, check_pair, hash_files, read_manifest
from tf_smoothclir.utils.errors import InputError

WHOLE = {
    "role": "query",
    "version": 3,
    "pair_id": "0" * 64,
    "dim": 2,
    "thresholds": [0.2, 0.7],
    "files": {},
}


@pytest.fixture
def part(tmp_path):
    """A directory with two files, one of them deeper, and its manifest."""
    (tmp_path / "variables").mkdir()
    (tmp_path / "saved_model.pb").write_bytes(b"graph")
    (tmp_path / "variables" / "data").write_bytes(b"weights")
    manifest = {**WHOLE, "files": hash_files(tmp_path)}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    return tmp_path


def test_manifest_that_was_written_is_read(part):
    manifest = read_manifest(part, "query")
    assert manifest["version"] == 3
    check_files(part, manifest, "Do it again")


def test_hashes_are_those_of_the_whole_files(part):
    assert hash_files(part) == {
        "saved_model.pb": hashlib.sha256(b"graph").hexdigest(),
        "variables/data": hashlib.sha256(b"weights").hexdigest(),
    }


def test_file_of_several_reads_is_hashed_whole(part):
    content = bytes(range(250)) * 10_000  # 2.5 MB
    (part / "large").write_bytes(content)
    assert hash_files(part)["large"] == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"{",
        b"[]",
        b"null",
        b"3",
        b"\xff\xfe",
        b"[" * 100_000,
        *(json.dumps({k: v for k, v in WHOLE.items() if k != key}).encode() for key in WHOLE),
        *(json.dumps({**WHOLE, key: None}).encode() for key in WHOLE),
        json.dumps({**WHOLE, "version": "3"}).encode(),
        json.dumps({**WHOLE, "files": {"saved_model.pb": 5}}).encode(),
        json.dumps({**WHOLE, "files": ["saved_model.pb"]}).encode(),
        json.dumps({**WHOLE, "role": "document"}).encode(),
    ],
)
def test_manifest_that_cannot_be_used_is_named_with_a_remedy(tmp_path, content):
    if content is not None:
        (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(
        InputError, match=r"manifest\.json: this is no manifest of the role 'query'\. .*anew\."
    ):
        read_manifest(tmp_path, "query")


@pytest.mark.parametrize("name", ["saved_model.pb", "variables/data"])
@pytest.mark.parametrize("change", ["flip a bit", "truncate", "append", "delete"])
def test_change_of_a_file_is_named(part, name, change):
    content = (part / name).read_bytes()
    if change == "delete":
        (part / name).unlink()
    else:
        flipped = bytes([content[0] ^ 1]) + content[1:]
        changed = {"flip a bit": flipped, "truncate": content[:-1], "append": content + b"\0"}
        (part / name).write_bytes(changed[change])
    with pytest.raises(InputError, match=f"{name}: the file is not .* written. Do it again."):
        check_files(part, read_manifest(part, "query"), "Do it again")


@pytest.mark.parametrize("name", ["more", "variables/manifest.json"])
def test_file_that_was_added_is_named(part, name):
    (part / name).write_text("{}")
    with pytest.raises(InputError, match=f"{name}: the file is not"):
        check_files(part, read_manifest(part, "query"), "Do it again")


def test_name_that_leads_out_of_the_directory_is_not_read(part):
    manifest = read_manifest(part, "query")
    manifest["files"]["../secret"] = "0" * 64
    with pytest.raises(InputError, match="secret: the file is not"):
        check_files(part, manifest, "Do it again")


def test_parts_of_two_runs_do_not_belong_together():
    check_pair(WHOLE, {**WHOLE, "role": "document"})
    other = {**WHOLE, "role": "index", "version": 4, "pair_id": "1" * 64}
    with pytest.raises(InputError, match="query 3 and index 4: they come from different training"):
        check_pair(WHOLE, other)
