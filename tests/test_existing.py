"""The sessions that clients kept before ralf was there: found, told where they would go, taken one by one."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

import ralf
import rollouts as r
import storekit
from ralf import environment, routing
from ralf.project import Project
from ralf.text import cleaning
from ralf.transcripts.events import session_of_log
from ralf.transcripts.reader import logs_of_codex, newest_logs
from ralf_integrations import existing

REQUEST = "Move the tide table to SQLite"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    root = tmp_path / "w"
    root.mkdir()
    return Project(root)


def rollout(project: Project, day: str, number: int, *records: object, cwd: str = "", **meta: object) -> Path:
    """A rollout that Codex keeps: `day` as 2026/11/22; `number` makes its session."""
    session = f"01a2022f-cadb-7ed3-8fff-{number:012x}"
    home = environment.codex_folder()
    assert home is not None
    path = home / "sessions" / day / f"rollout-{day.replace('/', '-')}T07-36-57-{session}.jsonl"
    r.write(path, r.meta(cwd or str(project.root), session, **meta), *(records or (r.typed(REQUEST), r.agent("Yes"))))
    os.utime(path, (number, number))
    return path


def claude(project: Project, session: str, text: str, *, branch: str = "", when: int = 1) -> Path:
    """A session that Claude Code keeps."""
    home = environment.claude_folder()
    assert home is not None
    folder = home / "projects" / "".join(c if c.isascii() and c.isalnum() else "-" for c in str(project.root))
    folder.mkdir(parents=True, exist_ok=True)
    message = {"type": "user", "sessionId": session, "cwd": str(project.root), "gitBranch": branch}
    (folder / f"{session}.jsonl").write_text(
        json.dumps(message | {"message": {"role": "user", "content": text}}) + "\n"
    )
    os.utime(folder / f"{session}.jsonl", (when, when))
    return folder / f"{session}.jsonl"


def test_codex_sessions_of_a_project_are_those_that_worked_in_it_or_below(project: Project) -> None:
    here = rollout(project, "2026/11/21", 3)
    below = rollout(project, "2026/11/22", 2, cwd=f"{project.root}/src")
    newest = rollout(project, "2025/01/01", 9)
    rollout(project, "2026/11/22", 4, cwd=f"{project.root}-other")
    rollout(project, "2026/11/22", 5, cwd="/")
    rollout(project, "2026/11/22", 6, source={"subagent": {"thread_spawn": {"depth": 1}}})
    rollout(project, "2026/11/22", 7, thread_source="subagent")
    head = {"id": r.SESSION, "timestamp": r.WHEN, "instructions": "x" * 9_000}
    context = r.message("user", f"<environment_context>\n  <cwd>{project.root}</cwd>\n</environment_context>")
    first = r.write(here.with_name(f"rollout-2025-08-01T07-36-57-{r.SESSION}.jsonl"), head, context["payload"])
    os.utime(first, (1, 1))
    assert newest_logs(project) == [newest, here, below, first]
    assert [path for _, path in logs_of_codex(project, most=1)] == []  # the newest day's last one is a subagent's
    assert [session_of_log(path)[-1] for path in (newest, here, first)] == ["9", "3", "8"]


def test_each_session_is_told_with_what_is_left_of_it_and_where_it_would_go(project: Project) -> None:
    by_branch = rollout(project, "2026/11/20", 1, git={"branch": "feature/tides"})
    by_request = rollout(project, "2026/11/21", 2, git={"branch": "main"})
    rollout(project, "2026/11/22", 3, r.agent("nobody asked"))
    chosen = rollout(project, "2026/11/22", 4)
    routing.use(project, "mine", session=f"01a2022f-cadb-7ed3-8fff-{4:012x}")
    begun = claude(project, "begun", REQUEST, when=5)
    ralf.checkpoint("elsewhere", begun, root=project.root)
    whole = begun.stat().st_size
    with begun.open("a") as file:
        file.write(begun.read_text())
    claude(project, "done", "Count the harbours", when=6)
    ralf.checkpoint("harbours", claude(project, "done", "Count the harbours", when=6), root=project.root)

    found = existing.found(project)
    assert [(one.path, one.client, one.route, one.rule) for one in found] == [
        (by_branch, "codex", cleaning.slug("feature/tides"), "git branch feature/tides"),
        (by_request, "codex", "move-the-tide-table-to-sqlite", "first request"),
        (chosen, "codex", "mine", "ralf route"),
        (begun, "claude-code", "elsewhere", "begun"),
    ]
    assert [one.left for one in found] == [*(path.stat().st_size for path in (by_branch, by_request, chosen)), whole]
    assert [one.client for one in existing.found(project, "claude-code")] == ["claude-code"]
    assert len(existing.found(project, "codex")) == 3


def test_two_sessions_never_share_a_route_that_is_named_from_their_request(project: Project) -> None:
    for number in (1, 2):
        rollout(project, "2026/11/22", number)
    ralf.record_decision("count-the-harbours", "Count them", root=project.root)
    claude(project, "other", "Count the harbours", when=3)
    claude(project, "nothing", "¿?", when=4)
    claude(project, "secret", "Use password=hunter2-hunter2 for it", when=5)
    routes = [one.route for one in existing.found(project)]
    assert len(set(routes)) == 5 and "hunter2" not in str(routes)
    assert routes[0] == "move-the-tide-table-to-sqlite" and routes[1].startswith(routes[0])
    assert routes[2].startswith("count-the-harbours-") and routes[3] == "default"


def test_sessions_are_taken_one_by_one_and_stay_with_their_route(project: Project) -> None:
    first = rollout(project, "2026/11/21", 1)
    rollout(project, "2026/11/22", 2, r.typed("Count the harbours of the north"), git={"branch": "north"})
    (project.root / "gone").touch()
    sessions = existing.found(project)
    first.unlink()
    steps: list[tuple[str, int, int]] = []
    taking = existing.take(project, sessions, progress=lambda one, done, whole: steps.append((one.route, done, whole)))
    lost = next(taking)
    assert lost.report is None and str(first) in lost.problem
    taken = next(taking)
    assert taken.report is not None and len(taken.report.checkpoints) == 1
    assert next(taking, None) is None
    size = taken.session.path.stat().st_size
    assert steps == [("north", size, size)]
    assert ralf.get_context("north", root=project.root).began_as == "Count the harbours of the north"
    assert routing.choose(project, session=taken.session.session).route == "north"
    assert existing.found(project) == ()
    before = storekit.kept_bytes(project.root)
    assert [one.report.checkpoints for one in existing.take(project, [taken.session]) if one.report] == [()]
    assert storekit.kept_bytes(project.root) == before


@pytest.mark.ci  # the worker that asks the model is a new interpreter
def test_a_configured_model_is_not_asked_about_sessions_that_are_taken(project: Project) -> None:
    """What is offered is free; the model's worker would be a child of this process that runs `touch`."""
    asked = project.root / "asked"
    project.folder.mkdir(parents=True)
    project.local_config_file.write_text(f"summarizer: command\ncommand: [touch, {asked}]\n")
    storekit.allow(project.local_config_file)
    for number in (1, 2):
        said = "Both forms of the table are read now. " * 400
        rollout(project, "2026/11/22", number, r.typed(REQUEST), r.agent(said))
    first, second = existing.found(project)
    (taken,) = existing.take(project, [first])
    assert taken.report is not None and taken.report.summarizer == "extractive"
    assert not project.worker_lock(first.route).exists()
    ralf.checkpoint(second.route, second.path, root=project.root)  # as it is otherwise
    end = time.monotonic() + storekit.HANGS
    while not asked.exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert asked.exists() and not project.worker_lock(first.route).exists()
