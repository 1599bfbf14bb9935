"""The memory of an agent as functions of `ralf.api`, by the project's folder."""

from __future__ import annotations

import os
from typing import Any

from ralf import routing
from ralf.memory import selection, writing
from ralf.memory.model import DEFAULT_AGENT, Item
from ralf.memory.records import delta
from ralf.memory.selection import Selection
from ralf.memory.wording import stated
from ralf.project import find
from ralf.route.load import load_state
from ralf.text.cleaning import is_valid

Root = str | os.PathLike[str] | None


def get_memory(
    task: str = "",
    *,
    agent: str = DEFAULT_AGENT,
    max_tokens: int = selection.ON_REQUEST,
    root: Root = None,
    warnings: list[str] | None = None,
) -> Selection:
    """What was learned across tasks, as a text and as items; see `ralf.memory.for_task`.

    task        in any words, with the paths and commands that it names; the name of a route: the task of that route;
                "": what is worth most, whatever the task
    max_tokens  o200k_base tokens of the text, at most
    warnings    is given what kept it from being complete
    """
    project = find(root)
    route = routing.known(project, task) if is_valid(task) else None
    state = load_state(project, route) if route is not None else None
    words = selection.task_of(state.context) if state is not None else task
    return selection.for_task(project, agent, words, tokens=max_tokens, asked=True, warnings=warnings)


def remember(
    kind: str, text: str, *, agent: str = DEFAULT_AGENT, origin: str = "agent", root: Root = None, **given: Any
) -> Item:
    """Add an item, and return it as it is then: the one that said so before, where there was one.

    kind    trap, command, preference, fact, pattern or relationship
    text    of a trap or a command the command line; of a preference or a relationship "NAME: what"
    origin  agent: it is offered, and counts once a person accepts it; person: it counts
    given   other fields: `error`, `resolution`, `purpose`, `source`, `evidence`, `expires`

    Errors: UsageError, and those of `ralf.memory.record`.
    """
    return writing.add(find(root), agent, stated(kind, text, origin=origin, **given))[1]


def accept_item(id: str, *, agent: str = DEFAULT_AGENT, root: Root = None) -> None:  # noqa: A002
    """Have an offered item count. Errors: NotFound, and those of `ralf.memory.record`."""
    writing.record(find(root), agent, [delta("accept", id)])


def drop_item(id: str, *, because: str = "", agent: str = DEFAULT_AGENT, root: Root = None) -> None:  # noqa: A002
    """Take an item out for good: rules do not bring it back. Errors: NotFound, and those of `ralf.memory.record`."""
    writing.record(find(root), agent, [delta("drop", id, reason=because, origin="person")])
