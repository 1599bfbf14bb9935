"""What hooks that injected `timeline-memory.md` get instead: the brief of the agent's route, else the file."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

import ralf
import storekit
from ralf.project import Project
from ralf_integrations.blackbox5 import timeline_memory

AGENT = "scout-worker"
OLD = "# Scout Worker Timeline Memory\n\n**Task:** TASK-ARCH-003B Validation\n\n```yaml\ntimeline_memory:\n```"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with an agent's old file, and no route yet; a client writes an event to the hook."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"source": "startup"}')))
    monkeypatch.setenv("RALF_AGENT_TYPE", AGENT)
    folder = tmp_path / ".autonomous" / "research-pipeline" / "agents" / AGENT / "memory"
    folder.mkdir(parents=True)
    (folder / timeline_memory.NAME).write_text(OLD)
    return Project(tmp_path)


def worked(project: Project, route: str) -> None:
    """The agent has a route with a session, and a decision."""
    session = project.root / "session.jsonl"
    storekit.write_session(session, 1_200)
    ralf.checkpoint(route, session, root=project.root)
    ralf.record_decision(route, "Scan one source a run", rationale="``` and --- in it", root=project.root)


def hooked(capfd: pytest.CaptureFixture[str], project: Project) -> tuple[str, str]:
    """What is injected, and what is said on stderr."""
    capfd.readouterr()
    assert timeline_memory.main(["hook", "--project", str(project.root)]) == 0
    out, err = capfd.readouterr()
    answer = json.loads(out)["hookSpecificOutput"]
    assert answer["hookEventName"] == "SessionStart"
    return answer["additionalContext"], err


@pytest.mark.parametrize(
    ("agent_type", "prompt", "expected"),
    [
        ("scout-worker", "/p/analyst-validator.md", "scout-worker"),
        ("", "/p/.templates/prompts/analyst-validator.md", "analyst-validator"),
        ("", "/p/fixer-worker/prompts/final-validator-prompt.md", "final-validator"),
        ("", "/p/ralf.md", ""),
        ("../../etc", "", ""),
    ],
)
def test_the_agent_is_told_by_its_type_else_by_its_prompt(
    monkeypatch: pytest.MonkeyPatch, agent_type: str, prompt: str, expected: str
) -> None:
    monkeypatch.setenv("RALF_AGENT_TYPE", agent_type)
    monkeypatch.setenv("RALF_PROMPT_FILE", prompt)
    assert timeline_memory.agent() == expected


@pytest.mark.parametrize("route", [AGENT, "TASK-ARCH-003B"])
def test_the_hook_answers_as_the_old_one_with_the_agents_or_its_tasks_route(
    project: Project, capfd: pytest.CaptureFixture[str], route: str
) -> None:
    assert OLD in hooked(capfd, project)[0]  # no route yet: its file as it stands, as data
    worked(project, route)
    text, err = hooked(capfd, project)
    assert f"**{AGENT}**" in text and "Scan one source a run" in text and OLD not in text
    assert err.startswith("deprecated: ") and f"show {AGENT} --brief" in err


def test_one_variable_switches_it_off(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RALF_TIMELINE_MEMORY", "off")
    assert hooked(capfd, project) == ("", "")


def test_a_hook_that_fails_answers_empty_and_says_why(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    worked(project, AGENT)
    journal = storekit.journal_file(project.root, AGENT)
    journal.unlink()
    journal.mkdir()
    text, err = hooked(capfd, project)
    assert text == "" and "Error: " in err


def test_in_a_folder_that_is_no_project_nothing_is_looked_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RALF_AGENT_TYPE", raising=False)
    path = tmp_path / "agents" / AGENT / timeline_memory.NAME
    path.parent.mkdir(parents=True)
    path.write_text(OLD)
    assert timeline_memory.main(["show", AGENT, "--project", str(tmp_path)]) == 0
    assert OLD not in capfd.readouterr().out
    with pytest.raises(SystemExit):
        timeline_memory.main(["show"])
