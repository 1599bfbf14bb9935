"""How large the house is, against the budgets in pyproject.toml: statements by package, lines of tests, commands,
options, words of the hand-written pages. Status 1 where anything is over its budget.
    python -m tests.budgets [--now]

--now prints all figures, as pyproject.toml has them. To raise a budget is a commit of its own that says why.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]
SOURCES = ("context", "cli", "integrations", "migrations")


def statements() -> dict[str, int]:
    """Statements without docstrings, by package: those of the core and of the integrations each have a line."""
    found = Counter[str]()
    for source in SOURCES:
        for path in (ROOT / source).rglob("*.py"):
            parts = path.relative_to(ROOT / source).with_suffix("").parts
            depth = 2 if parts[0] in ("ralf", "ralf_integrations") and len(parts) > 2 else 1
            found[".".join(parts[:depth])] += _statements(path)
    return dict(sorted(found.items()))


def _statements(path: Path) -> int:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return sum(isinstance(node, ast.stmt) and not _is_docstring(node) for node in nodes)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def commands(group: click.Group, context: click.Context) -> Iterator[click.Command]:
    """The commands that are no groups, as the help lists them: other names of theirs are not among them."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, click.Context(command, parent=context))
        elif command is not None:
            yield command


def options(group: click.Group, context: click.Context) -> int:
    """The options of all commands; those that stand once in the help count once."""
    found = sum(isinstance(param, click.Option) for param in group.params)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            found += options(command, click.Context(command, parent=context))
        elif command is not None:
            found += sum(isinstance(param, click.Option) for param in command.params)
    return found


def _tracked(*patterns: str) -> list[Path]:
    named = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607
    return [ROOT / name for name in named.stdout.splitlines() if (ROOT / name).is_file()]


def figures() -> dict[str, int]:
    """All figures by their names in pyproject.toml."""
    from ralf_cli.main import main

    context = click.Context(main)
    pages = [path for path in _tracked("README.md", "docs/*.md") if path.name != "cli.md"]  # which is generated
    return {
        "commands": sum(1 for _ in commands(main, context)),
        "options": options(main, context),
        "names_in_help": sum(map(len, main.shown_sections(context).values())),  # type: ignore[attr-defined]
        "words_of_docs": sum(len(path.read_text(encoding="utf-8").split()) for path in pages),
        "lines_of_tests": sum(len(path.read_bytes().splitlines()) for path in _tracked("tests/*.py")),
        **{f"statements.{name}": count for name, count in statements().items()},
    }


def _budgets() -> dict[str, int]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ralf"]["budgets"]
    own = {name: most for name, most in table.items() if isinstance(most, int)}
    return own | {f"statements.{name}": most for name, most in table.get("statements", {}).items()}


def main(arguments: list[str]) -> int:
    """Print what is over its budget, or with `--now` all; the exit status."""
    found = figures()
    if arguments == ["--now"]:
        print("\n".join(f"{name} = {count:_}" for name, count in found.items()))
        return 0
    budgets = _budgets()
    over = [
        f"{name}: {count:,} of {budgets.get(name, 0):,}"
        for name, count in found.items()
        if count > budgets.get(name, 0)
    ]
    print("\n".join([*over, f"{len(over)} over their budgets" if over else "all within their budgets"]))
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
