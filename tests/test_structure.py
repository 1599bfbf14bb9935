"""The structure of the source: no circles, no large modules, and a core that knows no client by name."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

TREE = Path(__file__).parents[1]
PACKAGES = {"ralf": "context", "ralf_cli": "cli", "ralf_integrations": "integrations", "ralf_migrations": "migrations"}
LONGEST = 600  # lines of a module
ROOT = 8  # modules in the root of the core


def modules(tree: Path = TREE) -> dict[str, Path]:
    """The path of each module, by its dotted name."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in (tree / folder / package).rglob("*.py"):
            name = ".".join(path.relative_to(tree / folder).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements below a node, at any depth; of expressions, which hold none, nothing is gone through."""
    for part in ("body", "orelse", "handlers", "finalbody", "cases"):
        for inner in getattr(node, part, ()):
            yield inner
            yield from statements(inner)


def imported(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """The modules that one module imports, lazily and for types too."""
    found = set()
    for node in statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            found |= {f"{base}.{each.name}" if f"{base}.{each.name}" in known else base for each in node.names}
    return {each for each in found if each in known} - {name}


@pytest.mark.ci
def test_no_module_imports_itself_by_way_of_others() -> None:
    known = modules()
    graph = {name: imported(name, path, known) for name, path in known.items()}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError with the circle
    graph["ralf.errors"] = {"ralf_cli.main"}
    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter(graph).prepare()


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    assert {name for name, path in modules().items() if len(path.read_text().splitlines()) > LONGEST} == set()


@pytest.mark.ci
def test_the_root_of_the_core_stays_small() -> None:
    root = [name for name in modules() if name.count(".") == 1 and name.startswith("ralf.")]
    assert len([name for name in root if modules()[name].name != "__init__.py"]) <= ROOT


def test_no_core_module_names_the_clients_loop() -> None:
    for name, path in modules().items():
        if name.partition(".")[0] == "ralf":
            text = path.read_text().lower()
            assert not [word for word in ("blackbox5", "bb5", "runfolder", "run_folder") if word in text], name
