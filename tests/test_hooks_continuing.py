"""Going on after a session is over: whose work a new one goes on with, in which folder, asked for in what words."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import handingkit
import ralf
import storekit
from handingkit import GOAL, ROUTE
from ralf import routing
from ralf.project import Project
from ralf_integrations.hooks import checkpoints, session_registry

made, home = handingkit.made, handingkit.home

REQUEST = "Please rewrite the gauge importer so that it reads the new files of the harbour office."
EDITED = ("edit", "/srv/tide/src/importer.py")


def route_of(root: Path, session: str) -> str:
    return routing.choose(Project(root), session=session).route


def killed(root: Path, route: str = ROUTE, session: str = "old", **fields: object) -> None:
    handingkit.remembered(root, session, **{"route": route, "worktree": str(root), "seen": 1.0} | fields)  # type: ignore[arg-type]


def lived(root: Path, session: str, prompt: str, *turns: tuple[str, object], **fields: object) -> None:
    """A session that was asked for something, did something, and was killed."""
    handingkit.start(session, root, **fields)
    handingkit.prompt(session, root, prompt, **fields)
    handingkit.log(handingkit.kept(root, session), session, ("user", prompt), *turns)


# ---- a session without a subject ----


@pytest.mark.parametrize("greeting", ["hi", "Guten Morgen", "hajde dalje", "你好", "what's next?"])
def test_a_greeting_gets_one_line_on_interrupted_work_and_changes_nothing_of_it(project: Path, greeting: str) -> None:
    killed(project)
    assert f"Context available for {ROUTE}" in handingkit.start("greeting", project)
    assert handingkit.prompt("greeting", project, greeting) == ""
    handingkit.log(handingkit.kept(project, "greeting"), "greeting", ("user", greeting), ("says", "Hello!"))
    handingkit.hook("SessionEnd", "greeting", project, reason="other")
    assert not storekit.route_file(project, "default").exists()
    assert f"Context available for {ROUTE}" in handingkit.start("new", project)
    assert GOAL in handingkit.prompt("new", project, "continue")
    assert route_of(project, "new") == ROUTE


def test_a_greeting_where_the_start_said_nothing_is_answered_with_the_line(project: Path) -> None:
    killed(project)
    said = handingkit.prompt("new", project, "hi")
    assert f"Context available for {ROUTE}" in said
    assert GOAL not in said
    assert handingkit.prompt("new", project, "hello?") == ""
    assert GOAL in handingkit.prompt("new", project, "ok, continue")


def test_a_session_that_works_without_naming_a_subject_gets_a_route_of_its_own(project: Path) -> None:
    lived(project, "first", "hajde dalje", EDITED)
    lived(project, "second", "los geht's", ("edit", "/srv/tide/src/other.py"))
    for session in ("first", "second"):
        handingkit.remembered(project, session, seen=2.0 if session == "second" else 1.0)
    text = handingkit.prompt("new", project, "continue")
    assert "src/other.py" in text
    assert "src/importer.py" not in text
    assert route_of(project, "new").startswith("work-")
    assert route_of(project, "new") == route_of(project, "second") != route_of(project, "first")


def test_a_default_route_that_holds_a_greeting_alone_hides_no_work(project: Path) -> None:
    log = handingkit.kept(project, "earlier")
    handingkit.log(log, "earlier", ("user", "hi"), ("says", "Hello! What can I do?"))
    ralf.checkpoint("default", log, root=project)
    killed(project)
    assert ROUTE in handingkit.start("new", project)
    assert GOAL in handingkit.prompt("new", project, "continue")


# ---- which work ----


def test_of_a_route_its_newest_session_says_whether_it_was_interrupted(project: Path) -> None:
    ralf.record_decision("other-work", "Mend the pier first", root=project)
    killed(project)
    killed(project, ROUTE, "went on", seen=3.0, ended=True)
    killed(project, "other-work", "killed", seen=2.0)
    text = handingkit.prompt("new", project, "continue")
    assert "Mend the pier first" in text
    assert f"{ROUTE} (ended " in text


@pytest.mark.parametrize(
    "words",
    [
        *("continue please, and run the tests first", "Let's continue. Run the tests first.", "mach bitte weiter"),
        *("weiter, aber nimm Port 8081", "继续", "continúa por favor", "продолжай"),
    ],
)
def test_a_wish_to_go_on_keeps_the_route_whatever_it_asks_for_besides(project: Path, words: str) -> None:
    killed(project)
    assert GOAL in handingkit.prompt("new", project, words)
    assert route_of(project, "new") == ROUTE


def test_work_that_the_wish_names_comes_before_what_is_newer(project: Path) -> None:
    ralf.record_decision("other-work", "Mend the pier first", root=project)
    killed(project)
    killed(project, "other-work", "newer", seen=2.0)
    assert GOAL in handingkit.prompt("new", project, "Please carry on with the old columns of the harbour")


def test_unknown_work_named_in_a_wish_brings_no_brief_and_makes_no_route_yet(project: Path) -> None:
    killed(project)
    text = handingkit.prompt("new", project, "Please carry on with the login page")
    assert f"Context available for {ROUTE}" in text
    assert GOAL not in text
    assert route_of(project, "new") == "default"


def test_a_session_that_was_only_greeted_before_goes_on_with_what_was_interrupted(project: Path) -> None:
    killed(project)
    handingkit.prompt("new", project, "hi")
    handingkit.log(handingkit.kept(project, "new"), "new", ("user", "hi"), ("says", "Hello!"))
    assert GOAL in handingkit.prompt("new", project, "continue")


def test_a_route_whose_session_was_handed_another_one_says_where_it_came_from(project: Path) -> None:
    ralf.record_decision("other-work", "Mend the pier first", root=project)
    killed(project, "other-work", "drifted", briefed=(ROUTE,))
    assert f"It went on from {ROUTE}" in handingkit.prompt("new", project, "continue")


def test_a_file_that_the_person_wrote_is_continued_though_no_session_worked_on_it(tmp_path: Path) -> None:
    handingkit.project(tmp_path)
    path = storekit.route_file(tmp_path, "api-refactoring")
    path.parent.mkdir(exist_ok=True)
    path.write_text(storekit.V100, encoding="utf-8")
    text = handingkit.prompt("new", tmp_path, "continue")
    assert "Use FastAPI over Flask" in text
    assert route_of(tmp_path, "new") == "api-refactoring"


def test_a_file_that_is_not_the_persons_is_not_gone_on_with_until_they_accept_it(tmp_path: Path) -> None:
    from ralf.maintenance import trust

    path = storekit.route_file(tmp_path, "api-refactoring")
    path.parent.mkdir(parents=True)
    path.write_text(storekit.V100, encoding="utf-8")
    os.utime(path, (1e9, 1e9))
    handingkit.project(tmp_path)
    assert handingkit.start("new", tmp_path) == handingkit.prompt("new", tmp_path, "continue") == ""
    trust.accept_route(Project(tmp_path), "api-refactoring")
    assert "Use FastAPI over Flask" in handingkit.prompt("newer", tmp_path, "continue")


# ---- where ----


@pytest.mark.parametrize(("worked", "asked"), [("", "src/deep"), ("src/deep", ""), ("src/deep", "docs")])
def test_folders_of_one_worktree_share_its_interrupted_work(project: Path, worked: str, asked: str) -> None:
    for folder in (".git", worked, asked):
        (project / folder).mkdir(parents=True, exist_ok=True)
    killed(project, worktree=str(project / worked))
    assert ROUTE in handingkit.start("new", project, cwd=str(project / asked))
    assert GOAL in handingkit.prompt("new", project, "continue", cwd=str(project / asked))


def test_a_repository_within_the_worktree_is_another_one(project: Path) -> None:
    for folder in (".git", "vendor/pier/.git"):
        (project / folder).mkdir(parents=True)
    killed(project, worktree=str(project / "vendor" / "pier"))
    assert handingkit.start("new", project) == ""
    assert GOAL in handingkit.prompt("newer", project, "continue", cwd=str(project / "vendor" / "pier"))


# ---- a fork ----


def forked(root: Path, *turns: tuple[str, object]) -> None:
    """A session that forks `old`, and what it did: its log is there with its first answer."""
    handingkit.start("fork", root, "fork")
    assert handingkit.prompt("fork", root, "continue") == ""
    copied = handingkit.kept(root, "old").read_text().replace('"sessionId": "old"', '"sessionId": "fork"')
    own = handingkit.kept(root, "own")
    handingkit.log(own, "fork", *turns)
    since = session_registry.load(Project(root), "fork").forked
    lines = [json.dumps(json.loads(line) | {"timestamp": since}) for line in own.read_text().splitlines()]
    queued = {"type": "queue-operation", "operation": "enqueue", "content": "continue", "timestamp": since}
    text = "".join(f"{line}\n" for line in (json.dumps(queued | {"sessionId": "fork"}), copied.rstrip(), *lines))
    handingkit.kept(root, "fork").write_text(text, encoding="utf-8")
    own.unlink()


@pytest.mark.usefixtures("on_old")
def test_a_fork_goes_on_with_the_route_of_its_session_and_is_handed_nothing(project: Path) -> None:
    forked(project, ("user", "And what next?"), ("edit", "/srv/tide/src/branch.py"))
    assert handingkit.prompt("fork", project, "continue") == ""
    assert route_of(project, "fork") == ROUTE


@pytest.mark.usefixtures("on_old")
def test_of_a_fork_only_what_is_its_own_is_taken(project: Path) -> None:
    forked(project, ("user", "And what next?"), ("edit", "/srv/tide/src/branch.py"))
    handingkit.prompt("fork", project, "continue")
    assert checkpoints.checkpoint_session(
        Project(project), ROUTE, "fork", handingkit.kept(project, "fork"), "session-end"
    )
    of_old, of_fork = storekit.checkpoints_of(project, ROUTE)
    assert of_fork[1] >= of_old[2]
    facts = storekit.records_of(project, ROUTE)[-1]["payload"]["facts"]
    assert [fact["request"] for fact in facts["requests"]] == ["And what next?"]
    assert [fact["path"] for fact in facts["paths"]] == ["src/branch.py"]


@pytest.fixture
def on_old(project: Path) -> None:
    """`old` has worked on `ROUTE`, as a hook has seen."""
    killed(project, transcript=str(handingkit.kept(project, "old")))
