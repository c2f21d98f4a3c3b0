"""Names that editors and type checkers see are those that the package has."""

from __future__ import annotations

import ast
from pathlib import Path

import tf_smoothclir


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
    assert seen == {**tf_smoothclir._PUBLIC, "metrics": "api"}
