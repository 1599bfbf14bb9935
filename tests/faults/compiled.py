"""Prints every regular expression that the packages compile, as JSON: run in a process of its own, before any import.

    python -m tests.faults.compiled

They are seen being compiled: when all modules are imported, when their cached functions without arguments are called,
and while a checkpoint is made of a session that holds some of everything. How the code calls them is read off its
source.
"""

from __future__ import annotations

import ast
import functools
import gc
import importlib
import json
import pkgutil
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

PACKAGES = ("ralf", "ralf_cli", "ralf_integrations", "ralf_migrations")
_METHODS = frozenset(("match", "fullmatch", "search", "finditer", "findall", "sub", "subn", "split"))
_AT_BEGINNING = frozenset(("match", "fullmatch"))
_OTHER = "search"  # how one is called of which nothing is known

Key = tuple[str, int, bool]


class Seen:
    """The expressions compiled since this began, and the module that asked for each."""

    def __init__(self) -> None:
        self.where: dict[Key, str] = {}
        self._compile = re._compile  # type: ignore[attr-defined]
        re._compile = self._noted  # type: ignore[attr-defined]

    def _noted(self, pattern: Any, flags: int) -> Any:
        made = self._compile(pattern, flags)
        if isinstance(pattern, str | bytes) and (module := _asking(sys._getframe(1))):
            self.where.setdefault(key_of(made), module)
        return made


def key_of(made: re.Pattern[Any]) -> Key:
    """What tells an expression from others."""
    told = made.pattern
    return (told, made.flags, False) if isinstance(told, str) else (told.decode("latin-1"), made.flags, True)


def _asking(frame: FrameType | None) -> str:
    """The module of the packages that asks for an expression, "" for another's."""
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == "re":
        frame = frame.f_back
    module = str(frame.f_globals.get("__name__", "")) if frame is not None else ""
    return module if module.partition(".")[0] in PACKAGES else ""


def modules() -> list[ModuleType]:
    """All modules of the packages but those that need an extra that is not installed."""
    found = []
    for package in map(importlib.import_module, PACKAGES):
        found.append(package)
        for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if one.name.endswith("__main__"):
                continue
            try:
                found.append(importlib.import_module(one.name))
            except ImportError as error:
                if str(error.name).partition(".")[0] in PACKAGES:
                    raise
    return found


def call_cached() -> None:
    """Call the cached functions of the packages that need no argument: some make expressions."""
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper) and one.__module__.partition(".")[0] in PACKAGES:
            code = one.__wrapped__.__code__
            if not code.co_argcount and not code.co_kwonlyargcount:
                one()


def nodes_of(module: ModuleType) -> list[ast.AST]:
    """What a module's source consists of."""
    return list(ast.walk(ast.parse(Path(str(module.__file__)).read_text())))


def calls(found: Mapping[str, list[ast.AST]]) -> tuple[dict[tuple[str, str], set[str]], dict[str, set[str]]]:
    """By module and name, and by name alone, the methods by which the source calls what has that name.

    found  the nodes of each module's source, by its name
    """
    by_module: dict[tuple[str, str], set[str]] = defaultdict(set)
    by_name: dict[str, set[str]] = defaultdict(set)
    for module, nodes in found.items():
        for name, method in _uses(nodes):
            by_module[module, name].add(method)
            by_name[name].add(method)
    return by_module, by_name


def _uses(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """(name, method) of each use of a name; `search` where it is handed on."""
    called: set[int] = set()
    in_turn: dict[str, list[str]] = defaultdict(list)  # what a loop goes through by name, by its own name for it
    for node in nodes:
        if isinstance(node, ast.For | ast.comprehension) and isinstance(node.iter, ast.Tuple | ast.List):
            in_turn[_name(node.target)] += filter(None, map(_name, node.iter.elts))
            called.update(map(id, node.iter.elts))
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in _METHODS:
            called.add(id(node.value))
            if name := _name(node.value):
                yield name, node.attr
                yield from ((other, node.attr) for other in in_turn[name])
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load) and id(node) not in called:
            yield _name(node), _OTHER


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def globals_of(found: list[ModuleType]) -> dict[Key, tuple[str, str]]:
    """Where an expression is a global of a module: which, and its name."""
    named: dict[Key, tuple[str, str]] = {}
    for module in found:
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern):
                named.setdefault(key_of(value), (module.__name__, name))
    return named


def literals(found: list[ModuleType], nodes: Mapping[str, list[ast.AST]]) -> Iterator[tuple[Key, str, str]]:
    """The expressions that calls of `re` and `regex` have, as a literal or a text of the module's, each with its module
    and how it is called.
    """
    for module in found:
        for node in nodes[module.__name__]:
            if not isinstance(node, ast.Call) or not node.args:
                continue
            of_re = isinstance(node.func, ast.Attribute) and _name(node.func.value) == "re"
            if not of_re and _name(node.func) != "regex":
                continue
            first = node.args[0]
            text = first.value if isinstance(first, ast.Constant) else vars(module).get(_name(first))
            if isinstance(text, str | bytes):
                method = node.func.attr if isinstance(node.func, ast.Attribute) else "compile"
                yield key_of(re.compile(text, _flags(node, module))), module.__name__, method


def _flags(node: ast.Call, module: ModuleType) -> int:
    """The flags in a call of `re`, among its arguments."""
    for argument in [*node.args[1:], *(keyword.value for keyword in node.keywords if keyword.arg == "flags")]:
        try:
            value = eval(compile(ast.Expression(argument), "", "eval"), vars(module))  # noqa: S307  # our own source
        except (NameError, AttributeError, TypeError):
            continue
        if isinstance(value, re.RegexFlag):
            return int(value)
    return 0


def main() -> None:
    """Print them."""
    from ralf.text import patterns

    patterns.regex = re.compile  # each is seen when its module is imported, and not when it is first used
    seen = Seen()
    found = modules()
    call_cached()
    from tests.faults.hostile import everything

    everything()
    nodes = {module.__name__: nodes_of(module) for module in found}
    by_module, by_name = calls(nodes)
    named = globals_of(found)
    called: dict[Key, set[str]] = defaultdict(set)
    for key, module, method in literals(found, nodes):
        seen.where.setdefault(key, module)
        called[key].add(method if method != "compile" else _OTHER)
    told = []
    for key in sorted(seen.where.keys() | named.keys()):
        module, name = named.get(key, (seen.where.get(key, ""), ""))
        methods = called[key]
        if name:
            methods = by_name[name] if not name.startswith("_") else by_module[module, name]
        where = f"{module}.{name}" if name else module
        told.append(
            {
                "where": where,
                "pattern": key[0],
                "flags": key[1],
                "is_bytes": key[2],
                "anchored": bool(methods) and methods <= _AT_BEGINNING,
            }
        )
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
