"""Which route has a session: every look at the project means the same one, and no route takes it a second time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ralf
import ralf.errors
import storekit
from ralf import routing
from ralf.project import Project
from ralf_integrations.blackbox5.context_checkpoint import main as create
from ralf_integrations.mcp.server import Tools
from storekit import Cli, Ran

Run = Callable[..., Ran]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one session of a client, as a terminal of the person sees it."""
    for name in storekit.CHOOSING:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / ".claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / ".codex"))
    project = tmp_path / "project"
    project.mkdir()
    storekit.write_session(storekit.session_log(tmp_path, project, "s-1"), 2_000)
    return project


@pytest.fixture
def cli(root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    return Cli(root, monkeypatch, capfd)


@pytest.mark.ci
def test_after_a_manual_checkpoint_status_health_and_the_route_that_is_meant_agree(root: Path, cli: Run) -> None:
    ralf.record_decision("older", "Keep the old columns", root=root)
    assert cli("status", "--json").json()["route"] == "default"
    assert cli("checkpoint", "api").status == 0
    told = cli("status", "--json").json()
    assert (told["route"], told["others"]) == ("api", ["older"])
    assert cli("route", "--json").json()["route"] == "api"
    assert [one["route"] for one in cli("status", "--all", "--json").json()["sessions"]] == ["api"]
    assert Tools(root)._choice(None).route == "default"  # no session calls it
    assert routing.choose(Project(root), session="s-1").route == "api"  # what its hooks will take


@pytest.mark.ci
def test_a_second_route_refuses_a_session_without_a_terminal_unless_again_is_given(root: Path, cli: Run) -> None:
    assert cli("checkpoint", "api").status == 0
    for more in ((), ("--watch", "--once", "--every", 500)):
        refused = cli("checkpoint", "other", *more)
        refused.complains(2, "other", "--again")
    assert create(["create", "--route", "other", "--project", str(root)]) == 2
    with pytest.raises(ralf.errors.UsageError, match="api"):
        Tools(root).checkpoint("other")
    assert cli("list", "--json").json()[0]["route"] == "api" and len(routing.names_of(Project(root))) == 1
    assert cli("checkpoint", "other", "--again").status == 0
    assert cli("checkpoint", "other").lines == ["other: nothing new"]
    assert cli("route", "--json").json()["route"] == "api"  # the session goes on with its own


@pytest.mark.ci
def test_route_use_counts_in_every_command_that_takes_a_route(root: Path, cli: Run) -> None:
    ralf.record_decision("api", "Keep the old columns", root=root)
    cli("checkpoint", "moon")
    assert cli("route", "api").status == 0
    for command in (
        ("show",),
        ("log",),
        ("log", ".."),
        ("show", "DEC-001"),
        ("undo", "DEC-001"),
        ("undo", "--to", "r1"),
    ):
        named = cli(command[0], "api", *command[1:], "--json")
        ran = cli(*command, "--json")
        assert (ran.status, ran.err.endswith(named.err)) == (named.status, True), command
        if command[0] != "undo":
            assert ran.out == named.out, command
    assert cli("decide", "Use WAL mode").lines == ["api: DEC-002: Use WAL mode"]
    assert cli("status", "--json").json()["route"] == "api"
