"""Whatever becomes of `index.db`, every command that reads says the same."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import ralf
import storekit
from kit.rights import as_modes_say
from promises.user import User
from storekit import SOURCE

pytestmark = pytest.mark.ci

FOLDER = Path(".autonomous/context")
READS = [
    ("list",),
    ("list", "--json"),
    ("show", "tide"),
    ("show", "tide", "--json"),
    ("log", "tide"),
    ("search", "the gauge"),
    ("task", "list"),
    ("memory", "show"),
    ("verify", "tide"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> User:
    user = User(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("project"))
    user.does("init")
    shutil.copy(SOURCE / "examples" / "session.jsonl", user.project)
    user.does("checkpoint", "tide", "--transcript", "session.jsonl")
    user.does("decide", "tide", "Keep levels for 15 seconds", "--because", "the gauge is slow")
    user.does("decide", "boat", "Paint the boat red")
    user.adds("Mend the gauge")
    user.does("memory", "add", "fact", "The gauge is slow")
    for words in READS:  # so that the index has all that reading leaves there
        user.ralf(*words)
    for path in (user.project / FOLDER).rglob("index.db"):
        with closing(sqlite3.connect(path)) as index:
            index.execute("pragma wal_checkpoint(truncate)")
    return user


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as index:
        index.execute("pragma user_version = 99")


def locked(path: Path) -> sqlite3.Connection:
    held = sqlite3.connect(path, isolation_level=None)
    held.execute("pragma locking_mode = exclusive")
    held.execute("begin exclusive")
    return held


DAMAGE: dict[str, Callable[[Path], object]] = {
    "deleted": lambda path: path.unlink(),
    "cut": lambda path: os.truncate(path, 5_000),
    "text": lambda path: path.write_text("not a database at all\n" * 400),
    "zeros": lambda path: path.write_bytes(bytes(40_960)),
    "of a later version": newer,
    "locked": locked,
    "read-only": lambda path: path.chmod(0o400),
    "in a read-only folder": lambda path: path.parent.chmod(0o500),
    "deleted, in a read-only folder": lambda path: (path.unlink(), path.parent.chmod(0o500)),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_every_command_that_reads_says_the_same(made: User, tmp_path: Path, how: str) -> None:
    user = User(made.home, made.project)
    whole = [user.ralf(*words) for words in READS]
    assert [words for words, ran in zip(READS, whole, strict=True) if ran.status] == []
    (index,) = (made.project / FOLDER).rglob("index.db")
    kept = tmp_path / "index.db"
    shutil.copy(index, kept)
    for words, before in zip(READS, whole, strict=True):
        held = DAMAGE[how](index)
        try:
            with as_modes_say():
                after = user.ralf(*words, as_modes_say=True)
        finally:
            index.parent.chmod(0o700)
            if isinstance(held, sqlite3.Connection):
                held.close()
        assert (after.status, after.out, after.err) == (before.status, before.out, before.err), words
        for path in index.parent.glob("index.db*"):
            path.unlink()
        shutil.copy(kept, index)


def test_the_log_of_the_index_is_short_after_a_checkpoint_and_after_a_search(tmp_path: Path) -> None:
    storekit.write_session(tmp_path / "session.jsonl", 60_000)
    ralf.checkpoint("tide", tmp_path / "session.jsonl", root=tmp_path)
    ralf.record_decision("tide", "Use WAL", root=tmp_path)
    assert ralf.search("tide table", root=tmp_path)
    (log,) = (tmp_path / ".autonomous/context/cache").rglob("index.db-wal")
    assert log.stat().st_size <= 512 << 10
