"""A session's calls and results as events, and the entries and the state that they come to."""

from __future__ import annotations

from typing import Any

from ralf.facts.state import State
from ralf.model.entries import Entry, GitFact, Step
from ralf.talk.recording import record
from ralf.transcripts.events import Event, Position

BASE = "/home/ada/orchard"


class Session:
    """Builds events as a reader gives them, one a line and a minute, from 10:00 on."""

    def __init__(self, cwd: str = BASE) -> None:
        self.events: list[Event] = []
        self.cwd = cwd

    def add(self, kind: Any, text: str = "", **fields: Any) -> Event:
        """Append an event."""
        line = len(self.events)
        time = f"2026-03-01T{10 + line // 60:02d}:{line % 60:02d}:00Z"
        given = {"cwd": self.cwd, **fields}
        event = Event(kind, text, Position(line, line), Position(line + 1, line + 1), time, **given)
        self.events.append(event)
        return event

    def call(self, tool: str, arguments: dict[str, Any], **fields: Any) -> str:
        """Append a call; its id."""
        call_id = f"c{len(self.events)}"
        text = "\n".join(str(value) for value in arguments.values())
        self.add("call", text, tool=tool, input=arguments, call_id=call_id, **fields)
        return call_id

    def tool(self, tool: str, arguments: dict[str, Any], output: str = "ok", *, agent: str = "", **fields: Any) -> None:
        """Append a call with its result."""
        call_id = self.call(tool, arguments, agent=agent)
        fields = {**fields, "form": "refused"} if fields.get("refused") else fields  # by the person
        self.add("result", output, tool=tool, call_id=call_id, agent=agent, **fields)

    def bash(self, command: str, output: str = "", status: int = 0, **fields: Any) -> None:
        """Append a command as Claude Code runs it."""
        self.tool("Bash", {"command": command}, output, failed=bool(status), exit_status=status, **fields)

    def exec(self, command: str, output: str = "", status: int = 0) -> None:
        """Append a command as Codex runs it."""
        self.tool("shell", {"command": ["bash", "-lc", command]}, output, failed=bool(status), exit_status=status)

    def edit(self, *paths: str, agent: str = "") -> None:
        """Append an edit of each file."""
        for path in paths:
            arguments = {"file_path": f"{BASE}/{path}", "old_string": "a", "new_string": "b"}
            self.tool("Edit", arguments, agent=agent)

    def patch(self, *headers: str) -> None:
        """Append a patch as Codex applies it."""
        body = "\n".join(["*** Begin Patch", *headers, "*** End Patch"])
        self.tool("apply_patch", {"input": body}, "Success.")

    def says(self, text: str) -> None:
        """Append a message of the person."""
        self.add("user", text, id=f"m{len(self.events)}")

    @property
    def entries(self) -> list[Entry]:
        """The entries that the events come to."""
        return record(self.events, BASE, "s")

    @property
    def steps(self) -> list[Step]:
        """The steps among them."""
        return [entry for entry in self.entries if isinstance(entry, Step)]

    @property
    def state(self) -> State:
        """The state at the end."""
        return State.of(self.entries)


def facts(session: Session) -> list[GitFact]:
    """What the session's commands say of its repository."""
    return [fact for step in session.steps for fact in step.git]
