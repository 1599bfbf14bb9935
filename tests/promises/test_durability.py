"""Nothing that was acknowledged is lost, doubled or torn: killed, crowded, out of room, damaged."""

from __future__ import annotations

import errno
import random
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit import command
from kit.no_index import with_index_only
from promises.user import JOURNAL, NOTES, Session, User

pytestmark = pytest.mark.ci

KILLS, FULL = -9, errno.ENOSPC
PLACES = 10
DECIDES = """
import sys, ralf
for number in range(int(sys.argv[2])):
    print(ralf.record_decision("harbour", f"Writer {sys.argv[1]} chose {number}").id, flush=True)
"""
READS = """
import pathlib, sys, ralf
path, end = pathlib.Path(sys.argv[1]), sys.argv[2]
seen = 0
while seen < int(sys.argv[3]):
    text = path.read_text()
    assert text.startswith("---\\n") and text.rstrip().endswith(end), text
    now = len(ralf.get_context("harbour").decisions)
    assert now >= seen, (now, seen)
    seen = now
"""


def damage(path: Path, line: int) -> bytes:
    """Change one character in the middle of a line of a journal; the line as it is then."""
    lines = path.read_bytes().split(b"\n")
    middle = len(lines[line]) // 2
    lines[line] = (
        lines[line][:middle] + (b"#" if lines[line][middle : middle + 1] != b"#" else b"+") + lines[line][middle + 1 :]
    )
    path.write_bytes(b"\n".join(lines))
    return lines[line]


# ---- kills ----


class _Decisions:
    """Something that a user does again and again, each time with another number."""

    def __init__(self, user: User) -> None:
        self.user = user

    def prepare(self, number: int) -> None:
        """What comes before the command that may be killed."""

    def words(self, number: int) -> list[str]:
        return ["decide", "harbour", f"Choice {number} of many"]

    def after(self, number: int) -> None:
        """What a user does next with what was killed."""

    def present(self) -> list[int]:
        """The numbers that a reader finds, each as often as it is there."""
        return numbers("Choice", *self.user.decisions("harbour"))


def numbers(noun: str, *texts: str) -> list[int]:
    return [int(found) for text in texts for found in re.findall(noun + r" (\d+) of many", text)]


class _Checkpoints(_Decisions):
    """Each number is a line of the transcript."""

    def __init__(self, user: User) -> None:
        super().__init__(user)
        self.session: Session = user.session()
        self.lines = 0

    def prepare(self, number: int) -> None:
        self.session.says(f"Please look after mooring {number} now.")
        self.session.answers(f"Mooring {number} is done.")

    def words(self, number: int) -> list[str]:
        return ["checkpoint", "harbour", "--transcript", str(self.session.log)]

    def present(self) -> list[int]:
        found = []
        for checkpoint in self.user.does("show", "harbour", "--json").json()["checkpoints"]:
            first, _, last = checkpoint["lines"].partition("-")
            covered = list(range(int(first), int(last or first) + 1))
            assert len(covered) % 2 == 0, "a checkpoint of half a turn"
            found += [line // 2 for line in covered if line % 2 == 0]
        return found


class _Tasks(_Decisions):
    def prepare(self, number: int) -> None:
        self.user.does("task", "add", f"Job {number}", "--id", f"TASK-{number}")
        self.user.does("task", "claim", f"TASK-{number}")

    def words(self, number: int) -> list[str]:
        return ["task", "done", f"Summary {number} of many", "--task", f"TASK-{number}"]

    def after(self, number: int) -> None:
        again = self.user.ralf(*self.words(number))
        assert again.status in (0, 3), again

    def present(self) -> list[int]:
        folder = self.user.project / ".autonomous/tasks"
        assert not list((folder / "active").glob("TASK-*"))
        files = sorted((folder / "completed").glob("TASK-*"))
        shown = [self.user.does("task", "show", file.stem, "--json").json() for file in files[-1:]]
        assert all(numbers("Summary", one["summary"]) == [int(one["task"]["id"].partition("-")[2])] for one in shown)
        return [int(file.stem.partition("-")[2]) for file in files]


class _Facts(_Decisions):
    def words(self, number: int) -> list[str]:
        return ["memory", "add", "fact", f"Fact {number} of many"]

    def present(self) -> list[int]:
        return numbers("Fact", *(item["text"] for item in self.user.does("memory", "show", "--json").json()["items"]))


class _Edits(_Decisions):
    """Each write absorbs a line that a person wrote into the file; above their section it may report an edit."""

    def __init__(self, user: User) -> None:
        super().__init__(user)
        user.does("decide", "harbour", "The first of all")

    def prepare(self, number: int) -> None:
        self.user.write_note("harbour", f"Note {number} of many")

    def present(self) -> list[int]:
        return numbers("Note", self.user.route_file("harbour").read_text().rpartition(NOTES)[2])


@pytest.mark.parametrize("kind", [_Decisions, _Checkpoints, _Tasks, _Facts, _Edits], ids=lambda kind: kind.__name__[1:])
def test_a_kill_at_any_call_loses_doubles_and_tears_nothing_and_the_next_write_works(
    user: User, kind: type[_Decisions]
) -> None:
    work = kind(user)
    work.prepare(1)
    child = user.start(*work.words(1), fault=(0, 0))
    child.communicate()
    assert child.returncode == 0 and isinstance(child, command.Child)
    surely, perhaps = {1}, set[int]()
    for number in range(2, PLACES + 2):
        work.prepare(number)
        place = child.calls * (number - 1) // PLACES - 2
        killed = user.ralf(*work.words(number), fault=(place, KILLS))
        (perhaps if killed.status and kind is not _Edits else surely).add(number)
        if number % 2:
            user.lose_derived()
        work.after(number)
        found = Counter(work.present())
        assert surely <= set(found) <= surely | perhaps and set(found.values()) == {1}, (place, found)
        surely |= set(found)
    if kind is not _Tasks:
        work.prepare(100)
        user.does(*work.words(100))
        assert surely <= set(work.present())
    user.does("verify")


def test_a_kill_at_a_random_moment_loses_nothing_that_was_acknowledged(user: User) -> None:
    moments = random.Random(7)  # noqa: S311  # for the same moments in each run
    acknowledged: list[str] = []
    for writer in range(5):
        with user.start("", writer, 1_000, code=DECIDES) as child:
            assert child.stdout is not None
            said = [child.stdout.readline() for _ in range(moments.randint(1, 6))]
            child.send_signal(signal.SIGKILL)
            said += child.stdout.readlines()
        acknowledged += [f"Writer {writer} chose {number}" for number in range(len(said))]
        found = user.decisions("harbour")
        assert len(found) == len(set(found)) and set(acknowledged) <= set(found)
        assert len(set(found) - set(acknowledged)) <= writer + 1
    user.does("verify")


# ---- many at once ----


def test_sixteen_writers_at_once_lose_nothing_and_no_reader_sees_half_a_write(user: User) -> None:
    user.does("decide", "harbour", "Somebody began")
    path = user.route_file("harbour")
    end = path.read_text().rstrip().rpartition("\n")[2]
    reader = user.start("", path, end, 33, code=READS)
    writers = [user.start("", number, 2, code=DECIDES) for number in range(16)]
    said = [writer.communicate(timeout=command.HANGS) for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 16, said
    labels = [label for out, _ in said for label in out.decode().split()]
    assert len(set(labels)) == 32
    found = user.does("show", "harbour", "--json").json()["decisions"]
    assert Counter(one["decision"] for one in found) == Counter(
        ["Somebody began", *(f"Writer {writer} chose {number}" for writer in range(16) for number in range(2))]
    )
    assert {one["id"] for one in found} >= set(labels)
    _, err = reader.communicate(timeout=command.HANGS)
    assert reader.returncode == 0, err
    user.does("verify")


def test_what_an_editor_saves_while_others_write_is_merged(user: User) -> None:
    user.does("decide", "harbour", "Somebody began")
    with user.start("", 1, 12, code=DECIDES) as writer:
        assert writer.stdout is not None
        for number in range(6):
            writer.stdout.readline()
            user.write_note("harbour", f"Note {number} of many")
        writer.stdout.read()
    assert writer.returncode == 0
    user.does("decide", "harbour", "Somebody ended")
    assert sorted(numbers("Note", user.route_file("harbour").read_text())) == list(range(6))
    assert Counter(user.decisions("harbour")) == Counter(
        ["Somebody began", *(f"Writer 1 chose {number}" for number in range(12)), "Somebody ended"]
    )


def test_a_save_into_a_file_that_a_write_has_replaced_meanwhile_is_merged(user: User) -> None:
    user.does("decide", "harbour", "Somebody began")
    path = user.route_file("harbour")
    before = path.read_text()
    with path.open("r+") as editor:
        user.does("decide", "harbour", "Meanwhile")
        lines = before.rstrip("\n").split("\n")
        place = max(number for number, line in enumerate(lines) if line == "---" or number == len(lines) - 3)
        lines[place:place] = [NOTES, "", "The pilot boat is red.", ""]
        editor.write("\n".join(lines) + "\n")
    user.does("decide", "harbour", "Afterwards")
    assert "The pilot boat is red." in path.read_text()
    assert user.decisions("harbour") == ["Somebody began", "Meanwhile", "Afterwards"]


# ---- no room ----


def test_a_call_that_finds_no_room_costs_nothing_that_was_acknowledged(user: User) -> None:
    user.does("decide", "harbour", "Choice 1 of many")
    child = user.start("decide", "harbour", "Choice 2 of many", fault=(0, 0))
    child.communicate()
    assert child.returncode == 0 and isinstance(child, command.Child)
    surely, perhaps = {1, 2}, set[int]()
    step = child.calls // 8
    for number, place in enumerate(range(step, child.calls, step), 3):
        ran = user.ralf("decide", "harbour", f"Choice {number} of many", fault=(place, FULL))
        (perhaps if ran.status else surely).add(number)
        assert ran.status in (0, 1) and "Traceback" not in ran.err
    found = Counter(numbers("Choice", *user.decisions("harbour")))
    assert surely <= set(found) <= surely | perhaps and set(found.values()) == {1}
    user.does("decide", "harbour", "Choice 100 of many")
    assert 100 in numbers("Choice", *user.decisions("harbour"))
    user.does("verify")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[User]:
    """A user whose project lies on a disk of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", disk],  # noqa: S607
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("a file system cannot be mounted here")
    try:
        found = User(tmp_path / "home", disk / "project")
        found.does("init")
        yield found
    finally:
        command.settle()
        subprocess.run(["umount", disk], check=True)  # noqa: S607


_FULL_DISK = with_index_only("whoever deletes the index makes room on a full disk")


def fill(user: User) -> Path:
    """Fill the disk to its last page."""
    filler = user.project / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(b"x" * 4_096)
    return filler


@_FULL_DISK
def test_a_disk_that_is_full_is_an_error_with_its_path_and_nothing_is_lost(small: User) -> None:
    small.does("decide", "harbour", "Before it was full")
    filler = fill(small)
    failed = small.ralf("decide", "harbour", "While it was full", "--because", "it was long " * 1_000)
    assert failed.status == 1 and re.match(rf"error: {small.project}/\S+: .*\nhint: ", failed.err), failed
    assert small.decisions("harbour") == ["Before it was full"]
    filler.unlink()
    small.does("decide", "harbour", "When there was room again")
    assert small.decisions("harbour") == ["Before it was full", "When there was room again"]
    small.does("verify")


@_FULL_DISK
def test_a_write_that_only_its_file_has_no_room_for_has_succeeded_with_a_warning(small: User) -> None:
    small.does("decide", "harbour", "Before it was full")
    fill(small)
    ran = small.ralf("decide", "harbour", "Short")
    assert small.decisions("harbour") == ["Before it was full", "Short"]
    assert ran.status == 0 and str(small.route_file("harbour")) in ran.err, ran


# ---- damage ----


def test_a_torn_last_line_of_a_journal_was_never_acknowledged_and_the_next_write_goes_on(user: User) -> None:
    user.does("decide", "harbour", "Somebody began")
    journal = user.project / JOURNAL / "routes/harbour.jsonl"
    journal.write_bytes(journal.read_bytes() + journal.read_bytes().splitlines()[-1][:70])
    assert user.decisions("harbour") == ["Somebody began"]
    user.does("decide", "harbour", "Somebody went on")
    assert user.decisions("harbour") == ["Somebody began", "Somebody went on"]
    user.does("verify")


@pytest.mark.parametrize("is_kept", [True, False], ids=["index-kept", "index-deleted"])
def test_a_damaged_line_is_reported_and_kept_and_costs_nothing_else(user: User, is_kept: bool) -> None:
    user.has_decided("harbour", "Choice 1", "Choice 2", "Choice 3", "Choice 4")
    journal = user.project / JOURNAL / "routes/harbour.jsonl"
    bad = damage(journal, 1)
    if not is_kept:
        user.lose_derived()
    user.ralf("verify").complains(4, journal)
    user.ralf("decide", "harbour", "Choice 5")
    kept = user.decisions("harbour")
    assert [text for text in kept if text != "Choice 2"] == ["Choice 1", "Choice 3", "Choice 4", "Choice 5"]
    assert any(bad in data for _, data in user.store_bytes())


def test_a_route_file_that_is_gone_is_made_anew_from_the_journal(user: User) -> None:
    session = user.session()
    session.says("Please look after the moorings.")
    session.answers("The moorings are done.")
    user.does("decide", "harbour", "Use SQLite", "--because", "one file needs no server")
    user.does("checkpoint", "harbour", "--transcript", session.log)
    user.write_note("harbour", "The pilot boat is red.")
    user.does("decide", "harbour", "Cache tiles")
    words = ["one file needs no server", "look after the moorings", "The pilot boat is red.", "Cache tiles"]
    for lost in (False, True):
        before = user.does("show", "harbour", "--json").json()
        user.route_file("harbour").unlink()
        if lost:
            user.lose_derived()
        assert user.does("show", "harbour", "--json").json() == before
        words.append(f"Go on {lost}")
        user.does("decide", "harbour", words[-1])
        text = user.route_file("harbour").read_text()
        assert [one for one in words if one not in text] == []
