"""Makes agent sessions of any length, in Claude Code's format: the same arguments give the same bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

TURN_TOKENS = 2_000
"""About the o200k_base tokens of a turn."""

_CWD = "/home/dev/harbour"
_START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
_PARTS = "berth cargo crane customs ferry gate ledger lock manifest mooring pilot quay radar signal tide tug".split()
_LAYERS = "api cache cli codec index model policy queue reader render retry schema store sync view writer".split()
_WAYS = (
    ("a bounded queue", "an unbounded one", "memory grew without end when the reader stalled"),
    ("one SQLite file", "a server", "the boats have no network for days"),
    ("a monotonic clock", "wall time", "the clock jumps when the radio link comes back"),
    ("optimistic locking", "a global lock", "two clerks edit the same manifest every morning"),
    ("plain dataclasses", "an ORM", "the schema is frozen by the port authority"),
    ("exponential backoff", "a fixed pause", "the gateway bans who knocks once a second"),
)


def turn(number: int, session: str, *, details: bool = False) -> list[bytes]:
    """The records of one request and what the agent did about it; every number gives other names and words.

    details  with what a client writes beside: ids, each result once more as the tool gave it, an edited file whole; and
             one more look around. About 50 tokens a KB, as in the sessions that ralf was developed on
    """
    chance = random.Random(number)  # noqa: S311  # the same every time, that is the point
    part, layer = chance.choice(_PARTS), chance.choice(_LAYERS)
    way, other, why = chance.choice(_WAYS)
    path, test = f"src/{part}/{layer}_{number}.py", f"tests/{part}/test_{layer}_{number}.py"
    when = _START + timedelta(minutes=3 * number)
    code = _code(chance, part, layer)
    recorder = _Recorder(session, when, number, details=details)
    recorder.user(f"Please make the {layer} of the {part} survive a restart (ticket {number}), and keep {path} small.")
    recorder.say(f"I looked at {path}. Let me read it first.")
    recorder.tool("Read", {"file_path": f"{_CWD}/{path}"}, _numbered(code))
    if details:
        recorder.tool(
            "Grep", {"pattern": layer, "path": "src"}, "\n".join(f"{path}:{line}" for line in code.split("\n"))
        )
    recorder.say(
        f"For the {layer} of the {part} we could use {way} or {other}. "
        f"I decided to use {way} instead of {other} for ticket {number}, because {why}."
    )
    recorder.tool(
        "Edit",
        {"file_path": f"{_CWD}/{path}", "old_string": code[:200], "new_string": code[:180] + f"\n# ticket {number}\n"},
        f"The file {_CWD}/{path} has been updated.",
    )
    failed = f"{test}:{number % 90}: AssertionError: expected {number} {part}s, got {number - 1}"
    recorder.tool("Bash", {"command": f"pytest {test} -q"}, f"Exit code 1\n{failed}\n1 failed in 0.2s", failed=True)
    recorder.tool("Write", {"file_path": f"{_CWD}/{test}", "content": code[-600:]}, f"File created: {_CWD}/{test}")
    recorder.tool("Bash", {"command": f"pytest {test} -q"}, f"{number % 40 + 1} passed in 0.3s")
    recorder.tool(
        "Bash",
        {"command": f'git commit -am "{part}: {layer} survives a restart"'},
        f"[main {number:07x}] {part}: {layer} survives a restart\n 2 files changed",
    )
    recorder.say(f"Ticket {number} is done: the {layer} of the {part} survives a restart. Next: the one after it.")
    return recorder.records


def unused(number: int, session: str) -> Iterator[bytes]:
    """What a client writes between the turns: progress, a notice, a snapshot of files, a sub-agent's words."""
    chance = random.Random(number)  # noqa: S311
    text = _code(chance, chance.choice(_PARTS), chance.choice(_LAYERS))
    common = {"parentUuid": f"{number:032x}", "isSidechain": False, "cwd": _CWD, "sessionId": session}
    for _ in range(4):
        yield _line(common | {"type": "progress", "data": {"type": "bash_progress", "output": text[:700]}})
    yield _line(common | {"attachment": {"type": "edited_text_file", "content": text * 2}, "type": "attachment"})
    yield _line({"type": "file-history-snapshot", "snapshot": {"trackedFileBackups": {"a": {"content": text * 8}}}})
    message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    yield _line(common | {"isSidechain": True, "message": message, "type": "assistant"})


def skipped(number: int, size: int, session: str) -> bytes:
    """A record of about `size` bytes of a type that says nothing about the work: a whole request of the client."""
    chance = random.Random(number)  # noqa: S311
    text = _code(chance, chance.choice(_PARTS), chance.choice(_LAYERS))
    blob = (text * (size // len(text) + 1))[:size]
    return _line({"type": "api-request-blob", "sessionId": session, "blob": blob})


def long_result(size: int, session: str) -> list[bytes]:
    """A command and its result, which is one line of about `size` bytes."""
    recorder = _Recorder(session, _START, 0)
    recorder.tool("Bash", {"command": "cat build.log"}, "compiling harbour, nothing to see here. " * (size // 40))
    return recorder.records


def session(turns: range, name: str) -> Iterator[bytes]:
    """The records of a session with these turns."""
    for number in turns:
        yield from turn(number, name)


class _Recorder:
    def __init__(self, session: str, when: datetime, number: int, *, details: bool = False) -> None:
        self._session = session
        self._when = when
        self._number = number
        self._details = details
        self.records: list[bytes] = []

    def user(self, text: str) -> None:
        self._add("user", {"role": "user", "content": text})

    def say(self, text: str) -> None:
        self._add("assistant", self._message({"type": "text", "text": text}))

    def tool(self, name: str, given: dict[str, Any], told: str, *, failed: bool = False) -> None:
        call = f"toolu_{self._number}_{len(self.records)}"
        self._add("assistant", self._message({"type": "tool_use", "id": call, "name": name, "input": given}))
        block = {"tool_use_id": call, "type": "tool_result", "content": told, "is_error": failed}
        more: dict[str, Any] = {}
        if self._details:
            whole = "".join(str(value) for value in given.values()) * 14 if "file_path" in given else ""
            more = {"toolUseResult": {"stdout": told, "file": {"content": told}, "originalFile": whole}}
        self._add("user", {"role": "user", "content": [block]}, more)

    def _message(self, block: dict[str, Any]) -> dict[str, Any]:
        usage = {"input_tokens": 4, "cache_read_input_tokens": 40_000, "output_tokens": 90}
        name = f"msg_{self._number}_{len(self.records)}"
        return {"model": "claude-sonnet-4-5", "id": name, "role": "assistant", "content": [block], "usage": usage}

    def _add(self, kind: str, message: dict[str, Any], more: dict[str, Any] | None = None) -> None:
        self._when += timedelta(seconds=4)
        when = self._when.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        common = {"isSidechain": False, "cwd": _CWD, "sessionId": self._session, "version": "2.1.36", "type": kind}
        if self._details:
            own = f"{self._number:08x}-0000-4000-8000-{len(self.records):012x}"
            common = {"parentUuid": own, "userType": "external", "gitBranch": "main"} | common | {"uuid": own}
        self.records.append(_line(common | {"message": message, "timestamp": when} | (more or {})))


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _numbered(code: str) -> str:
    return "\n".join(f"{n:6}→{line}" for n, line in enumerate(code.split("\n"), 1))


def _code(chance: random.Random, part: str, layer: str) -> str:
    lines = [f'"""The {layer} of the {part}."""', "", "from __future__ import annotations", ""]
    for _ in range(9):
        name, kind = chance.choice(_PARTS), chance.choice(_LAYERS)
        lines += [
            f"def {kind}_{name}({name}: str, limit: int = {chance.randrange(10, 9_999)}) -> list[str]:",
            f'    """The {kind} of a {name}, at most `limit` of them."""',
            f"    found = [item for item in load_{part}({name!r}) if item.{kind} > {chance.randrange(100)}]",
            "    if not found:",
            f'        raise LookupError(f"no {kind} for {{{name}}}")',
            f"    return sorted(found, key=lambda item: item.{kind})[:limit]",
            "",
        ]
    return "\n".join(lines)
