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
_AT_BEGINNING = {".match", ".fullmatch"}

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


_IMPORTED_OR_DEFINED = re.compile(r"(?m)^(?:from|import) .*|^    \w+,$|^[A-Z0-9_, ]+ =")
_IN_TURN = re.compile(r"for (\w+) in \(([A-Z0-9_, ]+)\)")


def anchored(sources: Mapping[str, str], module: str, name: str) -> bool:
    """Whether the code only ever matches at a text's beginning what has this name: all of it, for a public name."""
    uses = set()
    imported = re.compile(rf"(?m)^from .* import .*\b{name}\b|^    {name},$|^{name} =|\.{name}\b")
    for text in [sources[module]] if name.startswith("_") else filter(imported.search, sources.values()):
        known = _IMPORTED_OR_DEFINED.sub("", text)
        in_turn = [each for each in _IN_TURN.finditer(known) if re.search(rf"\b{name}\b", each[2])]
        for called in [name, *(each[1] for each in in_turn)]:
            uses.update(re.findall(rf"(?<![\w\"']){called}\b(\.\w+|)", _IN_TURN.sub("", known)))
    return bool(uses) and uses <= _AT_BEGINNING


def literals(module: ModuleType, source: str) -> Iterator[tuple[Key, str]]:
    """The expressions that calls of `re` and `regex` have, as a literal or a text of the module's, and how each is
    called.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = ast.unparse(node.func)
        if called != "regex" and called.partition(".")[0] != "re":
            continue
        given = [_value(argument, module) for argument in [*node.args, *(word.value for word in node.keywords)]]
        flags = sum(int(value) for value in given if isinstance(value, re.RegexFlag))
        if isinstance(given[0], str | bytes):
            yield key_of(re.compile(given[0], flags)), f".{called.partition('.')[2]}"


def _value(node: ast.expr, module: ModuleType) -> Any:
    """What a literal, a name or flags of a module are; None for anything else."""
    try:
        return eval(compile(ast.Expression(node), "", "eval"), vars(module))  # noqa: S307  # our own source
    except Exception:
        return None


def main() -> None:
    """Print them."""
    from ralf.text import patterns

    patterns.regex = re.compile  # each is seen when its module is imported, and not when it is first used
    seen = Seen()
    found = modules()
    call_cached()
    from tests.faults.hostile import everything

    everything()
    sources = {module.__name__: Path(str(module.__file__)).read_text() for module in found}
    named: dict[Key, tuple[str, str]] = {}
    for module in found:
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern):
                named.setdefault(key_of(value), (module.__name__, name))
    called: dict[Key, set[str]] = defaultdict(set)
    for module in found:
        for key, method in literals(module, sources[module.__name__]):
            seen.where.setdefault(key, module.__name__)
            called[key].add(method)
    told = []
    for key in sorted(seen.where.keys() | named.keys()):
        module, name = named.get(key, (seen.where.get(key, ""), ""))
        at_beginning = anchored(sources, module, name) if name else called[key] <= _AT_BEGINNING != set()
        at_beginning = at_beginning and (bool(name) or bool(called[key]))
        where = f"{module}.{name}" if name else module
        one = {"where": where, "pattern": key[0], "flags": key[1], "is_bytes": key[2], "anchored": at_beginning}
        told.append(one)
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
