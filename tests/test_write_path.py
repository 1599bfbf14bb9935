"""The write path, step by step: who waits for whom, and what a dead writer or an editor leaves."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TextIO

import pytest

import ralf
from ralf import project
from ralf.errors import Busy
from ralf.format import routefile
from ralf.maintenance.forget import forget
from ralf.route.write import open_route
from ralf.storage import durable, files as safe_files
from storekit import AT_ONCE, HANGS, hidden, records_of, route_file

pytestmark = pytest.mark.ci

ROUTE = "tide"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    ralf.record_decision(ROUTE, "Keep the old columns", root=tmp_path)
    return tmp_path


@pytest.fixture
def path(root: Path) -> Path:
    return route_file(root, ROUTE)


def noted(path: Path, note: str = "by_hand") -> str:
    """The route file's text, with a note that a person made."""
    return path.read_text(encoding="utf-8").replace("\ndecisions:", f"\n{note}: true\ndecisions:", 1)


def looked_at(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f".ralf-{path.name}-*{durable.SEEN_SUFFIX}"))


def set_aside(path: Path, content: bytes, known: bytes) -> Path:
    """What a writer leaves that dies between the exchange and the merge."""
    aside = path.with_name(f".ralf-{path.name}-{sha256(known).hexdigest()[:12]}-0123456789ab.old")
    aside.write_bytes(content)
    return aside


# ---- what a dead writer leaves ----


def test_a_half_written_temporary_file_is_swept_unread(root: Path, path: Path) -> None:
    path.with_name(f".ralf-{path.name}-0123456789ab.tmp").write_text(noted(path)[:-100], encoding="utf-8")
    ralf.record_decision(ROUTE, "Go on", root=root)
    assert hidden(path) == []
    assert "edit" not in [record["kind"] for record in records_of(root, ROUTE)]


def test_a_save_that_a_dead_writer_had_displaced_is_taken_in(root: Path, path: Path) -> None:
    set_aside(path, noted(path).encode(), known=path.read_bytes())
    ralf.record_decision(ROUTE, "Go on", root=root)
    assert ralf.get_context(ROUTE, root=root).extra == {"by_hand": True}
    assert "\nby_hand: true" in path.read_text(encoding="utf-8")
    assert hidden(path) == []


def test_a_displaced_save_and_a_later_one_are_both_taken_in_and_the_later_one_wins(root: Path, path: Path) -> None:
    content = path.read_bytes()
    set_aside(path, noted(path, "first").replace("Keep the old", "Keep the first").encode(), known=content)
    path.write_text(noted(path, "second").replace("Keep the old", "Keep the second"), encoding="utf-8")
    ralf.record_decision(ROUTE, "Go on", root=root)
    context = ralf.get_context(ROUTE, root=root)
    assert set(context.extra) == {"first", "second"}
    assert context.decisions[0].decision == "Keep the second columns"


def test_a_displaced_file_that_is_ours_is_no_edit(root: Path, path: Path) -> None:
    old = path.read_bytes()
    ralf.record_decision(ROUTE, "Go on", root=root)
    for known in (old, b"another"):
        set_aside(path, old, known=known)
        ralf.record_decision(ROUTE, f"Go on after {len(known)}", root=root)
        assert hidden(path) == []
    assert "edit" not in [record["kind"] for record in records_of(root, ROUTE)]


def test_a_displaced_save_that_cannot_be_read_is_put_where_it_is_seen_and_said(root: Path, path: Path) -> None:
    set_aside(path, b"rubbish", known=b"")
    said: list[str] = []
    ralf.record_decision(ROUTE, "Go on", root=root, warn=said.append)
    (kept,) = path.parent.glob("tide.displaced-*")
    assert kept.read_bytes() == b"rubbish"
    assert said[0].startswith(f"{kept}: ")
    assert hidden(path) == []


def test_a_displaced_file_that_somebody_still_saves_into_is_left_until_they_are_done(root: Path, path: Path) -> None:
    content = noted(path).encode()
    aside = set_aside(path, content[:200], known=path.read_bytes())
    with aside.open("ab") as file:
        ralf.record_decision(ROUTE, "Go on", root=root)
        assert hidden(path) == [aside.name]
        file.write(content[200:])
    ralf.record_decision(ROUTE, "Go on again", root=root)
    assert ralf.get_context(ROUTE, root=root).extra == {"by_hand": True}
    assert hidden(path) == []


def test_a_save_into_a_file_found_before_and_opened_after_its_displacement_is_merged(root: Path, path: Path) -> None:
    """The kernel finds a file and opens it in two steps, between which a program may have to wait for its turn."""
    text, found = noted(path), os.open(path, os.O_PATH)
    ralf.record_decision(ROUTE, "Go on", root=root)
    with open(f"/proc/self/fd/{found}", "w", encoding="utf-8") as file:
        file.write(text)
    os.close(found)
    time.sleep(durable.GRACE)
    ralf.record_decision(ROUTE, "Go on again", root=root)
    assert ralf.get_context(ROUTE, root=root).extra == {"by_hand": True}
    assert "\nby_hand: true" in path.read_text(encoding="utf-8")


def test_a_forgetting_leaves_no_displaced_file_that_shows_the_words(root: Path, path: Path) -> None:
    ralf.record_decision(ROUTE, "Ask the harbour master", root=root)
    ralf.record_decision(ROUTE, "Go on", root=root)
    assert any(b"harbour" in one.read_bytes() for one in [path, *looked_at(path)])
    forget(ROUTE, text="harbour master", root=root)
    assert not any(b"harbour" in one.read_bytes() for one in [path, *looked_at(path)])


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
@pytest.mark.parametrize("mark", ["0123456789ab.tmp", "0123456789ab-0123456789ab.old", "1-2-0123456789ab.seen"])
def test_what_is_no_file_but_is_called_as_one_that_was_displaced_stops_no_write(
    root: Path, path: Path, make: Callable[[Path], None], mark: str
) -> None:
    make(path.with_name(f".ralf-{path.name}-{mark}"))
    ralf.record_decision(ROUTE, "Go on", root=root)
    assert "Go on" in path.read_text(encoding="utf-8")


def test_somebody_who_cleans_the_folder_during_a_write_stops_no_write(
    root: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = durable.exchange

    def cleaned(*args: Any) -> durable.DisplacedFile | None:
        displaced = exchange(*args)
        for name in hidden(path):
            path.with_name(name).unlink()
        return displaced

    monkeypatch.setattr(durable, "exchange", cleaned)
    ralf.record_decision(ROUTE, "Go on", root=root)
    assert "Go on" in path.read_text(encoding="utf-8")


def test_a_save_into_a_displaced_file_just_before_its_removal_is_merged(
    root: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = noted(path)
    ralf.record_decision(ROUTE, "Go on", root=root)
    (kept,) = looked_at(path)
    time.sleep(durable.GRACE)
    read = safe_files.read

    def saved_before(name: str | Path, *rest: int, **more: bytes) -> safe_files.Read:
        if Path(name) == kept:
            monkeypatch.undo()
            kept.write_text(text, encoding="utf-8")
        return read(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(safe_files, "read", saved_before)
    ralf.record_decision(ROUTE, "Go on again", root=root)
    ralf.record_decision(ROUTE, "Go on still", root=root)
    assert ralf.get_context(ROUTE, root=root).extra == {"by_hand": True}


def test_what_a_dead_writer_displaced_a_while_ago_and_knew_is_removed_at_once(root: Path, path: Path) -> None:
    """It may be a person's file with a secret."""
    aside = set_aside(path, b"A_PASSWORD=", known=b"A_PASSWORD=")
    time.sleep(durable.GRACE)
    durable.sweep(path)
    assert not aside.exists()
    assert all(b"A_PASSWORD=" not in one.read_bytes() for one in looked_at(path))


def test_a_displaced_file_is_kept_for_a_while_if_open_files_cannot_be_checked(
    root: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("fcntl.F_SETLEASE")
    editor = path.open("r+", encoding="utf-8")
    text = noted(path)
    ralf.record_decision(ROUTE, "Go on", root=root)
    with editor:  # into the file that was displaced meanwhile
        editor.write(text)
    time.sleep(durable.GRACE)
    ralf.record_decision(ROUTE, "Go on again", root=root)
    assert ralf.get_context(ROUTE, root=root).extra == {"by_hand": True}
    time.sleep(durable.GRACE)
    assert durable.sweep(path) == []
    assert looked_at(path)
    monkeypatch.setattr(durable, "_KEPT", 0.0)
    assert durable.sweep(path) == []
    assert looked_at(path) == []


# ---- an editor in the middle of a save ----


@pytest.fixture
def saving(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Half of a file, with the editor still at it, however long a busy machine takes; afterwards all of it."""
    monkeypatch.setattr(safe_files, "_QUIET_CUT", HANGS)
    text = noted(path)
    half = text.index("decision: ")
    with path.open("w", encoding="utf-8") as file:
        file.write(text[:half])
        file.flush()
        yield
        file.write(text[half:])


@pytest.mark.usefixtures("saving")
def test_a_write_beside_a_slow_save_is_acknowledged_and_reports_that_it_is_not_shown(root: Path, path: Path) -> None:
    half, said = path.read_bytes(), []
    started = time.monotonic()
    ralf.record_decision(ROUTE, "Go on", root=root, warn=said.append)
    assert time.monotonic() - started < AT_ONCE
    assert path.read_bytes() == half
    assert [record["kind"] for record in records_of(root, ROUTE)] == ["decision", "decision"]
    assert len(said) == 1


def test_half_a_save_deletes_nothing_and_the_whole_of_it_is_taken_in(
    root: Path, path: Path, request: pytest.FixtureRequest
) -> None:
    text = noted(path)
    with path.open("w", encoding="utf-8") as file:
        file.write(text[: text.index("\n## ")])  # a whole front matter: half a save that could be taken for an edit
        file.flush()
        ralf.record_decision(ROUTE, "Go on", root=root)
        file.write(text[text.index("\n## ") :])
    ralf.record_decision(ROUTE, "Go on again", root=root)
    context = ralf.get_context(ROUTE, root=root)
    assert [item.decision for item in context.decisions] == ["Keep the old columns", "Go on", "Go on again"]
    assert context.extra == {"by_hand": True}
    assert [record["kind"] for record in records_of(root, ROUTE)].count("edit") == 1


@pytest.mark.parametrize("up_to", ["decision: ", "\n## "], ids=["cannot be read", "can be read"])
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_half_a_save_is_left_to_an_editor_that_pauses_longer_than_a_write_waits(
    root: Path, path: Path, monkeypatch: pytest.MonkeyPatch, when: str, up_to: str
) -> None:
    monkeypatch.delattr("fcntl.F_SETLEASE")
    monkeypatch.setattr(durable, "_renameat2", lambda: None)  # as macOS
    monkeypatch.setattr(safe_files, "_QUIET_CUT", HANGS)  # no pause of a busy machine is taken for the editor's end
    path.write_text(
        path.read_text(encoding="utf-8").replace("\n## ", "\n## Notes\n\nTheirs\n\n## ", 1), encoding="utf-8"
    )
    time.sleep(2 * safe_files._QUIET)
    ralf.record_decision(ROUTE, "Go", root=root)
    text, exchange, said = noted(path), durable.exchange, []
    half = text.index(up_to)
    with ExitStack() as editing:

        def begin() -> TextIO:
            file = editing.enter_context(path.open("w", encoding="utf-8"))
            file.write(text[:half])
            file.flush()
            return file

        def begun_meanwhile(*args: Any) -> durable.DisplacedFile | None:
            monkeypatch.setattr(durable, "exchange", exchange)
            files.append(begin())
            return exchange(*args)

        files = [begin()] if when == "before" else []
        if files:
            time.sleep(2 * safe_files._QUIET)
        else:
            monkeypatch.setattr(durable, "exchange", begun_meanwhile)
        ralf.record_decision(ROUTE, "Go on", root=root, warn=said.append)
        files[0].write(text[half:])
    time.sleep(2 * safe_files._QUIET)
    ralf.record_decision(ROUTE, "Go on again", root=root, warn=said.append)
    context = ralf.get_context(ROUTE, root=root)
    assert [item.decision for item in context.decisions] == ["Keep the old columns", "Go", "Go on", "Go on again"]
    assert (context.extra, "Theirs" in context.body.before) == ({"by_hand": True}, True)
    assert [name for name in path.parent.iterdir() if "displaced" in name.name] == []


def test_a_save_that_ends_unreadable_during_a_write_stays_in_its_place(
    root: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange, editors = durable.exchange, []

    def opened_meanwhile(target: Path, content: bytes, known: str) -> durable.DisplacedFile | None:
        file = target.open("w", encoding="utf-8")
        editors.append(threading.Timer(0.02, lambda: (file.write("rubbish"), file.close())))
        editors[-1].start()
        return exchange(target, content, known)

    said: list[str] = []
    monkeypatch.setattr(durable, "exchange", opened_meanwhile)
    ralf.record_decision(ROUTE, "Go on", root=root, warn=said.append)
    assert len(editors) == 1
    assert path.read_text(encoding="utf-8") == "rubbish"
    assert said == []  # that the next write would show it is not true
    monkeypatch.undo()
    assert ralf.get_context(ROUTE, root=root).warnings[0].startswith(f"{path}: line 1: ")
    path.write_text("", encoding="utf-8")
    ralf.record_decision(ROUTE, "Go on again", root=root)
    assert [item.decision for item in ralf.get_context(ROUTE, root=root).decisions][-2:] == ["Go on", "Go on again"]


# ---- waiting for a lock ----


def until_waiting(lock: Path, count: int) -> None:
    """Until so many wait for a lock, or for their turn to, as the kernel tells."""
    while True:
        files = [path for path in (lock, lock.with_suffix(".queue")) if path.exists()]
        inodes = [f":{path.stat().st_ino} " for path in files]
        lines = [line for line in Path("/proc/locks").read_text().splitlines() if "->" in line]
        if sum(any(inode in line for inode in inodes) for line in lines) >= count:
            return
        time.sleep(0.001)


def test_a_lock_that_is_held_is_waited_for_no_longer_than_said(tmp_path: Path) -> None:
    lock = tmp_path / "locks" / "r.lock"
    with safe_files.locked(lock, "r"):
        for timeout in (0.0, 0.05):
            started = time.monotonic()
            with pytest.raises(Busy), safe_files.locked(lock, "r", timeout):
                pass
            assert time.monotonic() - started < AT_ONCE


def test_whoever_gives_up_waiting_keeps_the_lock_from_nobody(tmp_path: Path) -> None:
    lock = tmp_path / "locks" / "r.lock"
    with safe_files.locked(lock, "r"), pytest.raises(Busy), safe_files.locked(lock, "r", 0.02):
        pass
    for _ in range(3):
        with safe_files.locked(lock, "r", HANGS):
            pass


def test_those_who_wait_have_their_turn_in_order(tmp_path: Path) -> None:
    lock, turns = tmp_path / "locks" / "r.lock", []

    def wait(number: int) -> None:
        with safe_files.locked(lock, "r", HANGS):
            turns.append(number)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(5)]
    with safe_files.locked(lock, "r"):
        for count, thread in enumerate(threads, 1):
            thread.start()
            until_waiting(lock, count)
    for thread in threads:
        thread.join()
    assert turns == [0, 1, 2, 3, 4]


@pytest.fixture
def _on_one_processor() -> Iterator[None]:
    """Nobody who wakes runs before who runs already has to wait."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.mark.usefixtures("_on_one_processor")
def test_who_gives_a_lock_back_and_wants_it_again_lets_those_who_wait_go_first(tmp_path: Path) -> None:
    lock, turns = tmp_path / "locks" / "r.lock", []

    def wait(number: int) -> None:
        with safe_files.locked(lock, "r", HANGS, seen=True):
            turns.append(number)

    for number in range(10):
        with safe_files.locked(lock, "r", HANGS, seen=True):
            waiting = threading.Thread(target=wait, args=(number,))
            waiting.start()
            until_waiting(lock, 1)
        with safe_files.locked(lock, "r", HANGS, seen=True):
            assert turns[number:] == [number]
        waiting.join()
    assert not safe_files.is_lock_awaited(lock)


def test_who_is_killed_or_gives_up_while_waiting_is_passed_over(tmp_path: Path) -> None:
    lock, turns = tmp_path / "locks" / "r.lock", tmp_path / "turns"

    def wait(number: int) -> int:
        child = os.fork()
        if not child:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what runs behind it ignore that
            try:
                with safe_files.locked(lock, "r", HANGS, seen=True), turns.open("a") as file:
                    file.write(f"{number} ")
            except KeyboardInterrupt:
                turns.touch()
                signal.pause()  # it has given up, and lives on
            finally:
                os._exit(0)
        return child

    children = []
    try:
        with safe_files.locked(lock, "r"):
            for number in range(4):
                children.append(wait(number))
                until_waiting(lock, number + 1)
            os.kill(children[1], signal.SIGKILL)
            os.kill(children[2], signal.SIGINT)
            while not turns.exists():
                time.sleep(0.001)
        for number in (0, 3):
            os.waitpid(children[number], 0)
        assert turns.read_text() == "0 3 "
    finally:
        os.kill(children[2], signal.SIGKILL)
        for number in (1, 2):
            os.waitpid(children[number], 0)


@pytest.mark.parametrize("seen", [False, True])
def test_a_process_forked_while_a_thread_writes_keeps_the_lock_from_nobody(tmp_path: Path, seen: bool) -> None:
    lock = tmp_path / "locks" / "r.lock"
    inside, forked = threading.Event(), threading.Event()

    def write() -> None:
        with safe_files.locked(lock, "r", seen=seen):
            inside.set()
            forked.wait()

    def give_up() -> None:
        with pytest.raises(Busy), safe_files.locked(lock, "r", 1.0, seen=seen):  # long enough to be seen waiting
            pass

    writer, waiting = threading.Thread(target=write), threading.Thread(target=give_up)
    writer.start()
    inside.wait()
    waiting.start()
    until_waiting(lock, 1)
    child = os.fork()
    if not child:
        signal.pause()
    waiting.join()
    forked.set()
    writer.join()
    try:
        with safe_files.locked(lock, "r", AT_ONCE, seen=seen):
            assert not safe_files.is_lock_awaited(lock)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_process_forked_by_who_is_killed_while_writing_keeps_the_lock_from_nobody(tmp_path: Path) -> None:
    lock = tmp_path / "locks" / "r.lock"
    read, write = os.pipe()
    owner = os.fork()
    if not owner:
        with safe_files.locked(lock, "r", seen=True):
            child = os.fork()
            if child:
                os.write(write, str(child).encode())
            signal.pause()
    child = int(os.read(read, 20))
    os.kill(owner, signal.SIGKILL)
    os.waitpid(owner, 0)
    try:
        with safe_files.locked(lock, "r", AT_ONCE, seen=True):
            os.kill(child, 0)  # it lives
    finally:
        os.kill(child, signal.SIGKILL)
        os.close(read)
        os.close(write)


def test_a_writer_that_another_waits_for_leaves_it_to_that_one_to_show_both(
    root: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: list[bytes] = []
    exchange = durable.exchange
    monkeypatch.setattr(durable, "exchange", lambda path, new, old: (files.append(new), exchange(path, new, old))[1])
    decide = partial(ralf.record_decision, ROUTE, root=root)
    writers = [threading.Thread(target=decide, args=(text,)) for text in ("The first", "The second")]
    lock = project.find(root).route_lock(ROUTE)
    with safe_files.locked(lock, ROUTE):
        for count, writer in enumerate(writers, 1):
            writer.start()
            until_waiting(lock, count)  # so that both wait when the first has its turn
    for writer in writers:
        writer.join(HANGS)
    assert not safe_files.is_lock_awaited(lock)
    assert files == [path.read_bytes()]
    assert [d.decision for d in routefile.parse(path.read_bytes(), path).decisions][-2:] == ["The first", "The second"]


def test_an_edit_during_a_write_is_merged_and_the_next_writer_shows_it(
    root: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = durable.exchange

    def saved_meanwhile(target: Path, content: bytes, known: str) -> durable.DisplacedFile | None:
        if "by_hand" not in target.read_text(encoding="utf-8"):
            path.write_text(noted(path), encoding="utf-8")
        return exchange(target, content, known)

    with monkeypatch.context() as patch, open_route(project.find(root), ROUTE) as writer:
        writer.absorb_edits()
        patch.setattr(durable, "exchange", saved_meanwhile)
        patch.setattr(writer, "_next_shows", True)
        writer.append("decision", {"decision": {"decision": "Go on"}}, id="first")
        writer.render_file()
    assert "by_hand" not in path.read_text(encoding="utf-8")
    read = ralf.get_context(ROUTE, root=root)
    assert (read.extra["by_hand"], read.decisions[-1].decision) == (True, "Go on")
    ralf.record_decision(ROUTE, "And on", root=root)
    found = routefile.parse(path.read_bytes(), path)
    assert (found.extra["by_hand"], [item.decision for item in found.decisions][-2:]) == (True, ["Go on", "And on"])


def test_a_file_that_cannot_be_replaced_without_losing_saves_is_left_and_reported(
    root: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(source: str, target: str) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), target)

    monkeypatch.setattr(durable, "_renameat2", lambda: None)
    monkeypatch.setattr(os, "link", refusing)
    path.write_text(noted(path), encoding="utf-8")
    edited, said = path.read_bytes(), list[str]()
    ralf.record_decision(ROUTE, "Go on", root=root, warn=said.append)
    assert said == [
        f"{path}: this file system can neither exchange nor link files: left as it is, for a save would be lost; "
        "what was written is in the journal, which is read"
    ]
    assert (path.read_bytes(), hidden(path)) == (edited, [])
    context = ralf.get_context(ROUTE, root=root)
    assert (context.decisions[-1].decision, context.extra) == ("Go on", {"by_hand": True})


def test_a_route_that_is_only_opened_for_writing_is_left_as_it_is(root: Path, path: Path) -> None:
    path.write_text(noted(path), encoding="utf-8")
    folder = project.find(root).folder
    before = {one: one.read_bytes() for one in folder.rglob("*") if one.is_file() and one.suffix != ".lock"}
    with open_route(project.find(root), ROUTE) as writer, pytest.raises(RuntimeError):
        writer.render_file()
    assert {one: one.read_bytes() for one in folder.rglob("*") if one.is_file() and one.suffix != ".lock"} == before
    with open_route(project.find(root), ROUTE) as writer:
        writer.absorb_edits()
    assert ralf.get_context(ROUTE, root=root).extra["by_hand"] is True
    assert records_of(root, ROUTE)[-1]["kind"] == "edit"
