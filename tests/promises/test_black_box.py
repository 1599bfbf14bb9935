"""Promises hold whatever ralf is built of: nothing here imports its insides."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

HERE = Path(__file__).parent
_OURS = ("ralf", "ralf_cli", "ralf_integrations", "ralf_migrations", "storekit", "hookkit", "runskit", "loopkit")


def imports(text: str) -> set[str]:
    """The modules that Python code imports, wherever it does."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in (
            "import_module",
            "__import__",
        ):
            found.add(ast.unparse(node.args[0]).strip("'\""))
    return found


@pytest.mark.parametrize("path", sorted(HERE.glob("*.py")), ids=lambda path: path.name)
def test_no_promise_imports_the_insides_of_ralf(path: Path) -> None:
    assert not {name for name in imports(path.read_text()) if name.partition(".")[0] in _OURS}


def test_an_import_of_the_insides_is_found() -> None:
    assert imports("def f():\n    from ralf.storage import journal\n    import ralf_cli.main") == {
        "ralf.storage",
        "ralf_cli.main",
    }
