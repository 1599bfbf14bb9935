"""The commands and the class with which the proposal reads routes: on demand, never by themselves.

    python3 context_reader.py list
    python3 context_reader.py read --route R

    from context_reader import get_context
    get_context("api-refactoring")

The file is what `dropins install` writes, or a link to this one; `python -m ralf_integrations.blackbox5.context_reader`
is the same command.

Exit status: 0, also where there are no routes · 1 a damaged file · 2 wrong usage, a refused name · 3 no such route.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

if __package__ != "ralf_integrations.blackbox5":  # run, or linked to: nobody has said where our packages are
    _house = Path(__file__).resolve().parents[2]
    sys.path += [str(_house), str(_house.parent / "context")]
    from ralf_integrations.blackbox5 import anypython

    anypython.enter(__file__, running=__name__ == "__main__")

import ralf
from ralf.document.tree import to_tree
from ralf.errors import RalfError, RouteNotFound
from ralf.text.cleaning import fenced, shown
from ralf_integrations.blackbox5 import checkpointing
from ralf_integrations.blackbox5.checkpointing import complain, put

__all__ = ["ContextReader", "get_context", "get_summary", "list_routes", "main"]

_DECISIONS = 3  # that a summary tells


class ContextReader:
    """Reads the routes of a project: its folder, or its name in the tree; None: the one that is meant."""

    def __init__(self, project: str | os.PathLike[str] | None = "blackbox5") -> None:
        self._root = checkpointing.named_project(project).root

    def list_routes(self) -> list[str]:
        """The names of all routes, the one with the newest checkpoint first."""
        return [summary.route for summary in ralf.list_routes(root=self._root)]

    def get_context(self, route: str, max_history: int = 3) -> dict[str, Any] | None:
        """What a route's file holds, as its front matter has it, and `history`: its newest sections, as Markdown.

        max_history  checkpoints that are told of, the newest, in `checkpoint_history` and `history`

        None where there is no such route. UsageError for a refused name; Damaged.
        """
        try:
            context = ralf.get_context(route, root=self._root)
        except RouteNotFound:
            return None
        kept = max(0, max_history)
        tree = to_tree(context)
        tree = {key: value for key, value in tree.items() if not key.startswith("#")}
        for key, empty in (("decisions", []), ("active_work", {}), ("checkpoint_history", [])):
            tree.setdefault(key, empty)
        tree["checkpoint_history"] = tree["checkpoint_history"][-kept:] if kept else []
        newest = replace(context, body=replace(context.body, sections=context.body.sections[:kept]))
        tree["history"] = newest.history
        return tree

    def get_summary(self, route: str) -> str:
        """A route in a few lines; one that is not there in one. Raises as `get_context`."""
        tree = self.get_context(route)
        if tree is None:
            return f"No context found for route: {route}"
        header, work = tree.get("context_checkpoint", {}), tree["active_work"]
        lines = [
            f"Route: {header.get('route') or route}",
            f"Agent: {header.get('agent_type') or 'unknown'}",
            f"Checkpoints: {header.get('checkpoint_count', 0)}",
            f"Total Tokens: {header.get('total_tokens_consumed', 0):,}",
            "",
            "## Active Work",
            f"Task: {work.get('current_task') or 'None'}",
            f"Phase: {work.get('current_phase') or 'unknown'}",
            f"Status: {work.get('work_status') or 'unknown'}",
        ]
        if work.get("attempts"):
            lines.append(f"Attempts: {work['attempts']}; last outcome: {work.get('outcome') or 'unknown'}")
        active = [one for one in tree["decisions"] if one.get("status", "active") == "active"]
        if active:
            lines += ["", "## Recent Decisions"]
            lines += [f"- {one.get('id', '')}: {one.get('decision', '')}" for one in active[-_DECISIONS:]]
        return "\n".join(lines)


def list_routes() -> list[str]:
    """The names of all routes of the project that is meant, the one with the newest checkpoint first."""
    return ContextReader(None).list_routes()


def get_context(route: str, max_history: int = 3) -> dict[str, Any] | None:
    """What a route of the project that is meant holds: `ContextReader.get_context`."""
    return ContextReader(None).get_context(route, max_history)


def get_summary(route: str) -> str:
    """A route of the project that is meant in a few lines: `ContextReader.get_summary`."""
    return ContextReader(None).get_summary(route)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; its exit status. SystemExit (2) where it is called wrongly."""
    parser = argparse.ArgumentParser(prog="context_reader.py", description="Read routes, on demand.")
    parser.add_argument("command", choices=["list", "read"])
    parser.add_argument("--route", metavar="R")
    parser.add_argument("--project", metavar="P", help="a folder, or a name; default: the project that is meant")
    given = parser.parse_args(args)
    if given.command == "read" and not given.route:
        parser.error("--route required")
    try:
        reader = ContextReader(given.project)
        if given.command == "list":
            routes = reader.list_routes()
            listed = "".join(f"  - {route}\n" for route in routes)
            shown_ = listed if sys.stdout.isatty() else fenced(shown(listed), short=True)
            put(f"Available contexts:\n{shown_.rstrip()}" if routes else "No contexts.")
            return 0
        put(ralf.get_context(given.route, root=checkpointing.named_project(given.project).root).render(section="brief"))
    except RalfError as error:
        return complain(error, given.project)
    return 0


if __name__ == "__main__":
    sys.exit(main())
