"""What of a route's context another text does not say: a client's summary of its own window, say."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from ralf.context import Body, RouteContext, Since
from ralf.model import ActiveWork, Facts
from ralf.proving.items import Item
from ralf.proving.probe import Words

T = TypeVar("T")

_PATHS, _COMMANDS, _REQUESTS = 20, 8, 6
"""How many of each, the newest, a successor has to have."""
_SHORTEST_NAME = 5  # characters of a file's name by which its path is known


def lost(context: RouteContext, text: str) -> RouteContext | None:
    """The context without what the text gives back; None where nothing of weight is missing.

    What counts is what a successor cannot do without: goal, step, active decisions, rules and failed approaches, open
    to-dos and next steps, blockers, findings, the newest changed files, failed commands, unsolved errors, requests. The
    last words and outputs are left out: clients keep the end of a conversation as it is. "" gives nothing back.
    """
    summary = _Summary(text)
    facts = context.facts
    changed = [path for path in facts.paths if set(path.did) - {"read"}][-_PATHS:]
    failed = [command for command in facts.commands if command.status == "failed"][-_COMMANDS:]
    unsolved = [error for error in facts.errors if not error.fixed_by]
    active = [item for item in context.decisions if item.status == "active"]
    left = replace(
        context,
        goal="".join(summary.lacks("requests", [context.goal], str)),
        active_work=_work(context.active_work, summary),
        decisions=summary.lacks("decisions", active, lambda item: item.decision),
        facts=Facts(
            paths=summary.lacks("paths", changed, lambda fact: fact.path),
            commands=summary.lacks("commands", failed, lambda fact: fact.command),
            errors=summary.lacks("commands", unsolved, lambda fact: fact.error),
            requests=summary.lacks("requests", facts.requests[-_REQUESTS:], lambda fact: fact.request),
        ),
        body=Body(),
        since=Since(),
    )
    facts = left.facts
    held = (left.goal, left.decisions, facts.paths, facts.commands, facts.errors, facts.requests)
    return left if any(held) or left.active_work != ActiveWork() else None


def _work(work: ActiveWork, summary: _Summary) -> ActiveWork:
    where = ActiveWork()
    if work.plan_step is not None and not summary.tells_step(work.plan_step):
        where = replace(work, last_request="", last_statement="", last_output="", attempts=None, outcome="")
    todos = [todo for todo in work.todos if todo.status != "completed"]
    return replace(
        where,
        completed_steps=summary.lacks("to-dos", work.completed_steps, lambda step: step.description),
        todos=summary.lacks("to-dos", todos, lambda todo: todo.content),
        next_steps=summary.lacks("to-dos", work.next_steps, str),
        blockers=summary.lacks("to-dos", work.blockers, str),
        findings=summary.lacks("to-dos", work.findings, str),
        open_files=summary.lacks("paths", work.open_files, lambda file: file.path),
    )


class _Summary:
    """A text that is asked what it gives back."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = Words(text)

    def lacks(self, kind: str, items: Sequence[T], said: Callable[[T], str]) -> tuple[T, ...]:
        """Those of some items whose words, which `said` tells, it does not give back."""
        return tuple(item for item in items if said(item) and not self._gives_back(kind, said(item)))

    def tells_step(self, step: int) -> bool:
        """Whether it names the step of the plan."""
        return bool(re.search(rf"\bsteps?\W{{0,4}}{step}\b", self._text, re.I))

    def _gives_back(self, kind: str, said: str) -> bool:
        if self._words.give_back(Item(kind, said, 0)):
            return True
        name = said.rpartition("/")[2] if kind == "paths" else ""
        return len(name) >= _SHORTEST_NAME and self._words.give_back(Item(kind, name, 0))
