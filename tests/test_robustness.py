"""What somebody else does to the store costs time or is said; it neither loses a record nor leads anywhere else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import ralf
from ralf.project import Project
from storekit import cache_of, grow, write_session


def store(root: Path) -> Path:
    return root / ".autonomous" / "context"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    write_session(root / "session.jsonl", 2_000)
    ralf.checkpoint("r", root / "session.jsonl", root=root)
    return root


@pytest.mark.ci
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("index.db", b"torn"),
    ],
)
def test_a_torn_cache_counts_for_nothing(project: Path, name: str, content: bytes) -> None:
    before = ralf.get_context("r", root=project).render(2_000)
    path = cache_of(project) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    assert ralf.get_context("r", root=project).render(2_000) == before
    assert ralf.checkpoint("r", project / "session.jsonl", root=project).checkpoints == ()
    assert ralf.record_decision("r", "Go on", root=project).id


@pytest.mark.ci
@pytest.mark.parametrize("name", ["index.db"])
def test_a_cache_file_that_is_a_link_is_not_written_through(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    Project(tmp_path).prepare()
    path = cache_of(tmp_path) / name
    path.parent.mkdir(parents=True)
    path.symlink_to(victim)
    session = tmp_path / "session.jsonl"
    turn = write_session(session, 1_000)
    ralf.checkpoint("r", session, root=tmp_path)
    grow(session, 1_000, turn)
    ralf.checkpoint("r", session, root=tmp_path)
    assert victim.read_text() == "mine"
    assert ralf.get_context("r", root=tmp_path).checkpoint_count == 2


@pytest.mark.ci
@pytest.mark.parametrize("lay", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["a pipe", "a device"])
def test_a_pipe_or_a_device_in_place_of_a_cache_is_as_good_as_none(
    tmp_path: Path, lay: Callable[[Path], object]
) -> None:
    write_session(tmp_path / "session.jsonl", 500)
    ralf.checkpoint("r", tmp_path / "session.jsonl", root=tmp_path)
    caches = [path for path in (store(tmp_path) / "cache").rglob("*") if path.is_file()]
    assert len(caches) >= 2
    for path in caches:
        path.unlink()
        lay(path)
    assert ralf.get_context("r", root=tmp_path).checkpoint_count == 1
    assert ralf.record_decision("r", "Use SQLite", root=tmp_path).id
    assert ralf.checkpoint("r", tmp_path / "session.jsonl", root=tmp_path).checkpoints == ()
