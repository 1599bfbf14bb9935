"""A prompt: the brief of what it asks for, once; and the route that a session gets by its first request."""

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
from ralf.text.cleaning import outside
from ralf_integrations.hooks.messages import LIMIT, length

made, home = handingkit.made, handingkit.home

REQUEST = "Rewrite the gauge importer so that it reads the new files of the harbour office."


def route_of(root: Path, session: str) -> tuple[str, str]:
    return tuple(routing.choose(Project(root), session=session))  # type: ignore[return-value]


def killed(root: Path, route: str = ROUTE, session: str = "old", **fields: object) -> None:
    handingkit.remembered(root, session, **{"route": route, "worktree": str(root), "seen": time.time() - 60} | fields)  # type: ignore[arg-type]


@pytest.mark.ci
def test_of_several_sessions_the_interrupted_one_comes_and_others_are_offered(
    project: Path,
) -> None:
    ralf.record_decision("other-work", "WORD-OF-THE-OTHER", root=project)
    killed(project)
    killed(project, "other-work", "done", ended=True, seen=time.time())
    text = handingkit.prompt("new", project, "Continue.")
    assert GOAL in text
    assert "other-work (ended " in text
    assert "WORD-OF-THE-OTHER" not in text


def test_a_window_that_holds_all_of_the_route_is_not_told_it_again(project: Path) -> None:
    routing.use(Project(project), ROUTE, session="old")
    assert handingkit.prompt("old", project, "continue") == ""
    assert handingkit.prompt("old", project, f"what is open in {ROUTE}?") == ""
    handingkit.hook("SessionStart", "old", project, source="clear")
    assert GOAL in handingkit.prompt("old", project, "continue")


@pytest.mark.parametrize("by", ["ralf route", "first request"])
def test_a_later_prompt_that_names_a_route_gets_its_brief_once_and_the_session_stays(project: Path, by: str) -> None:
    if by == "first request":
        handingkit.prompt("new", project, "Draw mine")
    else:
        routing.use(Project(project), "draw-mine", session="new")
    text = handingkit.prompt("new", project, f"compare it with {ROUTE}")
    assert GOAL in text
    assert "draw-mine" in text
    assert handingkit.prompt("new", project, f"and once more with {ROUTE}") == ""
    assert route_of(project, "new") == ("draw-mine", by)


@pytest.mark.parametrize("character", ["x", "\U0001f600"])
def test_an_unknown_route_of_any_length_gets_a_whole_fence_and_is_no_path(project: Path, character: str) -> None:
    text = handingkit.prompt("new", project, f"--load-context a-b{character * 12_000}")
    assert length(text) <= LIMIT
    assert outside(text) == ""
    handingkit.prompt("new", project, "--load-context ../../../etc/passwd")
    assert not list(storekit.context_of(project).rglob("*passwd*"))


def test_switched_off_only_what_is_asked_for_by_hand_arrives(project: Path) -> None:
    storekit.configure(project, "inject: off\n")
    assert handingkit.prompt("new", project, f"go on with {ROUTE}") == ""
    assert GOAL in handingkit.prompt("new", project, f"--load-context {ROUTE}")


# ---- the route that a session gets ----


def test_a_session_gets_a_route_that_is_named_after_its_first_request(project: Path) -> None:
    assert handingkit.prompt("new", project, REQUEST) == ""
    assert route_of(project, "new") == ("rewrite-the-gauge-importer-so-that-it", "first request")
    handingkit.prompt("new", project, "And now something else entirely, with other words.")
    assert route_of(project, "new")[0] == "rewrite-the-gauge-importer-so-that-it"


def test_a_secret_in_the_first_request_is_in_no_name(project: Path) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    handingkit.prompt("new", project, f"Use {key} to push the new importer")
    found = [path.as_posix() for path in storekit.context_of(project).rglob("*")]
    assert not any(key[4:20].lower() in path.lower() for path in found)
    assert route_of(project, "new")[0] == "use-to-push-the-new-importer"


@pytest.mark.parametrize(
    ("by", "on_main", "on_branch"),
    [
        ("task", "first request", "git branch fix-tides"),
        ("goal", "first request", "first request"),
        ("branch", "default", "git branch fix-tides"),
        ("project", "default", "default"),
    ],
)
def test_route_by_says_which_rules_are_left(project: Path, by: str, on_main: str, on_branch: str) -> None:
    storekit.configure(project, f"route_by: {by}\n")
    (project / ".git").mkdir()
    for branch, rule in (("main", on_main), ("fix-tides", on_branch)):
        (project / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
        handingkit.prompt(f"on-{branch}", project, REQUEST)
        assert route_of(project, f"on-{branch}")[1] == rule
    routing.use(Project(project), "chosen", session="x")
    assert route_of(project, "x") == ("chosen", "ralf route")


def test_a_route_that_is_forgotten_is_nobodys_any_more(project: Path) -> None:
    from ralf.maintenance.forget import forget_route
    from ralf_integrations.hooks import session_registry

    handingkit.prompt("new", project, REQUEST)
    route = route_of(project, "new")[0]
    ralf.record_decision(route, "WORD-TO-BE-FORGOTTEN", root=project)
    killed(project, route, "dead", transcript=str(handingkit.kept(project, "old")))
    forget_route(route, root=project)
    assert route_of(project, "new") == ("default", "default")
    assert session_registry.load(Project(project), "dead").route == ""
    assert not any(
        route.encode() in path.read_bytes() for path in storekit.context_of(project).rglob("*") if path.is_file()
    )


def test_the_status_says_when_a_hook_called_last(project: Path) -> None:
    assert json.loads(storekit.process("status", "--json", cwd=project).out)["last_hook"] == ""
    handingkit.prompt("new", project, REQUEST)
    called = json.loads(storekit.process("status", "--json", cwd=project).out)["last_hook"]
    assert called and called in storekit.process("status", cwd=project).out
