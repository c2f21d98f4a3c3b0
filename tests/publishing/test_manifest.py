"""The facts of an exported part: read as they were written, and what is wrong with them is said."""

import dataclasses

import pytest

from tf_smoothclir.protocols.text_search import CutPoints
from tf_smoothclir.publishing.export_directory import ExportManifest
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.folder import write_manifest
from tf_smoothclir.utils.errors import InputError

WHOLE = ExportManifest(
    role="query",
    version=3,
    pair_id="0" * 64,
    dim=2,
    epsilon=0.5,
    thresholds=(0.2, 0.7),
    data=DataSettings(toy_entities=300),
    cut_points=CutPoints((0.3, 0.6), (0.5, 0.9)),
    parts=("query", "document"),
)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"parts": ("lexical",), "role": "lexical", "dim": 0, "epsilon": 0.0},
        {"parts": ("query", "lexical"), "role": "search", "documents": 7, "depth": 5},
    ],
)
def test_facts_are_read_as_they_were_written(tmp_path, changes):
    manifest = dataclasses.replace(WHOLE, **changes)
    manifest.write(tmp_path)
    assert ExportManifest.read(tmp_path) == manifest


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": "3"}, "version must be an integer, not '3'"),
        ({"data": {"toy_entities": 1}}, "toy_entities"),
        ({"parts": []}, r"its entry 'parts' is \(\)"),
        ({"parts": ["q"]}, r"its entry 'parts' is \('q',\)"),
        ({"role": "search"}, "it has no documents or no depth"),
    ],
)
def test_facts_that_are_not_right_are_named(tmp_path, changes, reason):
    facts = {**dataclasses.asdict(WHOLE), **changes}
    write_manifest(tmp_path, facts["role"], facts)
    with pytest.raises(InputError, match=rf"not a manifest of the kind .* \(.*{reason}.*\)"):
        ExportManifest.read(tmp_path)
    WHOLE.write(tmp_path)
    with pytest.raises(InputError, match=r"of the kind 'document' \(its kind is 'query'\)"):
        ExportManifest.read(tmp_path, ["document"])
