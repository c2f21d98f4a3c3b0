"""Settings: defaults of the paper, refused values, what every one has."""

import math

import pytest

from tf_smoothclir.optimizers import LEARNING_RATE
from tf_smoothclir.plugins import LOSSES
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.settings.training import METRICS, TrainingSettings

RISING = "be rising numbers from 1 on, such as 64,128,256"
PLUG_IN = "A plug-in (--plugin) may bring it."


def test_defaults_are_those_of_the_paper():
    settings = RunSettings()
    assert settings.text.vocabulary_size == 100_000
    assert settings.text.max_document_tokens == 200
    short = TextSettings(max_query_tokens=7)
    assert (short.max_tokens("query"), short.max_tokens("document")) == (7, 200)
    model, training = settings.model, settings.training
    assert (model.dim, model.epsilon, model.thresholds) == (64, 1.0, (0.2, 0.7))
    assert (model.tower, model.loss) == ("average_pooling", "sosl")
    assert (training.batch_size, training.epochs, LEARNING_RATE) == (128, 30, 0.01)
    assert (training.negatives, training.fresh_negatives) == (40, False)
    assert training.clip_norm == 5.0
    assert METRICS == ("P_mr@1", "P_mr@5", "P_r@5", "NDCG@5", "MAP", "MRR_mr", "MRR_r")


REFUSED = [
    (TrainingSettings, "batch_size", 0, "be at least 1, but is 0."),
    (ModelSettings, "epsilon", -0.1, "be at least 0.0, but is -0.1."),
    (ModelSettings, "epsilon", math.nan, "be a finite number, but is nan."),
    (TrainingSettings, "learning_rate", math.inf, "be a finite number, but is inf."),
    (ModelSettings, "lower_grade_weight", 1.5, "be at most 1.0, but is 1.5."),
    # Numbers that TensorFlow does not take.
    (TrainingSettings, "seed", 2**31 - 1, "be at most 2147483646, but is 2147483647."),
    (DataSettings, "split_seed", 10**30, f"be at most 2147483646, but is {10**30}."),
    (ModelSettings, "dim", 16_385, "be at most 16384, but is 16385."),
    (ModelSettings, "matryoshka_dims", (64, 32), f"{RISING}, but is 64,32."),
    (ModelSettings, "loss", "hinge", f"be one of {', '.join(LOSSES)}, but is 'hinge'. {PLUG_IN}"),
]


@pytest.mark.parametrize(("kind", "name", "value", "message"), REFUSED)
def test_the_error_for_a_refused_value_names_flag_value_and_remedy(kind, name, value, message):
    with pytest.raises(ValueError, match=r"^--") as error:
        kind(**{name: value})
    assert str(error.value) == f"--{name} must {message}"


def test_rows_of_ngrams_follow_the_vocabulary_up_to_their_number():
    for of, rows in {0: 50, 2: 2 * 9, 6: 50}.items():
        assert TextSettings(ngram_buckets=50, ngram_rows_per_word=of).ngram_rows(9) == rows
