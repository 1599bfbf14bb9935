"""A store that belongs to another user is neither read nor written, unless this user has named it as safe."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import ralf
from ralf import environment
from ralf.errors import OtherOwner
from ralf.maintenance.verify import verify
from ralf.storage import registry
from storekit import context_of, kept_bytes, process, write_session

OTHER = 65_534
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")


def give(path: Path, user: int = OTHER) -> None:
    """Give a folder and all in it to a user."""
    for one in (path, *path.rglob("*")):
        os.chown(one, user, user, follow_symlinks=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a store of its own, with a record in it."""
    root = tmp_path / "project"
    root.mkdir()
    ralf.record_decision("tide", "Use centimetres", root=root)
    return root


def calls(root: Path) -> list[Callable[[], object]]:
    return [
        lambda: ralf.get_context("tide", root=root),
        lambda: ralf.list_routes(root=root),
        lambda: ralf.search("centimetres", root=root),
        lambda: ralf.record_decision("tide", "Go on", root=root),
        lambda: verify(root=root),
    ]


def test_the_store_of_another_user_is_neither_read_nor_written(project: Path) -> None:
    give(project)
    before = kept_bytes(project, cache=True)
    for call in calls(project):
        with pytest.raises(OtherOwner, match=r"belongs to .*65534") as caught:
            call()
        assert str(caught.value).startswith(str(project / ".autonomous"))
        assert "RALF_SAFE_DIRECTORIES" in caught.value.hint
    assert kept_bytes(project, cache=True) == before


def test_a_store_of_another_user_above_the_working_directory_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(project / ".autonomous")
    (project / "mine" / "deep").mkdir(parents=True)
    monkeypatch.chdir(project / "mine" / "deep")
    with pytest.raises(OtherOwner):
        ralf.list_routes()
    with pytest.raises(OtherOwner):
        ralf.record_decision("tide", "Go on")
    shutil.rmtree(context_of(project))  # an empty `.autonomous` in a folder where anybody may make one
    with pytest.raises(OtherOwner):
        ralf.record_decision("tide", "Go on")


def test_for_root_the_user_who_runs_sudo_counts_and_for_another_user_none(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(project)
    monkeypatch.setenv("SUDO_UID", str(OTHER))
    assert ralf.list_routes(root=project)
    for said in ("1234", "", "-1", "65534x", "\u0661", "9" * 30):
        monkeypatch.setenv("SUDO_UID", said)
        with pytest.raises(OtherOwner):
            ralf.list_routes(root=project)
    monkeypatch.setenv("SUDO_UID", "0")
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    assert registry.own_ids() == {OTHER}
    assert environment.sudo_user() == 0


# ---- commands and hooks ----


@pytest.mark.ci
def test_a_worker_and_the_loop_do_nothing_in_it(project: Path, tmp_path: Path) -> None:
    session = tmp_path / "session.jsonl"
    write_session(session, 1_000)
    give(project)
    before = kept_bytes(project, cache=True)
    for arguments in (
        ("checkpoint", "tide", "--transcript", session),
        ("checkpoint", "--watch", "tide", "--transcript", session, "--once"),
        ("status",),
        ("init", "--yes"),
        ("status", "--all"),
        ("forget", "tide"),
        ("gc",),
    ):
        with suppress(AssertionError):
            ran = process(*arguments, cwd=project)
        assert (ran.status, ran.err.startswith("error: ")) == (2, True), (arguments, ran)
    assert kept_bytes(project, cache=True) == before
