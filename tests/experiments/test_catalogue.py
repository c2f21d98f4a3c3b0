"""Every table and figure of the paper has an experiment with valid settings."""

import pytest

from tf_smoothclir.experiments.catalogue import EXPERIMENTS
from tf_smoothclir.experiments.paper_numbers import paper_values
from tf_smoothclir.settings.presets import PRESETS, changed
from tf_smoothclir.settings.run import RunSettings

PAPER = [f"table{n}" for n in (1, 2, 3)] + [f"figure{n}" for n in (1, 2, 3, 4, 5)] + ["theory"]
NAMES = [*PAPER, "ablation"]
WITHOUT_TRAINING = {"table1", "figure1", "figure2", "theory"}


def test_every_table_and_figure_of_the_paper_is_there():
    assert sorted(EXPERIMENTS) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_trains_systems_or_needs_none(name):
    assert bool(EXPERIMENTS[name].systems) == (name not in WITHOUT_TRAINING)


@pytest.mark.parametrize("name", sorted({*NAMES} - WITHOUT_TRAINING))
def test_systems_differ_and_have_valid_settings(name):
    systems = EXPERIMENTS[name].systems
    assert len({system.name for system in systems}) == len(systems)
    settings = [changed(RunSettings(), system.changes) for system in systems]
    assert len(set(settings)) == len(settings)
    for system in systems:
        changed(RunSettings(), system.tuned_with or {})


def test_the_ablation_has_each_option_of_the_best_preset_alone_and_all_together():
    paper, *options, best, _, _, _ = EXPERIMENTS["ablation"].systems
    assert paper.changes == {"loss": "sosl", "tower": "average_pooling"}  # whatever the flags say
    expected = {name: value for name, value in PRESETS["best"].items() if name != "epochs"}
    assert best.changes == {**paper.changes, **expected}
    alone = {name: value for option in options for name, value in option.changes.items()}
    assert alone.items() >= expected.items()
    assert all(system.tuned_with is None for system in EXPERIMENTS["ablation"].systems)


def test_the_ablation_has_each_retriever_by_its_preset():
    for system, name in zip(EXPERIMENTS["ablation"].systems[-3:], ("dense", "lexical", "hybrid")):
        assert system.name == f"--preset={name}"
        assert changed(RunSettings(), system.changes).retrieval.retriever == name
        assert system.changes.items() >= PRESETS[name].items()


def test_figures_4_and_5_span_what_the_paper_spans():
    epsilons = [system.changes["epsilon"] for system in EXPERIMENTS["figure4"].systems]
    negatives = [system.changes["negatives"] for system in EXPERIMENTS["figure5"].systems]
    assert (min(epsilons), max(epsilons)) == (0, 2)
    assert {0.25, 1, 1.75} <= set(epsilons)
    assert (negatives[0], negatives[-1], len(negatives)) == (20, 100, 9)


@pytest.mark.parametrize("name", ["table2", "table3"])
def test_the_baseline_comes_first_and_the_paper_has_the_same_systems(name):
    ours = [system.name for system in EXPERIMENTS[name].systems]
    assert ours[0] in ("SOSL", "Average pooling")
    for systems in paper_values(name).values():
        assert [system for system in ours if system in systems] == list(systems)
