"""No write goes through a file that has a second name, and none is emptied before it was looked at: what lies outside
of the store under the same inode keeps its bytes, its mode and its times (but for the time by which the fast path says
when hooks called).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import hookkit
from ralf.storage import files
from ralf_integrations.blackbox5.context_budget import SPAWNED, ContextBudget
from ralf_integrations.hooks import error_log, instant, session_registry


def second_names(paths: list[Path], elsewhere: Path) -> dict[Path, tuple[bytes, int, int]]:
    """Give files a name outside of the store; what each is now."""
    found = {}
    for number, path in enumerate(paths):
        name = elsewhere / path.parent.name / f"{number}{path.suffix}"
        name.parent.mkdir(parents=True, exist_ok=True)
        os.link(path, name)
        os.utime(name, ns=(10**18, 10**18))
        found[name] = _state(name)
    return found


def _state(path: Path) -> tuple[bytes, int, int]:
    status = path.lstat()
    return path.read_bytes(), status.st_mode, 0 if path.parent.name == "hooks" else status.st_mtime_ns


def test_a_file_that_is_to_be_emptied_is_looked_at_first(tmp_path: Path) -> None:
    outside, place = tmp_path / "outside", tmp_path / "place"
    outside.write_text("words")
    os.link(outside, place)
    for mode in ("w", "a", "r+"):
        with pytest.raises(OSError, match="second name"), open(place, mode, opener=files.open_single_link):
            pass
    assert outside.read_text() == "words"
    outside.unlink()
    with open(place, "w", opener=files.open_single_link) as file:
        file.write("new")
    assert place.read_text() == "new"


def test_the_rights_and_times_of_a_file_with_a_second_name_are_left(tmp_path: Path) -> None:
    outside, place = tmp_path / "outside", tmp_path / "place"
    outside.write_text("words")
    outside.chmod(0o644)
    os.link(outside, place)
    os.utime(outside, ns=(10**18, 10**18))
    before = _state(outside)
    with pytest.raises(OSError, match="second name"):
        files.touch(place)
    with pytest.raises(OSError, match="second name"):
        ContextBudget(run_dir=_linked(tmp_path, outside)).mark_subagent_spawned()
    assert _state(outside) == before


def _linked(folder: Path, outside: Path) -> Path:
    (folder / "run").mkdir()
    os.link(outside, folder / "run" / SPAWNED)
    return folder / "run"


@pytest.mark.ci
def test_what_hooks_remember_and_complain_of_goes_into_no_file_of_somebody(tmp_path: Path) -> None:
    rig = hookkit.rig(tmp_path / "project")
    project = rig.project
    rig.grow(2_000)
    rig.hook("SessionStart")
    error_log.add(project, "here", ValueError("something"))
    foretold = sorted(session_registry.folder(project).glob("*.json"))
    before = second_names([error_log.log(project), *foretold], tmp_path / "elsewhere")
    for number in range(3):
        error_log.add(project, "here", ValueError(f"{number}" * 30_000))
    for path in foretold:
        instant._rewrite(str(path), b"on")
    assert len(before) > 1
    assert {path: _state(path) for path in before} == before
