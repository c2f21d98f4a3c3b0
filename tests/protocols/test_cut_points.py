"""Cut points on disk."""

import pytest

from tf_smoothclir.protocols.cut_points import CutPoints, read_cut_points, write_cut_points
from tf_smoothclir.utils.errors import InputError

CUT_POINTS = {
    "dense": CutPoints((0.1 + 0.2, 0.7), (), (0.1 + 0.2, 0.7)),
    "hybrid": CutPoints((1 / 3, 210.25), (0.9, 0.9), (12.0, 20.0)),
}


def test_they_are_kept_as_json(tmp_path):
    write_cut_points(tmp_path / "grades.json", CUT_POINTS)
    assert read_cut_points(tmp_path / "grades.json") == CUT_POINTS


@pytest.mark.parametrize(
    "text",
    ["{}", '{"retrievers": {"dense": {"scores": [0.1, "x"], "shares": [], "alone": []}}}', "["],
)
def test_another_content_is_a_message(text, tmp_path):
    path = tmp_path / "grades.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"grades\.json: .*Restore the file, or train again"):
        read_cut_points(path)
