"""Settings: defaults of the paper, refused values, JSON and flag files there and back."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from tf_smoothclir.optimizers import LEARNING_RATE
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import GROUPS, RunSettings
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.settings.training import METRICS, TrainingSettings

FIELDS = [(group, field) for group, kind in GROUPS.items() for field in dataclasses.fields(kind)]
CHANGED = RunSettings(
    data=DataSettings(data_dir="sets/my data", document_language="sw", split_seed=0),
    text=TextSettings(max_query_tokens=7, min_count=2),
    model=ModelSettings(epsilon=0.25, thresholds=(-0.5, 0.1, 0.6), train_query_embeddings=False),
    training=TrainingSettings(optimizer="adam", learning_rate=1e-4, patience=3, seed=0),
)


def test_defaults_are_those_of_the_paper():
    settings = RunSettings()
    assert settings.text.vocabulary_size == 100_000
    assert settings.text.max_document_tokens == 200
    assert (settings.model.dim, settings.model.epsilon) == (64, 1.0)
    assert settings.model.thresholds == (0.2, 0.7)
    assert (settings.model.tower, settings.model.loss) == ("average_pooling", "sosl")
    training = settings.training
    assert (training.batch_size, training.epochs) == (128, 30)
    assert LEARNING_RATE == 0.01
    assert (training.negatives, training.clip_norm) == (40, 5.0)
    assert not training.fresh_negatives


def test_metrics_are_the_seven_of_the_paper():
    assert METRICS == ("P_mr@1", "P_mr@5", "P_r@5", "NDCG@5", "MAP", "MRR_mr", "MRR_r")


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (TrainingSettings, {"batch_size": 0}, "--batch_size must be at least 1, but is 0."),
        (TrainingSettings, {"seed": -1}, "--seed must be at least 0, but is -1."),
        (DataSettings, {"split_seed": -1}, "--split_seed must be at least 0, but is -1."),
        (TextSettings, {"vocabulary_size": 2}, "--vocabulary_size must be at least 3, but is 2."),
        (TextSettings, {"ngram_buckets": -1}, "--ngram_buckets must be at least 0, but is -1."),
        (TextSettings, {"min_ngram": 0}, "--min_ngram must be at least 1, but is 0."),
        (ModelSettings, {"epsilon": -0.1}, "--epsilon must be at least 0.0, but is -0.1."),
        (ModelSettings, {"epsilon": math.nan}, "--epsilon must be a finite number, but is nan."),
        (
            TrainingSettings,
            {"learning_rate": math.inf},
            "--learning_rate must be a finite number, but is inf.",
        ),
        (
            TrainingSettings,
            {"checkpoint_minutes": -1.0},
            "--checkpoint_minutes must be at least 0.0, but is -1.0.",
        ),
        (
            TrainingSettings,
            {"mine_ranks": (200, 10)},
            "--mine_ranks must be the first and the last rank, such as 10,200, but is 200,10.",
        ),
        (
            TrainingSettings,
            {"mine_ranks": (0, 10)},
            "--mine_ranks must be the first and the last rank, such as 10,200, but is 0,10.",
        ),
        (
            ModelSettings,
            {"matryoshka_dims": (64, 32)},
            "--matryoshka_dims must be rising numbers from 1 on, such as 64,128,256, but is 64,32.",
        ),
        (
            TrainingSettings,
            {"average_weights": 1.5},
            "--average_weights must be at most 1.0, but is 1.5.",
        ),
        (
            ModelSettings,
            {"loss": "hinge"},
            "--loss must be one of sosl, mse, proportional_odds, three_part_l2,"
            " cumulative_logits, ordinal_softmax, softmax, approx_ndcg, pairwise_hinge,"
            " pairwise_logistic, list_mle, but is 'hinge'. A plug-in may bring it.",
        ),
    ],
)
def test_the_error_for_a_refused_value_names_flag_value_and_remedy(kind, values, message):
    with pytest.raises(ValueError, match=r"^--") as error:
        kind(**values)
    assert str(error.value) == message


@pytest.mark.parametrize(("group", "field"), FIELDS, ids=[f.name for _, f in FIELDS])
def test_every_setting_has_help_and_accepts_its_default(group, field):
    assert field.metadata["help"].endswith((".", ";"))
    choices, minimum = field.metadata["choices"], field.metadata["minimum"]
    assert choices is None or field.default in choices
    assert minimum is None or field.default >= minimum


def test_setting_names_are_unique_across_groups():
    names = [field.name for _, field in FIELDS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("settings", [RunSettings(), CHANGED])
def test_json_round_trip(settings):
    values = json.loads(json.dumps(settings.to_dict()))
    assert isinstance(values["model"]["thresholds"], list)
    assert RunSettings.from_dict(values) == settings


def test_a_missing_group_is_an_error():
    values = CHANGED.to_dict()
    del values["training"]
    with pytest.raises(KeyError, match="training"):
        RunSettings.from_dict(values)


def test_settings_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        RunSettings().model.dim = 3


def test_flag_lines_name_every_setting_once():
    lines = CHANGED.flag_lines()
    assert [line[2:].split("=")[0] for line in lines] == [
        field.name for _, field in FIELDS if not field.metadata["python_only"]
    ]
    for line in (
        "--data_dir=sets/my data",
        "--tfds_name=",
        "--thresholds=-0.5,0.1,0.6",
        "--train_query_embeddings=False",
        "--learning_rate=0.0001",
    ):
        assert line in lines


def test_max_tokens_by_role():
    settings = TextSettings(max_query_tokens=3, max_document_tokens=5)
    assert (settings.max_tokens("query"), settings.max_tokens("document")) == (3, 5)


@pytest.mark.parametrize(
    ("group", "name", "largest"),
    [
        (TrainingSettings, "seed", 2**31 - 2),
        (DataSettings, "split_seed", 2**31 - 2),
        (ModelSettings, "dim", 16_384),
    ],
)
def test_numbers_that_tensorflow_does_not_take_are_errors_of_their_flags(group, name, largest):
    group(**{name: largest})
    for value in (largest + 1, 10**30):
        with pytest.raises(ValueError, match=f"--{name} must be at most {largest}, but is {value}"):
            group(**{name: value})
