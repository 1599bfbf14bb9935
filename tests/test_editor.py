"""Whose an edit of a file is: the agent's where a client's record says that its tool wrote it, else nobody's known."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import gemini_records as g
import opencode_records as o
import ralf
import rollouts as r
from kit.claude_log import ClaudeLog
from ralf.facts import editor
from ralf.facts.editor import is_by_agent
from ralf.project import Project
from ralf.route import handing_over, history

BEFORE, LATER = "2026-02-01T00:00:00Z", "2027-06-01T00:00:00Z"
Call = tuple[str, Mapping[str, Any], bool]
"""A tool, its arguments, and whether it failed."""


def claude_code(project: Project, home: Path, tool: str, given: Mapping[str, Any], failed: bool) -> None:
    log = home / ".claude" / "projects" / _slug(project) / f"{uuid.uuid4()}.jsonl"
    log.parent.mkdir(parents=True)
    ClaudeLog(log, log.stem, project.root).calls(tool, given, "no" if failed else "done", failed=failed)


def codex(project: Project, home: Path, tool: str, given: Mapping[str, Any], failed: bool) -> None:
    folder = home / ".codex" / "sessions" / "2026" / "11" / "22"
    name = f"rollout-2026-11-22T07-36-57-{r.SESSION}.jsonl"
    call = r.custom(tool, given["patch"]) if "patch" in given else r.call(tool, given)
    ended = (
        r.output("no" if failed else "done", of="custom_tool_call_output")
        if "patch" in given
        else r.ran("", int(failed))
    )
    r.write(folder / name, r.meta(str(project.root)), r.turn(str(project.root)), call, ended)


def gemini(project: Project, home: Path, tool: str, given: Mapping[str, Any], failed: bool) -> None:
    folder = home / ".gemini" / "tmp" / "tides"
    ran = g.called(
        tool, dict(given), {"error" if failed else "output": "done"}, status="error" if failed else "success"
    )
    g.write(folder / "chats" / "session-x.jsonl", g.asked("go on"), g.said("", ran))
    (folder / ".project_root").write_text(str(project.root))


def opencode(project: Project, home: Path, tool: str, given: Mapping[str, Any], failed: bool) -> None:
    call = o.CALL | {"tool": tool, "input": dict(given)}
    ended = o.RESULT | {"tool": tool, "exit": int(failed), "status": "error" if failed else "completed"}
    o.write(home / ".local/share/opencode/ralf" / f"{o.SESSION}.jsonl", call, ended, directory=str(project.root))


PATCH = "*** Begin Patch\n*** {} File: {{}}\n+b\n*** End Patch"

CLIENTS: dict[str, tuple[Callable[..., None], tuple[str, str], tuple[str, str], tuple[str, str]]] = {
    "Claude Code": (claude_code, ("Edit", "file_path"), ("Write", "file_path"), ("Bash", "command")),
    "Codex": (codex, ("apply_patch", "Update"), ("apply_patch", "Add"), ("exec_command", "cmd")),
    "Gemini CLI": (gemini, ("replace", "file_path"), ("write_file", "file_path"), ("run_shell_command", "command")),
    "opencode": (opencode, ("edit", "filePath"), ("write", "filePath"), ("bash", "command")),
}
"""Of each client: its log; its tools that edit and write a file, with the key of the path, or what a patch does; and
its shell, with the key of the command.
"""


def call_of(tool: str, key: str, path: str) -> Call:
    """A call of a tool that works on a file."""
    if tool == "apply_patch":
        return tool, {"patch": PATCH.format(key).format(path)}, False
    return tool, {key: path, "old_string": "a", "new_string": "b", "content": "b"}, False


COMMANDS = {
    "sed": "sed -i 's/a/b/' {}",
    "a here document": "cat > {} <<'EOF'\nb\nEOF",
    "a script": "python3 - <<'EOF'\nopen({!r}, 'w').write('b')\nEOF",
    "a look": "cat {}",
    "a failure": "sed -i 's/a/b/' {}",
}

ROWS = ["an edit", "a failed edit", "a relative path", "a write", "another file", "before the render", *COMMANDS]
BY_AGENT = {"an edit", "a relative path", "a write", "sed", "a here document", "a script", "a failure"}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("row", ROWS)
def test_an_edit_is_the_agents_where_a_record_of_its_client_says_that_its_tool_wrote_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str, row: str
) -> None:
    home, root = tmp_path / "home", tmp_path / "project"
    monkeypatch.setenv("HOME", str(home))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    project = Project(root)
    file = project.routes / "tide.md"
    record, edit, write, (shell, key) = CLIENTS[client]
    path = "other.md" if row == "another file" else str(file)
    path = str(file.relative_to(root)) if row == "a relative path" or row in COMMANDS else path
    if row in COMMANDS:
        call = shell, {key: COMMANDS[row].format(path)}, row == "a failure"
    else:
        tool, given, _ = call_of(*(write if row == "a write" else edit), path)
        call = tool, given, row == "a failed edit"
    record(project, home, *call)
    since = LATER if row == "before the render" else BEFORE
    is_in_doubt = client == "Codex" and row == "a failed edit"  # its record has no word on how a patch ended
    assert is_by_agent(project, file, since) == (row in BY_AGENT or is_in_doubt)


@pytest.mark.parametrize("is_recorded", [True, False])
def test_what_an_agent_wrote_into_a_route_file_is_the_agents_and_changes_nothing_of_a_persons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_recorded: bool
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    (tmp_path / "project").mkdir()
    project = Project(tmp_path / "project")
    handing_over.hand_over("tide", "## Now\nSo\n## Open\n- Who pays?\n", author="user", root=project.root)
    ralf.record_decision("tide", "Keep levels for 15 seconds", origin="user", root=project.root)
    path = project.routes / "tide.md"
    text = path.read_text().replace("15 seconds", "20 seconds").replace("Who pays?", "Who pays for it?")
    path.write_text(
        text.replace("\n---\n\n*Kept", "\n- Sail at dawn\n\n---\n\n*Kept").replace(
            "\n<!-- ralf:brief ends", "\n**Decided:**\n- Moor at the pier\n<!-- ralf:brief ends", 1
        )
    )
    if is_recorded:
        log = tmp_path / "home" / ".claude" / "projects" / _slug(project) / f"{uuid.uuid4()}.jsonl"
        log.parent.mkdir(parents=True)
        given = {"file_path": str(path), "old_string": "15", "new_string": "20"}
        use = {"type": "tool_use", "id": "toolu_1", "name": "Edit", "input": given}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.999Z")
        ClaudeLog(log, log.stem, project.root).answers(use, timestamp=now)
    ralf.record_decision("tide", "Go on", origin="user", root=project.root)
    context = ralf.get_context("tide", root=project.root)
    by = "agent" if is_recorded else "human-edit"
    found = {item.decision: item.origin for item in context.decisions}
    theirs = {"Keep levels for 15 seconds": "user"} if is_recorded else {"Keep levels for 20 seconds": by}
    assert found == {**theirs, "Moor at the pier": by, "Go on": "user"}
    kept = ("Who pays?", "person") if is_recorded else ("Who pays for it?", "file")
    assert [(one.text, one.author) for one in context.handover.kept] == [kept]
    assert [event.who for event in history.log("tide", root=project.root)][1] == by


def _slug(project: Project) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in str(project.root))


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Project, ClaudeLog]:
    """A project, and the log of a session of Claude Code in it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    project = Project(tmp_path / "project")
    log = tmp_path / ".claude" / "projects" / _slug(project) / f"{uuid.uuid4()}.jsonl"
    log.parent.mkdir(parents=True)
    return project, ClaudeLog(log, log.stem, project.root)


@pytest.mark.parametrize("key", ["relative_path", "pathInProject"])
def test_an_edit_is_the_agents_whatever_the_tool_calls_the_path(session: tuple[Project, ClaudeLog], key: str) -> None:
    project, log = session
    file = project.routes / "tide.md"
    log.calls("mcp__editor__replace_content", {"edits": [{key: str(file.relative_to(project.root))}]}, "done")
    assert is_by_agent(project, file, BEFORE)


def test_an_edit_through_a_link_of_another_name_is_the_agents(session: tuple[Project, ClaudeLog]) -> None:
    project, log = session
    file = project.routes / "tide.md"
    file.parent.mkdir(parents=True)
    (project.root / "notes.md").symlink_to(file)
    log.calls("Write", {"file_path": str(project.root / "notes.md"), "content": "b"}, "done")
    assert is_by_agent(project, file, BEFORE)


@pytest.mark.parametrize(("more", "expected"), [(0, False), (1, False), (3, True)])
def test_an_edit_is_the_agents_where_the_log_says_more_than_is_read(
    session: tuple[Project, ClaudeLog], monkeypatch: pytest.MonkeyPatch, more: int, expected: bool
) -> None:
    monkeypatch.setattr(editor, "_READ", 2 << 20)
    project, log = session
    log.calls("Read", {"file_path": "x.png"}, "begins")
    for _ in range(more):
        log.calls("screenshot", {}, "A" * (1 << 20))
    assert is_by_agent(project, project.routes / "tide.md", BEFORE) == expected


def test_an_edit_is_the_agents_however_much_it_looked_at_since(session: tuple[Project, ClaudeLog]) -> None:
    project, log = session
    file = project.routes / "tide.md"
    log.calls("Write", {"file_path": str(file), "content": "b"}, "done")
    for _ in range(12):
        log.calls("screenshot", {}, "A" * (1 << 20))
    assert is_by_agent(project, file, BEFORE)


def test_an_edit_that_a_write_had_left_as_half_saved_is_still_the_agents(session: tuple[Project, ClaudeLog]) -> None:
    project, log = session
    project.root.mkdir()
    ralf.record_decision("tide", "Keep levels for 15 seconds", origin="user", root=project.root)
    file = project.routes / "tide.md"
    text = file.read_text().replace("15 seconds", "20 seconds").rpartition("\n---\n")[0]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.999Z")
    log.calls("Write", {"file_path": str(file), "content": text}, "done", timestamp=now)
    file.write_text(text)
    ralf.record_decision("tide", "Go on", origin="user", root=project.root)  # leaves what is half saved
    time.sleep(2.1)
    ralf.record_decision("tide", "Stop", origin="user", root=project.root)
    context = ralf.get_context("tide", root=project.root)
    assert [one.decision for one in context.decisions] == ["Keep levels for 15 seconds", "Go on", "Stop"]


@pytest.mark.parametrize("below", [".", "workflows/wf_1"])
@pytest.mark.parametrize("has_ended", [True, False])
def test_an_edit_of_a_subagent_is_the_agents_though_only_its_own_log_names_the_file(
    session: tuple[Project, ClaudeLog], has_ended: bool, below: str
) -> None:
    project, started = session
    started.calls("Task", {"prompt": "tidy"}, "tidied" if has_ended else "")
    own = started.log.with_suffix("") / "subagents" / below / "agent-ag1.jsonl"
    own.parent.mkdir(parents=True)
    file = project.routes / "tide.md"
    tool, given, _ = call_of("Edit", "file_path", str(file))
    ClaudeLog(own, started.log.stem, project.root).calls(tool, given, "done")
    assert is_by_agent(project, file, BEFORE)
