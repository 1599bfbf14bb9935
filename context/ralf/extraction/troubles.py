"""Follows the errors of commands and tools until what failed passes, and tells what was done before it did."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ralf.model import ErrorFact
from ralf.trim import trimmed

NAMED = 120
"""Characters of a command that name it beside an error or a test result."""

_LONG_ERROR = 300
_FIXES = 3  # files that are named as the fix, the last that were changed


@dataclass(slots=True)
class _Since:
    """What was changed and what passed since a command failed."""

    changed: dict[str, None] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)


class Troubles:
    """The errors of a stretch; `unsolved` are those known before that nothing has fixed yet."""

    def __init__(self, unsolved: Iterable[ErrorFact]) -> None:
        self.errors: dict[tuple[str, str], ErrorFact] = {}
        self._failing: dict[str, list[ErrorFact]] = {}
        self._since: dict[str, _Since] = {}
        for error in unsolved:
            if not error.fixed_by:
                self._failing.setdefault(_same(error.command), []).append(error)
                self._since.setdefault(_same(error.command), _Since())

    def failed(self, line: str, command: str, time: str) -> None:
        """A command or tool failed with this line of error; "" where none was found."""
        if not line:
            return
        line = trimmed(line, _LONG_ERROR)
        error = ErrorFact(line, command, "", time)
        self._put(error)
        same = _same(command)
        known = [e for e in self._failing.get(same, ()) if (e.error, e.command) != (line, command)]
        self._failing[same] = [*known, error]
        self._since[same] = _Since()

    def changed(self, path: str) -> None:
        """A file was changed."""
        for since in self._since.values():
            since.changed.pop(path, None)
            since.changed[path] = None

    def passed(self, command: str, time: str) -> None:
        """A command passed: the errors of the same command, alone or at its beginning, are fixed."""
        same, named = _same(command), _same(trimmed(command, NAMED))
        for failing in [name for name in self._failing if name == named or same.startswith(name + " && ")]:
            since = self._since.pop(failing)
            for error in self._failing.pop(failing):
                self._put(replace(error, fixed_by=_fix(since), last=time))
        for since in self._since.values():
            since.ran.append(command)

    def _put(self, error: ErrorFact) -> None:
        self.errors.pop((error.error, error.command), None)
        self.errors[error.error, error.command] = error


def _same(command: str) -> str:
    """One form for commands that differ only in spaces and in where their errors are sent."""
    return " ".join(command.replace(" 2>&1", "").split())


def _fix(since: _Since) -> str:
    if since.changed:
        return "edited " + ", ".join(list(since.changed)[-_FIXES:])
    for command in reversed(since.ran):
        if not re.match(r"(?:ls|cat|grep|rg|head|tail|find|echo|pwd|git (?:status|log|diff|show|branch))\b", command):
            return "ran " + trimmed(command.split("\n")[0], 160)
    return "passed when run again"
