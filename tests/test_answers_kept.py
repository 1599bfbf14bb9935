"""An answer of `list` or `show` that was kept is given again only where it is what would be made now, to the byte."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import storekit
from kit.no_index import with_index_only
from promises.user import Session, User

pytestmark = [pytest.mark.ci, with_index_only()]

FOLDER = Path(".autonomous/context")
COMMANDS = (("show", "tide"), ("list",))
TRIES = 40


class World:
    """A user, a route of a session in a repository, and how answers come about."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.user = User.initialized(folder)
        self.store = self.user.project / FOLDER
        (self.user.project / "levels.py").write_text("LEVEL = 1\n", encoding="utf-8")
        self.user.git("add", "levels.py")
        self.user.git("commit", "-qm", "Add the levels")
        self.session: Session = self.user.session()
        self.session.says("Log the tides of the harbour.")
        self.session.answers("They are logged.")
        self.user.does("checkpoint", "tide", "--transcript", self.session.log)
        self.user.does("decide", "tide", "Keep levels for 15 seconds", "--because", "the gauge is slow")
        self.user.does("decide", "boat", "Paint the boat red")
        self.session.says("And the gauge?")
        self.more: dict[str, Any] = {}
        self.held: list[sqlite3.Connection] = []

    @property
    def index(self) -> Path:
        """The index of the project."""
        (found,) = (self.store / "cache").glob("*/index.db")
        return found

    def journal(self, route: str = "tide") -> Path:
        """The journal of a route."""
        return self.store / f"journal/routes/{route}.jsonl"

    def newest(self) -> int:
        """How often an answer was kept, 0 for never."""
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{self.index}?mode=ro", uri=True)) as index:
            return int(index.execute("select coalesce(max(rowid), 0) from answer").fetchone()[0])
        return 0

    def is_given_again(self) -> bool:
        """Whether the answers are those that were kept."""
        before = self.newest()
        self.answers()
        return 0 < before == self.newest()

    def settle(self) -> list[tuple[int, str, str]]:
        """The answers, once each was kept and given again: what was just changed may change once more unseen."""
        for _ in range(TRIES):
            before = self.newest()
            found = self.answers()
            if 1 < before == self.newest():
                return found
            time.sleep(0.05)
        raise AssertionError("no answer was given again")

    def answers(self, **more: Any) -> list[tuple[int, str, str]]:
        """What is answered, and what it says on the other stream."""
        found = [self.user.ralf(*words, **self.more, **more) for words in COMMANDS]
        return [(ran.status, ran.out, ran.err) for ran in found]


def is_same(one: list[tuple[int, str, str]], other: list[tuple[int, str, str]]) -> bool:
    """Whether answers are the same; what git says is left out where it took too long to say it in one of them."""
    slow = any(("by git" in a[1]) != ("by git" in b[1]) for a, b in zip(one, other, strict=True))
    left = r"(?m)^(?:Now, by git|<!-- ralf:).*\n" if slow else r"(?!)"
    return [re.sub(left, "", "\n".join(map(str, each))) for each in one] == [
        re.sub(left, "", "\n".join(map(str, each))) for each in other
    ]


def unchanged_times(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change a file in its place to as many bytes, and put its time back."""
    before = path.stat()
    data = change(path.read_bytes())
    assert len(data) == before.st_size
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def config(world: World, text: str) -> None:
    (world.store / "config.yaml").write_text(text, encoding="utf-8")


def shared(world: World, text: str = "Paint it blue") -> Path:
    """What another clone has shared, as it would lie here."""
    folder = world.store / "shared" / "c0ffee"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "0001-abcdef.json"
    path.write_text(json.dumps({"route": "tide", "text": text}), encoding="utf-8")
    return path


def registered(world: World) -> Path:
    (found,) = (world.user.home / ".config/ralf/projects").glob("*.json")
    return found


def ages(world: World) -> None:
    """The journal is nearly as old as one of a route that is closed, and gets as old meanwhile."""
    for route in ("tide", "boat"):
        then = time.time() - 30 * 86_400 + 3
        os.utime(world.journal(route), (then, then))
    world.settle()
    time.sleep(3.1)


def written(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def with_index(world: World, statement: str) -> None:
    """Change the index while somebody else has it open: who closes it last takes the files beside it away."""
    index = sqlite3.connect(world.index)
    index.execute(statement)
    index.commit()
    world.held.append(index)


def swapped(world: World) -> None:
    """Each answer lies under the name of the other."""
    with_index(world, "delete from answer where rowid not in (select rowid from answer order by rowid desc limit 2)")
    with_index(world, "update answer set body = (select body from answer as other where other.rowid != answer.rowid)")


ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select cast(i as blob), x'' from n"


def without_a_key(world: World) -> None:
    """A hook has noted that the store is not this user's; whoever brought it has brought an index, too."""
    path = registered(world)
    path.write_text(re.sub(r'"(key|redaction_key|cache)": "\w+"', r'"\1": ""', path.read_text("utf-8")), "utf-8")
    index = sqlite3.connect(world.store / "cache/index.db")
    index.executescript(f"pragma journal_mode = wal; create view answer(name, body) as {ENDLESS};")
    world.held.append(index)


def sets(**variables: str) -> Callable[[World], None]:
    return lambda world: world.more.update(env=variables)


CHANGES: dict[str, tuple[bool, Callable[[World], object]]] = {
    # commands, also by other processes
    "a decision": (True, lambda w: w.user.does("decide", "tide", "Round up")),
    "a decision by the API": (True, lambda w: w.user.has_decided("tide", "Round up")),
    "a decision in a new route": (True, lambda w: w.user.does("decide", "mast", "Keep the mast")),
    "a checkpoint": (True, lambda w: w.user.does("checkpoint", "tide", "--transcript", w.session.log)),
    "a route renamed": (True, lambda w: w.user.does("route", "tide", "--rename", "tides")),
    "words forgotten": (True, lambda w: w.user.does("forget", "--text", "15 seconds", "--yes")),
    # files of the store
    "an edit by rename": (True, lambda w: w.user.edit(w.user.route_file("tide"), "15 seconds", "20 seconds")),
    "an edit of as many bytes at the same time": (
        True,
        lambda w: unchanged_times(w.user.route_file("tide"), lambda data: data.replace(b"15 sec", b"16 sec")),
    ),
    "a note": (True, lambda w: w.user.write_note("tide", "The gauge sticks.")),
    "a route file deleted": (False, lambda w: w.user.route_file("tide").unlink()),
    "a conflicted copy": (True, lambda w: shutil.copy(w.user.route_file("tide"), w.store / "routes/tide (copy).md")),
    "a damaged line": (True, lambda w: w.journal().write_bytes(w.journal().read_bytes() + b"{ no record\n")),
    "a byte of the journal, at the same time": (
        True,
        lambda w: unchanged_times(w.journal(), lambda data: data.replace(b"the gauge is slow", b"the gauge is slaw")),
    ),
    "a journal put back": (
        True,
        lambda w: (
            shutil.copy2(w.journal(), w.folder / "kept"),
            w.user.does("decide", "tide", "Round up"),
            w.settle(),
            os.replace(w.folder / "kept", w.journal()),
        ),
    ),
    "a file of another clone": (False, shared),
    "settings that cannot be parsed": (True, lambda w: config(w, "route_by: [")),
    "a store of another user": (True, lambda w: os.chown(w.store, 12_345, -1)),
    "the time at which a route closes": (True, ages),
    # the user's own
    "a registration removed": (True, lambda w: registered(w).unlink()),
    "a registration without a key": (True, without_a_key),
    "more work in the session": (True, lambda w: w.session.answers("It is slow. " * 2_000)),
    # git
    "a commit": (True, lambda w: w.user.git("commit", "-qm", "Nothing", "--allow-empty")),
    "a file in the repository changed": (True, lambda w: written(w.user.project / "levels.py", "LEVEL = 2\n")),
    "a file in the repository changed, at the same time": (
        True,
        lambda w: unchanged_times(w.user.project / "levels.py", lambda data: data.replace(b"1", b"2")),
    ),
    "a new file in the repository": (True, lambda w: written(w.user.project / "new.py", "")),
    # what is given to the process
    "another project by a variable": (True, lambda w: sets(RALF_PROJECT_DIR=str(w.folder))(w)),
    "another session by a variable": (True, lambda w: (sets(CLAUDE_CODE_SESSION_ID="s-2")(w), w.answers())),  # it moves
    "another folder": (True, lambda w: w.more.update(cwd=w.folder)),
    # the index
    "an index deleted": (False, lambda w: w.index.unlink()),
    "an answer changed": (
        False,
        lambda w: with_index(w, "update answer set body = cast(replace(body, 'Keep', 'Kill') as blob)"),
    ),
    "an answer under the name of another": (False, swapped),
}
"""What may change, and whether what is answered does."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, Path]:
    """A world, and a copy of all that it has."""
    world = World(tmp_path_factory.mktemp("world"))
    return world, shutil.copytree(world.folder, tmp_path_factory.mktemp("kept") / "world", symlinks=True)


@pytest.fixture
def world(made: tuple[World, Path]) -> World:
    """The world as it was made."""
    found, kept = made
    found.more.clear()
    while found.held:
        found.held.pop().close()
    shutil.rmtree(found.folder)
    shutil.copytree(kept, found.folder, symlinks=True)
    return found


@pytest.mark.parametrize("what", CHANGES)
def test_after_a_change_the_answer_is_the_one_that_is_made_now(world: World, what: str) -> None:
    before = world.settle()
    differs, change = CHANGES[what]
    change(world)
    after = world.answers()
    assert is_same(after, world.answers(way=storekit.MAKING))
    assert after != before if differs else is_same(after, before)


def test_what_is_recorded_is_in_the_next_answer_also_beside_readers(world: World) -> None:
    """A reader that looked while a writer wrote keeps nothing that is not so any more."""
    world.settle()
    for number in range(12):
        readers = [world.user.start(*COMMANDS[0]) for _ in range(2)]
        world.user.does("decide", "tide", f"Round up to {number} decimetres")
        readers.append(world.user.start(*COMMANDS[0]))
        assert f"Round up to {number} decimetres" in world.user.does(*COMMANDS[0]).out
        assert [reader.wait() for reader in readers] == [0, 0, 0]
        assert is_same(world.answers(), world.answers(way=storekit.MAKING))


def test_an_answer_that_is_given_again_is_a_sign_of_life(world: World) -> None:
    task = world.user.adds("Mend the gauge")
    number = world.user.does("task", "claim", task, "--json").json()["claim"]["number"]
    world.more["env"] = {"RALF_LEASE": f"{task}:{number}"}
    world.settle()
    (path,) = (world.store / "cache").glob(f"*/leases/{task}-{number}")
    os.utime(path, (0, 0))
    assert world.is_given_again()
    assert path.stat().st_mtime > 0


def test_what_git_says_is_kept_as_a_digest_alone(world: World) -> None:
    """It may name what nobody has looked through for secrets, and which no answer shows."""
    for number in range(30):
        written(world.user.project / f"new-{number}", "")
    written(world.user.project / "zz-whispered", "")
    shown = world.settle()
    assert "not committed" in shown[0][1] and "whispered" not in shown[0][1]
    assert not [path for path in world.index.parent.glob("index.db*") if b"whispered" in path.read_bytes()]
