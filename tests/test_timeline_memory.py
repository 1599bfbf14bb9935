"""`timeline-memory.md` for hooks that still read it: a view of the route, and the files back as they were."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ralf
import storekit
from ralf.document import guarded_yaml
from ralf.project import Project
from ralf_cli.main import main
from ralf_integrations.blackbox5 import timeline_memory

AGENT = "scout-worker"
REAL = storekit.SOURCE.parent / "shared" / "data" / "blackbox5" / "timeline-memory"
OLD = '# Scout Worker Timeline Memory\r\n\r\n```yaml\r\ntimeline_memory:\r\n  version: "1.0.0"\r\nhistory:\r\n```'
FILLED = """\
# Scout Worker Timeline Memory

**Purpose:** Long-term memory

---

```yaml
timeline_memory:
  version: "1.0.0"
  agent: scout-worker
  created: "2026-02-04T00:00:00Z"
  last_updated: "2026-02-04T00:00:00Z"
  total_runs: 0
history:
  # - run_id: "run-20260204-001"
stats_by_source:
  github:
    total_scanned: 0
work_queue:
  priority_sources: ["github.com/a/b"]
  in_progress: null
```
"""
OLD_HOOK = """\
set -euo pipefail
agent="${RALF_AGENT_TYPE:-}"
if [[ -z "$agent" && "${RALF_PROMPT_FILE:-}" == *"scout-worker"* ]]; then agent=scout-worker; fi
path="${RALF_PROJECT_DIR:-$(pwd)}/.autonomous/research-pipeline/agents/$agent/timeline-memory.md"
python3 -c '
import json, sys
text = sys.stdin.read()
print(json.dumps({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}))
' < "$path"
"""
"""What the old pipeline's hook does, in few words: the agent's file as it stands, as JSON."""


@pytest.fixture(autouse=True)
def event(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the client writes to a hook."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"source": "startup"}')))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with an agent's old file, and no route yet."""
    folder = tmp_path / ".autonomous" / "research-pipeline" / "agents" / AGENT
    folder.mkdir(parents=True)
    (folder / timeline_memory.NAME).write_bytes(OLD.encode())
    return Project(tmp_path)


def file_of(project: Project) -> Path:
    return project.root / ".autonomous" / "research-pipeline" / "agents" / AGENT / timeline_memory.NAME


def worked(project: Project, route: str = AGENT) -> None:
    """The agent has a route with a session, and a decision."""
    session = project.root / "session.jsonl"
    storekit.write_session(session, 1_200)
    ralf.checkpoint(route, session, root=project.root)
    ralf.record_decision(route, "Scan one source a run", rationale="``` and --- in it", root=project.root)


def called(capfd: pytest.CaptureFixture[str], project: Project, *args: str) -> tuple[int, str, str]:
    capfd.readouterr()
    status = timeline_memory.main([*args, "--project", str(project.root)])
    return (status, *capfd.readouterr())


@pytest.mark.parametrize(
    ("agent_type", "prompt", "expected"),
    [
        ("scout-worker", "", "scout-worker"),
        ("scout-worker", "/p/analyst-validator.md", "scout-worker"),
        ("", "/p/.templates/prompts/analyst-validator.md", "analyst-validator"),
        ("", "/p/fixer-worker/prompts/final-validator-prompt.md", "final-validator"),
        ("", "/p/ralf.md", ""),
        ("../../etc", "", ""),
        ("", "", ""),
    ],
)
def test_the_agent_is_told_by_its_type_else_by_its_prompt(
    monkeypatch: pytest.MonkeyPatch, agent_type: str, prompt: str, expected: str
) -> None:
    monkeypatch.setenv("RALF_AGENT_TYPE", agent_type)
    monkeypatch.setenv("RALF_PROMPT_FILE", prompt)
    assert timeline_memory.agent() == expected


def test_a_view_holds_the_routes_brief_and_a_fence_with_the_known_keys(project: Project) -> None:
    worked(project)
    text = timeline_memory.view(project, AGENT)
    assert "Scan one source a run" in text
    tree = guarded_yaml.load(text.split("```yaml\n")[1].split("\n```")[0])
    assert tree["timeline_memory"]["agent"] == AGENT
    assert tree["timeline_memory"]["total_runs"] == 1
    assert tree["history"][0]["run_id"] == "s-1"
    assert set(tree["work_queue"]) >= {"in_progress", "backlog"}


@pytest.mark.ci
def test_a_view_gives_back_what_was_taken_over_with_what_happened_since(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file_of(project).write_text(FILLED)
    monkeypatch.chdir(project.root)
    assert main(["import", "timeline-memory"], standalone_mode=False) in (0, None)
    before = guarded_yaml.load(FILLED.split("```yaml\n")[1].split("\n```")[0])
    tree = guarded_yaml.load(timeline_memory.view(project, AGENT).split("```yaml\n")[1].split("\n```")[0])
    assert tree["timeline_memory"] == before["timeline_memory"]
    assert tree["stats_by_source"] == before["stats_by_source"]
    assert tree["history"] == []  # nothing is invented
    assert tree["work_queue"]["priority_sources"] == ["github.com/a/b"]
    worked(project)
    tree = guarded_yaml.load(timeline_memory.view(project, AGENT).split("```yaml\n")[1].split("\n```")[0])
    assert [row["run_id"] for row in tree["history"]] == ["s-1"]
    assert tree["timeline_memory"]["total_runs"] == 1
    assert tree["stats_by_source"] == before["stats_by_source"]


@pytest.mark.ci
def test_runs_that_were_taken_over_are_told_once(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = '  - {{run_id: "run-{0}", timestamp: "2026-02-0{0}T10:00:00Z", notes: "scan {0}"}}\n'
    rows = "".join(row.format(number) for number in (1, 2))
    commented = '  # - run_id: "run-20260204-001"\n'
    file_of(project).write_text(FILLED.replace("total_runs: 0", "total_runs: 2").replace(commented, rows))
    monkeypatch.chdir(project.root)
    main(["import", "timeline-memory"], standalone_mode=False)

    def told() -> tuple[int, list[str]]:
        tree = guarded_yaml.load(timeline_memory.view(project, AGENT).split("```yaml\n")[1].split("\n```")[0])
        return tree["timeline_memory"]["total_runs"], [row["run_id"] for row in tree["history"]]

    assert told() == (2, ["run-2", "run-1"])
    worked(project)
    assert told() == (3, ["s-1", "run-2", "run-1"])


def test_the_hook_answers_as_the_old_one_and_says_once_that_it_is_deprecated(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    worked(project)
    monkeypatch.setenv("RALF_PROMPT_FILE", f"/p/{AGENT}.md")
    status, out, err = called(capfd, project, "hook")
    answer = json.loads(out)["hookSpecificOutput"]
    assert (status, answer["hookEventName"]) == (0, "SessionStart")
    assert AGENT in answer["additionalContext"]
    assert "Scan one source a run" in answer["additionalContext"]
    assert f" -m ralf_cli show {AGENT} --brief" in err
    assert "RALF_TIMELINE_MEMORY=off" in err
    assert err.startswith("deprecated: ") and "deprecated" not in out
    assert called(capfd, project, "hook")[2] == ""


def test_one_line_switches_it_off(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    worked(project)
    monkeypatch.setenv("RALF_AGENT_TYPE", AGENT)
    monkeypatch.setenv("RALF_TIMELINE_MEMORY", "off")
    status, out, err = called(capfd, project, "hook")
    assert (status, err) == (0, "")
    assert json.loads(out)["hookSpecificOutput"]["additionalContext"] == ""


def test_an_agent_without_a_route_gets_its_file_as_it_stands(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RALF_AGENT_TYPE", AGENT)
    assert OLD in json.loads(called(capfd, project, "hook")[1])["hookSpecificOutput"]["additionalContext"]
    monkeypatch.setenv("RALF_AGENT_TYPE", "planner-worker")
    text = json.loads(called(capfd, project, "hook")[1])["hookSpecificOutput"]["additionalContext"]
    assert text and OLD not in text


def test_a_hook_that_fails_answers_empty_and_ends_with_0(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RALF_AGENT_TYPE", AGENT)
    storekit.context_of(project.root).joinpath("routes").mkdir(parents=True)
    storekit.route_file(project.root, AGENT).write_text("no front matter")
    status, out, err = called(capfd, project, "hook")
    assert (status, json.loads(out)["hookSpecificOutput"]["additionalContext"]) == (0, "")
    assert "Error: " in err


@pytest.mark.ci
def test_the_old_hook_itself_reads_the_view_and_the_file_comes_back_as_it_was(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    def injected() -> str:
        env = {**os.environ, "RALF_AGENT_TYPE": AGENT, "RALF_PROJECT_DIR": str(project.root)}
        done = subprocess.run(["bash", "-c", OLD_HOOK], env=env, cwd="/", capture_output=True, check=True)  # noqa: S607
        return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"])

    before = file_of(project).read_bytes()
    called(capfd, project, "install")
    assert file_of(project).read_bytes() == before
    worked(project)
    called(capfd, project, "install")
    assert "Scan one source a run" in injected()
    assert file_of(project).stat().st_mode & 0o222 == 0
    ralf.record_decision(AGENT, "Publish every pattern", root=project.root)
    assert "renewed" in called(capfd, project, "refresh")[1]
    assert "Publish every pattern" in injected()
    assert called(capfd, project, "refresh")[1] == ""
    assert called(capfd, project, "install")[1] == ""
    assert "as it was" in called(capfd, project, "uninstall")[1]
    assert file_of(project).read_bytes() == before
    assert [path.name for path in file_of(project).parent.iterdir()] == [timeline_memory.NAME]
    assert called(capfd, project, "refresh")[1] == ""


def test_a_view_that_somebody_changed_is_left_as_it_is(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    worked(project)
    called(capfd, project, "install")
    changed = file_of(project).read_text().replace("Scan one source", "Scan two sources") + "\n- a note\n"
    file_of(project).chmod(0o644)
    file_of(project).write_text(changed)
    for command in ("refresh", "install", "uninstall"):
        called(capfd, project, command)
        assert file_of(project).read_text() == changed
    assert file_of(project).with_name(timeline_memory.BACKUP).read_bytes() == OLD.encode()


def test_an_agent_of_a_task_is_shown_the_tasks_route(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    place = project.root / ".autonomous" / "agents" / "ssot-fix" / "auditor-worker" / "memory" / timeline_memory.NAME
    place.parent.mkdir(parents=True)
    place.write_text("# Auditor\n\n**Task:** TASK-ARCH-003B Validation\n")
    worked(project, "TASK-ARCH-003B")
    assert timeline_memory.Place(place, "auditor-worker", "TASK-ARCH-003B") in timeline_memory.found(project)
    called(capfd, project, "install")
    assert "Scan one source a run" in place.read_text()
    assert "renewed" not in called(capfd, project, "refresh")[1]
    called(capfd, project, "uninstall")
    assert place.read_text().startswith("# Auditor")


@pytest.mark.ci
@pytest.mark.skipif(not REAL.is_dir(), reason="the real files are not beside this checkout")
def test_real_files_are_served_and_come_back_as_they_were(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(file_of(project).parent)
    before = {}
    for file in sorted(REAL.glob("*.md")):
        place = project.root / ".autonomous" / "agents" / "real" / file.stem.rsplit("-", 1)[0]
        for path in (place / "memory" / timeline_memory.NAME if "ssot" in file.name else place / timeline_memory.NAME,):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.read_bytes())
            before[path] = file.read_bytes()
    monkeypatch.chdir(project.root)
    main(["import", "timeline-memory"], standalone_mode=False)
    called(capfd, project, "install")
    for path, content in before.items():
        text = path.read_text()
        assert path.read_bytes() != content
        told = guarded_yaml.load(text.split("```yaml\n")[1].split("\n```")[0])["timeline_memory"]["total_runs"]
        assert told == content.count(b"\n### Run "), path
    called(capfd, project, "uninstall")
    assert {path: path.read_bytes() for path in before} == before


def test_in_a_folder_that_is_no_project_nothing_is_looked_for_and_nothing_made(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "plain" / "agents" / AGENT / timeline_memory.NAME
    place.parent.mkdir(parents=True)
    place.write_text(OLD)
    assert OLD not in called(capfd, Project(tmp_path / "plain"), "show", AGENT)[1]
    assert called(capfd, Project(tmp_path / "plain"), "install")[1] == ""
    assert sorted(path.name for path in (tmp_path / "plain").iterdir()) == ["agents"]


@pytest.mark.ci
def test_it_is_a_command_of_its_own(project: Project) -> None:
    worked(project)
    command = [sys.executable, "-m", timeline_memory.__name__, "show", AGENT, "--project", str(project.root)]
    done = subprocess.run(command, cwd="/", env=storekit.environment(project.root), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Scan one source a run" in done.stdout
    missing = subprocess.run(command[:4] + command[5:], cwd="/", env=storekit.environment(project.root))
    assert missing.returncode == 2
