"""ralf keeps what a long-running coding agent must not forget: its decisions, its active work, its compressed history.

    get_context(route, *, root=None, max_tokens=None, query=None) -> RouteContext
    list_routes(*, root=None) -> list[RouteSummary]
    checkpoint(route, transcript, *, root=None, summarizer=None, reason="manual", keep=()) -> CheckpointReport
    record_decision(route, decision, *, rationale="", alternatives=(), supersedes=None, ...) -> Decision
    search(query, *, route=None, root=None, limit=5) -> list[SearchHit]
    why(route, id, *, root=None) -> Reason

Errors: `ralf.errors`. Nothing is imported before it is used.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ralf import errors

if TYPE_CHECKING:
    from ralf.checkpoint import checkpoint
    from ralf.context import RouteContext
    from ralf.decide import record_decision
    from ralf.model import Decision
    from ralf.reader import RouteSummary, get_context, list_routes
    from ralf.report import CheckpointReport
    from ralf.search import SearchHit, search
    from ralf.why import Reason, why

__version__ = "0.1.0"

_HOMES = {
    "CheckpointReport": "ralf.report",
    "Decision": "ralf.model",
    "Reason": "ralf.why",
    "RouteContext": "ralf.context",
    "RouteSummary": "ralf.reader",
    "SearchHit": "ralf.search",
    "checkpoint": "ralf.checkpoint",
    "get_context": "ralf.reader",
    "list_routes": "ralf.reader",
    "record_decision": "ralf.decide",
    "search": "ralf.search",
    "why": "ralf.why",
}

__all__ = [
    "CheckpointReport",
    "Decision",
    "Reason",
    "RouteContext",
    "RouteSummary",
    "SearchHit",
    "checkpoint",
    "errors",
    "get_context",
    "list_routes",
    "record_decision",
    "search",
    "why",
]


class _Package(ModuleType):
    """`checkpoint` and `search` are functions here and also the modules that they live in: the functions win."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):  # what the import system does after a submodule
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        try:
            from importlib import import_module

            return getattr(import_module(_HOMES[name]), name)
        except ImportError as error:
            if sys is None or sys.meta_path is None:
                raise errors.RalfError("ralf", f"{name}: the interpreter is ending: nothing was done") from error
            raise
    raise AttributeError(f"module 'ralf' has no attribute {name!r}")
