"""Entries of a session, made by hand: each has the next line, and a minute more than the one before."""

from __future__ import annotations

from itertools import count
from typing import Any

from ralf.brief.pieces import View
from ralf.facts.state import State
from ralf.model.entries import Entry, Mark, MarkKind, Message, Said, Step
from ralf.talk.turns import Talk, thread

DAY = "2026-03-09"


class Session:
    """A session that grows by entries."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._count = count(1)

    def typed(self, text: str, form: Any = "", **fields: Any) -> Session:
        """Words of the person."""
        line, at = self._next()
        given = {"id": f"m{line}", "at": at, "line": line, **fields}
        return self._add(Message(form=form, text=text, **given))

    def said(self, text: str) -> Session:
        """A text of the agent."""
        line, at = self._next()
        return self._add(Said(at, line, text))

    def ran(self, command: str, outcome: Any = "ok", **fields: Any) -> Session:
        """A command."""
        return self.step("command", "Bash", command, outcome, **fields)

    def edited(self, *paths: str, **fields: Any) -> Session:
        """An edit of some files."""
        files = tuple((path, "edited") for path in paths)
        return self.step("edit", "Edit", paths[0], "ok", files=files, **fields)

    def step(self, kind: Any, tool: str, object_: str, outcome: Any = "ok", **fields: Any) -> Session:
        """A call and its result."""
        line, at = self._next()
        given = {"id": f"c{line}", "at": at, "line": line, **fields}
        return self._add(Step(kind=kind, tool=tool, object=object_, outcome=outcome, **given))

    def mark(self, kind: MarkKind, value: str = "", **fields: Any) -> Session:
        """What the client recorded besides."""
        line, at = self._next()
        return self._add(Mark(kind, at, line, value, **fields))

    @property
    def talk(self) -> Talk:
        """The talk that it came to."""
        return thread(self.entries)

    @property
    def view(self) -> View:
        """What a brief of it is made of."""
        talk = self.talk
        return View(talk, State.of(talk.entries), route="r")

    def _add(self, entry: Entry) -> Session:
        self.entries.append(entry)
        return self

    def _next(self) -> tuple[int, str]:
        line = next(self._count)
        return line, f"{DAY}T{8 + line // 60:02}:{line % 60:02}:00Z"
