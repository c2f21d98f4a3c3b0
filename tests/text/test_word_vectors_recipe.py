"""docs/word_vectors.md: the recipe runs, and training reads what it writes."""

import re
from pathlib import Path

import numpy as np
import pytest

from tf_smoothclir.text.embeddings import load_embeddings

RECIPE = Path(__file__).resolve().parents[2] / "docs" / "word_vectors.md"


def test_recipe_writes_vectors_of_our_tokens_with_unit_variance(tmp_path, monkeypatch):
    pytest.importorskip("gensim", reason="the recipe needs gensim")
    folder = tmp_path / "my_set"
    folder.mkdir()
    texts = ["Das Haus, das Meer!", "HAUS Meer Schiff"] * 10
    for role, lines in {
        "queries": ["q\tthe sea"],
        "documents": [f"d{number}\t{text}" for number, text in enumerate(texts)],
        "judgments": ["q\td0\t2"],
    }.items():
        (folder / f"{role}.tsv").write_text("".join(f"{line}\n" for line in lines))
    monkeypatch.chdir(tmp_path)

    exec(re.search(r"```python\n(.*?)```", RECIPE.read_text(encoding="utf-8"), re.DOTALL)[1], {})

    vocabulary = ["[PAD]", "[UNK]", "das", "haus", ",", "meer", "!", "schiff", "Haus"]
    loaded = load_embeddings(tmp_path / "de.vec", vocabulary, dim=64, seed=13)
    assert (loaded.found, loaded.total) == (6, 7)  # all but the last: tokens are lower-cased
    assert np.std(loaded.matrix[2:8]) == pytest.approx(1, abs=1e-4)
