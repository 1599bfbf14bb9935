"""What a client's hook costs, as it is installed: where nothing is due, with a large transcript, with 40 at once, how
often all of a session is looked at, and what 500 sessions leave behind.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import installed as command_on_path
from measure import BARE, Row, commands, main, run

from ralf import environment
from ralf.maintenance import ownership
from ralf.project import Project
from ralf_integrations.client import CLAUDE_CODE
from ralf_integrations.hooks import entry, instant

TITLE = "Hooks"

AT_ONCE = 40
SESSIONS = 500
MOST_WAIT = 150.0  # ms that 95 of 100 hooks may take with 40 at once
MOST_LOOKS = 12  # between two checkpoints with small outputs
SIZE = 200 << 20
_EVENT = "PostToolBatch"
_WORDS = "the tide table of harbour reader column station level batch window 404 src/app/main.py None returned".split()
_OUTPUT = "a line of what the tool printed, as long as lines are, and then another one\n" * 40


class _Sessions:
    """A project, and sessions of it."""

    def __init__(self, root: Path, *, opted_in: bool = True) -> None:
        self.root = root
        self.logs = root.parent / ".claude" / "projects" / "-x"
        self.logs.mkdir(parents=True, exist_ok=True)
        root.mkdir(parents=True)
        if opted_in:
            ownership.init(Project(root), share=False)

    def payload(self, session: str, event: str = _EVENT, *, tool: str = "Bash") -> bytes:
        """What the client writes."""
        call = {"tool_name": tool, "tool_input": {"command": "make"}, "tool_response": _OUTPUT}
        tree = {"session_id": session, "transcript_path": str(self.transcript(session)), "cwd": str(self.root)}
        return json.dumps({**tree, "hook_event_name": event, "tool_calls": [call]}).encode()

    def transcript(self, session: str) -> Path:
        """Where its session log lies."""
        return self.logs / f"{session}.jsonl"

    def write(self, session: str, size: int) -> None:
        """A session log of that many bytes, nearly all of what no checkpoint takes: it ends with a short talk."""
        with self.transcript(session).open("wb") as file:
            file.write(_line(session, "user", "Please carry the tide table over."))
            blob = json.dumps({"type": "api-request", "sessionId": session, "body": "x" * 200_000}).encode() + b"\n"
            while file.tell() < size:
                file.write(blob)
            file.write(_line(session, "assistant", [{"type": "text", "text": "I read it first."}]))

    def step(self, session: str, dice: random.Random) -> None:
        """A call whose output is small, in records as wide as Claude Code's."""
        wide = {"parentUuid": _uuid(dice), "cwd": str(self.root), "version": "2.1.36", "gitBranch": "m"}
        call = {"type": "tool_use", "id": "t" * 30, "name": "Bash", "input": {"command": _words(dice, 60)}}
        output = _words(dice, dice.randrange(200, 800))
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": output}
        with self.transcript(session).open("ab") as file:
            file.write(
                _line(
                    session, "assistant", [{"type": "text", "text": _words(dice, 120)}, call], uuid=_uuid(dice), **wide
                )
            )
            details = {"stdout": output, "stderr": ""}
            file.write(_line(session, "user", [result], toolUseResult=details, uuid=_uuid(dice), **wide))


def _uuid(dice: random.Random) -> str:
    return str(UUID(int=dice.getrandbits(128)))


def _words(dice: random.Random, size: int) -> str:
    return " ".join(dice.choice(_WORDS) for _ in range(size // 6))


def _line(session: str, kind: str, content: object, **more: object) -> bytes:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 20_000, "output_tokens": 10}
    message = {"role": kind, "content": content} | ({"model": "m", "usage": usage} if kind == "assistant" else {})
    return json.dumps({**more, "type": kind, "sessionId": session, "message": message}).encode() + b"\n"


def produce(rounds: int) -> list[Row]:
    """Every case against an interpreter that starts and stops."""
    ralf = command_on_path.ralf()
    for name in [name for name in os.environ if name.startswith(("RALF_", "BB5_", "CLAUDE"))]:
        del os.environ[name]
    hook = CLAUDE_CODE.command(_EVENT, shared=False)
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        os.environ["CLAUDE_CONFIG_DIR"] = str(here / ".claude")
        ours, others = _Sessions(here / "ours"), _Sessions(here / "others", opted_in=False)
        off = _Sessions(here / "off")
        ownership.switch(Project(off.root), on=False)
        ours.write("small", 4_096)
        ours.write("starting", 4_096)  # its next hook looks
        ours.write("large", SIZE)
        off.write("off", 4_096)
        small = ours.payload("small")
        stdin = {
            "nothing due": small,
            "nothing due, 200 MB of transcript": ours.payload("large"),
            "not opted in": others.payload("small"),
            "hooks are off": off.payload("off"),
            "nothing due, ralf hook on PATH": small,
            "a look, nothing due": ours.payload("small", tool="TodoWrite"),
            "session start": ours.payload("starting", "SessionStart"),
        }
        cases: dict[str, Sequence[str]] = {
            "python -I -c pass": BARE,
            "python -I -S -c pass": [sys.executable, "-I", "-S", "-c", "pass"],
            **dict.fromkeys(stdin, hook),
            "nothing due, ralf hook on PATH": [ralf, "hook", _EVENT, "--client", "claude-code"],
            "session start": CLAUDE_CODE.command("SessionStart", shared=False),
        }
        for data in stdin.values():
            run(hook, stdin=data)  # leaves the hint
        targets = {"nothing due": 1.3, "not opted in": 1.3, "a look, nothing due": 6.0}
        rows = commands(cases, rounds=rounds, targets=targets, stdin=stdin)
        by_name = {row.name: row for row in rows}
        large, short = by_name["nothing due, 200 MB of transcript"], by_name["nothing due"]
        rows.append(Row("200 MB of transcript against 4 KB", large.value, "ms CPU", large.value / short.value, 0, 1.1))
        return [*rows, _looks(ours), *_at_once(hook, small, rounds), *_many(ours)]


def _looks(ours: _Sessions) -> Row:
    """How often a session with small outputs is looked at until its first checkpoint."""
    session, dice, looks = "steps", random.Random(1), 0  # noqa: S311  # reproducible, no secret
    ours.write(session, 0)
    journals = Project(ours.root).folder / "journal" / "routes"
    while not any(f'"session":"{session}"'.encode() in path.read_bytes() for path in journals.glob("*.jsonl")):
        ours.step(session, dice)
        data = ours.payload(session)
        if not instant.is_idle("claude-code", _EVENT, data):
            looks += 1
            entry.run("claude-code", _EVENT, data, lambda _: None)
            while environment.started:
                environment.status_within(environment.started[0], 60)
    return Row(
        "looks until a checkpoint at 50,000 tokens, outputs of 200 to 800 bytes",
        looks,
        "looks",
        looks / MOST_LOOKS,
        0,
        1.0,
    )


def _at_once(hook: Sequence[str], data: bytes, rounds: int) -> list[Row]:
    """Forty at once, by the time that each takes from its start to its end."""
    bare, ours = [], []
    for _ in range(rounds):
        bare += _elapsed([BARE] * AT_ONCE, b"")
        ours += _elapsed([hook] * AT_ONCE, data)
    first, second = (statistics.quantiles(times, n=20)[-1] for times in (bare, ours))
    return [
        Row(f"{AT_ONCE} bare interpreters at once, 95th percentile", first, "ms elapsed", 1.0),
        Row(f"{AT_ONCE} hooks at once, 95th percentile", second, "ms elapsed", second / first),
        Row(
            f"{AT_ONCE} hooks at once, as a share of {MOST_WAIT:g} ms", second, "ms elapsed", second / MOST_WAIT, 0, 1.0
        ),
    ]


def _elapsed(all_of_them: Sequence[Sequence[str]], data: bytes) -> list[float]:
    """Milliseconds that each of these takes, all begun at once."""
    pipes = []
    for _ in all_of_them:
        reader, writer = os.pipe()
        os.write(writer, data)
        os.close(writer)
        pipes.append(reader)
    began: dict[int, float] = {}
    for command, reader in zip(all_of_them, pipes, strict=True):
        actions = [(os.POSIX_SPAWN_DUP2, reader, 0), (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
        now = time.perf_counter()
        began[os.posix_spawn(command[0], list(command), os.environ, file_actions=actions)] = now
        os.close(reader)
    took = []
    while began:
        child, status = os.wait()
        took.append(1000 * (time.perf_counter() - began.pop(child)))
        if status:
            raise RuntimeError(f"a hook ended with {os.waitstatus_to_exitcode(status)}")
    return took


def _many(ours: _Sessions) -> list[Row]:
    """Many sessions, from their start to their end: what is left of them, and whether the last one takes more."""
    peaks = []
    ours.logs = ours.root.parent  # not read there: five hundred checkpoints are measured elsewhere
    for number in range(SESSIONS):
        session = f"session-{number}"
        ours.write(session, 4_096)
        for event in ("SessionStart", _EVENT, _EVENT, "SessionEnd"):
            done = run(CLAUDE_CODE.command(event, shared=False), stdin=ours.payload(session, event))
        peaks.append(done.peak)
        while _running(ours.root) > 2:
            time.sleep(0.01)
    deadline = time.monotonic() + 60
    while (left := _running(ours.root)) and time.monotonic() < deadline:
        time.sleep(0.05)
    kept = sum(path.stat().st_size for path in (Project(ours.root).cache / "hooks").iterdir())
    early, late = statistics.median(peaks[:50]), statistics.median(peaks[-50:])
    return [
        Row(f"processes left by {SESSIONS} sessions", left, "processes", float(left), 0, 0),
        Row(
            "peak of a session's last hook, sessions 451 to 500 against 1 to 50", late / 1e6, "MB", late / early, 0, 1.1
        ),
        Row("what is remembered of a session", kept / SESSIONS, "bytes"),
    ]


def _running(root: Path) -> int:
    found = 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            found += b"ralf_integrations.hooks.checkpoints" in words and os.fsencode(root) in words
    return found


if __name__ == "__main__":
    sys.exit(main(TITLE, produce))
