"""What `timeline-memory.md` of an agent would say now: the state that its readers know, and the brief of its route."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ralf
from ralf import yamlwriting
from ralf.briefing import fence
from ralf.context import RouteContext
from ralf.errors import RouteNotFound
from ralf.extraction.attempts import UNSAID
from ralf.model import Checkpoint
from ralf.project import Project
from ralf.text import one_line
from ralf.trim import trimmed

NAME = "timeline-memory.md"
_TOKENS = 2_500  # of a view, as of a brief
_ROWS = 20  # of a history
_LONGEST = 200  # characters of a value


def view(project: Project, agent: str, route: str = "", *, instead: str = "") -> str:
    """What `timeline-memory.md` of an agent would say, of its route (default: the one with its name). RouteNotFound.

    instead  the command that replaces it, where the view itself has to say that it is deprecated
    """
    context = ralf.get_context(route or agent, root=project.root)
    if context.wholly_foreign:
        raise RouteNotFound(route or agent, ())
    context = context.without_foreign()
    title = agent.replace("-", " ").title()
    state = yamlwriting.dump(_state(context, agent)).rstrip()
    told = f" and deprecated: `{instead}` replaces it" if instead else ""
    head = (
        f"# {title} Timeline Memory\n\n**Format:** a view of route {context.route}, read-only{told}\n"
        f"**Updated:** {context.last_checkpoint}\n\n---\n\n"
    )
    brief = context.render(_TOKENS, section="brief", fenced=False)
    return fence.fenced(fence.shown(f"{head}```yaml\n{state}\n```\n\n---\n\n") + brief)


def _state(context: RouteContext, who: str) -> dict[str, Any]:
    """The fence of such a file: what was taken over from it, as it stood, and what has happened since."""
    work = context.active_work
    brought = work.extra.get(f"memory_of_{who}")
    kept = dict(brought) if isinstance(brought, Mapping) else {}
    told, history, queue = kept.get("timeline_memory"), kept.get("history"), kept.get("work_queue")
    rows = _runs(context)
    header = dict(told) if isinstance(told, Mapping) else {"version": "1.0.0", "agent": who, "created": context.created}
    before = header.get("total_runs")
    header["last_updated"] = context.last_checkpoint
    counted = {one.session for one in context.checkpoint_history if f"{NAME}#" in one.session}
    known = len(counted) if isinstance(before, int) else 0  # those are among the attempts
    header["total_runs"] = (before if isinstance(before, int) else 0) + max(0, _attempts(context) - known)
    doing = [_short(todo.content) for todo in work.todos if todo.status == "in_progress"]
    waiting = [todo.content for todo in work.todos if todo.status == "pending"] + list(work.next_steps)
    now: dict[str, Any] = {"in_progress": doing[0]} if doing else {}
    now |= {"backlog": [_short(text) for text in dict.fromkeys(waiting)][:_ROWS]} if waiting else {}
    now |= {"blocked_by": [_short(text) for text in work.blockers][:_ROWS]} if work.blockers else {}
    if isinstance(queue, list):  # of a file in plain Markdown: what is open in it is in the route's to-dos, too
        now["items"] = queue
    return {
        "timeline_memory": header,
        **{key: value for key, value in kept.items() if key not in ("source", "header", "timeline_memory")},
        "history": [*(history if isinstance(history, list) else []), *rows],
        "work_queue": {"in_progress": None, "backlog": [], **(queue if isinstance(queue, Mapping) else {}), **now},
    }


def _attempts(context: RouteContext) -> int:
    """Runs and sessions that have worked on the route; of a single session the route does not count any."""
    return context.active_work.attempts or min(1, len(_sessions(context)))


def _sessions(context: RouteContext) -> dict[str, Checkpoint]:
    """By session, the last checkpoint of those that a client's session has, which is called by no path."""
    return {one.session: one for one in context.checkpoint_history if one.session and "/" not in one.session}


def _runs(context: RouteContext) -> list[dict[str, Any]]:
    """A row for each run or session of which the route tells, the newest first."""
    runs = [
        {
            "run_id": one.run.rpartition(f"{NAME}#")[2],
            "timestamp": one.timestamp,
            "status": one.outcome or UNSAID,
            "notes": _short(one.said),
        }
        for one in context.active_work.last_runs
    ]
    runs += [
        {"run_id": name, "timestamp": one.timestamp, "notes": _short(one.summary_ref)}
        for name, one in _sessions(context).items()
    ]
    return sorted(runs, key=lambda row: str(row["timestamp"]), reverse=True)[:_ROWS]


def _short(text: str) -> str:
    return trimmed(one_line(text).replace("```", "'''"), _LONGEST)
