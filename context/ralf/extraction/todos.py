"""Follows a client's to-do list through the calls that change it; without one, the step that the agent names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ralf.model import ActiveWork, Step, Todo
from ralf.transcripts.events import Event

_MOST = 1_000  # to-dos that are followed: each single change goes through all of them
_WHOLE = frozenset({"todowrite", "updateplan", "todolist", "writetodos"})
_TASK = frozenset({"taskcreate", "taskupdate", "tasklist"})
_NUMBER = re.compile(r"#(\w+)")
_LISTED = re.compile(r"(?m)^#(\w+)[.:]? \[(\w+)\] (.+)$")
_BLOCKED = " [blocked by "
_PLACE = re.compile(
    r"(?m)^(?:[#*]|[^\S\n])*+(?:now )?step #?(\d{1,3}) ?(?:of|/) ?(\d{1,3})\b"
    r"(?:[*]{0,2} ?[:.\u2013\u2014-] {1,2}([^\n]{0,160}))?",
    re.IGNORECASE,
)  # within one line: a run of blank lines is not gone through again from each of them
_ENDED = re.compile(
    r"(?m)^(?:[#*>-]|[^\S\n])*+(?:(?P<tick>[\u2705\u2714\u2611\u2713]\ufe0f?)[^\S\n]{0,3}[*]{0,2})?"
    r"(?P<verb>(?:finished|completed|done with) )?step #?(?P<step>\d{1,3})(?: ?(?:of|/) ?\d{1,3})?[*]{0,2}"
    r"(?P<end> (?:is |are )?(?:now )?(?:done|complete|completed|finished)\b)?[*]{0,2}"
    r"(?:[^\S\n]{0,2}[:.,\u2013\u2014(-][^\S\n]{0,2}(?P<told>[^\n]{0,160}))?",
    re.IGNORECASE,
)
_STATUSES = {
    "pending": "pending",
    "open": "pending",
    "todo": "pending",
    "in_progress": "in_progress",
    "in-progress": "in_progress",
    "active": "in_progress",
    "completed": "completed",
    "complete": "completed",
    "done": "completed",
}


def _flat(tool: str) -> str:
    return tool.lower().replace("_", "")  # a tool of an MCP server keeps the server's name, and is none of the client's


class TodoList:
    """The to-dos of a session, whole lists and single changes alike."""

    def __init__(self, work: ActiveWork) -> None:
        self.todos = list(work.todos)
        self.changed = False
        self._place: tuple[int, int] | None = None
        self._steps: dict[int, str] = {}  # what is said of each step
        self._done = {step.step: step for step in work.completed_steps if step.step is not None}

    @staticmethod
    def is_mine(tool: str) -> bool:
        """Whether a tool of this name changes or shows the client's own to-do list."""
        return _flat(tool) in _WHOLE | _TASK

    def take(self, call: Event, result: Event) -> None:
        """Follow one answered call."""
        name = _flat(call.tool)
        if result.failed or not self.is_mine(call.tool):
            return
        if name in _WHOLE:
            listed = next(
                (call.input[k] for k in ("todos", "plan", "items") if isinstance(call.input.get(k), list)), None
            )
            if listed is not None:
                self._set(_todos(listed))
        elif name == "taskcreate":
            number = _NUMBER.search(result.text)
            subject = str(call.input.get("subject") or call.input.get("description") or "").strip()
            if subject:
                self._put(Todo(subject, "pending", number[1] if number else ""))
        elif name == "taskupdate":
            self._update(call.input)
        else:
            listed = _LISTED.finditer(result.text)
            self._set([self._known(m[1], _without_blockers(m[3]), m[2]) for m in listed] or self.todos)

    def said(self, text: str) -> None:
        """Follow what the agent says of its place in a plan, at the beginning of a line: "Step 7 of 10: pack",
        "Step 7 is done". A step of a plan that is gone on from is done, too, where it was named.
        """
        for match in _PLACE.finditer(text):
            step, total = int(match[1]), int(match[2])
            if 0 <= step <= total:
                self._place = step, total
                for before in [number for number in self._steps if number < step]:
                    self._end(before, "")
                self._steps[step] = (match[3] or "").strip(" *")
        for match in _ENDED.finditer(text):
            if match["end"] or match["verb"] or match["tick"]:
                self._end(int(match["step"]), (match["told"] or "").strip(" *)"))

    def _end(self, number: int, told: str) -> None:
        """Note that a step is done; what was said of it before is what it was, `told` what came of it."""
        named = self._steps.pop(number, "")
        old = self._done.get(number, Step(number))
        description = old.description or named or told or f"step {number}"
        self._done[number] = Step(number, description, old.result or (told if told != description else ""))

    def renew(self, work: ActiveWork) -> ActiveWork:
        """The work with its to-dos, and with the steps that the list tells, if the list was touched."""
        if not self.changed and not self.todos:
            unnumbered = (step for step in work.completed_steps if step.step is None)
            done = (*unnumbered, *(self._done[number] for number in sorted(self._done)))
            place = self._place or (work.plan_step, work.total_steps)
            return replace(work, plan_step=place[0], total_steps=place[1], completed_steps=done)
        if not self.changed:
            return work
        done = tuple(
            Step(number, todo.content, _result(work, todo.content))
            for number, todo in enumerate(self.todos, 1)
            if todo.status == "completed"
        )
        current = next((n for n, todo in enumerate(self.todos, 1) if todo.status == "in_progress"), None)
        current = current or next((n for n, todo in enumerate(self.todos, 1) if todo.status == "pending"), None)
        total = len(self.todos)
        return replace(
            work,
            todos=tuple(self.todos),
            plan_step=current or total or None,
            total_steps=total or None,
            completed_steps=done,
        )

    def _set(self, todos: Sequence[Todo]) -> None:
        self.todos = list(todos)[-_MOST:]
        self.changed = True

    def _put(self, todo: Todo) -> None:
        if not any(todo.id and old.id == todo.id and old.content == todo.content for old in self.todos):
            done = self.todos and all(old.status == "completed" for old in self.todos) and todo.id == "1"
            self._set([todo] if done else [*self.todos, todo])

    def _known(self, number: str, content: str, status: str) -> Todo:
        return Todo(content.strip(), _STATUSES.get(status.lower(), "pending"), number)

    def _update(self, arguments: Mapping[str, Any]) -> None:
        number = str(arguments.get("taskId") or arguments.get("task_id") or arguments.get("id") or "").lstrip("#")
        status = str(arguments.get("status") or "").lower()
        subject = str(arguments.get("subject") or "").strip()
        if status in ("deleted", "cancelled", "canceled"):
            self._set([todo for todo in self.todos if todo.id != number])
            return
        self._set(
            [
                replace(todo, status=_STATUSES.get(status, todo.status), content=subject or todo.content)
                if todo.id == number
                else todo
                for todo in self.todos
            ]
        )


def _todos(listed: Sequence[Any]) -> list[Todo]:
    found = []
    for item in listed:
        if isinstance(item, Mapping):
            content = next(
                (item[k] for k in ("content", "step", "subject", "title", "text") if isinstance(item.get(k), str)), ""
            )
            status = _STATUSES.get(str(item.get("status") or "").lower(), "pending")
            if content.strip():
                found.append(Todo(content.strip(), status, str(item.get("id") or "")))
        elif isinstance(item, str) and item.strip():
            found.append(Todo(item.strip()))
    return found


def _without_blockers(content: str) -> str:
    """What a line of a list says, without the tasks at its end that it waits for."""
    if not content.endswith("]"):
        return content
    place = content.find(_BLOCKED, content.rfind("]", 0, -1) + 1)
    return content[:place] if place > 0 else content


def _result(work: ActiveWork, content: str) -> str:
    return next((step.result for step in work.completed_steps if step.description == content), "")
