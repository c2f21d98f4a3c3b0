"""Weighted sums of lexical and dense scores."""

from __future__ import annotations

import numpy as np
import pytest

from tf_smoothclir.hybrid.fusion import Fusion
from tf_smoothclir.utils.errors import InputError

RANDOM = np.random.default_rng(5)
LEXICAL = RANDOM.random((4, 30)).astype(np.float32) * 20
DENSE = RANDOM.random((4, 30)).astype(np.float32) / 3


def refuse(query_rows):
    raise AssertionError("a part without weight was asked")


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.5, 0.7, 1.0])
def test_documents_are_in_the_order_of_standardised_scores(share):
    fusion = Fusion(share, 5.5, 0.09)
    expected = (1 - share) * LEXICAL / 5.5 + share * DENSE / 0.09
    found = fusion.rows(LEXICAL.__getitem__, DENSE.__getitem__)(np.arange(4))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(np.argsort(-found), np.argsort(-expected))


def test_lexical_scores_count_as_they_are():
    scale = 5.5 / 0.09
    assert Fusion(0.0, 5.5, 0.09).weights == (1, 0)
    assert Fusion(0.5, 5.5, 0.09).weights == (1, pytest.approx(scale))
    assert Fusion(0.2, 5.5, 0.09).weights == (1, pytest.approx(scale / 4))
    assert Fusion(1.0, 5.5, 0.09).weights == (0, pytest.approx(scale))


def test_a_part_alone_has_its_own_scores_and_the_other_is_not_asked():
    rows = np.arange(4)
    np.testing.assert_array_equal(
        Fusion(0.0, 5.5, 0.09).rows(LEXICAL.__getitem__, refuse)(rows), LEXICAL
    )
    found = Fusion(1.0, 5.5, 0.09).rows(refuse, DENSE.__getitem__)(rows)
    np.testing.assert_array_equal(found, np.float32(5.5 / 0.09) * DENSE)


def test_scores_that_are_all_equal_are_no_error():
    assert Fusion(0.5, 5.5, 0.0).weights == (1, 0)  # untrained towers
    assert Fusion(1.0, 5.5, 0.0).weights == (1, 0)
    assert np.isfinite(Fusion(0.5, 0.0, 0.09).weights).all()  # no word in common


def test_it_is_kept_as_json(tmp_path):
    fusion = Fusion(0.1 + 0.2, 1 / 3, 0.07, 12.5, 3.25)
    fusion.save(tmp_path / "hybrid.json")
    assert Fusion.load(tmp_path / "hybrid.json") == fusion


@pytest.mark.parametrize("text", ["{}", '{"share": "much"}', "[", ""])
def test_another_content_is_a_message(text, tmp_path):
    path = tmp_path / "hybrid.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"hybrid\.json: .*Restore the file, or train again"):
        Fusion.load(path)
