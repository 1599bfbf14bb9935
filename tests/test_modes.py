"""A store is for its owner only, whatever the umask; what a person has set stays."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import ralf
from kit import command
from storekit import as_modes_say, context_of, environment, route_file, write_session


def too_open(root: Path) -> dict[str, str]:
    """The folders and files of a store, and of what was installed beside it, that others have rights to."""
    found = {}
    for path in sorted((root / ".autonomous").rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode & 0o077:
            found[path.relative_to(root).as_posix()] = oct(mode)
    return found


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
@pytest.mark.ci
def test_every_folder_is_0700_and_every_file_0600(tmp_path: Path, mask: int) -> None:
    root, home = tmp_path / "project", tmp_path / "home"
    for folder in (root, home):
        folder.mkdir()
    write_session(root / "session.jsonl", 2_000)
    for words in (
        ("init", "--client", "claude-code", "--yes"),
        ("decide", "tide", "Use centimetres"),
        ("checkpoint", "tide", "--transcript", "session.jsonl"),
        ("route", "tide"),
        ("search", "centimetres"),
        ("memory", "add", "fact", "The gauge is in feet"),
        ("send", "s-1", "Look at the gauge", "--wait"),
        ("undo", "tide"),
        ("doctor", "--repair"),
    ):
        ran = command.run(*words, cwd=root, env=environment(home), umask=mask)
        assert ran.status == 0, ran
    assert too_open(root) == {}
    store = context_of(root)
    for name in ("journal", "blobs", "routes", "cache", "locks", "installed"):
        assert any((store / name).rglob("*")), name
    for path in (root / ".claude", *(root / ".claude").rglob("*")):
        assert not path.stat().st_mode & 0o022, path


def test_the_folder_of_an_earlier_store_is_tightened_by_a_write_and_not_by_reading(tmp_path: Path) -> None:
    ralf.record_decision("tide", "Use centimetres", root=tmp_path)
    store = context_of(tmp_path)
    store.chmod(0o755)
    (tmp_path / ".autonomous").chmod(0o755)
    ralf.get_context("tide", root=tmp_path)
    assert stat.S_IMODE(store.stat().st_mode) == 0o755
    ralf.record_decision("tide", "Go on", root=tmp_path)
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / ".autonomous").stat().st_mode) == 0o755  # other tools' folder, too


def test_an_unreadable_route_file_is_served_from_the_journal_and_left_as_it_is(tmp_path: Path) -> None:
    ralf.record_decision("tide", "Use centimetres", root=tmp_path)
    path = route_file(tmp_path, "tide")
    path.chmod(0)
    with as_modes_say():
        found = ralf.get_context("tide", root=tmp_path)
        ralf.record_decision("tide", "Go on", root=tmp_path)
        after = ralf.get_context("tide", root=tmp_path)
    assert [item.decision for item in found.decisions] == ["Use centimetres"]
    assert found.warnings[0].startswith(f"{path}: ") and found.warnings[1] == f"sudo chown {os.geteuid()} {path}"
    assert [item.decision for item in after.decisions] == ["Use centimetres", "Go on"]
    assert stat.S_IMODE(path.stat().st_mode) == 0
    path.chmod(0o600)
    assert [item.decision for item in ralf.get_context("tide", root=tmp_path).decisions] == ["Use centimetres", "Go on"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_route_file_stays_with_its_owner(tmp_path: Path) -> None:
    ralf.record_decision("tide", "Use centimetres", root=tmp_path)
    path, said = route_file(tmp_path, "tide"), list[str]()
    path.chmod(0o640)
    os.chown(path, 12_345, 12_346)
    ralf.record_decision("tide", "Go on", root=tmp_path, warn=said.append)
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode), said) == (12_345, 12_346, 0o640, [])
