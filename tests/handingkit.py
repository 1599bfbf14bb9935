"""What the tests of the hooks share: payloads as the clients send them, sessions of a project, logs made to size."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ralf
from ralf.maintenance import ownership
from ralf.project import Project
from ralf_integrations.hooks import entry, session_registry
from ralf_integrations.hooks.messages import Answer, Payload, parse, written
from ralf_integrations.hooks.session import Session
from ralf_integrations.hooks.session_registry import KnownSession

ROUTE = "tide-table"
GOAL = "Carry the tide table of the harbour over to the new reader, in seven steps, and keep the old columns."
DECISIONS = (
    "Use the advisory lock of the database in `deploy/lock.py`, not the lock file",
    "The retry count is 7 and `deployRunner` waits 250 ms between two tries",
    "Columns keep their old names; `gauge_id` alone becomes `station`, because the harbour's other programs read it. "
    + "Nobody renames a column in the same commit in which its type changes; each step is one migration of its own. "
    * 2,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which a session has worked on `ROUTE`."""
    root = tmp_path_factory.mktemp("made")
    project(root)
    worked(root, ROUTE)
    return root


@pytest.fixture(autouse=True)
def home(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client keeps its logs with the project of the test."""
    if "project" in request.fixturenames:
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(request.getfixturevalue("project") / ".claude"))


@pytest.fixture
def on_route(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names `ROUTE`."""
    monkeypatch.setenv("BB5_ROUTE", ROUTE)


def project(root: Path) -> Project:
    """A project that has opted in."""
    ownership.init(Project(root), share=False)
    return Project(root)


def kept(root: Path, session: str) -> Path:
    """The log of a session, which a client keeps."""
    path = root / ".claude" / "projects" / "tide" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def payload(name: str, session: str, root: Path, *, client: str = "claude-code", **fields: Any) -> Payload:
    """A payload of a client, through its own form."""
    transcript = fields.pop("transcript", "") or kept(root, Path(session).name)
    tree = {"session_id": session, "cwd": str(root), "hook_event_name": name, "transcript_path": str(transcript)}
    found = parse(name, json.dumps(tree | fields).encode(), client)  # type: ignore[arg-type]
    assert found is not None
    return found


def hook(name: str, session: str, root: Path, **fields: Any) -> Answer:
    """What a hook answers, and what it leaves to the next one, as the entry does it."""
    sent = payload(name, session, root, **fields)
    seen = Session(sent, Project(root))
    answer = entry.handle(seen)
    seen.keep()
    output = written(answer, sent)
    assert not answer.context or answer.context in str(json.loads(output)["hookSpecificOutput"]["additionalContext"])
    return answer


def start(session: str, root: Path, source: str = "startup", **fields: Any) -> str:
    """What a session is handed that starts."""
    return hook("SessionStart", session, root, source=source, **fields).context


def prompt(session: str, root: Path, text: str, **fields: Any) -> str:
    """What a session is handed with a prompt."""
    return hook("UserPromptSubmit", session, root, prompt=text, **fields).context


def remembered(root: Path, session: str, **fields: Any) -> KnownSession:
    """Leave what hooks know of a session."""
    known = replace(session_registry.load(Project(root), session), **fields)
    session_registry.save(Project(root), known)
    return known


def log(path: Path, session: str, *turns: tuple[str, Any], first: int = 0) -> None:
    """Append turns to a session's log: ("user", text), ("says", text), ("bash", (command, output, failed)), ("edit",
    path), ("task", what a subagent is to do), ("todos", list).
    """
    lines = []
    for number, (kind, what) in enumerate(turns, start=first):
        call = f"c{number}"
        if kind in ("user", "says"):
            content: Any = what if kind == "user" else [{"type": "text", "text": what}]
            lines.append(_record("user" if kind == "user" else "assistant", session, number, content))
            continue
        tool, given, out, failed = _call(kind, what)
        block = {"type": "tool_use", "id": call, "name": tool, "input": given}
        lines.append(_record("assistant", session, number, [block]))
        result = {"type": "tool_result", "tool_use_id": call, "content": out, "is_error": failed}
        lines.append(_record("user", session, number, [result]))
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(f"{json.dumps(line)}\n" for line in lines))


def _call(kind: str, what: Any) -> tuple[str, dict[str, Any], str, bool]:
    if kind == "bash":
        command, out, failed = what
        return "Bash", {"command": command}, f"Exit code 1\n{out}" if failed else out, failed
    if kind == "edit":
        given = {"file_path": what, "old_string": "a", "new_string": "b"}
        return "Edit", given, f"The file {what} has been updated.", False
    if kind == "task":
        return "Task", {"description": what, "prompt": what}, "Done.", False
    return "TodoWrite", {"todos": what}, "Todos have been modified successfully.", False


def _record(kind: str, session: str, number: int, content: Any) -> dict[str, Any]:
    minutes, seconds = divmod(number, 60)
    return {
        "type": kind,
        "sessionId": session,
        "uuid": f"{session}-{number}-{kind}",
        "cwd": "/srv/tide",
        "isSidechain": False,
        "timestamp": f"2026-03-01T08:{minutes:02d}:{seconds:02d}.000Z",
        "message": {"role": kind, "content": content},
    }


STEPS = [{"content": f"Move part {n} of the table", "status": "completed" if n < 6 else "pending"} for n in range(7)]
READ = "".join(f"{number},station {number % 9},{number * 7 % 400} cm\n" for number in range(4_400))
"""So much that a twentieth of what the route has consumed is a brief with all that there is."""
WORK: tuple[tuple[str, Any], ...] = (
    ("user", GOAL),
    ("says", "I begin with the reader of the tide table."),
    ("bash", ("cat data/levels.csv", READ, False)),
    ("todos", STEPS),
    ("edit", "/srv/tide/src/reader.py"),
    ("bash", ("pytest -q tests/test_reader.py", "E   TideError: station 9 has no level\n1 failed", True)),
    ("edit", "/srv/tide/src/levels.py"),
    ("says", "Step 7 of 7 is next: I move part 6 of the table now."),
)
"""The work of a session that is killed in its last step."""


def worked(root: Path, route: str, session: str = "old") -> Path:
    """A route on which a session has worked; its log."""
    path = kept(root, session)
    log(path, session, *WORK)
    ralf.checkpoint(route, path, root=root)
    for text in DECISIONS:
        ralf.record_decision(route, text, rationale="it has to survive", root=root)
    return path
