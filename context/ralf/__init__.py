"""ralf keeps what a long-running coding agent must not forget: its decisions, its active work, its compressed history.

    get_context(route, *, root=None, max_tokens=None, query=None) -> RouteContext
    list_routes(*, root=None) -> list[RouteSummary]
    checkpoint(route, transcript, *, root=None, summarizer=None, reason="manual", keep=()) -> CheckpointReport
    record_decision(route, decision, *, rationale="", alternatives=(), supersedes=None, ...) -> Decision
    hand_over(route, text="", *, author="agent", root=None, **fields) -> HandedOver
    close_route(route, *, root=None)
    search(query, *, route=None, root=None, limit=5) -> list[SearchHit]
    why(route, id, *, root=None) -> Reason

All verbs: `ralf.api`. Errors: `ralf.errors`. Nothing is imported before it is used.
"""

from __future__ import annotations

import sys
from types import ModuleType

from ralf import errors

TYPE_CHECKING = False  # `typing` takes longer to load than a kept answer
if TYPE_CHECKING:
    from typing import Any

    from ralf.api import (
        CheckpointReport,
        Decision,
        Reason,
        RouteContext,
        RouteSummary,
        SearchHit,
        checkpoint,
        close_route,
        get_context,
        hand_over,
        list_routes,
        record_decision,
        search,
        why,
    )

__version__ = "0.1.0"

__all__ = [
    "CheckpointReport",
    "Decision",
    "Reason",
    "RouteContext",
    "RouteSummary",
    "SearchHit",
    "checkpoint",
    "close_route",
    "errors",
    "get_context",
    "hand_over",
    "list_routes",
    "record_decision",
    "search",
    "why",
]


def _render(
    context: RouteContext,
    max_tokens: int | None = None,
    *,
    query: str | None = None,
    section: str | None = None,
    fenced: bool = True,
) -> str:
    """The context as Markdown; see `ralf.brief.views.render`."""
    from ralf.brief.views import render  # few who read a context render it

    return render(context, max_tokens, query=query, section=section, fenced=fenced)


def _brief(context: RouteContext) -> str:
    """The brief: what a successor reads first."""
    return _render(context, section="brief")


def _history(context: RouteContext) -> str:
    """The Markdown of the sections, newest first."""
    from ralf.route.routefile import render_sections  # which loads YAML

    return render_sections(context.body.sections)


class _Package(ModuleType):
    """Classes of low floors get the methods that higher floors have for them when their module has been imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "model" and isinstance(value, ModuleType):
            value.RouteContext.render, value.RouteContext.history = _render, property(_history)
            value.RouteContext.__str__ = _brief
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ralf' has no attribute {name!r}")
    try:
        from ralf import api

        return getattr(api, name)
    except ImportError as error:
        if sys is None or sys.meta_path is None:
            raise errors.RalfError("ralf", f"{name}: the interpreter is ending: nothing was done") from error
        if (unsupported := errors.unsupported(error)) is not None:
            raise unsupported from error
        raise
