"""No write goes through a file that has a second name, and none is emptied before it was looked at: what lies outside
of the store under the same inode keeps its bytes, its mode and its times (but for the time by which the fast path says
when hooks called).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import storekit
from allwrites import everything
from ralf.document.index import close_idle
from ralf.project import Project
from ralf_integrations.hooks import error_log, instant, usage
from storekit import context_of


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made") / "project"
    assert everything(root) == []
    close_idle()  # else the files beside the index go away in the middle of a test
    return root


def second_names(paths: list[Path], elsewhere: Path) -> dict[Path, tuple[bytes, int, int]]:
    """Give files a name outside of the store; what each is now."""
    elsewhere.mkdir()
    found = {}
    for number, path in enumerate(paths):
        name = elsewhere / f"{number}{path.suffix}"
        os.link(path, name)
        os.utime(name, ns=(10**18, 10**18))
        found[name] = _state(name)
    return found


def _state(path: Path) -> tuple[bytes, int, int]:
    status = path.lstat()
    return path.read_bytes(), status.st_mode, 0 if path.suffix == instant.HINT else status.st_mtime_ns


def groups(store: Path) -> dict[str, list[Path]]:
    """The files of a store by the folder at its top, those of the cache by the folder in it."""
    found: dict[str, list[Path]] = {}
    for path in sorted(store.rglob("*")):
        if path.is_file():
            parts = path.relative_to(store).parts
            depth = 3 if parts[0] == "cache" else 1
            found.setdefault("/".join(parts[:depth]) if len(parts) > 1 else "files at the top", []).append(path)
    return found


@pytest.mark.release(seconds=60)
def test_no_write_of_any_kind_changes_a_file_by_its_second_name(made: Path, tmp_path: Path) -> None:
    for number, name in enumerate(groups(context_of(made))):
        root = storekit.moved(made, shutil.copytree(made, tmp_path / str(number) / "project"))
        paths = groups(context_of(root))[name]
        before = second_names(paths, tmp_path / str(number) / "elsewhere")
        everything(root)
        assert {path: _state(path) for path in before} == before, name


@pytest.mark.ci
def test_what_hooks_remember_and_complain_of_goes_into_no_file_of_somebody(made: Path, tmp_path: Path) -> None:
    root = storekit.moved(made, shutil.copytree(made, tmp_path / "project"))
    project = Project(root)
    foretold = sorted((project.folder / "cache").rglob(f"*{instant.HINT}"))
    before = second_names([error_log.log(project), *foretold], tmp_path / "elsewhere")
    for number in range(3):
        error_log.add(project, "here", ValueError(f"{number}" * 30_000))
    for path in foretold:
        usage.write_hint(project, path.stem, None, size=1, until=2)
    assert len(before) > 1
    assert {path: _state(path) for path in before} == before
