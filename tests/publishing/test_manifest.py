"""Manifests: every changed file is found, and a damaged manifest is an error message."""

import dataclasses
import hashlib
import json

import pytest

from tf_smoothclir.publishing.manifest import (
    ExportManifest,
    check_files,
    check_pair,
    digests_below,
)
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.digests import with_own_digest
from tf_smoothclir.utils.errors import InputError

WHOLE = {
    "role": "query",
    "version": 3,
    "pair_id": "0" * 64,
    "dim": 2,
    "epsilon": 0.5,
    "thresholds": [0.2, 0.7],
    "data": dataclasses.asdict(DataSettings(toy_entities=300)),
    "cut_points": {"scores": [0.3, 0.6], "shares": [0.5, 0.9], "alone": [0.2, 0.7]},
    "parts": ["query", "document"],
    "files": {},
}


@pytest.fixture
def part(tmp_path):
    """A directory with two files, one of them deeper, and its manifest."""
    (tmp_path / "variables").mkdir()
    (tmp_path / "saved_model.pb").write_bytes(b"graph")
    (tmp_path / "variables" / "data").write_bytes(b"weights")
    manifest = with_own_digest({**WHOLE, "files": digests_below(tmp_path)})
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    return tmp_path


def test_manifest_that_was_written_is_read(part):
    manifest = ExportManifest.read(part, ["query"])
    assert manifest.version == 3
    check_files(part, manifest, "Do it again")


def test_digests_cover_whole_files(part):
    assert digests_below(part) == {
        "saved_model.pb": hashlib.sha256(b"graph").hexdigest(),
        "variables/data": hashlib.sha256(b"weights").hexdigest(),
    }


def test_digest_of_a_large_file_covers_all_of_it(part):
    content = bytes(range(250)) * 10_000  # 2.5 MB
    (part / "large").write_bytes(content)
    assert digests_below(part)["large"] == hashlib.sha256(content).hexdigest()


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
        json.dumps({**WHOLE, "version": True}).encode(),
        json.dumps({**WHOLE, "data": {"unknown": 1}}).encode(),
        json.dumps({**WHOLE, "data": {"toy_entities": 1}}).encode(),
        json.dumps({**WHOLE, "files": {"saved_model.pb": 5}}).encode(),
        json.dumps({**WHOLE, "files": ["saved_model.pb"]}).encode(),
        json.dumps({**WHOLE, "role": "document"}).encode(),
        *(
            json.dumps({**WHOLE, "parts": wrong}).encode()
            for wrong in (None, "query", [], ["q"], [1])
        ),
    ],
)
def test_unusable_manifest_is_named_with_a_remedy(tmp_path, content):
    if content is not None:
        (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(
        InputError,
        match=r"manifest\.json: this is not a manifest with the role 'query' \(.+\)\. .*again\.",
    ):
        ExportManifest.read(tmp_path, ["query"])


@pytest.mark.parametrize("name", ["saved_model.pb", "variables/data"])
@pytest.mark.parametrize("change", ["flip a bit", "truncate", "append", "delete"])
def test_changed_file_is_named(part, name, change):
    content = (part / name).read_bytes()
    if change == "delete":
        (part / name).unlink()
    else:
        flipped = bytes([content[0] ^ 1]) + content[1:]
        changed = {"flip a bit": flipped, "truncate": content[:-1], "append": content + b"\0"}
        (part / name).write_bytes(changed[change])
    with pytest.raises(InputError, match=f"{name}: the file is not .* written. Do it again."):
        check_files(part, ExportManifest.read(part, ["query"]), "Do it again")


@pytest.mark.parametrize("name", ["more", "variables/manifest.json"])
def test_added_file_is_named(part, name):
    (part / name).write_text("{}")
    with pytest.raises(InputError, match=f"{name}: the file is not"):
        check_files(part, ExportManifest.read(part, ["query"]), "Do it again")


def test_name_that_leads_out_of_the_directory_is_not_read(part):
    manifest = ExportManifest.read(part, ["query"])
    manifest.digests["../secret"] = "0" * 64
    with pytest.raises(InputError, match="secret: the file is not"):
        check_files(part, manifest, "Do it again")


def test_parts_of_two_runs_do_not_belong_together(part):
    query = ExportManifest.read(part)
    check_pair(query, dataclasses.replace(query, role="document"))
    other = dataclasses.replace(query, role="document", version=4, pair_id="1" * 64)
    with pytest.raises(InputError, match="query 3 and document 4: they come from different train"):
        check_pair(query, other)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": "3"}, "its entry 'version' is '3'"),
        ({"role": "document"}, "its role is 'document'"),
        ({"files": {"saved_model.pb": 5}}, "its entry 'files' holds something other than digests"),
    ],
)
def test_error_says_what_is_wrong_with_a_manifest(tmp_path, change, reason):
    (tmp_path / "manifest.json").write_text(json.dumps({**WHOLE, **change}))
    with pytest.raises(InputError, match=reason):
        ExportManifest.read(tmp_path, ["query"])


@pytest.mark.parametrize(
    "added",
    [
        {},
        {
            "tables": {
                "type": "int8",
                "largest_distance": 0.01,
                "exact": {"full/MRR@10": 0.8},
                "narrow": {"full/MRR@10": 0.79},
            },
        },
        {"parts": ["lexical"], "role": "lexical", "dim": 0, "epsilon": 0.0},
        {"parts": ["query", "document", "lexical"], "role": "search", "documents": 7, "depth": 5},
    ],
)
def test_manifest_is_written_as_it_was_read(tmp_path, added):
    entries = {**WHOLE, **added}
    files = entries.pop("files")
    written = with_own_digest({**entries, "files": files})
    content = json.dumps(written, indent=2) + "\n"
    (tmp_path / "manifest.json").write_text(content)
    ExportManifest.read(tmp_path).write(tmp_path)
    assert (tmp_path / "manifest.json").read_text() == content


@pytest.mark.parametrize(
    "change", [{"dim": 3}, {"epsilon": 0.25}, {"thresholds": [0.2, 0.6]}, {"digest": "0" * 64}]
)
def test_changed_entry_of_a_manifest_is_found(part, change):
    ExportManifest.read(part).write(part)
    entries = json.loads((part / "manifest.json").read_text())
    (part / "manifest.json").write_text(json.dumps({**entries, **change}))
    with pytest.raises(InputError, match="its entries are not those that its digest was made of"):
        ExportManifest.read(part)
