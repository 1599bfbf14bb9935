"""What other distributions add to ralf: entry points in the four groups below, loaded when their answer is needed.

    ralf.transcripts   a `ralf.transcripts.reader.TranscriptReader`: what a client leaves, read as a transcript
    ralf.route_rules   a `ralf.routing.RouteRule`: the route that a client's environment means
    ralf.runs          a `ralf.project.RunEnvironment`: the runs of a loop that starts clients
    ralf.stores        a `ralf.project.StoreOpener`: journals and blobs elsewhere than in files

A distribution declares each in its pyproject.toml, as `[project.entry-points."ralf.runs"]`. An extension that cannot be
loaded, or that fails, is passed over and named in `problems`; a RalfError that it raises is its answer, and passes.

The metadata are read here by their specification: to import `importlib.metadata` takes 40 times as long as to look
through the folders of `sys.path`. It is asked where one of them is an archive.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from ralf.errors import RalfError

TRANSCRIPTS, ROUTE_RULES, RUNS, STORES = GROUPS = ("ralf.transcripts", "ralf.route_rules", "ralf.runs", "ralf.stores")

problems: list[RalfError] = []
"""What went wrong with extensions in this process, each once: the doors say it."""

loaded: list[str] = []
"""The modules of all extensions that were loaded in this process."""

_Answer = TypeVar("_Answer")
_Declared = tuple[str, str, str]
_declared: set[_Declared] = set()


def declare(group: str, name: str, value: str) -> None:
    """Add an extension that no metadata tells of, as in a checkout that is not installed.

    value  "module:attribute", as in an entry point; one that the metadata have, too, is the same extension
    """
    _declared.add((group, name, value))
    _loaded.cache_clear()


def ask(group: str, question: Callable[[Any], _Answer]) -> Iterator[_Answer]:
    """The answers of a group's extensions to a question, by the order of their names."""
    for name, extension in _loaded(group):
        try:
            answer = question(extension)
        except RalfError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever an extension does, the others are asked
            _note(group, name, error)
        else:
            yield answer


@cache
def _loaded(group: str) -> tuple[tuple[str, Any], ...]:
    found = []
    for declared, name, value in sorted(_declared | _installed()):
        module, _, attributes = value.partition("[")[0].partition(":")
        if declared != group:
            continue
        loaded.append(module.strip())
        try:
            extension = import_module(module.strip())
            found.append((name, attrgetter(attributes.strip())(extension) if attributes else extension))
        except Exception as error:  # noqa: BLE001  # its import runs code of others
            _note(group, name, error)
    return tuple(found)


@cache
def _installed() -> frozenset[_Declared]:
    """The entry points of our groups that the distributions on `sys.path` declare."""
    found: set[_Declared] = set()
    for folder in sys.path:
        try:
            names = os.listdir(folder or os.curdir)  # noqa: PTH208  # names alone, in one call
        except NotADirectoryError:
            from importlib.metadata import entry_points

            declared = [each for group in GROUPS for each in entry_points(group=group)]
            return frozenset((each.group, each.name, each.value) for each in declared)
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                found.update(_entry_points(Path(folder, name, "entry_points.txt")))
    return frozenset(found)


def _entry_points(path: Path) -> Iterator[_Declared]:
    try:
        content = path.read_bytes()
    except OSError:  # most distributions declare none
        return
    group = ""
    for line in map(str.strip, content.decode("utf-8", "replace").splitlines() if b"[ralf." in content else ()):
        if line.startswith("["):
            group = line.strip("[]")
        elif group in GROUPS and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield group, name.strip(), value.strip()


def _note(group: str, name: str, error: Exception) -> None:
    problem = RalfError(f"extension {name} of {group}", f"{type(error).__name__}: {error}")
    if str(problem) not in map(str, problems):
        problems.append(problem)
