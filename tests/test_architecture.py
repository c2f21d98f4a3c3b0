"""The structure of the package, read from the sources: who imports whom, rules for every module."""

from __future__ import annotations

import ast
import graphlib
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import tf_smoothclir
from tf_smoothclir.losses.registry import LOSSES
from tf_smoothclir.optimizers import OPTIMIZERS
from tf_smoothclir.settings import model
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.towers import TOWERS

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 350
# A module imports from its own piece and from those before it.
ORDER = (
    "utils",
    "settings",
    "encoder",
    "_compat",
    "ops",
    "text",
    "data",
    "losses",
    "optimizers",
    "protocols",
    "evaluation",
    "lexical",
    "towers",
    "two_tower",
    "adversarial",
    "hybrid",
    "interaction",
    "training",
    "tuning",
    "publishing",
    "index",
    "experiments",
    "engines",
    "client",
    "search",
    "server",
    "command_line",
    "api",
)


# The modules of training that know the families of models.
KNOWING = ("retrievers", "run_models", "set_retrievers", "tasks")


def sources(folder):
    return sorted((ROOT / folder).rglob("*.py"))


def name_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


LIBRARY = {name_of(path): path for path in sources("tf_smoothclir")}
MAINS = {name_of(path): path for folder in ("trainers", "export") for path in sources(folder)}
TESTS = {name_of(path): path for path in sources("tests")}
ALL = {**LIBRARY, **MAINS, **TESTS}


def imports(path):
    """Dotted names that a file imports anywhere, inside functions too; modules where they are."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in ALL else node.module for name in names}
    return found


def piece(module):
    """The part of `tf_smoothclir.<part>....`; "" for the package itself."""
    return [*module.split("."), ""][1]


def top(module):
    return module.split(".")[0]


def parametrize(modules):
    return pytest.mark.parametrize("path", modules.values(), ids=modules.keys())


def test_every_module_has_its_place_in_the_order():
    assert {piece(name) for name in LIBRARY} - {""} <= set(ORDER)


@parametrize({name: path for name, path in LIBRARY.items() if piece(name)})
def test_a_module_imports_only_from_what_stands_before_it(path):
    own = ORDER.index(piece(name_of(path)))
    for module in imports(path):
        if top(module) == "tf_smoothclir":
            assert piece(module), f"{module}: import the module, not the package"
            assert ORDER.index(piece(module)) <= own, module


def test_no_module_imports_itself_by_a_detour():
    graph = {name: imports(path) & set(LIBRARY) for name, path in LIBRARY.items()}
    tuple(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError


def test_training_knows_the_families_of_models_where_it_trains_and_where_it_ranks():
    families = {
        "losses",
        "optimizers",
        "lexical",
        "towers",
        "two_tower",
        "adversarial",
        "hybrid",
        "interaction",
    }
    of_all = {"tf_smoothclir.optimizers.gradients"}  # sums of gradients of any family
    knowing = {
        name
        for name, path in LIBRARY.items()
        if piece(name) == "training"
        and {piece(module) for module in imports(path) - of_all} & families
    }
    assert knowing == {f"tf_smoothclir.training.{name}" for name in (*KNOWING, "rerankers")}


def test_only_four_modules_of_training_know_the_two_tower_model():
    """Everything else that evaluates, tunes or searches takes any family of models."""
    model = {f"tf_smoothclir.two_tower.{name}" for name in ("builder", "model", "scorer", "task")}
    knowing = {
        name
        for name, path in (LIBRARY | MAINS).items()
        if piece(name) not in ("", "two_tower", "adversarial") and imports(path) & model
    }
    assert knowing == {f"tf_smoothclir.training.{name}" for name in KNOWING}


def test_publishing_knows_the_families_of_models_in_exports_alone():
    families = {"lexical", "towers", "hybrid"}
    knowing = {
        name.rpartition(".")[2]
        for name, path in LIBRARY.items()
        if piece(name) == "publishing" and {piece(module) for module in imports(path)} & families
    }
    assert {name for name in knowing if not name.startswith("export")} == set()


@parametrize(LIBRARY)
def test_the_library_needs_neither_mains_nor_tests(path):
    assert not {top(module) for module in imports(path)} & {"trainers", "export", "tests"}


@parametrize(MAINS)
def test_mains_import_of_ours_the_library_alone(path):
    assert not {top(module) for module in imports(path)} & {"trainers", "export", "tests"}


@parametrize(LIBRARY | MAINS)
def test_modules_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


def test_pickle_is_opened_in_one_place():
    reading = {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal"}
    users = {name for name, path in (LIBRARY | MAINS).items() if imports(path) & reading}
    assert users <= {"tf_smoothclir.text.polyglot"}
    for name, path in (LIBRARY | MAINS).items():
        assert "allow_pickle=True" not in path.read_text(encoding="utf-8"), name


@pytest.mark.parametrize(
    ("library", "user"),
    [
        ("tensorflow_ranking", "tf_smoothclir._compat.tensorflow_ranking_lists"),
        ("keras_rs", "tf_smoothclir._compat.keras_rs_lists"),
        ("pymilvus", "tf_smoothclir.engines.milvus"),
    ],
)
def test_what_only_one_stack_has_is_imported_in_one_place(library, user):
    users = {
        name
        for name, path in (LIBRARY | MAINS).items()
        if library in {top(module) for module in imports(path)}
    }
    assert users == {user}


STACK_MODULES = (
    "_compat.keras_api",
    "_compat.lists",
    "_compat.quiet",
    "ops.intraop_threads",
    "ops.row_sums",
    "ops.row_updates",
    "ops.table_sum",
)


def test_only_compat_asks_which_stack_it_is_on():
    question = re.compile(
        r"ON_KERAS_3|__version__|version_info|metadata\.version|hasattr\((tf|keras)"
    )
    asking = set()
    for name, path in (LIBRARY | MAINS).items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            condition = getattr(node, "test", None)  # of `if`, `while` and conditional values
            if condition is not None and question.search(ast.unparse(condition)):
                asking.add(name)
    assert asking == {f"tf_smoothclir.{name}" for name in STACK_MODULES}


@pytest.mark.parametrize(
    ("one", "other"),
    [("keras_2", "keras_3"), ("tensorflow_ranking_lists", "keras_rs_lists")],
)
def test_both_stacks_have_the_same_names_and_signatures(one, other):
    def interface(module):
        tree = ast.parse(LIBRARY[f"tf_smoothclir._compat.{module}"].read_text(encoding="utf-8"))
        names = {}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                names[node.name] = [argument.arg for argument in node.args.args]
            if isinstance(node, ast.ClassDef):
                names[node.name] = [ast.unparse(base) for base in node.bases]
            if isinstance(node, ast.Assign):
                names[ast.unparse(node.targets[0])] = None
        return names

    assert interface(one) == interface(other)


@parametrize(ALL)
def test_no_path_of_a_machine(path):
    machine = re.compile(r"[\"'\s=(](/(work|home|root|tmp|Users|mnt|opt)/|[A-Z]:\\\\)")
    assert not machine.search(path.read_text(encoding="utf-8"))


@parametrize(LIBRARY)
def test_no_assert_checks_input(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)]


def public_objects(module):
    """Public functions, classes and their methods that a module defines."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(value) or inspect.isclass(value):
            yield name, value
        if inspect.isclass(value):
            for member, method in vars(value).items():
                if isinstance(method, (classmethod, staticmethod)):
                    method = method.__func__
                if not member.startswith("_") and (
                    inspect.isfunction(method) or isinstance(method, property)
                ):
                    # By the class, so that an override inherits what its base promises.
                    yield f"{name}.{member}", getattr(value, member)


def documented(value):
    text = inspect.getdoc(value) or ""
    # A dataclass without a docstring has its signature for one.
    return bool(text) and not text.startswith(f"{getattr(value, '__name__', '')}(")


def test_everything_public_is_documented():
    missing = []
    for info in pkgutil.walk_packages(tf_smoothclir.__path__, "tf_smoothclir."):
        if info.name not in LIBRARY:
            continue
        module = importlib.import_module(info.name)
        if not info.ispkg and not module.__doc__:
            missing.append(info.name)
        objects = public_objects(module)
        missing += [f"{info.name}.{name}" for name, value in objects if not documented(value)]
    assert missing == []


@pytest.mark.parametrize(
    ("registry", "kind", "field"),
    [
        (LOSSES, ModelSettings, "loss"),
        (TOWERS, ModelSettings, "tower"),
        (OPTIMIZERS, TrainingSettings, "optimizer"),
    ],
)
def test_registries_agree_with_the_choices_of_the_flags(registry, kind, field):
    choices = kind.__dataclass_fields__[field].metadata["choices"]
    assert set(choices) == set(registry)


def test_the_settings_know_which_losses_compare_whole_lists():
    assert set(model.LIST_LOSSES) == {name for name, loss in LOSSES.items() if loss.needs_lists}


@pytest.mark.parametrize("name", tf_smoothclir.__all__)
def test_public_names_are_there(name):
    assert getattr(tf_smoothclir, name).__name__.rpartition(".")[2] == name
