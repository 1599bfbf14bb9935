"""The durable write of one file: whether somebody saves it meanwhile, what is displaced, and what an error leaves."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from ralf.storage import durable, files
from storekit import hidden

OLD = b"the old columns\n" * 100


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tide.md"
    path.write_bytes(OLD)
    return path


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


# ---- whether somebody is saving ----


@pytest.mark.ci
@pytest.mark.parametrize("leases_known", [True, False])
@pytest.mark.parametrize("lay", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_regular_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lay: Callable[[Path], None], leases_known: bool
) -> None:
    if not leases_known:
        monkeypatch.delattr("fcntl.F_SETLEASE")
    lay(tmp_path / "x")
    with pytest.raises(OSError, match=r"regular|symbolic"):
        files.read(tmp_path / "x")


def test_a_file_read_in_pieces_is_read_whole_and_never_beyond_the_limit(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, pread = path.read_bytes(), os.pread
    monkeypatch.setattr(os, "pread", lambda file, size, at: pread(file, min(size, 7), at))
    assert files.read(path).content == content
    assert files.read(path, 10).content == content[:10]
    path.write_bytes(b"")
    assert files.read(path)[:2] == (b"", True)


# ---- the exchange ----


def test_what_is_displaced_is_handed_back_and_stays_until_it_is_dropped(path: Path) -> None:
    old = path.read_bytes()
    displaced = durable.exchange(path, b"new", digest(b"something else"))
    assert displaced is not None
    assert (path.read_bytes(), displaced.content) == (b"new", old)
    assert Path(displaced.path).read_bytes() == old
    displaced.drop()
    assert hidden(path) == []


def test_a_file_that_is_not_there_is_made_and_nothing_displaced(path: Path) -> None:
    path.unlink()
    assert durable.exchange(path, b"new", digest(b"")) is None
    assert (path.read_bytes(), hidden(path)) == (b"new", [])


def test_a_file_that_appears_at_the_last_moment_is_displaced_and_not_written_over(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor makes the file anew between our look and our rename."""
    path.unlink()
    renamed, calls = durable.renamed, []

    def racing(source: str, target: str, flags: int) -> int:
        calls.append(flags)
        if len(calls) == 2:
            path.write_bytes(b"saved")
        return renamed(source, target, flags)

    monkeypatch.setattr(durable, "renamed", racing)
    displaced = durable.exchange(path, b"new", digest(b""))
    assert displaced is not None
    assert (path.read_bytes(), displaced.content) == (b"new", b"saved")


@pytest.fixture
def _no_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS, and on file systems that cannot exchange two names."""
    monkeypatch.setattr(durable, "_renameat2", lambda: None)


@pytest.mark.usefixtures("_no_exchange")
def test_displaced_content_is_returned_even_where_names_cannot_be_exchanged(path: Path) -> None:
    displaced = durable.exchange(path, b"new", digest(b"something else"))
    assert displaced is not None
    assert (path.read_bytes(), path.stat().st_nlink, displaced.content) == (b"new", 1, OLD)
    displaced.drop()
    assert hidden(path) == []
    path.unlink()
    assert durable.exchange(path, b"newer", digest(b"")) is None
    assert (path.read_bytes(), path.stat().st_nlink, hidden(path)) == (b"newer", 1, [])


@pytest.mark.usefixtures("_no_exchange")
@pytest.mark.parametrize("known", [OLD, b"something else"])
def test_a_save_while_no_file_exists_is_displaced_and_the_earlier_content_is_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch, known: bytes
) -> None:
    link, calls = os.link, []

    def racing(source: str, target: str) -> None:
        calls.append(source)
        if len(calls) == 1:
            path.write_bytes(b"saved")
        link(source, target)

    monkeypatch.setattr(os, "link", racing)
    displaced = durable.exchange(path, b"new", digest(known))
    assert displaced is not None
    assert (path.read_bytes(), displaced.content) == (b"new", b"saved")
    displaced.remove()
    assert [aside.content for aside in durable.sweep(path)] == ([] if known == OLD else [OLD])


@pytest.mark.usefixtures("_no_exchange")
def test_a_file_whose_name_can_be_neither_exchanged_nor_linked_is_left_and_reported(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(source: str, target: str) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), target)

    monkeypatch.setattr(os, "link", refusing)
    with pytest.raises(durable.CannotReplace, match=path.name):
        durable.exchange(path, b"new", digest(OLD))
    assert (path.read_bytes(), hidden(path)) == (OLD, [])


def test_a_link_that_appears_at_the_last_moment_is_removed_and_its_target_left_alone(path: Path) -> None:
    named = path.rename(path.with_name("named"))
    path.symlink_to(named)
    old = named.read_bytes()
    assert durable.exchange(path, b"new", digest(old)) is None
    assert (path.is_symlink(), path.read_bytes(), named.read_bytes()) == (False, b"new", old)
    assert hidden(path) == []


@pytest.mark.parametrize("write", [durable.write, lambda path, content: durable.exchange(path, content, "0" * 64)])
@pytest.mark.parametrize("failing", ["write", "fsync", "close"])
def test_a_write_that_fails_leaves_the_old_file_alone_and_says_which_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path, bytes], object], failing: str
) -> None:
    old, real = path.read_bytes(), getattr(os, failing)

    def fails(descriptor: int, *rest: object) -> None:
        if failing == "close":
            real(descriptor)
        raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr(os, failing, fails)
    with pytest.raises(OSError, match="the disk is full") as raised:
        write(path, b"new")
    monkeypatch.undo()
    assert raised.value.filename == str(path)
    assert (path.read_bytes(), hidden(path)) == (old, [])


@pytest.mark.parametrize("failing", ["sync", "commit"])
def test_a_whole_file_that_cannot_be_written_leaves_the_old_one_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, "the disk is full")

    old = path.read_bytes()
    monkeypatch.setattr(durable._writer_class(), failing, fails)
    with pytest.raises(OSError, match="the disk is full") as raised:
        durable.write_file(path, b"new")
    assert raised.value.filename == str(path)
    assert (path.read_bytes(), hidden(path)) == (old, [])


def test_a_whole_file_takes_the_place_of_a_link_with_the_rights_that_are_asked_for(path: Path) -> None:
    named = path.with_name("named")
    path.rename(named)
    path.symlink_to(named)
    old, open_files = named.read_bytes(), len(os.listdir("/proc/self/fd"))
    durable.write_file(path, b"new", mode=0o640)
    assert (path.is_symlink(), path.read_bytes(), named.read_bytes()) == (False, b"new", old)
    assert (path.stat().st_mode & 0o777, hidden(path)) == (0o640, [])
    durable.write_file(path, b"newer")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"newer", 0o600)
    assert len(os.listdir("/proc/self/fd")) == open_files


def test_a_file_is_written_under_a_name_without_a_folder_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    displaced = durable.exchange(Path(path.name), b"new", "0" * 64)
    assert displaced is not None
    displaced.drop()
    assert (path.read_bytes(), hidden(path)) == (b"new", [])
    durable.write(Path(path.name), b"newer")
    assert (path.read_bytes(), hidden(path)) == (b"newer", [])
    durable.write_file(Path(path.name), b"newest")
    assert (path.read_bytes(), hidden(path)) == (b"newest", [])


def test_files_of_killed_writers_go_with_the_next_write_and_those_of_live_ones_stay(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable, "_BORN", 0.0)
    killed = os.fork()
    if not killed:
        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        durable.write(path, b"half")
    os.waitpid(killed, 0)
    (dead,) = hidden(path)
    other = path.with_name(".ralf-other.md-0123456789ab.tmp")
    other.touch()
    fsync, seen = os.fsync, []

    def meanwhile(descriptor: int) -> None:
        fsync(descriptor)
        if not seen:
            seen.extend(hidden(path))
            durable.write(path, b"another's")
            seen.remove(dead)
            assert hidden(path) == seen

    monkeypatch.setattr(os, "fsync", meanwhile)
    durable.write(path, b"new")
    assert (len(seen), hidden(path), path.read_bytes()) == (2, [other.name], b"new")
