"""Going on after a session is over: whose work a new one goes on with, in which folder, asked for in what words."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import handingkit
import ralf
import storekit
from handingkit import GOAL, ROUTE
from ralf import routing
from ralf.project import Project
from ralf_integrations.hooks import checkpoints, prompt_intent, session_registry

made, home = handingkit.made, handingkit.home


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which nothing was done yet."""
    root = tmp_path / "empty"
    root.mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(root / ".claude"))
    return handingkit.project(root).root


REQUEST = "Please rewrite the gauge importer so that it reads the new files of the harbour office."
EDITED = ("edit", "/srv/tide/src/importer.py")


def route_of(root: Path, session: str) -> str:
    return routing.choose(Project(root), session=session).route


def killed(root: Path, route: str = ROUTE, session: str = "old", **fields: object) -> None:
    handingkit.remembered(root, session, **{"route": route, "worktree": str(root), "seen": time.time() - 60} | fields)  # type: ignore[arg-type]


def lived(root: Path, session: str, prompt: str, *turns: tuple[str, object], **fields: object) -> None:
    """A session that was asked for something, did something, and was killed."""
    handingkit.start(session, root, **fields)
    handingkit.prompt(session, root, prompt, **fields)
    handingkit.log(handingkit.kept(root, session), session, ("user", prompt), *turns)


# ---- a session without a subject ----


@pytest.mark.ci
@pytest.mark.parametrize("greeting", ["hi", "Guten Morgen", "hajde dalje", "你好", "what's next?"])
def test_a_greeting_gets_one_line_on_interrupted_work_and_changes_nothing_of_it(project: Path, greeting: str) -> None:
    killed(project)
    assert f"Context available for {ROUTE}" in handingkit.start("greeting", project)
    assert handingkit.prompt("greeting", project, greeting) == ""
    handingkit.log(handingkit.kept(project, "greeting"), "greeting", ("user", greeting), ("says", "Hello!"))
    handingkit.hook("SessionEnd", "greeting", project, reason="other")
    assert routing.names_of(Project(project)) == [ROUTE]
    assert f"Context available for {ROUTE}" in handingkit.start("new", project)
    assert GOAL in handingkit.prompt("new", project, "continue")
    assert route_of(project, "new") == ROUTE


@pytest.mark.ci
def test_a_session_that_works_though_no_prompt_makes_a_name_gets_a_route_of_its_own(project: Path) -> None:
    lived(project, "first", "潮汐表を移す", EDITED)
    lived(project, "second", "los", ("edit", "/srv/tide/src/other.py"))
    handingkit.remembered(project, "first", seen=time.time() - 60)
    line = handingkit.start("new", project)
    routes = [session_registry.load(Project(project), one).route for one in ("first", "second")]
    assert all(route.startswith("work-") and route in line for route in routes) and len({*routes}) == 2
    assert "src/other.py" not in line
    text = handingkit.prompt("new", project, routes[1])
    assert "src/other.py" in text and "src/importer.py" not in text
    assert route_of(project, "new") == routes[1]


# ---- which work ----


@pytest.mark.ci
@pytest.mark.parametrize("why", ["two", "old", "ended", "closed", "done", "other worktree"])
def test_go_on_is_the_agents_to_understand_where_it_is_not_plain_what_was_interrupted(project: Path, why: str) -> None:
    fields = {"old": {"seen": time.time() - 90_000}, "ended": {"ended": True}, "other worktree": {"worktree": "/srv/x"}}
    killed(project, **fields.get(why, {}))
    if why == "two":
        ralf.record_decision("other-work", "Mend the pier first", root=project)
        killed(project, "other-work", "killed")
    elif why == "closed":
        ralf.close_route(ROUTE, root=project)
    elif why == "done":
        done = project / ".autonomous" / "tasks" / "completed" / f"{ROUTE}.md"
        done.parent.mkdir(parents=True)
        done.write_text("# Tide table\n")
    line = handingkit.start("new", project)
    assert handingkit.prompt("new", project, "continue") == ""
    assert GOAL not in line and "Mend the pier" not in line
    is_told = why in ("two", "old", "ended")
    assert (ROUTE in line) == (GOAL[:60] in line) == ("ralf show" in line) == is_told
    assert ("other-work" in line) == (why == "two")


@pytest.mark.ci
@pytest.mark.parametrize("did", ["edit", "command", "agent", "checkpoint", "chosen", "named"])
def test_reading_moves_no_session_that_has_worked_or_whose_route_somebody_named(project: Path, did: str) -> None:
    ralf.record_decision("other-work", "Mend the pier first", root=project)
    handingkit.prompt("new", project, "other-work" if did == "named" else REQUEST)
    turns = {"edit": [EDITED], "command": [("bash", ("make tides", "", False))], "agent": [("task", "Look at it")]}
    log = handingkit.kept(project, "new")
    handingkit.log(log, "new", ("user", REQUEST), *turns.get(did, ()))
    if did == "checkpoint":
        ralf.checkpoint(route_of(project, "new"), log, root=project)
    elif did == "chosen":
        routing.use(Project(project), "mine", session="new")
    route = route_of(project, "new")
    assert not prompt_intent.move_by_reading(Project(project), "new", ROUTE)
    assert route_of(project, "new") == route


# ---- where ----


def test_a_repository_within_the_worktree_is_another_one(project: Path) -> None:
    for folder in (".git", "vendor/pier/.git"):
        (project / folder).mkdir(parents=True)
    killed(project, worktree=str(project / "vendor" / "pier"))
    assert handingkit.start("new", project) == ""
    assert GOAL in handingkit.prompt("newer", project, "continue", cwd=str(project / "vendor" / "pier"))


# ---- a fork ----


def test_a_fork_is_handed_nothing_and_only_what_is_its_own_is_taken(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BB5_ROUTE", ROUTE)
    killed(project, transcript=str(handingkit.kept(project, "old")))
    assert handingkit.start("fork", project, "fork") == ""
    copied = handingkit.kept(project, "old").read_text().replace('"sessionId": "old"', '"sessionId": "fork"')
    log = handingkit.kept(project, "fork")
    handingkit.log(log, "fork", ("user", "And what next?"), ("edit", "/srv/tide/src/branch.py"))
    since = session_registry.load(Project(project), "fork").forked
    lines = [json.dumps(json.loads(line) | {"timestamp": since}) for line in log.read_text().splitlines()]
    queued = json.dumps({"type": "queue-operation", "sessionId": "fork", "content": "continue", "timestamp": since})
    log.write_text("".join(f"{line}\n" for line in (queued, copied.rstrip(), *lines)))
    assert checkpoints.checkpoint_session(Project(project), ROUTE, "fork", log, "session-end")
    facts = storekit.records_of(project, ROUTE)[-1]["payload"]["facts"]
    assert [fact["request"] for fact in facts["requests"]] == ["And what next?"]
    assert [fact["path"] for fact in facts["paths"]] == ["src/branch.py"]
