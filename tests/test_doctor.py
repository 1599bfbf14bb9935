"""`ralf doctor`: each thing that can be wrong with an installation is named, with what to type; and what a repository
brought is not run.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import hookkit
import ralf
import storekit
from ralf.maintenance import ownership
from ralf.memory.writing import remember
from ralf.project import Project
from ralf.storage import registry
from ralf_integrations import doctor
from ralf_integrations.client import CLIENTS
from ralf_integrations.clients import condition, installation
from ralf_integrations.clients.condition import Check
from ralf_integrations.hooks import session_registry
from storekit import Cli


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project that has opted in, homes of its own, and a PATH on which nothing lies."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
        (tmp_path / name).mkdir()
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    project = Project(tmp_path / "p")
    project.root.mkdir()
    ownership.init(project, share=False)
    return project


def program(project: Project, name: str, says: str) -> Path:
    """A program on the PATH."""
    path = project.root.parent / "bin" / name
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o755)
    return path


def install(project: Project, client: str = "claude-code", *, shared: bool = False) -> Path:
    part = installation.of_client(project, CLIENTS[client], shared=shared)
    change = installation.plan(project, part)
    assert change is not None
    installation.apply(project, change)
    return part.path


def found(project: Project, name: str, state: str) -> list[str]:
    look = condition.checks if name in (*CLIENTS, "command", "hooks", "transcripts") else doctor.examine
    return [check.what for check in look(project) if (check.name, check.state) == (name, state)]


def problems(project: Project) -> list[Check]:
    return [check for check in doctor.examine(project) if check.state == "problem"]


needs_install = pytest.mark.skipif(not hookkit.is_installed(), reason="ralf is not installed for this Python")


def test_records_that_are_not_known_to_be_the_users_are_named(cli: Cli, project: Project) -> None:
    ralf.record_decision("tide", "Use tabs", root=project.root)
    remember("fact", "The quay is closed", origin="person", root=project.root)
    registry.remove(project.root)
    assert "is not known to be yours" in cli("memory", root=project.root).err
    (said,) = found(Project(project.root), "store", "warning")
    assert said.startswith("2 records are not known to be yours") and "routes/tide" in said


def test_what_is_not_there_is_said_with_what_to_type(project: Project) -> None:
    checks = {check.name: check for check in doctor.examine(project)}
    assert checks["project"].state == "ok"
    assert (checks["hooks"].state, checks["hooks"].hint) == ("warning", "ralf init --client claude-code")
    assert checks["command"].state == "warning"
    assert checks["calls"].state == "warning"
    assert checks["errors"].state == checks["store"].state == checks["file system"].state == "ok"
    assert all(check.hint for check in checks.values() if check.state != "ok")


def test_a_store_in_which_nothing_can_be_written_is_a_problem(project: Project) -> None:
    ralf.record_decision("tide", "Use WAL", root=project)
    assert not any(check.name == "writing" for check in doctor.examine(project))
    journal = project.folder / "journal" / "routes" / "tide.jsonl"
    for paths in ([project.folder, *project.folder.rglob("*")], [project.routes], [journal]):
        modes = {path: path.stat().st_mode & 0o777 for path in paths}
        for path, mode in modes.items():
            path.chmod(mode & 0o555)
        try:
            with storekit.as_modes_say():
                (check,) = (one for one in doctor.examine(project) if one.name == "writing")
        finally:
            for path, mode in modes.items():
                path.chmod(mode)
        assert (check.state, check.what.startswith(f"{paths[0]}: ")) == ("problem", True)


@pytest.mark.ci
@needs_install
@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini", "opencode"])
def test_the_installed_hook_is_called_in_a_project_of_its_own(project: Project, client: str) -> None:
    install(project, client)
    before = storekit.kept_bytes(project.root)
    assert " ms" in found(project, client, "ok")[0]
    assert storekit.kept_bytes(project.root) == before
    assert not session_registry.folder(project).exists()


def test_what_a_repository_brought_is_not_run(project: Project) -> None:
    """Settings that look like ours and name a program of the repository."""
    witness = project.root / "ran"
    evil = project.root / "evil"
    evil.write_text(f"#!/bin/sh\ntouch '{witness}'\n")
    evil.chmod(0o755)
    (project.root / ".claude").mkdir()
    (project.root / "ralf_integrations/hooks").mkdir(parents=True)
    entry = {
        "type": "command",
        "command": str(evil),
        "args": ["-I", "-S", "-c", "x", str(project.root / "ralf_integrations/hooks"), "claude-code", "Stop"],
    }
    (project.root / ".claude/settings.json").write_text(json.dumps({"hooks": {"Stop": [{"hooks": [entry]}]}}))
    assert any(check.name == "claude-code" and check.state != "ok" for check in doctor.examine(project))
    assert not witness.exists()


def test_a_ralf_of_the_path_that_may_be_another_program_is_not_run(project: Project) -> None:
    witness = project.root / "ran"
    path = program(project, "ralf", f"touch '{witness}'; echo 'ralf {ralf.__version__}'")
    assert str(path) in found(project, "command", "warning")[0]
    install(project, shared=True)
    assert "claude-code" in [check.name for check in problems(project)]
    assert not witness.exists()


@pytest.mark.ci
def test_a_hook_that_fails_hangs_or_talks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tried(*words: object) -> str:
        command = [str(word) for word in words]
        return condition.try_hook(lambda event: [*command, event], "SessionStart", "PostToolUse").problem

    python = (sys.executable, "-c")
    assert "3: no" in tried(*python, "import sys; sys.exit(print('no', file=sys.stderr) or 3)")
    assert tried(*python, "print('hello')") and tried(*python, "") and tried(tmp_path / "none")
    monkeypatch.setattr(condition, "_TRIAL_SECONDS", 1)
    assert tried(*python, "import time; time.sleep(20)")


def test_sessions_that_the_client_is_about_to_delete_are_told(project: Project) -> None:
    def said() -> Check:
        (check,) = condition.of_claude(project)
        return check

    assert (said().state, "30 days" in said().what) == ("ok", True)
    (project.root / ".claude").mkdir()
    (project.root / ".claude/settings.json").write_text('{"cleanupPeriodDays": 10}')
    assert (said().state, "10 days" in said().what) == ("ok", True)
    slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(project.root))
    path = Path(os.environ["CLAUDE_CONFIG_DIR"]) / "projects" / slug / "s-1.jsonl"
    path.parent.mkdir(parents=True)
    storekit.write_session(path, 1_000)
    os.utime(path, (time.time(), time.time() - 7 * 86_400))
    assert said().state == "warning"
    assert "3 days" in said().what
    ralf.checkpoint("tide", path, root=project.root)
    os.utime(path, (time.time(), time.time() - 7 * 86_400))
    assert said().state == "ok"


def test_what_was_handed_over_and_has_not_arrived_is_told(project: Project) -> None:
    log = Path(os.environ["CLAUDE_CONFIG_DIR"]) / "projects" / "elsewhere" / "s-1.jsonl"
    log.parent.mkdir(parents=True)
    texts = ("Context available for tide", "A brief that the client dropped")
    handed = tuple(
        session_registry.Handed("SessionStart", "line", hashlib.sha256(text.encode()).hexdigest(), len(text), text[:10])
        for text in texts
    )
    record = {"type": "attachment", "attachment": {"type": "hook_additional_context", "content": [texts[0]]}}
    log.write_text(json.dumps(record) + "\n")
    seen = session_registry.KnownSession("s-1", "claude-code", transcript=str(log), seen=time.time(), handed=handed[:1])
    session_registry.save(project, seen)
    assert "1 of 1" in found(project, "receipts", "ok")[0]
    session_registry.save(project, replace(seen, handed=handed))
    (said,) = found(project, "receipts", "warning")
    assert "1 of 2" in said and "s-1" in said
    log.unlink()
    assert found(project, "receipts", "ok")
