"""A file that is replaced: whole or not at all, and not where somebody has saved another one meanwhile."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from ralf.errors import Busy
from ralf.storage import durable, users_files
from storekit import hidden

OLD = b"the old columns\n" * 100


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tide.md"
    path.write_bytes(OLD)
    return path


def replaced(path: Path, content: bytes) -> None:
    users_files.replace(path, path.read_bytes() if path.exists() else None, content, None)


@pytest.fixture(params=["exchange", "link"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two names are exchanged; or they cannot be, as on macOS and on some file systems."""
    if request.param == "link":
        monkeypatch.setattr(durable, "_renameat2", lambda: None)


# ---- a file of the user ----


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("before", [OLD, None])
def test_what_somebody_saves_at_the_last_moment_stays(
    path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes | None
) -> None:
    swap, saves = durable.swap, [b"saved"]

    def racing(new: Path, target: Path, aside: Path) -> None:
        if saves:
            path.write_bytes(saves.pop())
        swap(new, target, aside)

    if before is None:
        path.unlink()
    monkeypatch.setattr(durable, "swap", racing)
    with pytest.raises(Busy, match=path.name):
        users_files.replace(path, before, b"new", None)
    assert (path.read_bytes(), hidden(path)) == (b"saved", [])


# ---- a file of ralf ----


@pytest.mark.parametrize("write", [durable.write, replaced])
@pytest.mark.parametrize("failing", ["write", "fsync", "close"])
def test_a_write_that_fails_leaves_the_old_file_alone_and_says_which_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path, bytes], object], failing: str
) -> None:
    old, real = path.read_bytes(), getattr(os, failing)

    def fails(descriptor: int, *rest: object) -> None:
        if failing == "close":
            real(descriptor)
        raise OSError(errno.ENOSPC, "the disk is full")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="the disk is full") as raised:
        before = path.read_bytes()
        patched.setattr(os, failing, fails)
        users_files.replace(path, before, b"new", None) if write is replaced else write(path, b"new")
    assert raised.value.filename == str(path)
    assert (path.read_bytes(), hidden(path)) == (old, [])


def test_files_of_killed_writers_go_with_a_later_write_and_those_of_live_ones_stay(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = os.fork()
    if not killed:
        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        durable.write(path, b"half")
    os.waitpid(killed, 0)
    assert len(hidden(path)) == 1
    other = path.with_name(".ralf-other.md-0123456789ab.tmp")
    other.touch()
    durable.write(path, b"new")
    assert len(hidden(path)) == 2
    monkeypatch.setattr(durable, "_DEAD", 0.0)
    durable.write(path, b"newer")
    assert (path.read_bytes(), hidden(path)) == (b"newer", [other.name])
