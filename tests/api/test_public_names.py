"""Names that editors and type checkers see are those that the package has."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tf_smoothclir
from tests.papers.liu2020 import test_polyglot as polyglot


def test_editors_see_every_public_name_where_it_is():
    tree = ast.parse(Path(tf_smoothclir.__file__).read_text(encoding="utf-8"))
    (typed,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    )
    seen = {
        alias.asname: node.module.partition(".")[2]
        for node in typed.body
        if isinstance(node, ast.ImportFrom) and node.module.startswith("tf_smoothclir")
        for alias in node.names
    }
    assert seen == {**tf_smoothclir._PUBLIC, "metrics": "api", "plugins": ""}


@pytest.mark.parametrize(
    "code",
    [
        "import tf_smoothclir as sc; sc.InputError, sc.__version__, sc.ServingClient('http://a:1')",
        "import tf_smoothclir.encoder",
        "sys.argv = ['convert', '--input=in.pkl', '--output=out.vec'];"
        " from tf_smoothclir.papers.liu2020.convert_polyglot import run; run()",
    ],
)
def test_what_the_guide_says_loads_no_tensorflow(code, tmp_path):
    """docs/python.md; searches and errors have tests of their own."""
    words = [polyglot.py2_unicode(word) for word in polyglot.WORDS]
    content = polyglot.py2_polyglot(words, polyglot.py2_array(polyglot.ROWS))
    (tmp_path / "in.pkl").write_bytes(content)
    root = Path(tf_smoothclir.__file__).parents[1]
    program = (
        f"import sys; sys.path.insert(0, {str(root)!r})\n"
        f"try:\n    {code}\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "assert not {'tensorflow', 'keras'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
