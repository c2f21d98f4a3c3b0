"""Every table and figure of the paper has an experiment with valid settings."""

import itertools

import pytest

from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.laboratory.systems import RELATED, TRAINING_QUERIES
from tf_smoothclir.papers.liu2020.paper_numbers import paper_values
from tf_smoothclir.settings.presets import PAPER_TOWERS, PRESETS, changed, preset_settings
from tf_smoothclir.settings.run import RunSettings

PAPER = [f"table{n}" for n in (1, 2, 3)] + [f"figure{n}" for n in (1, 2, 3, 4, 5)] + ["theory"]
YU2020 = [f"yu2020_{name}" for name in ("table1", "table2", "table3", "figure1")]
LI_2018 = [f"li2018_{name}" for name in ("table1", "table2", "table3", "pooled")]
OTHERS = ["gradients", "related", "queries", "fast", "choices", "gap", "options", "ablation"]
NAMES = [*PAPER, *YU2020, *LI_2018, *OTHERS]
WITHOUT_TRAINING = {
    *("table1", "figure1", "figure2", "theory"),
    *YU2020[:2],
    "yu2020_figure1",
    "li2018_table1",
}


def test_every_table_and_figure_of_the_paper_is_there():
    assert sorted(EXPERIMENTS) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_trains_systems_or_needs_none(name):
    assert bool(EXPERIMENTS[name].systems) == (name not in WITHOUT_TRAINING)


@pytest.mark.parametrize("name", sorted({*NAMES} - WITHOUT_TRAINING))
def test_systems_differ_and_have_valid_settings(name):
    systems = EXPERIMENTS[name].systems
    assert len({system.name for system in systems}) == len(systems)
    given = changed(RunSettings(), {"query_embeddings": "q.vec", "document_embeddings": "d.vec"})
    shown = [(changed(given, system.changes), system.part) for system in systems]
    assert len(set(shown)) == len(shown)
    for system in systems:
        changed(RunSettings(), system.tuned_with or {})


def test_each_option_of_the_dense_preset_stands_alone_and_all_together():
    paper, *options, dense = EXPERIMENTS["options"].systems
    assert paper.changes == {"loss": "sosl", "tower": "average_pooling"}  # whatever the flags say
    assert dense.changes == {**paper.changes, **PRESETS["dense"]}
    alone = [pair for option in options for pair in option.changes.items()]
    # Of the numbers for small sets, the sets here are too large to show anything.
    others = PRESETS["dense"].keys() - {"epochs", "pseudo_queries", "ngram_rows_per_word"}
    assert all((name, PRESETS["dense"][name]) in alone for name in others)
    assert all(system.tuned_with is None for system in EXPERIMENTS["options"].systems)


def test_the_ablation_takes_one_thing_after_the_other_from_the_dense_preset():
    systems = {system.name: system.changes for system in EXPERIMENTS["ablation"].systems}
    dense = systems.pop("--preset=dense")
    changed_names = []
    for name, changes in systems.items():
        if name.startswith("--preset=dense --"):
            differing = {key for key in changes if changes[key] != dense.get(key)}
            flags = [flag.partition("=")[0] for flag in name.split(" --")[1:]]
            assert {*flags} == differing
            changed_names.append(tuple(flags))
    parts = ("position_weights", "initial_vectors", "ngram_buckets", "token_weights", "loss")
    alone = {("dim", part) for part in (*parts, "hard_negatives", "max_train_queries")}
    assert alone | {("dim",), ("matryoshka_dims",)} <= {*changed_names}
    assert ("dim", "max_train_queries", "pseudo_queries") in changed_names


def test_the_ablation_has_each_retriever_by_its_preset():
    systems = {system.name: system for system in EXPERIMENTS["ablation"].systems}
    for name, retriever in {"dense": "dense", "lexical": "lexical", "best": "hybrid"}.items():
        system = systems[f"--preset={name}"]
        assert changed(RunSettings(), system.changes).retrieval.retriever == retriever
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


def test_clipping_is_compared_with_and_without_smoothness():
    systems = EXPERIMENTS["gradients"].systems
    found = {(s.changes["epsilon"], s.changes["clip_norm"]) for s in systems}
    assert found == set(itertools.product((0, 0.25, 1), (0, 0.0003, 5)))
    assert (systems[0].changes["epsilon"], systems[0].changes["clip_norm"]) == (0, 5)


def test_losses_of_table_2_are_compared_with_few_and_many_related_documents():
    systems = EXPERIMENTS["related"].systems
    losses = {system.changes["loss"] for system in systems}
    assert losses == {"sosl", "three_part_l2", "mse", "proportional_odds"}
    assert len(systems) == len(RELATED) * len(losses)


def test_each_retriever_learns_from_few_and_from_all_queries():
    systems = EXPERIMENTS["queries"].systems
    trained = {changed(RunSettings(), system.changes) for system in systems}
    assert len(trained) == len(TRAINING_QUERIES)  # three rows are read from one hybrid
    assert {settings.retrieval.retriever for settings in trained} == {"hybrid"}
    assert [system.changes["max_train_queries"] for system in systems[::3]] == [*TRAINING_QUERIES]
    assert [system.part for system in systems[:3]] == ["dense", "lexical", ""]
    assert systems[0].name == "towers, 500"
    assert systems[-1].name == "hybrid, all"


def test_modules_are_compared_with_the_same_vectors():
    pairs = EXPERIMENTS["choices"].systems[3:]
    for two, one in zip(pairs[::2], pairs[1::2]):
        assert {**two.changes, "shared_vocabulary": True} == one.changes
        assert one.changes["query_embeddings"] == one.changes["document_embeddings"] == ""


def test_towers_of_table_3_are_those_of_the_papers_preset():
    for system in EXPERIMENTS["table3"].systems[1:]:
        tower = system.changes["tower"]
        paper = preset_settings("paper", tower).values()
        assert system.changes.items() <= {**paper, "loss": "sosl"}.items(), tower
        assert PAPER_TOWERS[tower].items() <= system.changes.items()
