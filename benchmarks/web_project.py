"""Makes a large project for the pages of `ralf web`: routes, decisions and sessions by number, in a folder."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import ralf
from ralf import api
from ralf.maintenance import ownership
from ralf.project import Project
from ralf_integrations.hooks import session_registry
from ralf_integrations.hooks.session_registry import KnownSession

EXAMPLE = Path(__file__).parents[1] / "examples" / "session.jsonl"

_SUBJECTS = "sync store outbox merge retry cursor cache schema index queue token lease parser planner".split()
_VERBS = "Keep Replace Split Cache Retry Validate Log Batch Drop Encrypt".split()


def make(folder: Path, *, routes: int = 200, decisions: int = 20_000, sessions: int = 50) -> Path:
    """The project's directory. Clients keep their sessions in `folder/.claude`."""
    folder = folder.absolute()
    os.environ["CLAUDE_CONFIG_DIR"] = str(folder / ".claude")
    os.environ["XDG_CONFIG_HOME"] = str(folder / ".config")
    root = folder / "project"
    root.mkdir(parents=True)
    project = Project(root)
    ownership.init(project, share=False)
    for number in range(routes):
        _route(root, number, decisions // routes)
    for number in range(sessions):
        _session(folder, project, number, f"route-{number % routes:03d}")
    ralf.checkpoint("route-000", EXAMPLE, root=root)
    return root


def _route(root: Path, number: int, decisions: int) -> None:
    listed = []
    for count in range(1, decisions + 1):
        subject, verb = _SUBJECTS[count % len(_SUBJECTS)], _VERBS[(count // 7) % len(_VERBS)]
        is_old = count % 5 == 0 and count < decisions
        listed.append(
            {
                "id": f"DEC-{count:03d}",
                "kind": "rule" if count % 17 == 0 else "decision",
                "timestamp": f"2026-03-{1 + count % 28:02d}T08:{count % 60:02d}:00Z",
                "decision": f"{verb} the {subject} {count} in step {number}, not in the caller",
                "rationale": f"The caller of the {subject} cannot know which of its {count} entries are new.",
                "status": "superseded" if is_old else "active",
                "superseded_by": f"DEC-{count + 1:03d}" if is_old else "",
                "supersedes": f"DEC-{count - 1:03d}" if count % 5 == 1 and count > 1 else "",
                "alternatives": [f"in the caller: it would look at all {count} entries"],
                "origin": "agent",
            }
        )
    work = {"work_status": "in_progress", "current_task": f"TASK-{number:03d}", "next_steps": ["Measure it again"]}
    fields = {
        "active_work": work,
        "goal": f"Make step {number} of the {_SUBJECTS[number % len(_SUBJECTS)]} faster",
        "decisions": listed,
    }
    api.change(f"route-{number:03d}", fields, root=root)


def _session(folder: Path, project: Project, number: int, route: str) -> None:
    """The example session as another one, with how full its window was, its last record a few minutes ago."""
    session = f"{number:08x}-5e55-4000-8000-000000000000"
    slug = "".join(each if each.isascii() and each.isalnum() else "-" for each in str(project.root))
    log = folder / ".claude" / "projects" / slug / f"{session}.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    lines = EXAMPLE.read_bytes().splitlines()[: 200 + 4 * number]
    begin = time.time() - 60 * number - 6_000
    filled = 20_000
    with log.open("wb") as file:
        for count, line in enumerate(lines):
            record = json.loads(line)
            record["sessionId"] = session
            record["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begin + count * 6_000 / len(lines)))
            if record.get("type") == "assistant":
                filled = 30_000 if filled > 180_000 else filled + 1_500
                record["message"]["usage"] = {"input_tokens": filled, "output_tokens": 0}
            file.write(json.dumps(record).encode() + b"\n")
    known = KnownSession(
        session, client="claude-code", transcript=str(log), route=route, seen=time.time() - 60 * number, window=200_000
    )
    session_registry.save(project, known)


if __name__ == "__main__":
    started = time.monotonic()
    print(make(Path(sys.argv[1]), **{name: int(count) for name, _, count in (a.partition("=") for a in sys.argv[2:])}))
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
