"""The structure of the house, read from the sources: who imports whom, rules for every module."""

import ast
import functools
import graphlib
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import tf_smoothclir
from tests.cases import cases
from tf_smoothclir.optimizers import OPTIMIZERS
from tf_smoothclir.settings.training import TrainingSettings

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 350
MAX_LINES_OF_A_MAIN = 60
# A module imports from its own piece and from those before it.
ORDER = (
    *("utils", "storage", "plugins", "settings", "encoder", "_compat", "ops", "text", "data"),
    *("losses", "optimizers", "protocols", "evaluation", "lexical", "towers", "two_tower"),
    *("foreign_encoders", "hybrid", "interaction", "training", "tuning", "publishing", "index"),
    *("engines", "client", "search", "families", "server", "command_line", "api"),
)
KINDS_OF_MODELS = {"losses", "optimizers", "lexical", "towers", "two_tower", "hybrid"}
KINDS_OF_MODELS |= {"interaction"}
STACK_MODULES = (
    *("_compat.keras_api", "_compat.lists", "_compat.quiet", "ops.intraop_threads", "ops.row_sums"),
    "ops.row_updates",
)


def sources(folder, inside=""):
    """Name -> path of the modules of a folder of the checkout, as they are imported."""
    found = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[inside + ".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


LIBRARY = sources("tf_smoothclir")
PAPERS = sources("papers", "tf_smoothclir.")
EXTRAS = sources("extras", "tf_smoothclir.")
MAINS = {**sources("trainers"), **sources("export")}
CODE = {**LIBRARY, **PAPERS, **EXTRAS, **MAINS}
ALL = {**CODE, **sources("tests")}


@functools.cache
def text_of(path):
    return path.read_text(encoding="utf-8")


@functools.cache
def tree_of(path):
    return ast.parse(text_of(path))


@functools.cache
def imports(path):
    """Dotted names that a file imports anywhere, inside functions too; modules where they are."""
    found = set()
    for node in ast.walk(tree_of(path)):
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


def importing(modules, wanted):
    """The modules that import anything that `wanted` is true of."""
    return {name for name, path in modules.items() if any(map(wanted, imports(path)))}


def test_every_module_has_its_place_in_the_order():
    assert {piece(name) for name in LIBRARY} - {""} == set(ORDER)


def test_a_module_imports_only_from_what_stands_before_it():
    backwards = {
        (name, module)
        for name, path in LIBRARY.items()
        for module in imports(path)
        if piece(name) and top(module) == "tf_smoothclir"
        if piece(module) not in ORDER or ORDER.index(piece(module)) > ORDER.index(piece(name))
    }
    assert backwards == set()


def test_no_module_imports_itself_by_a_detour():
    for modules in (LIBRARY, PAPERS, EXTRAS):
        graph = {name: imports(path) & set(modules) for name, path in modules.items()}
        tuple(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError


def test_library_and_mains_need_neither_papers_nor_extras_nor_each_other():
    outside = {"trainers", "export", "tests", "papers", "extras"}
    assert importing(CODE, lambda module: top(module) in outside) == set()
    plugins = {"papers", "extras"}
    assert importing({**LIBRARY, **MAINS}, lambda module: piece(module) in plugins) == set()
    assert importing(PAPERS, lambda module: piece(module) == "extras") == set()
    assert importing(EXTRAS, lambda module: piece(module) == "papers") == set()


def test_papers_do_not_import_each_other():
    """What they share is in the laboratory, which knows the systems and tables of each."""

    def paper(name):
        return [*name.split("."), "", ""][2]

    papers = {paper(name) for name, path in PAPERS.items() if path.name == "__init__.py"}
    papers -= {"", "laboratory"}
    across = {
        (name, module)
        for name, path in PAPERS.items()
        for module in imports(path) & set(PAPERS)
        if paper(name) in papers and paper(module) in papers - {paper(name)}
    }
    assert across == set()


def test_families_are_known_by_the_registry_alone():
    knowing = importing(LIBRARY, lambda module: piece(module) == "families")
    assert {piece(name) for name in knowing} == {"", "families"}  # "": the public name `Family`
    of_all = "tf_smoothclir.optimizers.gradients"  # sums of gradients of any family
    training = {name: path for name, path in LIBRARY.items() if piece(name) == "training"}
    knowing = importing(training, lambda m: piece(m) in KINDS_OF_MODELS and m != of_all)
    assert knowing == {"tf_smoothclir.training.tasks"}  # where towers are trained
    publishing = {name: path for name, path in LIBRARY.items() if piece(name) == "publishing"}
    knowing = importing(publishing, lambda m: piece(m) in {"lexical", "towers", "hybrid"})
    assert all(name.split(".")[-1].startswith("export") for name in knowing)


@cases("modules, most", (CODE, MAX_LINES), (MAINS, MAX_LINES_OF_A_MAIN), ids=["all", "mains"])
def test_modules_are_short_and_mains_leave_the_work_to_the_library(modules, most):
    lines = {name: len(text_of(path).splitlines()) for name, path in modules.items()}
    assert {name: number for name, number in lines.items() if number > most} == {}


def test_pickle_is_opened_in_one_place():
    reading = {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal"}
    assert importing(CODE, reading.__contains__) == {"tf_smoothclir.papers.liu2020.polyglot"}
    assert [name for name, path in CODE.items() if "allow_pickle=True" in text_of(path)] == []


@cases(
    "library, user",
    ("tensorflow_ranking", "tf_smoothclir._compat.tensorflow_ranking_lists"),
    ("keras_rs", "tf_smoothclir._compat.keras_rs_lists"),
    ("pymilvus", "tf_smoothclir.engines.milvus"),
)
def test_what_only_one_stack_has_is_imported_in_one_place(library, user):
    assert importing(CODE, lambda module: top(module) == library) == {user}


def test_only_compat_asks_which_stack_it_is_on():
    question = re.compile(
        r"ON_KERAS_3|__version__|version_info|metadata\.version|hasattr\((tf|keras)"
    )
    asking = {
        name
        for name, path in CODE.items()
        if question.search(text_of(path))
        for node in ast.walk(tree_of(path))
        # of `if`, `while` and conditional values
        if (condition := getattr(node, "test", None)) is not None
        and question.search(ast.unparse(condition))
    }
    assert asking == {f"tf_smoothclir.{name}" for name in STACK_MODULES}


@cases("one, other", ("keras_2", "keras_3"), ("tensorflow_ranking_lists", "keras_rs_lists"))
def test_both_stacks_have_the_same_names_and_signatures(one, other):
    def interface(module):
        tree = tree_of(LIBRARY[f"tf_smoothclir._compat.{module}"])
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


def test_flags_that_are_paths_are_defined_as_paths():
    names = r"\w+_dir|queries|trec_run|collection|add|remove|qrels|uri|input|output"
    flag = re.compile(rf'DEFINE_(?:multi_)?string\(\s*"({names})"')
    assert [name for name, path in CODE.items() if flag.search(text_of(path))] == []


def test_no_path_of_a_machine():
    machine = re.compile(r"[\"'\s=(](/(work|home|root|tmp|Users|mnt|opt)/|[A-Z]:\\\\)")
    assert [name for name, path in ALL.items() if machine.search(text_of(path))] == []


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


def test_optimizers_are_the_choices_of_the_flag():
    field = TrainingSettings.__dataclass_fields__["optimizer"]
    assert set(field.metadata["choices"]) == set(OPTIMIZERS)


@cases("name", *tf_smoothclir.__all__)
def test_public_names_are_there(name):
    assert getattr(tf_smoothclir, name).__name__.rpartition(".")[2] == name
