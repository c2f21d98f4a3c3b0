"""Mutants of the core, one after the other: do the tests notice?

A mutant is the code with one operator, number, name or condition changed. One that survives all
tests of its module shows what no test looks at, or changes nothing that can be seen.

    python -m tests.mutants --mutants=200

Prints each survivor, and how many there are. Two run at once; each takes as long as its tests.
"""

import ast
import concurrent.futures
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from absl import app, flags

ROOT = Path(__file__).parent.parent
CORE = {  # modules -> their tests
    "losses/*.py ops/ranks.py": "tests/losses tests/test_golden.py",
    "two_tower/similarity.py two_tower/batches.py": "tests/two_tower",
    "evaluation/metrics.py evaluation/calibration.py": "tests/evaluation tests/test_choices.py",
    "evaluation/significance.py": "tests/evaluation/test_compare.py",
    "lexical/ibm_model_1.py lexical/psq.py lexical/feedback.py": "tests/lexical",
    "lexical/learning.py": "tests/lexical",
    "hybrid/*.py": "tests/hybrid",
    "data/hashing.py data/candidate_lists.py data/judgments.py": "tests/data tests/test_golden.py",
    "data/sources/drawn_splits.py data/sources/named_splits.py": "tests/data",
    "training/mining.py training/checkpoints.py": "tests/training/test_mining.py"
    " tests/training/test_checkpoints.py tests/training/test_trainer.py",
}
SWAPPED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.USub: ast.UAdd,
}  # fmt: skip
RENAMED = {"argmax": "argmin", "max": "min", "min": "max", "maximum": "minimum", "any": "all"}
RENAMED |= {"minimum": "maximum", "reduce_max": "reduce_min", "reduce_sum": "reduce_mean"}
_MUTANTS = flags.DEFINE_integer("mutants", 200, "How many are drawn.", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 1, "Draws other mutants.")


def changes(tree: ast.AST):
    """Yields functions that change one place of a tree, each with a description of the place."""
    for place, node in enumerate(ast.walk(tree)):
        for name in ("op", "attr", "id", "value", "test"):
            new = _changed(node, name, getattr(node, name, None))
            if new is not None:
                yield place, name, new
        for number, op in enumerate(getattr(node, "ops", [])):
            if type(op) in SWAPPED:
                yield place, number, SWAPPED[type(op)]()


def _changed(node: ast.AST, name: str, old):
    """Another value of a field of a node; None where there is none."""
    if name == "op" and type(old) in SWAPPED:
        return SWAPPED[type(old)]()
    if name in ("attr", "id") and old in RENAMED:
        return RENAMED[old]
    if isinstance(node, ast.Constant) and name == "value":
        if isinstance(old, bool):
            return not old
        if isinstance(old, (int, float)):
            return old + 1
    if name == "test" and isinstance(node, (ast.If, ast.IfExp)):
        return ast.UnaryOp(ast.Not(), old)
    return None


def mutants() -> list[tuple[Path, str, str, str]]:
    """Path, mutated source, description and tests of some mutants of all modules."""
    found = []
    for patterns, tests in CORE.items():
        globs = [ROOT.glob(f"tf_smoothclir/{name}") for name in patterns.split()]
        for path in sorted(path for paths in globs for path in paths):
            source = path.read_text(encoding="utf-8")
            tree = ast.parse(source)
            for place, field, new in changes(tree):
                mutant = copy.deepcopy(tree)
                node = list(ast.walk(mutant))[place]
                if not hasattr(node, "lineno"):
                    continue
                if isinstance(field, int):
                    node.ops[field] = new
                else:
                    setattr(node, field, new)
                after = ast.unparse(ast.fix_missing_locations(mutant))
                line = source.splitlines()[node.lineno - 1].strip()
                what = new if isinstance(new, (str, int, float)) else type(new).__name__
                about = f"{path.relative_to(ROOT)}:{node.lineno}: {line} -> {what}"
                found.append((path, after, about, tests))
    return random.Random(_SEED.value).sample(found, min(_MUTANTS.value, len(found)))


def survives(mutant: tuple[Path, str, str, str], copies: list[Path]) -> bool:
    """Whether the tests of a module pass with a mutant in its place, in a copy of the checkout."""
    path, source, _, tests = mutant
    checkout = copies.pop()
    own = checkout / path.relative_to(ROOT)
    before = own.read_text(encoding="utf-8")
    try:
        own.write_text(source, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-qx", "-m", "not slow", *tests.split()]
        environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [*command, "-p", "no:cacheprovider"], cwd=checkout, env=environment,
            capture_output=True, timeout=1200, check=False,
        )  # fmt: skip
        return done.returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        own.write_text(before, encoding="utf-8")
        copies.append(checkout)


def main(argv) -> None:
    """Tries the mutants."""
    del argv
    chosen, survivors = mutants(), []
    with (
        tempfile.TemporaryDirectory() as directory,
        concurrent.futures.ThreadPoolExecutor(2) as pool,
    ):
        copies = [Path(directory, name) for name in "ab"]
        for path in copies:
            ignored = shutil.ignore_patterns(".git", ".venv*", "runs", "__pycache__")
            shutil.copytree(ROOT, path, ignore=ignored)
        results = pool.map(lambda mutant: survives(mutant, copies), chosen)
        for number, (mutant, survived) in enumerate(zip(chosen, results), 1):
            survivors += [mutant[2]] if survived else []
            print(
                f"{number}/{len(chosen)} {'SURVIVES' if survived else 'dies'}: {mutant[2]}",
                flush=True,
            )
    print(f"{len(survivors)} of {len(chosen)} survive:", *survivors, sep="\n")


if __name__ == "__main__":
    app.run(main)
